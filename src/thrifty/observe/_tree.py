"""Sample the script's processes from outside: states, run queues, memory, input and output.

Ten times a second the training process's threads, once a second everything else. Files of
``/proc`` stay open between samples, and nothing is read that a verdict does not need: the
whole must stay within 0.2 % of a core. Where a file is missing the figure is None.
"""

import os
from dataclasses import dataclass

__all__ = ["ProcessTree", "SystemSample", "Tick"]

_THREAD_LIMIT = 64
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, kw_only=True, slots=True)
class Tick:
    """One look at the training process's threads."""

    loop_active: bool
    """The loop's thread is on a core or in the run queue."""

    others_active: bool
    """The loop's thread is neither, but another thread of its process is."""

    extra_queue_ns: int
    """By how much longer another thread waited for a core since the last tick than the
    loop's own thread did."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SystemSample:
    """One look at the whole process tree and its machine; counters are totals so far."""

    cpu_s: float
    """CPU time of the living processes and of those they waited for."""

    memory_bytes: int
    """Sum of resident memory; pages shared by several processes count in each."""

    processes: int
    """Living processes of the tree."""

    read_bytes: int | None
    """From storage, by the processes whose account may be read."""

    written_bytes: int | None
    """To storage, by the processes whose account may be read."""

    cpu_pressure_us: int | None
    """Time during which some task of the machine waited for a core."""

    throttled_us: int | None
    """Time during which the cgroup's quota stopped its tasks."""

    received_bytes: int | None
    """By the machine's network interfaces, loopback apart."""

    sent_bytes: int | None
    """By the machine's network interfaces, loopback apart."""


