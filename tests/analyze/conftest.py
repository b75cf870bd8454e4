"""A script that exists only as the moments it would have recorded."""

import pytest

from thrifty.analyze import Fold
from thrifty.observe import _events as ev

MS = 1_000_000


class Script:
    """Records moments as the hooks would; time passes only where a method says so."""

    def __init__(self, thread: int = 7) -> None:
        self.now = self.cpu = self.queue = 0
        self.thread = thread
        self.moments = []
        self.mark(ev.PROCESS, 1)
        self.mark(ev.IMPORTED, 0, full=True)

    def mark(self, kind, value=0, flags=0, *, full=False, thread=None):
        cpu, queue = (self.cpu, self.queue) if full else (-1, -1)
        thread = self.thread if thread is None else thread
        self.moments.append((self.now, cpu, queue, value, thread, flags, kind))

    def work(self, ms):
        """The loop's thread is on a core."""
        self.now += ms * MS
        self.cpu += ms * MS
        return self

    def sleep(self, ms):
        self.now += ms * MS
        return self

    def queued(self, ms):
        """The loop's thread is ready, without a core."""
        self.now += ms * MS
        self.queue += ms * MS
        return self

    def loader(self, length=-1, *, grad=True):
        self.mark(ev.LOADER, length, ev.FLAG_GRAD if grad else 0, full=True)
        self.mark(ev.FETCH_END, 0, ev.FLAG_GRAD if grad else 0, full=True)
        return self

    def fetch(self, ms=0, rows=32, *, grad=True, last=False):
        flags = ev.FLAG_GRAD if grad else 0
        self.mark(ev.FETCH_START, 0, flags, full=True)
        self.sleep(ms)
        self.mark(
            ev.FETCH_END, 0 if last else rows, flags | (ev.FLAG_LAST if last else 0), full=True
        )
        return self

    def backward(self, ms=0):
        self.mark(ev.BACKWARD_START, full=True)
        self.work(ms)
        return self

    def step(self, optimizer=0, *, thread=None):
        self.mark(ev.STEP_END, optimizer, thread=thread)
        return self

    def span(self, start, end, ms):
        self.mark(start, full=True)
        self.sleep(ms)
        self.mark(end, full=True)
        return self

    def save(self, ms):
        return self.span(ev.SAVE_START, ev.SAVE_END, ms)

    def eval(self):
        self.mark(ev.EVAL, full=True)
        return self

    def train(self):
        self.mark(ev.TRAIN, full=True)
        return self

    def train_step(self, fetch_ms=2, work_ms=10, rows=32):
        return self.fetch(fetch_ms, rows).work(work_ms).backward().step()

    def totals(self, *, cut_short=False, chunks=1):
        """Fold everything, in so many parts; times in ms."""
        fold = Fold(0)
        size = -(-len(self.moments) // chunks)
        for start in range(0, len(self.moments), size):
            fold.feed(self.moments[start : start + size])
        return fold.totals(self.now, cut_short=cut_short)


@pytest.fixture
def script():
    return Script()


@pytest.fixture
def make_script():
    return Script
