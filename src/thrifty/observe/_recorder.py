"""Write timestamps from inside the user's script, a few per step, at a few microseconds each.

Refuses to do anything else there: no thread, no lock, no framework, no allocation in
proportion to the run. Records go to a mapped file, so they survive SIGKILL; space for each
segment is reserved before it is mapped, so a full disk ends the recording and not the script.
A process that is not the run's main one keeps its records in memory until it trains.

This file runs inside the user's script: standard library only.
"""

import fcntl
import itertools
import mmap
import os
import resource
import sys
import time
from _thread import get_ident, get_native_id

from thrifty.observe._events import (
    FETCH_END,
    FETCH_START,
    IMPORTED,
    LOST,
    NOTE,
    PROCESS,
    RECORD,
    RECORD_BYTES,
    SEGMENT_BYTES,
    STEP_END,
)
from thrifty.observe._events import segment_name as _segment_name

__all__ = ["Recorder"]

_pack = RECORD.pack_into
_clock = time.perf_counter_ns
_cpu = time.thread_time_ns
_LAST_PLACE = (SEGMENT_BYTES // RECORD_BYTES - 1) * RECORD_BYTES
"""Kept for LOST: a full disk is met when a segment is full."""

_READ_EVERY_NS = 1_000_000
_SHORT_FETCH_NS = 100_000
"""A fetch shorter than this is taken to have been on its core."""

_OPEN_LIMIT = 4
_THREAD_LIMIT = 256
_HIGH_FD = 200
"""Our one open file must not shift the numbers that the script's own files get."""


class Recorder:
    """Append records of one process to its segment files.

    Args:
        folder: Where segments go; it exists.
        eager: Write from the start (the run's main process). Otherwise the first
            segment stays in memory until ``commit``.
    """

    def __init__(self, folder: str, *, eager: bool) -> None:
        self._folder = folder
        self._eager = eager
        self._queues: dict[int, tuple[int, int]] = {}
        self.imported = -1
        """Which framework this process has, for children that are forked later."""
        self._start()

    def _start(self) -> None:
        self._pid = os.getpid()
        self._shard = f"{self._pid}-{_clock():x}"
        self._index = 0
        self._read_ns = self._fetch_ns = 0
        self._short = False
        self._rolling = False
        self._slots = (bytearray(), itertools.repeat(0).__next__, 0)
        self._queue = (get_ident(), get_native_id(), -1)
        self.committed = False
        self.active = True
        if self._eager:
            self.commit()
        else:
            self._use(bytearray(SEGMENT_BYTES))
        self.mark(PROCESS, self._pid)

    @staticmethod
    def _open_queue(thread_id: int) -> int:
        """Open the kernel's account of a thread's wait for a core; -1 where there is none."""
        try:
            low = os.open(f"/proc/self/task/{thread_id}/schedstat", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return -1
        try:
            return fcntl.fcntl(low, fcntl.F_DUPFD_CLOEXEC, _floor())
        except OSError:
            return -1
        finally:
            os.close(low)

    def restart_after_fork(self) -> None:
        """Start afresh in a forked child: its parent's mapping and files are not its own."""
        self._eager = False
        self._queues = {}
        self._start_lazily()

    def _start_lazily(self) -> None:
        # A data-loader worker never trains: it must cost nothing, so not even the buffer is
        # made before the child's first optimizer step.
        self.committed = False
        self._rest()

    def _use(self, buffer: mmap.mmap | bytearray, start: int = 0) -> None:
        """Record into a buffer from now on.

        One tuple is read at once, and ``next`` of a count is one step of the interpreter: two
        threads never get the same place.
        """
        self._slots = (buffer, itertools.count(start, RECORD_BYTES).__next__, _LAST_PLACE)

    def _rest(self) -> None:
        """Record nothing."""
        self.active = False
        self._slots = (bytearray(), itertools.repeat(0).__next__, 0)

    def commit(self) -> None:
        """Move to a file: this process trains (or is the run's main one)."""
        if self.committed:
            return
        self.committed = True
        if not self.active:
            self._start_in_child()
            return
        buffer, take, _ = self._slots
        kept = bytes(buffer[: min(take(), _LAST_PLACE)])
        self._queues = {}
        self._queue = (get_ident(), get_native_id(), self._open_queue(get_native_id()))
        self._map()
        if self.active:
            buffer = self._slots[0]
            buffer[: len(kept)] = kept
            self._use(buffer, len(kept))

    def _start_in_child(self) -> None:
        self._pid = os.getpid()
        self._shard = f"{self._pid}-{_clock():x}"
        self._index = 0
        self._queue = (get_ident(), get_native_id(), self._open_queue(get_native_id()))
        self.active = True
        self._map()
        if self.active:
            self.mark(PROCESS, self._pid)
            if self.imported >= 0:
                self.mark(IMPORTED, self.imported)

    def _map(self) -> None:
        """Reserve and map the next segment, or stop recording for good."""
        path = os.path.join(self._folder, _segment_name(self._shard, self._index))
        try:
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            try:
                if hasattr(os, "posix_fallocate"):
                    os.posix_fallocate(fd, 0, SEGMENT_BYTES)
                else:
                    os.ftruncate(fd, SEGMENT_BYTES)
                buffer = _map_high(fd)
            finally:
                os.close(fd)
        except (OSError, ValueError) as error:
            self._stop(getattr(error, "errno", None) or 0)
            return
        self._index += 1
        self._use(buffer)

    def _stop(self, code: int) -> None:
        buffer, _, last = self._slots
        if last:
            _pack(buffer, last, _clock(), -1, -1, code, 0, 0, LOST)
        self._rest()

    def mark(self, kind: int, value: int = 0, flags: int = 0) -> None:
        """Record a moment."""
        queue = self._queue
        thread_id = queue[1] if queue[0] == get_ident() else self._thread()[1]
        buffer, take, last = self._slots
        offset = take()
        if offset >= last:
            rolled = self._roll()
            if rolled is None:
                return
            buffer, offset = rolled
        _pack(buffer, offset, _clock(), -1, -1, value, thread_id, flags, kind)

    def mark_cpu(self, kind: int, value: int = 0, flags: int = 0) -> None:
        """Record a moment with this thread's CPU and run-queue time: three times the cost."""
        thread = self._thread()
        queue_ns = -1
        if thread[2] >= 0:
            try:
                queue_ns = int(os.pread(thread[2], 64, 0).split(b" ", 2)[1])
            except (OSError, ValueError, IndexError):
                # The script closed every file, or the number is another file's by now.
                self._forget_queue(thread)
        # Only now: reading the file lets other threads run, and they may record too.
        buffer, take, last = self._slots
        offset = take()
        if offset >= last:
            rolled = self._roll()
            if rolled is None:
                return
            buffer, offset = rolled
        self._read_ns = now = _clock()
        _pack(buffer, offset, now, _cpu(), queue_ns, value, thread[1], flags, kind)

    def mark_step(self, optimizer: int) -> None:
        """Record an update; with CPU time when that was not read for a millisecond."""
        if _clock() - self._read_ns < _READ_EVERY_NS:
            self.mark(STEP_END, optimizer)
        else:
            self.mark_cpu(STEP_END, optimizer)

    def mark_fetch_start(self, flags: int) -> None:
        """Record that a fetch begins.

        While fetches are short, CPU time is read once in a millisecond; a long one may hold a
        wait, so its two ends are both read.
        """
        now = _clock()
        recent = now - self._read_ns < _READ_EVERY_NS
        if recent and self._short and self._queue[0] == get_ident():
            self.mark(FETCH_START, 0, flags)
        else:
            self.mark_cpu(FETCH_START, 0, flags)
        self._fetch_ns = now

    def mark_fetch_end(self, rows: int, flags: int) -> None:
        """Record that a fetch ended."""
        self._short = _clock() - self._fetch_ns < _SHORT_FETCH_NS
        if self._short and self._queue[0] == get_ident():
            self.mark(FETCH_END, rows, flags)
        else:
            self.mark_cpu(FETCH_END, rows, flags)

    def interval(self, kind: int, began_ns: int, ended_ns: int, took_ns: int) -> None:
        """Record how long the device took between two moments of the host."""
        buffer, take, last = self._slots
        offset = take()
        if offset >= last:
            rolled = self._roll()
            if rolled is None:
                return
            buffer, offset = rolled
        _pack(buffer, offset, _clock(), began_ns, ended_ns, took_ns, 0, 0, kind)

    def _thread(self) -> tuple[int, int, int]:
        ident = get_ident()
        queue = self._queue
        if queue[0] == ident:
            return queue
        known = self._queues.get(ident)
        if known is None:
            native = get_native_id()
            # Threads come and go; only a handful may hold a file open.
            fd = (
                self._open_queue(native)
                if len(self._queues) < _OPEN_LIMIT and self.committed
                else -1
            )
            known = self._queues[ident] = (native, fd)
        if len(self._queues) > _THREAD_LIMIT:
            self._queues.clear()
        return (ident, *known)

    def _forget_queue(self, thread: tuple[int, int, int]) -> None:
        if self._queue[0] == thread[0]:
            self._queue = (thread[0], thread[1], -1)
        else:
            self._queues[thread[0]] = (thread[1], -1)

    def _roll(self) -> tuple[mmap.mmap | bytearray, int] | None:
        """Give a place in the next segment.

        None when there is none, and to a thread that comes while another is making it.
        """
        if not self.active or self._rolling:
            return None
        self._rolling = True
        try:
            if self.committed:
                self._map()
            else:  # memory is full of a process that does not train: begin again
                self._use(self._slots[0])
        finally:
            self._rolling = False
        buffer, take, last = self._slots
        return (buffer, take()) if last else None

    def note(self, text: str) -> None:
        """Leave a line for the bill's notes; what fails here must not fail the script."""
        if not self.committed:
            return
        try:
            path = os.path.join(self._folder, f"{self._shard}.notes")
            with open(path, "a", encoding="utf-8") as stream:
                stream.write(text.replace("\n", " ")[:500] + "\n")
        except OSError as error:
            self.mark(NOTE, error.errno or 0)
            return
        self.mark(NOTE, 0)


def _floor() -> int:
    """Tell from which number on our files may have theirs."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return _HIGH_FD if limit == resource.RLIM_INFINITY else max(3, min(_HIGH_FD, limit - 8))


def _map_high(fd: int) -> mmap.mmap:
    """Map a segment; no file number that the script would get stays taken.

    Raises:
        OSError: No file number or no memory is left.
    """
    if sys.version_info >= (3, 13):
        return mmap.mmap(fd, SEGMENT_BYTES, trackfd=False)
    # The mapping keeps a copy of the number, and always the lowest that is free: take all the
    # low ones for a moment. With standard streams closed it would be one of theirs.
    floor = _floor()
    taken: list[int] = []
    try:
        while True:
            copy = os.dup(fd)
            if copy >= floor:
                os.close(copy)
                return mmap.mmap(fd, SEGMENT_BYTES)
            taken.append(copy)
    finally:
        for copy in taken:
            os.close(copy)