class _File:
    """A file of ``/proc`` that is kept open and read from its start each time."""

    __slots__ = ("fd",)

    def __init__(self, path: str) -> None:
        try:
            self.fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            self.fd = -1

    def read(self) -> bytes:
        """Give the content, empty when it cannot be read (any more)."""
        if self.fd < 0:
            return b""
        try:
            return os.pread(self.fd, 4096, 0)
        except OSError:
            self.close()
            return b""

    def close(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


class _Thread:
    __slots__ = ("queue_ns", "schedstat", "stat")

    def __init__(self, process_id: int, thread_id: int) -> None:
        base = f"/proc/{process_id}/task/{thread_id}"
        self.stat = _File(f"{base}/stat")
        self.schedstat = _File(f"{base}/schedstat")
        self.queue_ns = self.queue() or 0

    def active(self) -> bool:
        data = self.stat.read()
        place = data.rfind(b")") + 2
        return data[place : place + 1] == b"R"

    def queue(self) -> int | None:
        parts = self.schedstat.read().split()
        return int(parts[1]) if len(parts) > 1 else None

    def queue_delta(self) -> int:
        now = self.queue()
        if now is None:
            return 0
        delta, self.queue_ns = now - self.queue_ns, now
        return delta

    def close(self) -> None:
        self.stat.close()
        self.schedstat.close()


class ProcessTree:
    """Sample one process and everything below it.

    Args:
        process_id: The script's process.
    """

    def __init__(self, process_id: int) -> None:
        self._root = process_id
        self._watched = 0
        self._loop = 0
        self._threads: dict[int, _Thread] = {}
        self._io: dict[int, tuple[int, int]] = {}
        self._cpu: dict[int, int] = {}
        self._pressure = _File("/proc/pressure/cpu")
        self._cgroup = _File(_cgroup_file())
        self._network = _File("/proc/net/dev")

    def watch(self, process_id: int, loop_thread_id: int) -> None:
        """Say which process trains and which of its threads runs the loop."""
        if (process_id, loop_thread_id) == (self._watched, self._loop):
            return
        for thread in self._threads.values():
            thread.close()
        self._threads = {}
        self._watched, self._loop = process_id, loop_thread_id
        self.refresh()

    def refresh(self) -> None:
        """Look for new and ended threads of the training process."""
        if not self._watched:
            return
        try:
            names = os.listdir(f"/proc/{self._watched}/task")  # noqa: PTH208 (hot path)
        except OSError:
            names = []
        living = {int(name) for name in names}
        for thread_id in self._threads.keys() - living:
            self._threads.pop(thread_id).close()
        for thread_id in sorted(living - self._threads.keys()):
            if len(self._threads) < _THREAD_LIMIT or thread_id == self._loop:
                self._threads[thread_id] = _Thread(self._watched, thread_id)

    def tick(self) -> Tick | None:
        """Look at the training process's threads; None when there is none to look at."""
        loop = self._threads.get(self._loop)
        if loop is None:
            return None
        loop_active = loop.active()
        loop_queue_ns = loop.queue_delta()
        others_active = False
        longest_ns = 0
        for thread_id, thread in self._threads.items():
            if thread_id == self._loop:
                continue
            longest_ns = max(longest_ns, thread.queue_delta())
            if not loop_active and not others_active:
                others_active = thread.active()
        return Tick(
            loop_active=loop_active,
            others_active=others_active,
            extra_queue_ns=max(0, longest_ns - loop_queue_ns),
        )

    def sample(self) -> SystemSample:
        """Look at the whole tree."""
        memory_bytes = 0
        living = self._descendants()
        for process_id in living:
            parts = _read(f"/proc/{process_id}/stat").rpartition(b")")[2].split()
            if len(parts) > 21:  # noqa: PLR2004 (fields of proc(5), counted after the name)
                self._cpu[process_id] = sum(int(part) for part in parts[11:15])
                memory_bytes += int(parts[21]) * _PAGE_BYTES
            self._read_io(process_id)
        received, sent = self._read_network()
        return SystemSample(
            cpu_s=sum(self._cpu.get(process_id, 0) for process_id in living) / _TICKS_PER_S,
            memory_bytes=memory_bytes,
            processes=len(living),
            read_bytes=sum(io[0] for io in self._io.values()) if self._io else None,
            written_bytes=sum(io[1] for io in self._io.values()) if self._io else None,
            cpu_pressure_us=_number_after(self._pressure.read(), b"total="),
            throttled_us=self._read_throttled(),
            received_bytes=received,
            sent_bytes=sent,
        )

    def _descendants(self) -> list[int]:
        found = [self._root]
        for process_id in found:
            try:
                threads = os.listdir(f"/proc/{process_id}/task")  # noqa: PTH208 (hot path)
            except OSError:
                continue
            for thread_id in threads[:_THREAD_LIMIT]:
                children = _read(f"/proc/{process_id}/task/{thread_id}/children")
                found.extend(int(child) for child in children.split())
        return found

    def _read_io(self, process_id: int) -> None:
        data = _read(f"/proc/{process_id}/io")
        read = _number_after(data, b"read_bytes: ")
        written = _number_after(data, b"write_bytes: ")
        if read is not None and written is not None:
            self._io[process_id] = (read, written)

    def _read_throttled(self) -> int | None:
        data = self._cgroup.read()
        us = _number_after(data, b"throttled_usec ")
        if us is not None:
            return us
        ns = _number_after(data, b"throttled_time ")
        return None if ns is None else ns // 1000

    def _read_network(self) -> tuple[int | None, int | None]:
        lines = self._network.read().splitlines()[2:]
        received = sent = 0
        for line in lines:
            name, _, figures = line.partition(b":")
            parts = figures.split()
            if name.strip() != b"lo" and len(parts) > 8:  # noqa: PLR2004 (columns of the file)
                received += int(parts[0])
                sent += int(parts[8])
        return (received, sent) if lines else (None, None)

    def close(self) -> None:
        """Close every file."""
        for thread in self._threads.values():
            thread.close()
        self._threads = {}
        for file in (self._pressure, self._cgroup, self._network):
            file.close()


def _read(path: str) -> bytes:
    file = _File(path)
    data = file.read()
    file.close()
    return data


def _number_after(data: bytes, label: bytes) -> int | None:
    place = data.find(label)
    if place < 0:
        return None
    digits = data[place + len(label) :].split(maxsplit=1)
    return int(digits[0]) if digits and digits[0].isdigit() else None


def _cgroup_file() -> str:
    """Find the file that counts how long a CPU quota stopped this process's cgroup."""
    for line in _read("/proc/self/cgroup").decode(errors="replace").splitlines():
        _, controllers, path = [*line.split(":", 2), "", ""][:3]
        if controllers == "":
            place = f"/sys/fs/cgroup{path}/cpu.stat"
        elif "cpu" in controllers.split(","):
            place = f"/sys/fs/cgroup/cpu{path}/cpu.stat"
        else:
            continue
        if os.path.exists(place):  # noqa: PTH110 (one import fewer)
            return place
    return "/sys/fs/cgroup/cpu.stat"
