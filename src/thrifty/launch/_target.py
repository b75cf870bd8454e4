"""What was asked to run, and the command and environment that start it."""

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from thrifty.records import UsageError

__all__ = ["Target", "parse_target", "script_environment"]

_BOOTSTRAP = str(Path(__file__).parent / "bootstrap")


class Target:
    """A script, a module or any command, with its arguments.

    Args:
        script: As typed: the path, ``-m pkg.mod``, or the command's name.
        argv: Its own arguments.
        command: What is started; the first is looked up in PATH when it is no path.
        observable: False for an interpreter told to read PYTHONPATH but no sitecustomize
            (-S): our folder would stay in its sys.path.
    """

    # No dataclass: importing that would keep the script waiting as long as Python's own start.
    __slots__ = ("argv", "command", "observable", "script")

    def __init__(
        self,
        *,
        script: str,
        argv: tuple[str, ...],
        command: tuple[str, ...],
        observable: bool = True,
    ) -> None:
        self.script = script
        self.argv = argv
        self.command = command
        self.observable = observable


def parse_target(words: Sequence[str]) -> Target:
    """Read ``train.py ARGS``, ``-m pkg.mod ARGS`` or ``-- COMMAND ARGS``.

    Raises:
        UsageError: Nothing to run.

    Example:
        >>> parse_target(["-m", "pkg.mod", "--lr", "1"]).script
        '-m pkg.mod'
    """
    example = "thrifty run train.py --lr 0.1"
    if not words:
        problem = "nothing to run: expected a script, -m MODULE or -- COMMAND"
        raise UsageError(problem, fix=example)
    first, rest = words[0], tuple(words[1:])
    if first == "--":
        if not rest:
            problem = "nothing to run after --: expected a command"
            raise UsageError(problem, fix="thrifty run -- bash train.sh")
        return Target(script=rest[0], argv=rest[1:], command=rest, observable=not _skips_site(rest))
    if first == "-m" or (first.startswith("-m") and not first.startswith("--")):
        module, rest = (first[2:], rest) if first != "-m" else (rest[0] if rest else "", rest[1:])
        if not module:
            problem = "nothing to run after -m: expected a module"
            raise UsageError(problem, fix="thrifty run -m pkg.train --lr 0.1")
        return Target(
            script=f"-m {module}",
            argv=rest,
            command=(sys.executable, "-m", module, *rest),
        )
    return Target(script=first, argv=rest, command=(sys.executable, first, *rest))


def _skips_site(command: Sequence[str]) -> bool:
    """Tell whether a command is a Python with -S.

    Example:
        >>> _skips_site(["python3", "-uS", "train.py"])
        True
        >>> _skips_site(["python3", "train.py", "-S"])
        False
    """
    if not os.path.basename(command[0]).startswith("python"):  # noqa: PTH119 (a word, no path)
        return False
    for word in command[1:]:
        if not word.startswith("-") or word.startswith(("--", "-c", "-m")):
            return False
        if "S" in word and not word.startswith(("-W", "-X")):
            return True
    return False


def script_environment(environ: Mapping[str, str], records: Path | None) -> dict[str, str]:
    """Give the environment that makes an interpreter attach.

    Args:
        environ: Ours.
        records: Where the script's side writes; None to start it unobserved.

    Returns:
        A copy with one more entry in front of PYTHONPATH, and THRIFTY_ATTACH.
    """
    made = dict(environ)
    made.pop("THRIFTY_ATTACH", None)
    if records is None:
        return made
    path = made.get("PYTHONPATH")
    # An empty PYTHONPATH means none; an empty entry in a longer one means the current folder.
    made["PYTHONPATH"] = f"{_BOOTSTRAP}{os.pathsep}{path}" if path else _BOOTSTRAP
    made["THRIFTY_ATTACH"] = f"{records}|{os.getpid()}"
    return made
