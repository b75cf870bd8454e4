"""Start a script with what a plain start would have given it, as soon as can be.

The script waits for all that stands above its start here, so this file imports little; the
ledger, the devices and the prices come after (``_watch.py``), while the script already runs.
The script's process is our child in our own process group, on our own terminal, with our own
standard streams: nothing stands in between.
"""

import os
import signal
import sys
import time
from pathlib import Path

from thrifty.launch._signals import SignalDesk
from thrifty.launch._target import Target, script_environment

TYPE_CHECKING = False
if TYPE_CHECKING:
    from thrifty.records import Price
    from thrifty.report import LiveMode

__all__ = ["RunOptions", "Started", "start"]

_RESERVE_BYTES = 4 << 20


class RunOptions:
    """What the user asked of us, as opposed to of the script.

    Args:
        price: USD per hour of the machine, as typed.
        machine: ``provider:instance`` of the catalogue.
        spot: Its spot price.
        json_file: Where the record goes as well.
        quiet: No live line, no bill.
        live: How the live line shows; None for the saved default.
    """

    # No dataclass: importing that would keep the script waiting as long as Python's own start.
    __slots__ = ("json_file", "live", "machine", "price", "quiet", "spot")

    def __init__(  # noqa: PLR0913 (each is an option)
        self,
        *,
        price: str | float | None = None,
        machine: str | None = None,
        spot: bool = False,
        json_file: Path | None = None,
        quiet: bool = False,
        live: "LiveMode | None" = None,
    ) -> None:
        self.price = price
        self.machine = machine
        self.spot = spot
        self.json_file = json_file
        self.quiet = quiet
        self.live: LiveMode | None = live


class Started:
    """A script's process that has just been started, or the reason why it was not.

    Args:
        run_id: Unique on every machine.
        process_id: 0 when it could not be started.
        error: Why not.
        start_ns: ``perf_counter_ns`` just before the start.
        started_at_s: Seconds since the epoch: a date, never a duration.
        records: Where the script's side writes; None when there is no room anywhere.
        desk: Holds the signals meant for the script.
        price: From --price or --machine; a saved one is looked up later.
    """

    __slots__ = (
        *("desk", "error", "price", "process_id"),
        *("records", "run_id", "start_ns", "started_at_s"),
    )

    def __init__(  # noqa: PLR0913 (what a start knows)
        self,
        *,
        run_id: str,
        process_id: int,
        error: OSError | None,
        start_ns: int,
        started_at_s: float,
        records: Path | None,
        desk: SignalDesk,
        price: "Price | None",
    ) -> None:
        self.run_id = run_id
        self.process_id = process_id
        self.error = error
        self.start_ns = start_ns
        self.started_at_s = started_at_s
        self.records = records
        self.desk = desk
        self.price = price


def start(target: Target, price: "Price | None") -> Started:
    """Start the script's process.

    Args:
        target: What to start.
        price: Already known, or None.
    """
    now_s = time.time()  # noqa: TID251 (a date, not a duration)
    day = time.strftime("%Y%m%dT%H%M%S", time.gmtime(now_s))
    run_id = f"{day}-{os.urandom(4).hex()}"
    records = _records_folder(run_id) if target.observable else None
    desk = SignalDesk()
    command = target.command
    environment = script_environment(os.environ, records)
    spawn = os.posix_spawn if os.sep in command[0] else os.posix_spawnp
    process_id, failed = 0, None
    start_ns = time.perf_counter_ns()
    try:
        process_id = spawn(
            command[0],
            list(command),
            environment,
            setsigmask=desk.script_mask or (),
            # Python ignores these for itself; a script starts with them at their defaults.
            setsigdef=(signal.SIGPIPE, signal.SIGXFSZ),
        )
    except OSError as error:
        failed = error
    return Started(
        run_id=run_id,
        process_id=process_id,
        error=failed,
        start_ns=start_ns,
        started_at_s=now_s,
        records=records,
        desk=desk,
        price=price,
    )


def _records_folder(run_id: str) -> Path | None:
    """Find a place with room for records: thrifty's home, else a temporary folder."""
    from thrifty.machines import thrifty_home

    path = thrifty_home() / "records" / run_id
    try:
        path.mkdir(parents=True, mode=0o700)
        _reserve(path)
    except OSError:
        return _temporary_folder()
    return path


def _temporary_folder() -> Path | None:
    import tempfile

    try:
        path = Path(tempfile.mkdtemp(prefix="thrifty-"))
        _reserve(path)
    except OSError:
        return None
    return path


def _reserve(path: Path) -> None:
    """Check that there is room for some records.

    Raises:
        OSError: There is none.
    """
    trial = path / "room"
    fd = os.open(trial, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
    try:
        if sys.platform != "darwin":
            os.posix_fallocate(fd, 0, _RESERVE_BYTES)
    finally:
        os.close(fd)
        trial.unlink()
