"""Run folders: ``<home>/runs/<number>/``, the truth that everything else is derived from.

Numbers are claimed by an exclusive ``mkdir``, so no two launchers ever share one, on any
file system; a counter beside them remembers the last one, so that a number stays retired when
its folder is deleted.
"""

import contextlib
import errno
import os
import re
from dataclasses import dataclass, replace
from pathlib import Path

from thrifty.ledger._files import held, ledger_error, write_whole
from thrifty.ledger._lease import Lease, lease_of_this_process, renew_lease, write_lease
from thrifty.ledger._record import RecordError, dump_run
from thrifty.records import LedgerError, Run, RunStatus

__all__ = [
    "LEASE",
    "RECORD",
    "Header",
    "RunFolder",
    "Scan",
    "Signature",
    "create",
    "keep",
    "number_of",
    "scan",
]

RECORD = "run.json"
LEASE = "lease.json"
_RESERVE = ".reserve"
_COUNTER = ".last"

_RESERVE_BYTES = 65_536
"""Given back to a full disk when the books are closed: a script that died because its
checkpoints filled the disk is the one whose bill is wanted."""

_SIGNED = (1 << 63) - 1
"""SQLite's integers are signed, the system's inode numbers are not."""

_DIGITS = 12
_CLAIM_LIMIT = 10**9
"""A folder or counter beyond this was made by hand, and is no reason to count on from it."""

_NUMBER = re.compile(rf"[1-9][0-9]{{0,{_DIGITS - 1}}}", re.ASCII)
_COUNTER_PATIENCE_S = 1.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Signature:
    """What changes when a run's record does."""

    inode: int
    """Every ``write_whole`` makes a new one."""

    size_bytes: int
    """Of ``run.json``."""

    changed_ns: int
    """The inode's change time: no tool can set it back, as ``touch`` does the other."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Scan:
    """The run folders at one moment."""

    records: dict[int, Signature]
    """Folders with a record, by number."""

    without: tuple[int, ...]
    """Folders that hold something, but no record."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Header:
    """What finding a run needs to know of it."""

    number: int
    """The folder's."""

    signature: Signature
    """Of the record that this was read from."""

    run_id: str
    """Without surrogates, which no index can hold; so is ``script``."""

    status: RunStatus | None
    """As written: ``running`` is only believed under a lease."""

    script: str
    """As typed."""

    problem: str | None
    """Why the record cannot be read; the fields above are empty then."""


class RunFolder:
    """One run's folder, held by the launcher that began it."""

    def __init__(self, path: Path, run: Run, lease: Lease) -> None:
        self.path = path
        self.run = run
        self._lease = lease

    @property
    def number(self) -> int:
        """The run's short name in its ledger."""
        return int(self.path.name)

    def renew(self) -> None:
        """Say that the launcher lives; cheap, to be called about every ten seconds.

        Raises:
            LedgerError: The lease cannot be written, or somebody deleted the folder.
        """
        self._lease = replace(self._lease, renewed_at=lease_of_this_process().renewed_at)
        path = self.path / LEASE
        try:
            renew_lease(path, self._lease)
        except OSError as error:
            raise ledger_error(error, path=path, action="cannot renew the run's lease") from error

    def update(self, run: Run) -> None:
        """Keep what is known by now.

        Raises:
            LedgerError: It cannot be written; the record is as it was.
        """
        self.run = keep(self.path, run)

    def finish(self, run: Run) -> None:
        """Keep the final record.

        Raises:
            LedgerError: It cannot be written; the record is as it was.
            ValueError: The run's status is still ``running``.
        """
        if run.status == "running":
            msg = "a finished run needs the status with which it ended, not 'running'"
            raise ValueError(msg)
        self.update(run)
        _release(self.path)


def create(runs: Path, run: Run) -> RunFolder:
    """Make the next run folder and write the run's record and lease into it.

    Raises:
        LedgerError: The home cannot be written.
    """
    try:
        # Arguments may hold tokens, so a home that we make is the user's own.
        runs.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        runs.mkdir(exist_ok=True)
        path = _claim(runs)
    except OSError as error:
        raise ledger_error(error, path=runs, action="cannot make a run folder") from error
    try:
        lease = lease_of_this_process()
        # First the lease: no reader ever meets a running record without it.
        write_lease(path / LEASE, lease)
        kept = keep(path, run)
    except (OSError, LedgerError) as error:
        _forget(path)
        if isinstance(error, OSError):
            raise ledger_error(error, path=path, action="cannot begin the run's record") from error
        raise
    # Without a reserve the run only has a worse chance on a full disk.
    with contextlib.suppress(OSError):
        (path / _RESERVE).write_bytes(bytes(_RESERVE_BYTES))
    return RunFolder(path, kept, lease)


