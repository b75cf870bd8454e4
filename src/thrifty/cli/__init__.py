"""The command line: one thin command for each public function."""

import argparse
import importlib
import sys
from collections.abc import Sequence

from thrifty.records import ThriftyError, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

__all__ = ["COMMANDS", "main"]

COMMANDS = ("run", "bill", "runs", "config")
"""Each lives in ``_<name>.py`` with HELP, EPILOG, configure and execute."""

_DESCRIPTION = """Know where every device-second and dollar of a training run goes.

  thrifty run train.py --lr 0.1     run a script unchanged, then print its bill
  thrifty bill                      see the last bill again
"""

_USAGE = 2


class _Parser(argparse.ArgumentParser):
    """Argparse, with errors as everywhere else: one problem and one fix."""

    def error(self, message: str) -> "NoReturn":
        """Refuse the command line.

        Raises:
            UsageError: Always.
        """
        problem = f"{self.prog}: {message}"
        raise UsageError(problem, fix=f"{self.prog} --help")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        if words and words[0] in COMMANDS:
            return _one(words[0], words[1:])
        parser = _overview()
        parser.parse_args(words)
        parser.print_help()
    except ThriftyError as error:
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        return _USAGE
    except BrokenPipeError:  # thrifty runs | head
        sys.stdout = None
        return 0
    return 0


def _one(name: str, words: list[str]) -> int:
    # Only the command that was asked for is imported: a script waits for this.
    command = importlib.import_module(f"thrifty.cli._{name}")
    parser = _Parser(
        prog=f"thrifty {name}",
        description=command.HELP[0].upper() + command.HELP[1:] + ".",
        epilog=command.EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.configure(parser)
    rest: list[str] = []
    if name == "run":
        words, rest = command.split(words)
    args = parser.parse_args(words)
    if name == "run":
        args.words = rest
    return command.execute(args)


def _overview() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="thrifty",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    from importlib.metadata import version

    parser.add_argument("--version", action="version", version=f"thrifty {version('thrifty')}")
    commands = parser.add_subparsers(metavar="COMMAND", title="commands")
    for name in COMMANDS:
        help_text = importlib.import_module(f"thrifty.cli._{name}").HELP
        commands.add_parser(name, help=help_text, add_help=False)
    return parser
