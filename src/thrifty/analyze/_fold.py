"""Fold the moments of one training process into a bill, as they come, in constant memory.

Every nanosecond between the start of the script's process and its end goes to exactly one
place, so the books balance by construction. What is only understood later (was this
evaluation mode a validation or a frozen BatchNorm? is this the tail of the run?) waits in a
pending account until a later moment decides.

The rules, in words: docs/bill.md.
"""

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from thrifty.analyze._steps import StepCounter
from thrifty.observe import Moment, Tick
from thrifty.observe import _events as ev
from thrifty.records import ProgressPhase

__all__ = ["Fold", "Totals"]

_FEW_LOOKS = 20
_MOVED_BACKWARDS = 3
"""So many backward passes elsewhere without one of its own, and the loop has moved."""
_LOOP, _FETCH, _CHECKPOINT, _COMPILE, _LOG = range(5)


class _Account:
    """Wall time, and the loop thread's CPU and run-queue time within it, in ns."""

    __slots__ = ("cpu", "queue", "wall")

    def __init__(self) -> None:
        self.wall = self.cpu = self.queue = 0

    def take(self, other: "_Account") -> None:
        self.wall += other.wall
        self.cpu += other.cpu
        self.queue += other.queue
        other.wall = other.cpu = other.queue = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Totals:
    """What the fold knows when the process has ended; times in ns."""

    startup_ns: int
    fetch_ns: int
    fetch_queue_ns: int
    """Part of ``fetch_ns`` that the loop's thread spent in the run queue."""
    loop_ns: int
    loop_cpu_ns: int
    loop_queue_ns: int
    validation_ns: int
    checkpoint_ns: int
    compile_ns: int
    logging_ns: int
    shutdown_ns: int
    lost_ns: int
    """After recording had to stop."""
    idle_ticks: int
    """Looks at the loop during which its thread slept."""
    idle_active_ticks: int
    """Those of them during which another thread of the process worked."""
    extra_queue_ns: int
    """Other threads' waits for a core beyond the loop thread's own."""
    queue_known: bool
    trained: bool
    steps: int
    steps_are_backwards: bool
    """No optimizer was seen, so backward passes were counted."""
    samples: int | None
    epochs: int | None
    training_ns: int
    """Fetches and loop: validation, saves, logging and compilation are not in it."""
    device_fetch_ns: int
    """The device's own time from the start of a training fetch to its end."""
    device_loop_ns: int
    """The device's own time from there to the next fetch."""
    python_fraction: float | None
    """Share of the loop during which the user's own Python held the interpreter; None when
    nobody looked."""


