"""``thrifty bill``: the bill of one run."""

import argparse
import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

from thrifty.ledger import Ledger
from thrifty.machines import thrifty_home
from thrifty.records import LedgerError, Run, UsageError

__all__ = ["EPILOG", "HELP", "Recover", "bill_of", "configure", "execute"]

HELP = "show the bill of a run: where its seconds and dollars went"

EPILOG = """examples:
  thrifty bill                 the last run
  thrifty bill 142             run 142, as thrifty runs numbers it
  thrifty bill 3f9c            the run whose id begins like this
  thrifty bill 142 --json      its record, as JSON

If the launcher of a run was killed, its books are closed now, from what it had
written.
"""

_MIN_WIDTH = 40

Recover = Callable[[Path], Run | None]
"""Closes the books of a run from its folder; None when the folder holds too little."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument(
        "run",
        metavar="RUN",
        nargs="?",
        default="last",
        help="a run's number, the beginning of its id, or last (the default)",
    )
    parser.add_argument("--json", action="store_true", help="print the record as JSON")
    parser.add_argument(
        "--width",
        metavar="N",
        type=int,
        help="columns to draw in (default: the terminal's, or 80)",
    )


def execute(args: argparse.Namespace) -> int:
    """Print one bill.

    Raises:
        LedgerError: No run, or several, are meant, or the record cannot be read.
        UsageError: ``--width`` is too narrow for a bill.
    """
    if args.width is not None and args.width < _MIN_WIDTH:
        problem = f"--width {args.width} is too narrow for a bill; it needs {_MIN_WIDTH}"
        raise UsageError(problem, fix="thrifty bill --width 80")
    ledger = Ledger(thrifty_home())
    run = bill_of(ledger, args.run, recover=_recover)
    if args.run == "last":
        _warn_of_newer(ledger, run)
    if args.json:
        sys.stdout.write(json.dumps(run.to_json(), indent=2) + "\n")
        return 0
    # Here, not above: --json needs no report.
    from thrifty.report import can_print_blocks, render_bill

    width = args.width or shutil.get_terminal_size((80, 24)).columns
    colour = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    plain = not can_print_blocks(sys.stdout.encoding)
    text = render_bill(run, width=width, colour=colour, ascii_only=plain)
    sys.stdout.write(f"{text}\n")
    return 0


def bill_of(ledger: Ledger, text: str, *, recover: Recover) -> Run:
    """Find a run, closing its books first if its launcher could not.

    Args:
        ledger: Where to look.
        text: What was typed: a number, the beginning of an id, ``last``.
        recover: Called with the folder of an incomplete run; gives None when it knows no more.

    Raises:
        LedgerError: No run, or several, are meant, or the record cannot be read.
    """
    run = ledger.find(text)
    if run.status != "incomplete" or run.number is None:
        return run
    recovered = recover(ledger.folder(run.number))
    if recovered is None:
        return run
    try:
        ledger.amend(recovered)
    except LedgerError as error:
        # A home that cannot be written (read-only, full) still shows its bills.
        sys.stderr.write(f"warning: the recovered bill is not kept: {error.problem}\n")
    return recovered


def _recover(folder: Path) -> Run | None:
    # Here, not above: most bills need no recovery.
    from thrifty.launch import recover

    return recover(folder)


def _warn_of_newer(ledger: Ledger, run: Run) -> None:
    for number, problem in ledger.unreadable().items():
        if number > (run.number or 0):
            line = f"warning: run {number} is newer, but {problem} ({ledger.folder(number)})"
            sys.stderr.write(f"{line}\n")