def keep(folder: Path, run: Run) -> Run:
    """Write a run's record into its folder, under the folder's own number.

    Returns:
        The run as written.

    Raises:
        LedgerError: It cannot be written; the record is as it was.
    """
    run = replace(run, number=int(folder.name))
    path = folder / RECORD
    try:
        text = dump_run(run)
    except RecordError as error:
        problem = f"cannot keep the record of run {folder.name}: {error}"
        fix = "report it with this line: thrifty itself made the record"
        raise LedgerError(problem, fix=fix) from error
    try:
        write_whole(path, text)
    except OSError as error:
        if error.errno not in {errno.ENOSPC, errno.EDQUOT} or not _release(folder):
            raise ledger_error(error, path=path, action="cannot write") from error
        try:
            write_whole(path, text)
        except OSError as again:
            raise ledger_error(again, path=path, action="cannot write") from again
    return run


def _release(folder: Path) -> bool:
    """Give the reserved space back; False when there was none."""
    try:
        (folder / _RESERVE).unlink()
    except OSError:
        return False
    return True


def scan(runs: Path) -> Scan:
    """Look at every run folder once.

    Raises:
        LedgerError: The folder of runs exists but cannot be listed.
    """
    records: dict[int, Signature] = {}
    without: list[int] = []
    try:
        numbers = _numbers(runs)
    except FileNotFoundError:
        numbers = []
    except OSError as error:
        raise ledger_error(error, path=runs, action="cannot list the runs") from error
    for number in numbers:
        folder = f"{runs}/{number}"
        try:
            met = os.stat(f"{folder}/{RECORD}")  # noqa: PTH116 - a third of Path.stat's cost
        except OSError:
            if _holds_something(folder):
                without.append(number)
            continue
        records[number] = Signature(
            inode=met.st_ino & _SIGNED, size_bytes=met.st_size, changed_ns=met.st_ctime_ns
        )
    return Scan(records=records, without=tuple(sorted(without)))


def number_of(name: str) -> int | None:
    """Read the name of a run folder; None when it is no such name."""
    # fullmatch: a "$" would also accept a name that ends in a line feed.
    return int(name) if _NUMBER.fullmatch(name) else None


def _numbers(runs: Path) -> list[int]:
    names = os.listdir(runs)  # noqa: PTH208 - names only
    return [number for name in names if (number := number_of(name)) is not None]


def _holds_something(folder: str) -> bool:
    """Tell a folder that lost its record from one whose launcher is only beginning."""
    try:
        names = os.listdir(folder)  # noqa: PTH208 - names only
    except NotADirectoryError:  # a file with a number for a name is no run
        return False
    except OSError:
        return True
    return any(not name.startswith(".") and name != LEASE for name in names)


def _claim(runs: Path) -> Path:
    """Make the folder of the next number, higher than any that ever was."""
    with held(runs / _COUNTER, exclusive=True, patience_s=_COUNTER_PATIENCE_S) as counter:
        met = (_last(counter), *_numbers(runs))
        number = max((n for n in met if n < _CLAIM_LIMIT), default=0) + 1
        while True:
            _remember(counter, number)
            path = runs / str(number)
            try:
                path.mkdir()
            except FileExistsError:  # made by hand, or by a launcher that got no lock either
                number += 1
            else:
                return path


def _last(counter: int | None) -> int:
    if counter is None:
        return 0
    text = os.pread(counter, _DIGITS + 1, 0).decode("ascii", "replace")
    return number_of(text.strip().lstrip("0")) or 0


def _remember(counter: int | None, number: int) -> None:
    """Note the number before its folder exists: dying in between only leaves a gap."""
    if counter is not None:
        # Without space for the note the folders themselves still tell the number.
        with contextlib.suppress(OSError):
            os.pwrite(counter, f"{number:0{_DIGITS}}\n".encode("ascii"), 0)


def _forget(path: Path) -> None:
    """Take a folder away again that could not be filled."""
    with contextlib.suppress(OSError):  # a folder without a record is ignored by every reader
        (path / LEASE).unlink(missing_ok=True)
        path.rmdir()