class Fold:
    """The state of the books of one process.

    Args:
        start_ns: When the script's process was started (``perf_counter_ns``).
    """

    def __init__(self, start_ns: int) -> None:  # noqa: PLR0915 (a state machine's state)
        self._start = self._last = start_ns
        self._last_cpu = self._last_queue = -1
        self.process_id = 0
        self.loop_thread = 0
        self.framework: int | None = None
        self.steps = StepCounter()
        self._activity = _LOOP
        self._before_span: list[int] = []
        self._started = False
        self._loop_began = 0
        self._last_useful = 0
        self._startup = _Account()
        self._fetch = _Account()
        self._loop = _Account()
        self._validation = _Account()
        self._special = {_CHECKPOINT: _Account(), _COMPILE: _Account(), _LOG: _Account()}
        self._lost = _Account()
        # Pending: since the last activity (the tail?), since the last training fetch before
        # the first backward (start-up?), since the evaluation's last fetch (training again?).
        self._tail = _Account()
        self._first_fetch = _Account()
        self._first_loop = _Account()
        self._fetched_once = False
        # Since a pass over a loader began and before anything of it was trained on: if nothing
        # ever is, the pass was a validation that said so in no other way.
        self._pass_fetch = _Account()
        self._pass_loop = _Account()
        self._pass_open = False
        self._evaluating = ""
        self._eval_held = _Account()
        self._eval_fetch = _Account()
        self._eval_loop = _Account()
        self._eval_rows = 0
        self._eval_fetched = False
        self._kept_rows = 0
        # Since an evaluation's loader ran out: still validation, unless the process just ends.
        self._eval_tail = _Account()
        self._eval_ran_out = False
        # When validations were, for the device's intervals, which become known later.
        self._eval_began = 0
        self._eval_spans: deque[tuple[int, int]] = deque(maxlen=64)
        self._device_fetch = self._device_loop = 0
        self._is_lost = False
        self._exit = _Account()
        self._has_exited = False
        self._queue_known = False
        self._rows = 0
        self._rows_unknown = False
        self._foreign_backwards = 0
        self._samples: int | None = None
        self._epochs: int | None = None
        self._backwards_in_pass = 0
        self._known_length = -1  # as the last whole training pass told it
        self.pass_length = -1
        self.pass_position = 0
        self.pass_began = 0
        self._idle_ticks = self._idle_active_ticks = 0
        self._extra_queue = 0
        self._python_looks = self._loop_looks = 0.0
        self._handlers: dict[int, Callable[[Moment], None]] = {
            ev.IMPORTED: self._on_import,
            ev.LOADER: self._on_fetch_start,
            ev.FETCH_START: self._on_fetch_start,
            ev.FETCH_END: self._on_fetch_end,
            ev.BACKWARD_START: self._on_backward,
            ev.STEP_END: self._on_step,
            ev.EVAL: self._on_eval,
            ev.TRAIN: self._on_train,
            ev.LOST: self._on_lost,
            ev.EXIT: self._on_exit,
            **dict.fromkeys(_SPAN_START, self._on_span_start),
            **dict.fromkeys(_SPAN_END, self._on_span_end),
        }

    # -- what the live line asks

    @property
    def trained(self) -> bool:
        """A backward pass or a step was seen."""
        return self._started

    @property
    def evaluating(self) -> bool:
        """The process validates now."""
        return bool(self._evaluating)

    @property
    def activity(self) -> ProgressPhase:
        """What the loop's thread does now."""
        if self._has_exited:
            return "shutdown"
        if self._activity == _CHECKPOINT:
            return "checkpoint"
        if self._activity == _COMPILE:
            return "compile"
        if self._evaluating:
            return "validation"
        return "training" if self._started else "startup"

    @property
    def samples(self) -> int | None:
        """Rows trained on so far."""
        return self._samples

    @property
    def epochs(self) -> int | None:
        """Passes over the training loader so far."""
        return self._epochs

    @property
    def last_useful(self) -> int:
        """When training last showed itself."""
        return self._last_useful

    @property
    def step_ns(self) -> int:
        """Mean time of a step so far."""
        return (self._last_useful - self._loop_began) // max(1, self.steps.total())

    @property
    def fetch_ns(self) -> int:
        """Time that training waited for data so far."""
        return self._fetch.wall

    @property
    def training_ns(self) -> int:
        """Time of the training loop so far, its fetches included, validation not."""
        pending = self._pass_fetch.wall + self._pass_loop.wall + self._tail.wall
        return self._fetch.wall + self._loop.wall + pending

    # -- feeding

    def feed(self, moments: Iterable[Moment]) -> None:
        """Take the next records of this process, oldest first."""
        for moment in moments:
            self._take(moment)

    def tick(self, tick: Tick) -> None:
        """Take a look from outside; call after the records before it were fed."""
        if not self._started or self._evaluating:
            return
        self._extra_queue += tick.extra_queue_ns
        if self._activity == _LOOP:
            if tick.loop_active:
                return
            self._idle_ticks += 1
            if tick.others_active:
                self._idle_active_ticks += 1

    def loop_ns(self, now_ns: int) -> tuple[int, int]:
        """Give the loop's time and the time beside it (fetches apart) until now."""
        loop = self._loop.wall + self._tail.wall
        validation = self._validation.wall + self._eval_held.wall + self._eval_loop.wall
        passing = max(0, now_ns - self._last)
        if self._account() is self._tail:
            loop += passing
        elif self._evaluating:
            validation += passing
        return loop, validation

    def look(self, python_looks: float, loop_looks: float) -> None:
        """Take in how many of some looks at the loop met the user's own Python."""
        self._python_looks += python_looks
        self._loop_looks += loop_looks

    def _take(self, moment: Moment) -> None:
        t, cpu, queue, value, thread, _, kind = moment
        if kind in (ev.DEVICE_FETCH, ev.DEVICE_LOOP):
            self._on_device(kind, began=cpu, ended=queue, took=value)
            return
        if kind == ev.PROCESS:
            self.process_id = value
            self.loop_thread = thread
        elif thread != self.loop_thread and not self._moved_to(thread, kind):
            self._elsewhere(kind, value)
            return
        self._spend(t, cpu, queue)
        if self._eval_ran_out:
            self._eval_held.take(self._eval_tail)
            # After a save of the best weights the process may still just end.
            self._eval_ran_out = kind in _SPAN_START or kind in _SPAN_END
        handler = self._handlers.get(kind)
        if handler is not None:
            handler(moment)

    def _moved_to(self, thread: int, kind: int) -> bool:
        """Follow the loop to another thread when training starts there, or goes on there."""
        if kind != ev.BACKWARD_START:
            return False
        self._foreign_backwards += 1
        if self._started and self._foreign_backwards < _MOVED_BACKWARDS:
            return False
        self.loop_thread = thread
        self._last_cpu = self._last_queue = -1
        self._activity = _LOOP
        self._before_span.clear()
        return True

    def _elsewhere(self, kind: int, value: int) -> None:
        """Take what another thread does: an optimizer inside backward, another training."""
        if kind == ev.STEP_END:
            self.steps.step(value)
        elif kind == ev.FETCH_END and value > 0:
            self.steps.fetch()

    def _spend(self, t: int, cpu: int, queue: int) -> None:
        """Book the time since the last moment under what was going on."""
        account = self._account()
        passed = t - self._last
        account.wall += passed
        self._last = t
        if cpu < 0:
            if self._activity == _FETCH and self._last_cpu >= 0:
                # Too short to be worth a look: it was on its core.
                account.cpu += passed
                self._last_cpu += passed
            return
        if self._last_cpu >= 0:
            used = cpu - self._last_cpu
            if self._activity == _FETCH and used > passed:
                # The loop before a fetch that turned out long was not looked at.
                self._loop.cpu += used - passed
                used = passed
            account.cpu += used
            if queue >= 0 and self._last_queue >= 0:
                self._queue_known = True
                account.queue += queue - self._last_queue
        self._last_cpu, self._last_queue = cpu, queue

    def _account(self) -> _Account:
        """Find where the time that passes now goes."""
        fetching = self._activity == _FETCH
        if self._is_lost:
            return self._lost
        if self._has_exited and self._started:
            return self._exit
        if self._activity in _ALWAYS_THEMSELVES:
            account = self._special[self._activity]
        elif self._evaluating:
            loop = self._eval_tail if self._eval_ran_out else self._eval_loop
            account = self._eval_fetch if fetching else loop
        elif not self._started:
            account = self._first_fetch if fetching else self._first_loop
        elif self._activity == _LOG:
            account = self._special[_LOG]
        else:
            waits = self._pass_fetch if self._pass_open else self._fetch
            account = waits if fetching else self._tail
        return account

    def _useful(self, t: int) -> None:
        """Training went on until now: what was pending as a tail was the loop."""
        if self._started:
            (self._pass_loop if self._pass_open else self._loop).take(self._tail)
            self._last_useful = t

    def _on_device(self, kind: int, *, began: int, ended: int, took: int) -> None:
        """Take in what the device says of an interval, if training was what it did."""
        if not self._started or (self._evaluating and ended > self._eval_began):
            return
        if any(began < end and ended > start for start, end in self._eval_spans):
            return
        if kind == ev.DEVICE_FETCH:
            self._device_fetch += max(0, took)
        else:
            self._device_loop += max(0, took)

    def _on_import(self, moment: Moment) -> None:
        self.framework = moment[3]

    def _on_exit(self, _moment: Moment) -> None:
        self._has_exited = True

    def _on_lost(self, _moment: Moment) -> None:
        self._is_lost = True

    def _on_step(self, moment: Moment) -> None:
        self.steps.step(moment[3])
        self._trains(moment[0])

    def _on_train(self, moment: Moment) -> None:
        self._end_evaluation(resumed=False)
        self._useful(moment[0])

    def _on_span_start(self, moment: Moment) -> None:
        self._before_span.append(self._activity)
        self._useful(moment[0])
        self._activity = _SPAN_START[moment[6]]

    def _on_span_end(self, moment: Moment) -> None:
        self._activity = self._before_span.pop() if self._before_span else _LOOP
        self._useful(moment[0])

    def _on_backward(self, moment: Moment) -> None:
        self._foreign_backwards = 0
        self.steps.backward()
        self._backwards_in_pass += 1
        self._trains(moment[0])

    def _trains(self, t: int) -> None:
        """Training shows itself: what was pending for that is decided."""
        if not self._started:
            self._started = True
            # Without a fetch the first forward cannot be told from the set-up before it.
            if self._fetched_once:
                self._loop_began = t - self._first_loop.wall - self._first_fetch.wall
                self._fetch.take(self._first_fetch)
                self._loop.take(self._first_loop)
            else:
                self._loop_began = t
                self._startup.take(self._first_loop)
                self._startup.take(self._first_fetch)
        if self._evaluating:
            self._end_evaluation(resumed=True)
        if self._rows:
            self._samples = (self._samples or 0) + self._rows
            self._rows = 0
        self._useful(t)
        if self._pass_open:
            self._fetch.take(self._pass_fetch)
            self._loop.take(self._pass_loop)
            self._pass_open = False

    def _on_fetch_start(self, moment: Moment) -> None:
        t, _, _, value, _, flags, kind = moment
        grad = bool(flags & ev.FLAG_GRAD)
        if not self._started and not self._evaluating:
            if kind == ev.LOADER or self._fetched_once:
                self._startup.take(self._first_fetch)
                self._startup.take(self._first_loop)
                self._fetched_once = False
        elif self._started and not self._evaluating and not grad:
            self._useful(t)
            self._evaluating = "no_grad"
            self._kept_rows, self._rows = 0, 0
            self._eval_fetched = True
            self._eval_began = t
        elif self._evaluating:
            self._eval_held.take(self._eval_fetch)
            self._eval_held.take(self._eval_loop)
            self._eval_rows = 0
            if grad and self._evaluating == "no_grad":
                self._end_evaluation(resumed=False)
        if not self._evaluating:
            self._useful(t)
            if kind == ev.LOADER:
                self._end_whole_pass()
                self._begin_pass(value, t)
        self._activity = _FETCH

    def _on_fetch_end(self, moment: Moment) -> None:
        t, _, _, rows, _, flags, _ = moment
        self._activity = _LOOP
        if self._evaluating:
            self._eval_rows = rows
            self._eval_fetched = True
            if flags & ev.FLAG_LAST and self._evaluating == "no_grad" and self._started:
                self._end_evaluation(resumed=False)
            elif flags & ev.FLAG_LAST:
                self._eval_ran_out = True
            return
        if flags & ev.FLAG_LAST:
            if self._backwards_in_pass:
                self._last_useful = t
            self._end_pass(asked_beyond=True)
            return
        if rows > 0:
            self._rows += rows
        elif rows < 0:
            self._rows_unknown = True
        if rows:
            self._fetched_once = True
            self.pass_position += 1
            self.steps.fetch()
        self._useful(t)

    def _on_eval(self, moment: Moment) -> None:
        if not self._evaluating:
            self._useful(moment[0])
            self._end_whole_pass()
            if not self._backwards_in_pass:  # the evaluator's own loader, begun before the flip
                self.pass_length = -1
            self._evaluating = "eval"
            self._eval_began = moment[0]
            self._kept_rows, self._rows = self._rows, 0
            self._eval_fetched = False

    def _end_evaluation(self, *, resumed: bool) -> None:
        """Close an evaluation; ``resumed``: training showed itself before anything said so."""
        if not self._evaluating:
            return
        if resumed:
            fetch, loop = (
                (self._fetch, self._loop)
                if self._started
                else (self._first_fetch, self._first_loop)
            )
            fetch.take(self._eval_fetch)
            loop.take(self._eval_loop)
            self._rows += max(0, self._eval_rows)
            if self._eval_rows:
                self.steps.fetch()
        self._validation.take(self._eval_held)
        self._validation.take(self._eval_fetch)
        self._validation.take(self._eval_loop)
        if not self._eval_fetched:  # a look at the batch in hand, which is trained on afterwards
            self._rows += self._kept_rows
        self._kept_rows = 0
        self._evaluating = ""
        self._eval_rows = 0
        if not resumed:
            self._eval_spans.append((self._eval_began, self._last))

    # -- closing

    def _begin_pass(self, length: int, t: int) -> None:
        """A loader is asked for a new pass."""
        if self._pass_open:  # the pass before was broken off; nothing says it was not training
            self._fetch.take(self._pass_fetch)
            self._loop.take(self._pass_loop)
        if length < 0:
            length = self._known_length
        self.pass_length, self.pass_position, self.pass_began = length, 0, t
        self._backwards_in_pass = 0
        self._pass_open = self._started

    def _end_pass(self, *, asked_beyond: bool = False) -> None:
        """Count a pass over the training loader that came to its end."""
        if self._backwards_in_pass:
            self._epochs = (self._epochs or 0) + 1
            self._backwards_in_pass = 0
            if asked_beyond:
                self._known_length = self.pass_position
        elif self._pass_open:
            self._useful(self._last)
            self._validation.take(self._pass_fetch)
            self._validation.take(self._pass_loop)
            self._rows = 0
        self._pass_open = False
        self.pass_length = -1

    def _end_whole_pass(self) -> None:
        """Count a pass of known length whose every batch was fetched, but not asked beyond."""
        if 0 < self.pass_length <= self.pass_position:
            self._end_pass()

    def totals(self, end_ns: int, *, cut_short: bool = False) -> Totals:
        """Close the books at the process's end.

        Args:
            end_ns: When the process ended.
            cut_short: A signal ended it, so the last stretch was no shutdown.
        """
        self._account().wall += max(0, end_ns - self._last)
        self._last = max(end_ns, self._last)
        self._end_whole_pass()
        validation = self._validation.wall + self._eval_held.wall
        validation += self._eval_fetch.wall + self._eval_loop.wall
        self._fetch.take(self._pass_fetch)
        self._loop.take(self._pass_loop)
        startup = self._startup.wall + self._first_fetch.wall + self._first_loop.wall
        loop, shutdown = self._loop, self._tail.wall + self._exit.wall
        if cut_short:
            loop.take(self._tail)
            shutdown = self._exit.wall
            validation += self._eval_tail.wall
        else:
            shutdown += self._eval_tail.wall
        return Totals(
            startup_ns=startup,
            fetch_ns=self._fetch.wall,
            fetch_queue_ns=self._fetch.queue,
            loop_ns=loop.wall,
            loop_cpu_ns=loop.cpu,
            loop_queue_ns=loop.queue,
            validation_ns=validation,
            checkpoint_ns=self._special[_CHECKPOINT].wall,
            compile_ns=self._special[_COMPILE].wall,
            logging_ns=self._special[_LOG].wall,
            shutdown_ns=shutdown,
            lost_ns=self._lost.wall,
            idle_ticks=self._idle_ticks,
            idle_active_ticks=self._idle_active_ticks,
            extra_queue_ns=self._extra_queue,
            queue_known=self._queue_known,
            trained=self._started,
            steps=self.steps.total(),
            steps_are_backwards=self.steps.counts_backwards,
            samples=None if self._rows_unknown else self._samples,
            epochs=self._epochs,
            training_ns=self._fetch.wall + loop.wall,
            device_fetch_ns=self._device_fetch,
            device_loop_ns=self._device_loop,
            python_fraction=self._python_looks / self._loop_looks
            if self._loop_looks >= _FEW_LOOKS
            else None,
        )


_ALWAYS_THEMSELVES = (_COMPILE, _CHECKPOINT)
_SPAN_START = {ev.SAVE_START: _CHECKPOINT, ev.COMPILE_START: _COMPILE, ev.LOG_START: _LOG}
_SPAN_END = (ev.SAVE_END, ev.COMPILE_END, ev.LOG_END)
