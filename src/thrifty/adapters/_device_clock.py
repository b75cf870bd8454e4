"""Read the device's own clock at the boundaries of a step, and never wait for it.

A host timer around a fetch lies on a device that works asynchronously: the device may have
been busy all along. Timing events are put into the device's own queue where a fetch begins and
ends; between the two the device had nothing to do but to wait for data. Events come from a
pool, are asked with ``query()`` at later boundaries, and are read only when they have passed,
so nothing is ever synchronised. If the device falls far behind, boundaries are skipped.

This file runs inside the user's script: standard library only, torch.cuda is handed in.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from thrifty.observe._recorder import Recorder

__all__ = ["DeviceClock"]

_MOST_PENDING = 128
_NS_PER_MS = 1_000_000


class DeviceClock:
    """Mark boundaries on the device, and record how long it took between them.

    Args:
        recorder: Where intervals go.
        cuda: ``torch.cuda``.
        clock: Host time in ns.
    """

    def __init__(self, recorder: Recorder, cuda: Any, clock: Callable[[], int]) -> None:
        self._recorder = recorder
        self._cuda = cuda
        self._clock = clock
        self._pool: list[Any] = []
        self._pending: list[tuple[int, int, Any]] = []

    def boundary(self, kind: int) -> None:
        """Mark a boundary; ``kind`` says what begins here.

        Args:
            kind: ``DEVICE_FETCH`` where a fetch begins, ``DEVICE_LOOP`` where it ends.
        """
        cuda = self._cuda
        if not cuda.is_initialized() or cuda.is_current_stream_capturing():
            return
        self.drain()
        if len(self._pending) >= _MOST_PENDING:
            # Too far behind: begin anew, so that no interval spans a gap.
            self._pool.extend(event for _, _, event in self._pending)
            self._pending.clear()
            return
        event = self._pool.pop() if self._pool else cuda.Event(enable_timing=True)
        event.record()
        self._pending.append((kind, self._clock(), event))

    def drain(self) -> None:
        """Record the intervals whose end the device has passed."""
        pending = self._pending
        while len(pending) > 1 and pending[1][2].query():
            kind, began_ns, event = pending.pop(0)
            _, ended_ns, after = pending[0]
            took_ns = int(event.elapsed_time(after) * _NS_PER_MS)
            self._recorder.interval(kind, began_ns, ended_ns, took_ns)
            self._pool.append(event)

    def forget_after_fork(self) -> None:
        """A forked child has no device: its parent's events are not its own."""
        self._pool = []
        self._pending = []
