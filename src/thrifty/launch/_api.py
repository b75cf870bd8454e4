"""The commands as functions: ``thrifty.run``, ``thrifty.bill``, ``thrifty.runs``."""

from collections.abc import Sequence
from pathlib import Path

from thrifty.launch._session import run_target
from thrifty.launch._start import RunOptions
from thrifty.launch._target import parse_target
from thrifty.records import Run, UsageError

__all__ = ["bill", "run", "runs"]


def run(  # noqa: PLR0913 (each is an option of the command)
    script: str | Path,
    args: Sequence[object] = (),
    *,
    price: float | None = None,
    machine: str | None = None,
    spot: bool = False,
    json_file: Path | None = None,
    quiet: bool = True,
) -> Run:
    """Run a training script in a process of its own and give its record.

    Signals that this process would get are blocked while the script runs; call it from the
    main thread.

    Args:
        script: Path of a Python script, or ``-m pkg.mod``.
        args: The script's own arguments; what is no text is turned into it.
        price: USD per hour of the machine.
        machine: ``provider:instance`` of the catalogue, for its price.
        spot: Take that machine's spot price.
        json_file: Write the record there as well.
        quiet: No live line and no bill on the terminal.

    Returns:
        The record; the script's exit status stands in ``exit_code``.

    Raises:
        ThriftyError: An option cannot be used; nothing was started.
    """
    if isinstance(args, str):
        problem = f"args is the text {args!r}; expected a list of arguments"
        raise UsageError(problem, fix="thrifty.run(script, shlex.split(args))")
    name = str(script)
    words = ["-m", name[3:].strip()] if name.startswith("-m ") else [name]
    options = RunOptions(price=price, machine=machine, spot=spot, json_file=json_file, quiet=quiet)
    return run_target(parse_target([*words, *map(str, args)]), options)


def bill(which: str | int = "last") -> Run:
    """Give the record of an earlier run.

    Args:
        which: Its number, the beginning of its run_id, or ``last``.

    Raises:
        LedgerError: No run or several are meant, or its record cannot be read.
    """
    from thrifty.ledger import Ledger
    from thrifty.machines import thrifty_home

    return Ledger(thrifty_home()).find(str(which))


def runs(*, limit: int | None = None) -> list[Run]:
    """List the ledger's runs, newest first.

    Args:
        limit: At most so many; None for all.

    Raises:
        LedgerError: The ledger cannot be read.
    """
    from thrifty.ledger import Ledger
    from thrifty.machines import thrifty_home

    return Ledger(thrifty_home()).runs(limit=limit)
