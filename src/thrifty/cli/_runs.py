"""``thrifty runs``: every run in the ledger, newest first."""

import argparse
import json
import os
import shutil
import sys
from typing import get_args

from thrifty.ledger import Ledger
from thrifty.machines import thrifty_home
from thrifty.records import RunStatus, UsageError

__all__ = ["EPILOG", "HELP", "configure", "execute"]

HELP = "list the runs in the ledger, newest first"

EPILOG = """examples:
  thrifty runs                         the last 20
  thrifty runs --limit 500             the last 500
  thrifty runs --status failed         only those that failed
  thrifty runs --script train.py       only scripts whose name contains this
  thrifty runs --json                  their records, as JSON

A run without a living launcher is never shown as running: it is incomplete, and
`thrifty bill RUN` shows what is known of it.
"""

_DEFAULT_LIMIT = 20
_SHOWN_PROBLEMS = 3


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument(
        "--limit",
        metavar="N",
        type=int,
        default=_DEFAULT_LIMIT,
        help=f"show at most N runs (default: {_DEFAULT_LIMIT})",
    )
    parser.add_argument(
        "--status",
        metavar="STATUS",
        choices=get_args(RunStatus),
        help="only runs with this status: " + ", ".join(get_args(RunStatus)),
    )
    parser.add_argument("--script", metavar="TEXT", help="only scripts whose name contains TEXT")
    parser.add_argument("--json", action="store_true", help="print the records as JSON")


def execute(args: argparse.Namespace) -> int:
    """Print the runs; records that cannot be read become warnings.

    Raises:
        LedgerError: The ledger exists but cannot be listed.
        UsageError: ``--limit`` is below 1.
    """
    if args.limit < 1:
        problem = f"--limit {args.limit} shows nothing; it must be 1 or more"
        raise UsageError(problem, fix=f"thrifty runs --limit {_DEFAULT_LIMIT}")
    ledger = Ledger(thrifty_home())
    runs = ledger.runs(limit=args.limit, status=args.status, script=args.script)
    _warn(ledger)
    if args.json:
        sys.stdout.write(json.dumps([run.to_json() for run in runs], indent=2) + "\n")
        return 0
    if not runs:
        sys.stderr.write(_nothing(ledger, args))
        return 0
    # Here, not above: --json and an empty ledger need no report.
    from thrifty.report import can_print_blocks, render_runs

    width = shutil.get_terminal_size((80, 24)).columns
    colour = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    plain = not can_print_blocks(sys.stdout.encoding)
    text = render_runs(runs, width=width, colour=colour, ascii_only=plain)
    sys.stdout.write(f"{text}\n")
    return 0


def _nothing(ledger: Ledger, args: argparse.Namespace) -> str:
    if (args.status or args.script is not None) and ledger.runs(limit=1):
        return "no such runs; thrifty runs shows the last of any kind\n"
    return f"no runs in {ledger.home} yet; thrifty run train.py makes the first\n"


def _warn(ledger: Ledger) -> None:
    problems = ledger.unreadable()
    newest = sorted(problems, reverse=True)
    for number in newest[:_SHOWN_PROBLEMS]:
        line = f"warning: run {number} is not shown, {problems[number]} ({ledger.folder(number)})"
        sys.stderr.write(f"{line}\n")
    if (more := len(newest) - _SHOWN_PROBLEMS) > 0:
        sys.stderr.write(f"warning: nor are {more} older ones that cannot be read\n")
