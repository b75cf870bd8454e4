"""Keep the books of a run while it goes: fold records, take samples, say where it stands."""

import time
from collections import deque
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from thrifty.analyze import Fold, attribute, conclude, lines
from thrifty.launch._stacks import StackWatch
from thrifty.machines import DeviceSample
from thrifty.observe import ProcessTree, RunReader
from thrifty.observe._events import FRAMEWORKS
from thrifty.observe._tree import SystemSample
from thrifty.records import FEW_STEPS, Progress, Run, RunStatus, SystemUse

__all__ = ["Books", "Ending", "sample_row"]

_NS = 1_000_000_000
_WINDOW_S = 10.0
_FOLD_NS = 50_000_000
_FEW_STEPS = 20
_QUIET_S = 0.15
_UNSEEN = (
    "the hooks did not load in the script's process (not Python 3.11 or newer, or started "
    "with -I, -E or -S, or it replaced PYTHONPATH): its time is unattributed; start it as: "
    "thrifty run train.py"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Ending:
    """How the script's process ended."""

    end_ns: int
    """``perf_counter_ns`` when we learned of it."""

    exit_code: int
    """Minus the signal's number when one ended it."""

    status: RunStatus
    """Before it is known whether it trained."""

    cpu_s: float
    """Of the process and all descendants that were waited for."""

    peak_memory_bytes: int
    """Of its largest single process."""


class Books:
    """Everything known of one run.

    Args:
        run: As it began.
        records: Where the script's side writes; None when it cannot.
        process_id: The script's process.
        start_ns: When it was started (``perf_counter_ns``).
        cores: Cores that it may use.
    """

    def __init__(
        self, run: Run, *, records: Path | None, process_id: int, start_ns: int, cores: float
    ) -> None:
        self.run = run
        self.notes: list[str] = list(run.notes)
        self.start_ns = start_ns
        self._cores = cores
        self._reader = None if records is None else RunReader(records)
        self._folds: dict[str, Fold] = {}
        self._tree = ProcessTree(process_id)
        self._stacks = StackWatch(records)
        self._window_began = (0, 0, 0)
        self._first: SystemSample | None = None
        self._sample: SystemSample | None = None
        self._peak_memory = 0
        self._active_sum, self._active_looks = 0.0, 0
        self._window: deque[tuple[int, int, int, int]] = deque()

    # -- while it runs

    def fold(self, *, everything: bool = False) -> None:
        """Take in what the script's side has written."""
        reader = self._reader
        if reader is None:
            return
        for shard in reader.discover():
            self._folds[shard] = Fold(self.start_ns)
        for shard, fold in self._folds.items():
            until = time.perf_counter_ns() + _FOLD_NS
            while moments := reader.shards[shard].read():
                fold.feed(moments)
                if not everything and time.perf_counter_ns() > until:
                    break  # the rest next time: looks and the live line are due

    def tick(self) -> None:
        """Look at the training process's threads."""
        fold = self._main()
        if fold is None or not fold.process_id:
            return
        self._tree.watch(fold.process_id, fold.loop_thread)
        tick = self._tree.tick()
        if tick is not None:
            fold.tick(tick)
        if fold.trained:
            self._look(fold)

    def _look(self, fold: Fold) -> None:
        """See to the looks at the script's stacks."""
        now = time.perf_counter_ns()
        if not self._stacks.looking:
            if self._stacks.start(fold.process_id, now / _NS):
                self._window_began = (now, *fold.loop_ns(now))
            return
        window = self._stacks.poll(now / _NS)
        if window is None:
            return
        began, loop_before, beside_before = self._window_began
        loop, beside = fold.loop_ns(now)
        loop, beside = loop - loop_before, beside - beside_before
        # A window that reaches past the training's end looked at something else.
        if loop > 0 and now - fold.last_useful < _QUIET_S * _NS + 3 * fold.step_ns:
            # Looks during a validation cannot be told from the loop's: shared out by time.
            python_looks = window.python_looks * loop / (loop + beside)
            fold.look(python_looks, window.looks * loop / (now - began))

    def sample(self) -> SystemSample:
        """Look at the whole process tree."""
        self._tree.refresh()
        sample = self._tree.sample()
        if self._first is None:
            self._first = sample
        self._sample = sample
        self._peak_memory = max(self._peak_memory, sample.memory_bytes)
        return sample

    def _main(self) -> Fold | None:
        """Give the process that trains: the one with the most steps, else the first."""
        folds = list(self._folds.values())
        if not folds:
            return None
        if len(folds) == 1:
            return folds[0]
        return max(folds, key=lambda fold: (fold.trained, fold.steps.total()))

    def progress(self) -> Progress:
        """Say where the run stands."""
        now = time.perf_counter_ns()
        wall_s = (now - self.start_ns) / _NS
        price = self.run.price
        usd = None if price is None else price.usd_per_hour * wall_s / 3600
        fold = self._main()
        if fold is None or not fold.trained:
            return Progress(
                wall_s=wall_s,
                phase="startup",
                steps=None,
                epoch_fraction=None,
                epochs=None,
                epoch_eta_s=None,
                samples_per_s=None,
                input_wait_fraction=None,
                usd=usd,
            )
        window = self._window
        window.append((now, fold.samples or 0, fold.fetch_ns, fold.training_ns))
        while len(window) > 1 and now - window[0][0] > _WINDOW_S * _NS:
            window.popleft()
        _, samples, fetch_ns, training_ns = window[0]
        passed = fold.training_ns - training_ns  # a validation is no slow training
        known = passed > _NS
        known = known and fold.activity != "shutdown"
        rate = ((fold.samples or 0) - samples) / passed * _NS if known and fold.samples else None
        fraction = eta_s = None
        if fold.pass_length > 0:
            fraction = min(1.0, fold.pass_position / fold.pass_length)
            if fold.pass_position >= _FEW_STEPS and not fold.evaluating:
                per_batch = (now - fold.pass_began) / fold.pass_position
                eta_s = per_batch * (fold.pass_length - fold.pass_position) / _NS
        return Progress(
            wall_s=wall_s,
            phase=fold.activity,
            steps=fold.steps.total(),
            epoch_fraction=fraction,
            epochs=fold.epochs if fold.epochs is not None or fraction is None else 0,
            epoch_eta_s=eta_s,
            samples_per_s=rate,
            input_wait_fraction=(fold.fetch_ns - fetch_ns) / passed if known else None,
            usd=usd,
        )

    # -- when it has ended

    def provisional(self) -> Run:
        """Give the record as of now, for a launcher that may yet be killed."""
        now = time.perf_counter_ns()
        run = self._record(now, cut_short=True, final=False)
        sample = self._sample
        if sample is None:
            return run
        so_far = Ending(
            end_ns=now, exit_code=0, status="running", cpu_s=sample.cpu_s, peak_memory_bytes=0
        )
        return replace(run, system=self._system(run.wall_s, so_far))

    def close(self, ending: Ending) -> Run:
        """Give the final record."""
        self.fold(everything=True)
        self._tree.close()
        self._stacks.close()
        cut_short = ending.status in {"killed", "interrupted"}
        run = self._record(ending.end_ns, cut_short=cut_short, final=True)
        status = ending.status
        if status == "completed" and not run.steps:
            status = "no_training"
        run = replace(
            run,
            status=status,
            exit_code=ending.exit_code,
            system=self._system(run.wall_s, ending),
        )
        return conclude(run)

    def _record(self, end_ns: int, *, cut_short: bool, final: bool) -> Run:
        wall_ns = end_ns - self.start_ns
        run = self.run
        fold = self._main()
        totals = None
        notes = list(self.notes)
        if fold is not None:
            # Closing a fold moves what is pending for good, so a provisional look is a copy.
            import copy

            chosen = fold if final else copy.deepcopy(fold)
            totals = chosen.totals(end_ns, cut_short=cut_short)
        elif final:
            notes.extend(self._why_unseen())
        attribution = attribute(totals, wall_ns=wall_ns, has_devices=run.device_count > 0)
        notes.extend(attribution.notes)
        if fold is not None and fold.trained and self._stacks.problem is not None:
            notes.append(self._stacks.problem)
        if self._reader is not None:
            notes.extend(self._reader.notes())
        trained = [f for f in self._folds.values() if f.trained]
        if len(trained) > 1:
            notes.append(
                f"{len(trained)} processes trained; the bill is that of the one with the most steps"
            )
        framework = None
        if fold is not None and fold.framework is not None:
            framework = FRAMEWORKS[fold.framework]
        wall_s = wall_ns / _NS
        steps = totals.steps if totals is not None else None
        samples = totals.samples if totals is not None else None
        training_s = totals.training_ns / _NS if totals is not None else 0.0
        enough = bool(steps and steps >= FEW_STEPS and training_s > 0)
        if steps and not enough and final:
            notes.append(f"{steps} steps are too few for rates or a cost per step")
        made = replace(
            run,
            framework=framework,
            world_size=len(trained) or None,
            wall_s=wall_s,
            steps=steps,
            samples=samples,
            samples_per_s=samples / training_s if samples and enough else None,
            epochs=totals.epochs if totals is not None else None,
            cost_usd=None if run.price is None else run.price.usd_per_hour * wall_s / 3600,
            bill=lines(attribution, device_count=run.device_count, price=run.price),
            notes=tuple(dict.fromkeys(notes)),
        )
        return made if final else conclude(made)

    def take_devices(self, samples: Sequence[DeviceSample]) -> None:
        """Take a look at the devices, ten times a second."""
        active = [s.kernel_active_fraction for s in samples]
        known = [fraction for fraction in active if fraction is not None]
        if known:
            self._active_sum += sum(known) / len(known)
            self._active_looks += 1

    def _kernel_active(self) -> float | None:
        return self._active_sum / self._active_looks if self._active_looks else None

    def _why_unseen(self) -> list[str]:
        if self._reader is None:
            return []
        return [_UNSEEN]

    def _system(self, wall_s: float, ending: Ending) -> SystemUse:
        first, last = self._first, self._sample
        pressure = throttled = None
        if first is not None and last is not None:
            if first.cpu_pressure_us is not None and last.cpu_pressure_us is not None and wall_s:
                waited_s = (last.cpu_pressure_us - first.cpu_pressure_us) / 1e6
                pressure = min(1.0, waited_s / wall_s)
            if first.throttled_us is not None and last.throttled_us is not None:
                throttled = (last.throttled_us - first.throttled_us) / 1e6
        return SystemUse(
            cores_available=self._cores,
            cores_used=ending.cpu_s / wall_s if wall_s else 0.0,
            peak_memory_bytes=max(self._peak_memory, ending.peak_memory_bytes) or None,
            read_bytes=None if last is None else last.read_bytes,
            written_bytes=None if last is None else last.written_bytes,
            cpu_pressure_fraction=pressure,
            throttled_s=throttled,
            kernel_active_fraction=self._kernel_active(),
        )


def sample_row(
    sample: SystemSample, devices: Sequence[DeviceSample], start_ns: int
) -> dict[str, object]:
    """Give one line of the run's system samples, for later reading."""
    row: dict[str, object] = {"t_s": round((time.perf_counter_ns() - start_ns) / _NS, 3)}
    for name in SystemSample.__slots__:
        row[name] = getattr(sample, name)
    if devices:
        row["devices"] = [asdict(device) for device in devices]
    return row
