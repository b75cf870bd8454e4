"""What the measurements of our cost share: arms in alternation, intervals, tables, accounts.

Refuses to compare runs of different moments: an arm is only set beside another arm of the
same round, and every comparison stands beside that of two plain arms (A/A).
"""

import contextlib
import json
import os
import random
import statistics
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

__all__ = [
    "HERE",
    "THRIFTY",
    "Interval",
    "clean_environment",
    "cpu_ns_of",
    "interval",
    "keeps",
    "machine",
    "paired",
    "print_table",
    "reaped_cpu_ns",
    "started",
    "stopped",
    "verdict",
    "write_json",
]

HERE = Path(__file__).resolve().parent
THRIFTY = str(Path(sys.executable).with_name("thrifty"))

_DRAWS = 4000
_CONFIDENCE = 0.95
_SEED = 20261130
_NS = 1_000_000_000
_ENOUGH = 6
"""With five pairs or fewer not even their whole range is a 95 % interval of the median."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Interval:
    """A median and its bootstrap confidence interval."""

    median: float
    low: float
    high: float
    count: int

    def text(self, form: str = "+.1f") -> str:
        """Write it as ``median [low, high]``; too few values have no interval."""
        if self.count < _ENOUGH:
            return f"{self.median:{form}} [n={self.count}]"
        return f"{self.median:{form}} [{self.low:{form}}, {self.high:{form}}]"

    def to_json(self) -> dict[str, float | int]:
        """Give it as plain data."""
        return asdict(self)


def interval(values: Sequence[float]) -> Interval:
    """Give the median and the 95 % percentile-bootstrap interval of the median.

    Source: B. Efron, "Bootstrap methods: another look at the jackknife", 1979,
        https://doi.org/10.1214/aos/1176344552
    """
    draw = random.Random(_SEED)  # noqa: S311 (resampling, nothing secret)
    count = len(values)
    medians = sorted(statistics.median(draw.choices(values, k=count)) for _ in range(_DRAWS))
    tail = (1 - _CONFIDENCE) / 2
    return Interval(
        median=statistics.median(values),
        low=medians[int(tail * _DRAWS)],
        high=medians[int((1 - tail) * _DRAWS) - 1],
        count=count,
    )


def paired(arm: Sequence[float], *controls: Sequence[float]) -> Interval:
    """Compare an arm with the mean of its controls, round by round."""
    rounds = zip(arm, *controls, strict=True)
    return interval([one - statistics.fmean(rest) for one, *rest in rounds])


def verdict(value: float, goal: float, unit: str, *, what: str) -> dict[str, Any]:
    """Print whether a figure keeps within its goal, and give that as plain data."""
    kept = value <= goal
    print(f"{what}: {value:.3g} {unit}, goal <= {goal:g} {unit}: {'kept' if kept else 'MISSED'}")
    return {"what": what, "value": value, "goal": goal, "unit": unit, "kept": kept}


def keeps(verdicts: Sequence[Mapping[str, Any]], *, trial: bool) -> bool:
    """Tell whether every goal is kept; a trial is too short to say that one is not."""
    if trial:
        print("a trial (--quick): these figures are no results")
        return True
    return all(each["kept"] for each in verdicts)


def print_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows with the first column to the left and the others to the right."""
    widths = [max(len(row[i]) for row in [headings, *rows]) for i in range(len(headings))]
    for row in [headings, *rows]:
        first = row[0].ljust(widths[0])
        rest = [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        print("  ".join([first, *rest]).rstrip())


def write_json(path: Path | None, name: str, found: Mapping[str, Any]) -> None:
    """Write what was found, with the machine that it was found on."""
    if path is None:
        return
    whole = {"bench": name, "command": sys.argv, "machine": machine(), **found}
    path.write_text(json.dumps(whole, indent=1) + "\n", encoding="utf-8")


def machine() -> dict[str, Any]:
    """Say where we measure and how busy it is now."""
    model = "unknown"
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                model = line.partition(":")[2].strip()
                break
    return {
        "processor": model,
        "cores": len(os.sched_getaffinity(0)),
        "load_average": os.getloadavg(),
        "python": sys.version.split()[0],
        "kernel": os.uname().release,
    }


def clean_environment(home: Path) -> dict[str, str]:
    """Give our environment without any of ours in it, and a thrifty home of its own."""
    made = {k: v for k, v in os.environ.items() if not k.startswith(("THRIFTY", "TRACEML"))}
    return made | {"THRIFTY_HOME": str(home)}


@contextlib.contextmanager
def started(
    command: Sequence[str], environment: Mapping[str, str], cwd: Path, **more: Any
) -> Iterator[subprocess.Popen[bytes]]:
    """Start a command; it is over when the block is."""
    process = subprocess.Popen(command, env=environment, cwd=cwd, **more)
    try:
        yield process
    finally:
        stopped(process)


def stopped(process: subprocess.Popen[bytes]) -> None:
    """End a process that still runs, first in a way that it can pass on."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def cpu_ns_of(process_id: int) -> int | None:
    """Give the CPU time of a process's living threads; finer than its clock ticks.

    None when it cannot be read. A kernel without ``schedstat`` gives it in ticks of 10 ms.
    """
    total = 0
    try:
        for task in Path(f"/proc/{process_id}/task").iterdir():
            total += int((task / "schedstat").read_bytes().split()[0])
    except (OSError, ValueError):
        fields = _stat_fields(process_id)
        return None if fields is None else _ticks_ns(fields[11] + fields[12])
    return total


def reaped_cpu_ns(process_id: int) -> int | None:
    """Give the CPU time of the children that a process has waited for; None if unreadable."""
    fields = _stat_fields(process_id)
    return None if fields is None else _ticks_ns(fields[13] + fields[14])


def _stat_fields(process_id: int) -> list[int] | None:
    """Give the fields of ``/proc/PID/stat`` after the name; the state letter becomes 0."""
    try:
        data = Path(f"/proc/{process_id}/stat").read_bytes()
    except OSError:
        return None
    fields = data[data.rfind(b")") + 2 :].split()
    return [int(field) if field.lstrip(b"-").isdigit() else 0 for field in fields]


def _ticks_ns(ticks: int) -> int:
    return ticks * _NS // os.sysconf("SC_CLK_TCK")
