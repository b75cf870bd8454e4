"""Run a target: check what could refuse, start it, watch it, give its record."""

import os
from pathlib import Path

from thrifty.launch._start import RunOptions, start
from thrifty.launch._target import Target
from thrifty.records import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from thrifty.records import Run

__all__ = ["check_json_path", "run_target"]


def check_json_path(path: Path) -> None:
    """Refuse a place for the record that would destroy something or cannot be written.

    Raises:
        UsageError: It does not end in .json, its folder is missing, or it is a folder.
    """
    if path.suffix != ".json":
        problem = f"--json {path}: expected a name that ends in .json, so that no script is lost"
        raise UsageError(problem, fix=f"--json {path.stem or 'run'}.json")
    if path.is_dir():
        problem = f"--json {path} is a folder"
        raise UsageError(problem, fix=f"--json {path}/run.json")
    if not path.parent.is_dir():
        problem = f"--json {path}: there is no folder {path.parent}"
        raise UsageError(problem, fix=f"mkdir -p {path.parent}")


def run_target(target: Target, options: RunOptions, *, keep_blocked: bool = False) -> "Run":
    """Run a script under observation.

    Args:
        target: What to run.
        options: Ours.
        keep_blocked: Leave the script's signals blocked at the end, for a caller that has
            nothing left to do but to end.

    Returns:
        Its record. The script's exit status stands in ``exit_code``.

    Raises:
        ThriftyError: One of our options cannot be used; nothing was started.
    """
    _occupy_standard_streams()
    if options.json_file is not None:
        check_json_path(options.json_file)
    price = None
    if options.price is not None or options.machine is not None or options.spot:
        from thrifty.machines import resolve_price

        price = resolve_price(price=options.price, machine=options.machine, spot=options.spot)
    started = start(target, price)
    if keep_blocked:  # the command's own process, without threads
        started.desk.call_witness()
    from thrifty.launch._watch import watch  # now that the script is on its way

    try:
        return watch(target, options, started)
    finally:
        if not keep_blocked:
            started.desk.close()


def _occupy_standard_streams() -> None:
    """Keep closed standard streams from becoming the numbers of our own files.

    Ours are not inherited, so the script still starts with them closed.
    """
    for fd in range(3):
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, os.O_RDWR | getattr(os, "O_CLOEXEC", 0))
