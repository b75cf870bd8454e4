"""CPU time that the launcher's side takes while a script trains, as a share of one core.

    python bench/overhead/samples.py [--seconds 30] [--repeats 3] [--json FILE] [--quick]

Three looks:
  system samples   ``ProcessTree`` by itself at its true pace: ten looks at the threads and one
                   at the whole tree per second (goal <= 0.2 % of a core)
  the launcher     all of ``thrifty run``, with py-spy's windows apart, beside scripts of
                   20, 200 and 2,000 steps per second; 20 twice (A/A); 0 is one that never trains
  py-spy           each kind of its windows, and what they come to in the first minute and later
"""

import argparse
import random
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from _measure import (
    HERE,
    THRIFTY,
    clean_environment,
    cpu_ns_of,
    interval,
    keeps,
    print_table,
    reaped_cpu_ns,
    started,
    verdict,
    write_json,
)

from thrifty.launch import _stacks
from thrifty.observe import ProcessTree

TYPE_CHECKING = False
if TYPE_CHECKING:
    import subprocess

GOAL_PERCENT = 0.2
NS = 1_000_000_000
PACED = str(HERE / "_paced.py")
RATES = ("20", "20 again", "200", "2000", "0")
READY_LIMIT_S = 120


def wait_for(ready: Path, process: "subprocess.Popen[bytes]") -> int:
    """Wait until the script trains; give its process id.

    Raises:
        SystemExit: It ended, or never came so far.
    """
    limit = time.perf_counter() + READY_LIMIT_S
    while not ready.exists():
        if process.poll() is not None or time.perf_counter() > limit:
            message = f"{process.args} did not train (exit status {process.poll()})"
            raise SystemExit(message)
        time.sleep(0.05)
    return int(ready.read_text(encoding="utf-8"))


def system_samples(seconds: float, workers: int) -> dict[str, Any]:
    """Sample a training script at the true pace; give CPU time by second."""
    with tempfile.TemporaryDirectory() as name:
        ready = Path(name) / "ready"
        script = [sys.executable, PACED, "--ready", str(ready), "--seconds", str(seconds + 30)]
        script += ["--workers", str(workers)]
        with started(script, clean_environment(Path(name)), Path(name)) as process:
            process_id = wait_for(ready, process)
            tree = ProcessTree(process_id)
            ticks: list[int] = []
            samples: list[int] = []
            by_second: list[float] = []
            due = time.perf_counter()
            for _ in range(int(seconds)):
                spent = 0
                for number in range(10):
                    began = time.thread_time_ns()
                    tree.watch(process_id, process_id)
                    tree.tick()
                    middle = time.thread_time_ns()
                    ticks.append(middle - began)
                    if number == 0:
                        tree.refresh()
                        sample = tree.sample()
                        samples.append(time.thread_time_ns() - middle)
                    spent += time.thread_time_ns() - began
                    due += 0.1
                    time.sleep(max(0.0, due - time.perf_counter()))
                by_second.append(spent / NS * 100)
            threads = len(list(Path(f"/proc/{process_id}/task").iterdir()))
            tree.close()
    return {
        "percent_by_second": by_second[1:],  # the first opens the files
        "tick_us": statistics.median(ticks) / 1e3,
        "sample_us": statistics.median(samples) / 1e3,
        "threads": threads,
        "processes": sample.processes,
    }


def beside_cpu_ns(launcher: int, script: int) -> int:
    """Give the CPU time of the launcher's children other than the script: py-spy's."""
    total = reaped_cpu_ns(launcher) or 0
    for task in Path(f"/proc/{launcher}/task").iterdir():
        for child in (task / "children").read_text(encoding="utf-8").split():
            if int(child) != script:
                total += cpu_ns_of(int(child)) or 0
    return total


def launcher(rate: str, seconds: float) -> dict[str, float]:
    """Run a script under ``thrifty run``; give CPU time as percents of a core."""
    with tempfile.TemporaryDirectory() as name:
        ready = Path(name) / "ready"
        command = [THRIFTY, "run", "--quiet", PACED, "--ready", str(ready)]
        command += ["--rate", rate, "--seconds", str(seconds + 5)]
        with started(command, clean_environment(Path(name) / "home"), Path(name)) as process:
            script = wait_for(ready, process)
            began, own = time.perf_counter_ns(), cpu_ns_of(process.pid)
            beside = beside_cpu_ns(process.pid, script)
            time.sleep(seconds)
            passed, own_after = time.perf_counter_ns() - began, cpu_ns_of(process.pid)
            beside_after = beside_cpu_ns(process.pid, script)
            if own is None or own_after is None:
                message = "the launcher ended while its script trained"
                raise SystemExit(message)
            # Without this the script would be ended first, and its record be a killed one.
            process.wait()
    return {
        "launcher": (own_after - own) / passed * 100,
        "py_spy": (beside_after - beside) / passed * 100,
    }


