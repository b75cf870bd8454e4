"""SQLite beside the run folders: a list of what they hold, so that finding is quick.

It never knows more than the folders and is never asked without looking at them: each query
compares every folder's signature with the row made from it and reads again what differs. So it
may be deleted, damaged, stale or locked at any time; the worst is that it is made anew, or
that the reader does without it. Only readers write it: a launcher never waits for it.
"""

import contextlib
import sqlite3
import time
import zlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from thrifty.ledger._files import held
from thrifty.ledger._folders import Header, Signature

__all__ = ["Index", "IndexUnusableError"]

_VERSION = 1
"""Of the table below, in SQLite's ``user_version``; any other is made anew."""

_CREATE = """CREATE TABLE IF NOT EXISTS run (
    number INTEGER PRIMARY KEY, inode INTEGER, size_bytes INTEGER, changed_ns INTEGER,
    run_id TEXT, status TEXT, script TEXT, problem TEXT, checksum INTEGER)"""

_BUSY_S = 1.0
"""How long to wait for another process's transaction (they take milliseconds)."""

_TRIES = 3
_PAUSE_S = 0.05

_BUSY = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
_UNUSABLE = frozenset(
    {
        sqlite3.SQLITE_AUTH,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_NOLFS,
        sqlite3.SQLITE_NOMEM,
        sqlite3.SQLITE_PERM,
        sqlite3.SQLITE_PROTOCOL,
        sqlite3.SQLITE_READONLY,
    }
)
"""Answers that speak of the disk, not of the file: making it anew would not help.

Source: https://www.sqlite.org/rescode.html, read 2026-10.
"""


class IndexUnusableError(Exception):
    """The index cannot be used now; the folders can."""


class Index:
    """The index of one ledger."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = path.with_suffix(".lock")

    def headers(
        self, folders: Mapping[int, Signature], read: Callable[[int, Signature], Header]
    ) -> dict[int, Header]:
        """Give the header of every folder, from the index where it is true.

        Args:
            folders: Signature of each folder, as it is now.
            read: Makes a header from a folder.

        Raises:
            IndexUnusableError: It is locked for long, or cannot be opened or written.
        """
        for _ in range(_TRIES):
            try:
                return self._refreshed(folders, read)
            # Damage may also show as a message that is no UTF-8, or as a size beyond all memory.
            except (sqlite3.Error, UnicodeError, MemoryError) as error:
                code = _code(error)
                if code in _UNUSABLE:
                    raise IndexUnusableError(str(error)) from error
                if code in _BUSY:
                    time.sleep(_PAUSE_S)
                else:
                    self.discard()
        msg = f"{self._path} is locked, or damaged again as soon as it is made"
        raise IndexUnusableError(msg)

    def discard(self) -> None:
        """Delete the index; nothing is lost.

        Raises:
            IndexUnusableError: Another process uses it for long, or it cannot be deleted.
        """
        # Alone: else we would delete the write-ahead log of an index somebody just made.
        with held(self._lock, exclusive=True, patience_s=_BUSY_S) as lock:
            if lock is None:
                msg = f"{self._lock} cannot be locked"
                raise IndexUnusableError(msg)
            # The log goes first: beside another database it would be played into that.
            for suffix in ("-wal", "-shm", "-journal", ""):
                try:
                    Path(f"{self._path}{suffix}").unlink(missing_ok=True)
                except OSError as error:
                    raise IndexUnusableError(str(error)) from error

    def _refreshed(
        self, folders: Mapping[int, Signature], read: Callable[[int, Signature], Header]
    ) -> dict[int, Header]:
        with held(self._lock, exclusive=False, patience_s=_BUSY_S) as lock:
            if lock is None:
                msg = f"{self._lock} cannot be locked"
                raise IndexUnusableError(msg)
            with contextlib.closing(_open(self._path)) as database:
                known = _rows(database)
                gone = known.keys() - folders.keys()
                found: dict[int, Header] = {}
                changed: list[Header] = []
                for number, signature in folders.items():
                    header = known.get(number)
                    if header is None or header.signature != signature:
                        header = read(number, signature)
                        changed.append(header)
                    found[number] = header
                if gone or changed:
                    _write(database, gone, changed)
                return found


def _open(path: Path) -> sqlite3.Connection:
    database = sqlite3.connect(path, timeout=_BUSY_S, isolation_level=None)
    try:
        _prepare(database)
    except BaseException:
        database.close()
        raise
    return database


def _prepare(database: sqlite3.Connection) -> None:
    # One statement: between two, another process may have made the table.
    (version, tables) = database.execute(
        "SELECT user_version, (SELECT count(*) FROM sqlite_master) FROM pragma_user_version"
    ).fetchone()
    if version != _VERSION:
        if tables:
            msg = f"index of version {version}, not {_VERSION}"
            raise sqlite3.DatabaseError(msg)
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("BEGIN IMMEDIATE")
        database.execute(_CREATE)
        database.execute(f"PRAGMA user_version = {_VERSION}")
        database.execute("COMMIT")
    # An index that a power cut takes back is made anew; the folders are synced.
    database.execute("PRAGMA synchronous = OFF")


def _rows(database: sqlite3.Connection) -> dict[int, Header]:
    rows: dict[int, Header] = {}
    for row in database.execute("SELECT * FROM run"):
        *values, checksum = row
        if _checksum(values) != checksum:
            msg = f"row {values[0]!r} is damaged"
            raise sqlite3.DatabaseError(msg)
        number, inode, size_bytes, changed_ns, run_id, status, script, problem = values
        signature = Signature(inode=inode, size_bytes=size_bytes, changed_ns=changed_ns)
        rows[number] = Header(
            number=number,
            signature=signature,
            run_id=run_id,
            status=status,
            script=script,
            problem=problem,
        )
    return rows


def _write(database: sqlite3.Connection, gone: Iterable[int], changed: Iterable[Header]) -> None:
    with contextlib.ExitStack() as on_failure:
        database.execute("BEGIN IMMEDIATE")
        on_failure.callback(database.rollback)
        database.executemany("DELETE FROM run WHERE number = ?", ((number,) for number in gone))
        database.executemany(
            "INSERT OR REPLACE INTO run VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (_row(header) for header in changed),
        )
        database.execute("COMMIT")
        on_failure.pop_all()


def _row(header: Header) -> list[Any]:
    signature = header.signature
    values = [
        header.number,
        signature.inode,
        signature.size_bytes,
        signature.changed_ns,
        header.run_id,
        header.status,
        header.script,
        header.problem,
    ]
    return [*values, _checksum(values)]


def _checksum(values: list[Any]) -> int:
    """SQLite notices a damaged page's structure, not a flipped letter in it."""
    return zlib.crc32(repr(values).encode("utf-8", "backslashreplace"))


def _code(error: Exception) -> int:
    """Give SQLite's primary code; 1 (a general error) for what Python itself raised."""
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
