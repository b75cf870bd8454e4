"""A device that works through a queue at its own pace, with timing events, in simulated time.

It stands in for ``torch.cuda``: the host goes on while the device works, an event is passed
when the device gets to it, and asking for anything that has not happened yet is an error, for
on a real device it would wait.
"""


class AsyncDevice:
    def __init__(self):
        self.host_ns = 0
        self.free_ns = 0  # when the device will have done all that is queued
        self.initialized = True
        self.capturing = False
        self.synchronisations = 0
        self.events_made = 0

    def clock(self):
        return self.host_ns

    def host(self, ms):
        """The host does something for so long."""
        self.host_ns += int(ms * 1e6)

    def launch(self, ms):
        """The host queues work of so long; queueing itself takes 10 us."""
        self.host(0.01)
        self.free_ns = max(self.free_ns, self.host_ns) + int(ms * 1e6)

    def synchronize(self):
        """The host waits for the device, as ``.item()`` does."""
        self.synchronisations += 1
        self.host_ns = max(self.host_ns, self.free_ns)

    # -- what torch.cuda offers

    def is_initialized(self):
        return self.initialized

    def is_current_stream_capturing(self):
        return self.capturing

    def Event(self, *, enable_timing):  # noqa: N802 (torch's name)
        assert enable_timing
        self.events_made += 1
        return _Event(self)


class _Event:
    def __init__(self, device):
        self._device = device
        self.at_ns = None

    def record(self):
        self.at_ns = max(self._device.free_ns, self._device.host_ns)

    def query(self):
        return self.at_ns <= self._device.host_ns

    def elapsed_time(self, after):
        assert self.query(), "reading an event that has not passed would wait for the device"
        assert after.query(), "reading an event that has not passed would wait for the device"
        return (after.at_ns - self.at_ns) / 1e6