def children_s() -> float:
    """Give the CPU time of the children that we have waited for."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def windows(repeats: int) -> dict[str, Any]:
    """Open each kind of py-spy's windows over a training script, without the pauses."""
    kinds = _stacks._WINDOWS  # noqa: SLF001 (its schedule is what is measured)
    with tempfile.TemporaryDirectory() as name:
        ready = Path(name) / "ready"
        script = [sys.executable, PACED, "--ready", str(ready), "--seconds", "3600"]
        found: list[dict[str, float]] = []
        with started(script, clean_environment(Path(name)), Path(name)) as process:
            process_id = wait_for(ready, process)
            watch = _stacks.StackWatch(Path(name))
            skipped = 0.0
            for number in range(len(kinds) - 1 + repeats):
                seconds, rate, pause_s = kinds[min(number, len(kinds) - 1)]
                before, own = children_s(), time.thread_time_ns()
                if not watch.start(process_id, time.perf_counter() + skipped):
                    break
                while watch.looking:
                    time.sleep(0.1)
                    watch.poll(time.perf_counter() + skipped)
                skipped += pause_s
                found.append(
                    {
                        "seconds": seconds,
                        "looks_per_s": rate,
                        "pause_s": pause_s,
                        "cpu_s": children_s() - before,
                        "launcher_cpu_s": (time.thread_time_ns() - own) / NS,
                    }
                )
            watch.close()
    steady = found[len(kinds) - 1 :]
    result: dict[str, Any] = {"windows": found, "problem": watch.problem}
    if steady:
        last = interval([one["cpu_s"] for one in steady])
        period_s = steady[0]["seconds"] + steady[0]["pause_s"]
        result["later_percent"] = last.median / period_s * 100
        result["first_minute_percent"] = first_minute_s(found[: len(kinds)], last.median) / 60 * 100
    return result


def first_minute_s(once: list[dict[str, float]], again_s: float) -> float:
    """Add up what the windows of the first minute take, in seconds of CPU time."""
    at = total = 0.0
    number = 0
    while at < 60:
        one = once[min(number, len(once) - 1)]
        whole = one["cpu_s"] if number < len(once) else again_s
        total += whole * min(1.0, (60 - at) / one["seconds"])
        at += one["seconds"] + one["pause_s"]
        number += 1
    return total


def show_samples(measure: Callable[[int], dict[str, Any]]) -> tuple[dict[str, Any], float]:
    """Print the system samples' table; give the figures and the one that the goal is for."""
    cells: list[tuple[str, ...]] = []
    found: dict[str, Any] = {}
    for workers in (0, 2):
        one = measure(workers)
        percent = interval(one["percent_by_second"])
        name = "a script alone" if workers == 0 else f"with {workers} loader workers"
        found[name] = one | {"percent": percent.to_json()}
        cells.append(
            (
                name,
                f"{one['threads']}",
                f"{one['processes']}",
                f"{one['tick_us']:.0f}",
                f"{one['sample_us']:.0f}",
                percent.text(".3f"),
            )
        )
    headings = ("system samples", "threads", "processes", "us/tick", "us/sample", "% of a core")
    print_table(headings, cells)
    return found, found["a script alone"]["percent"]["median"]


def show_launcher(seconds: float, repeats: int) -> dict[str, Any]:
    """Run the launcher beside every pace, in another order each time, and print what it took."""
    runs: dict[str, list[dict[str, float]]] = {rate: [] for rate in RATES}
    draw = random.Random(4)  # noqa: S311 (an order, nothing secret)
    order = list(RATES)
    for _ in range(repeats):
        draw.shuffle(order)
        for rate in order:
            runs[rate].append(launcher(rate.split()[0], seconds))
    cells = []
    for rate, found in runs.items():
        pace, _, again = rate.partition(" ")
        row = ["never trains" if rate == "0" else f"{pace} steps/s {again}"]
        for side in ("launcher", "py_spy"):
            values = [one[side] for one in found]
            spread = f" ({min(values):.2f} to {max(values):.2f})"
            row.append(f"{statistics.median(values):.2f}{spread}")
        cells.append(tuple(row))
    heading = f"first {seconds:.0f} s of training"
    print_table((heading, "launcher, % of a core", "py-spy, % of a core"), cells)
    return runs


def show_windows(repeats: int) -> dict[str, Any]:
    """Print what py-spy's windows take."""
    found = windows(repeats)
    cells = [
        (
            f"window {number + 1}",
            f"{one['seconds']:.0f}",
            f"{one['looks_per_s']:.0f}",
            f"{one['pause_s']:.0f}",
            f"{one['cpu_s'] * 1e3:.0f}",
            f"{one['launcher_cpu_s'] * 1e3:.1f}",
        )
        for number, one in enumerate(found["windows"])
    ]
    headings = ("py-spy", "s", "looks/s", "pause s", "CPU ms", "launcher's CPU ms")
    print_table(headings, cells)
    if "later_percent" in found:
        print(
            f"py-spy in the first minute {found['first_minute_percent']:.2f} % of a core, "
            f"later {found['later_percent']:.2f} %"
        )
    if found["problem"] is not None:
        print(f"py-spy: {found['problem']}")
    return found


def main() -> int:
    """Print the tables; exit 1 when the goal is missed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=30, help="of each look")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--quick", action="store_true", help="few and short: tries the script")
    args = parser.parse_args()
    seconds, repeats = (8, 1) if args.quick else (args.seconds, args.repeats)
    found, percent = show_samples(lambda workers: system_samples(seconds, workers))
    print()
    runs = show_launcher(seconds, repeats)
    print()
    looks = show_windows(repeats)
    print()
    verdicts = [verdict(percent, GOAL_PERCENT, "% of a core", what="system samples")]
    whole = {"samples": found, "launcher_percent": runs, "py_spy": looks, "verdicts": verdicts}
    write_json(args.json, "samples", whole)
    return 0 if keeps(verdicts, trial=args.quick) else 1


if __name__ == "__main__":
    sys.exit(main())
