"""Read the records of a run while they are being written, and after.

A segment that was read to its end is deleted some segments later, so that ten million steps
need neither memory nor disk in proportion. What is read comes from a process that may
die at any moment: a record that is not whole yet is left for the next time.
"""

import os
from pathlib import Path

from thrifty.observe._events import RECORD, RECORD_BYTES, SEGMENT_BYTES, segment_name

__all__ = ["Moment", "RunReader", "ShardReader"]

Moment = tuple[int, int, int, int, int, int, int]
"""One record: the fields of ``RECORD``."""

_CHUNK_BYTES = 4096 * RECORD_BYTES
_SLOTS = SEGMENT_BYTES // RECORD_BYTES
_KEPT_SEGMENTS = 32
"""So many stay after they were read: should the launcher be killed, its books can be made anew
from the start of all but the longest runs."""


class ShardReader:
    """Follow the segments of one process.

    Args:
        folder: The run's folder of records.
        shard: The process's part of the segment names.
        keep: Do not delete what was read.
    """

    def __init__(self, folder: Path, shard: str, *, keep: bool = False) -> None:
        self.shard = shard
        self._folder = folder
        self._keep = keep
        self._index = 0
        self._slot = 0
        self._fd = -1

    def read(self) -> list[Moment]:
        """Give the records that are new since the last call, oldest first."""
        moments: list[Moment] = []
        while True:
            if self._fd < 0 and not self._open():
                return moments
            more = self._read_segment(moments)
            successor = self._folder / segment_name(self.shard, self._index + 1)
            if more or not successor.exists():
                return moments
            # The writer has gone on: what stands in this segment is final.
            self._read_segment(moments)
            self._next()

    def _open(self) -> bool:
        try:
            self._fd = os.open(
                self._folder / segment_name(self.shard, self._index), os.O_RDONLY | os.O_CLOEXEC
            )
        except FileNotFoundError:
            return False
        self._slot = 0
        return True

    def _read_segment(self, moments: list[Moment]) -> bool:
        """Append what is there; True when more may stand behind it already."""
        start = self._slot * RECORD_BYTES
        data = os.pread(self._fd, min(_CHUNK_BYTES, SEGMENT_BYTES - start), start)
        whole = len(data) // RECORD_BYTES
        found = 0
        for moment in RECORD.iter_unpack(data[: whole * RECORD_BYTES]):
            if moment[6] == 0:
                break
            moments.append(moment)
            found += 1
        self._slot += found
        return found == whole and found > 0 and self._slot < _SLOTS

    def _next(self) -> None:
        os.close(self._fd)
        self._fd = -1
        if not self._keep and self._index >= _KEPT_SEGMENTS:
            first_kept = self._index - _KEPT_SEGMENTS
            (self._folder / segment_name(self.shard, first_kept)).unlink(missing_ok=True)
        self._index += 1

    def close(self) -> None:
        """Close the open segment."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


class RunReader:
    """Follow all processes of a run that record.

    Args:
        folder: The run's folder of records.
        keep: Do not delete what was read.
    """

    def __init__(self, folder: Path, *, keep: bool = False) -> None:
        self._folder = folder
        self._keep = keep
        self.shards: dict[str, ShardReader] = {}

    def discover(self) -> list[str]:
        """Look for processes that began to record; give the new ones' shard names."""
        try:
            names = os.listdir(self._folder)  # noqa: PTH208 (ten times a second: no Path objects)
        except OSError:
            return []
        found: list[str] = []
        for name in sorted(names):
            shard = name.partition(".")[0]
            if name.endswith(".seg") and shard not in self.shards:
                self.shards[shard] = ShardReader(self._folder, shard, keep=self._keep)
                found.append(shard)
        return found

    def notes(self) -> list[str]:
        """Give what the script's side had to say, without repeats."""
        lines: dict[str, None] = {}
        for path in sorted(self._folder.glob("*.notes")):
            for line in path.read_text(encoding="utf-8", errors="replace").splitlines()[:50]:
                lines[line[:500]] = None
        failed = self._folder / "attach.failed"
        if failed.exists():
            text = failed.read_text(encoding="utf-8", errors="replace").splitlines()
            lines[f"the hooks could not be attached ({text[0][:300] if text else 'no reason'})"] = (
                None
            )
        return list(lines)

    def close(self) -> None:
        """Close all segments."""
        for reader in self.shards.values():
            reader.close()
