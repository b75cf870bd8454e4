"""Files that several processes read and write at once, on disks that may be full.

Writing replaces a file whole or not at all; reading refuses what is no plain file of a
sane size. Locks are advisory and short: whoever cannot get one is told so, and goes on
without.
"""

import contextlib
import errno
import fcntl
import os
import stat
import time
from collections.abc import Generator
from pathlib import Path

from thrifty.records import LedgerError

__all__ = ["held", "ledger_error", "read_plain", "write_whole"]

_LOCK_PAUSE_S = 0.01
"""Between two tries for a lock; its holders keep it for milliseconds."""

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_FORBIDDEN = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})


def ledger_error(error: OSError, *, path: Path, action: str) -> LedgerError:
    """Say in one line what could not be done, and what to type.

    Args:
        error: What the system answered.
        path: Where.
        action: What was tried, as in "cannot write the run's record".
    """
    problem = f"{action} at {path}: {error.strerror or error}"
    if error.errno in _FULL:
        fix = "free some space, or set THRIFTY_HOME to a folder on another disk"
    elif error.errno in _FORBIDDEN:
        fix = "make it writable, or set THRIFTY_HOME to a folder that is"
    else:
        fix = "set THRIFTY_HOME to a folder that can be written and read"
    return LedgerError(problem, fix=fix)


def write_whole(path: Path, data: bytes) -> None:
    """Replace a file so that every reader, and a crash, sees the old or the new whole.

    Raises:
        OSError: It could not be written; the old file is as it was.
    """
    temporary = path.with_name(f".{path.name}.{os.urandom(6).hex()}")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        try:
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(descriptor, rest) :]
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):  # never hide why the write failed
            temporary.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def _sync_folder(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    except OSError as error:
        # Some network file systems cannot sync a folder; the file itself is safe.
        if error.errno not in {errno.EINVAL, errno.ENOTSUP}:
            raise
    finally:
        os.close(descriptor)


def read_plain(path: Path, *, limit_bytes: int) -> bytes:
    """Read a plain file of at most ``limit_bytes``; never hang on a pipe or a device.

    Raises:
        OSError: It cannot be read, is no plain file (``EINVAL``), or is larger (``EFBIG``).
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "not a plain file")
        chunks: list[bytes] = []
        total = 0
        while chunk := os.read(descriptor, min(1 << 20, limit_bytes + 1 - total)):
            chunks.append(chunk)
            total += len(chunk)
            if total > limit_bytes:
                raise OSError(errno.EFBIG, f"more than {limit_bytes:,} bytes")
        return b"".join(chunks)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def held(path: Path, *, exclusive: bool, patience_s: float) -> Generator[int | None]:
    """Hold an advisory lock on a file, created when it is missing.

    Yields:
        The open file's descriptor while the lock is held; None when the file system has no
        such locks, the file cannot be opened, or another process kept it for ``patience_s``.
    """
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
    except OSError:
        yield None
        return
    try:
        yield descriptor if _lock(descriptor, exclusive=exclusive, patience_s=patience_s) else None
    finally:
        os.close(descriptor)  # which gives the lock back


def _lock(descriptor: int, *, exclusive: bool, patience_s: float) -> bool:
    kind = fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH
    deadline_ns = time.perf_counter_ns() + int(patience_s * 1e9)
    while True:
        try:
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.perf_counter_ns() >= deadline_ns:
                return False
            time.sleep(_LOCK_PAUSE_S)
        except OSError:
            return False
        else:
            return True
