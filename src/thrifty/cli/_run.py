"""``thrifty run``: a script, unchanged, and its bill."""

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

from thrifty.launch._session import check_json_path
from thrifty.records import UsageError

__all__ = ["EPILOG", "HELP", "configure", "execute", "split"]

HELP = "run a training script unchanged and print where its seconds and dollars went"

EPILOG = """examples:
  thrifty run train.py --lr 0.1         a script with its own arguments
  thrifty run --price 2.10 train.py     with what the machine costs per hour
  thrifty run --machine aws:g5.xlarge train.py
  thrifty run --json bill.json train.py the record as a file too
  thrifty run -m pkg.train --lr 0.1     a module, as python -m does
  thrifty run -- bash train.sh          any command; Python below it is observed

Our options come before the script's name, the script's own after it. The
script's output, exit status and signals are its own. The bill is printed on
standard error after the script has ended, when that is a terminal; see it
later with: thrifty bill
"""

_WITH_VALUE = {"--price", "--machine", "--json", "--live"}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.usage = "thrifty run [options] (train.py | -m MODULE | -- COMMAND) [args]"
    parser.add_argument("--price", metavar="USD", help="price of the machine per hour, as 2.10")
    parser.add_argument(
        "--machine", metavar="NAME", help="price by the catalogue, as aws:g5.xlarge"
    )
    parser.add_argument("--spot", action="store_true", help="that machine's spot price")
    parser.add_argument(
        "--json", metavar="FILE.json", type=Path, help="write the record to this file"
    )
    parser.add_argument(
        "--live",
        choices=("row", "title", "off"),
        help="where the live line shows: the bottom row (default), the window's title, nowhere",
    )
    parser.add_argument("--quiet", "-q", action="store_true", help="no live line and no bill")


def split(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Part our options from what is to be run.

    Raises:
        UsageError: What follows --json is no place for a record.

    Example:
        >>> split(["--price", "2", "train.py", "--price", "3"])
        (['--price', '2'], ['train.py', '--price', '3'])
    """
    place = 0
    while place < len(words):
        word = words[place]
        if word == "--" or word.startswith("-m") or not word.startswith("-") or word == "-":
            break
        if word == "--json" and place + 1 < len(words):
            # Before anything else: the next word may be the script that was meant to run.
            check_json_path(Path(words[place + 1]))
        place += 2 if word in _WITH_VALUE else 1
    return list(words[:place]), list(words[place:])


def execute(args: argparse.Namespace) -> int:
    """Run the script and end as it did.

    Raises:
        UsageError: Nothing to run, or an option that cannot be used.
        PriceError: The price or the machine cannot be used.
    """
    from thrifty.launch import RunOptions, die_by, parse_target, run_target

    words: list[str] = args.words
    if words and words[0] == "-":
        problem = "a script on standard input cannot be observed"
        raise UsageError(problem, fix="save it to a file, then: thrifty run train.py")
    run = run_target(
        parse_target(words),
        RunOptions(
            price=args.price,
            machine=args.machine,
            spot=args.spot,
            json_file=args.json,
            quiet=args.quiet,
            live=args.live,
        ),
        keep_blocked=True,
    )
    code = run.exit_code or 0
    if code < 0:
        die_by(-code)
    if os.environ.get("PYTHONINSPECT"):  # meant for the script, which has had its prompt
        os._exit(code)
    return code
