"""Too few cores: the bill's ``cpu_wait`` against the paired wall difference.

    python bench/ground_truth/contention.py [--repeats 5] [--json OUT.json]

Cells, each run in alternation with its own relief:
  competitor   one thread, pinned to one core with a busy process; alone on that core
  two_on_one   two torch threads on one core; on two cores

The competitor works from the loop's first step to the script's end, since waits during start-up
are start-up. The paired difference is that of the loops, as a share of the crowded run's wall
time. Two threads gain less than twice from a second core, so the work is one large layer.
A repeat whose relieved run had to wait itself (others use the machine: two threads that meet at
a barrier stall for seconds then) measures the others, so it is shown but not counted.
"""

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "ground_truth"))

import trials  # noqa: E402 - found by the line above

LIMIT = 0.05
DISTURBED = 0.03
"""Share of its wall time that a relieved run may wait for a core."""
WORK = ("--steps", "150", "--width", "1536", "--batch", "64")


@contextlib.contextmanager
def competitor(core: int, ready: Path) -> Iterator[None]:
    """Keep a core busy from the moment that a file appears."""
    over = threading.Event()
    busy: list[subprocess.Popen[bytes]] = []

    def watch() -> None:
        while not over.is_set():
            if ready.exists():
                spin = ["taskset", "-c", str(core), sys.executable, "-c", "while True: pass"]
                busy.append(subprocess.Popen(spin))
                return
            time.sleep(0.005)

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        for process in busy:
            process.kill()
            process.wait()


def run(cores: str, threads: int, *, crowded_core: int | None) -> Any:
    """Run the clean script pinned to some cores, with a competitor on one of them or none."""
    with tempfile.TemporaryDirectory() as folder:
        ready = Path(folder) / "ready"
        more = (*WORK, "--threads", str(threads), "--ready", str(ready))
        company = (
            contextlib.nullcontext() if crowded_core is None else competitor(crowded_core, ready)
        )
        with company:
            # The launcher is pinned too; its samples cost a fraction of a percent of the core.
            return trials.run_trial(
                Path(folder) / "run", "none", 0.0, before=("taskset", "-c", cores), more=more
            )


def main() -> int:
    """Print the cells; exit 1 when the median is off by more than five points."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    available = sorted(os.sched_getaffinity(0))
    first, second = available[0], available[min(1, len(available) - 1)]
    found: dict[str, list[dict[str, float]]] = {}
    print(
        f"{'cell':14}{'repeat':>7}{'loop s':>8}{'relieved':>9}{'true':>8}{'billed':>8}{'error':>8}"
    )
    for repeat in range(args.repeats):
        for name in ("competitor", "two_on_one"):
            if name == "competitor":
                relieved = run(str(first), 1, crowded_core=None)
                crowded = run(str(first), 1, crowded_core=first)
            else:
                relieved = run(f"{first},{second}", 2, crowded_core=None)
                crowded = run(str(first), 2, crowded_core=None)
            true = (crowded.truth["loop_s"] - relieved.truth["loop_s"]) / crowded.wall_s
            disturbed = relieved.billed_s("cpu_wait") / relieved.wall_s > DISTURBED
            billed = (
                crowded.billed_s("cpu_wait") / crowded.wall_s
                - relieved.billed_s("cpu_wait") / crowded.wall_s
            )
            found.setdefault(name, []).append(
                {
                    "disturbed": disturbed,
                    "true": true,
                    "billed": billed,
                    "error": billed - true,
                    "wall_s": crowded.wall_s,
                    "relieved_wall_s": relieved.wall_s,
                    "main_thread_waited": crowded.truth["loop_waited_s"] / crowded.wall_s,
                }
            )
            print(
                f"{name:14}{repeat:7}{crowded.truth['loop_s']:8.2f}"
                f"{relieved.truth['loop_s']:9.2f}{true:8.1%}{billed:8.1%}{billed - true:+8.1%}"
                f"{'  disturbed, not counted' if disturbed else ''}",
                flush=True,
            )
    worst = 0.0
    for name, repeats in found.items():
        errors = [one["error"] for one in repeats if not one["disturbed"]]
        if not errors:
            print(f"{name}: no repeat was undisturbed; stop what else runs here and try again")
            worst = float("inf")
            continue
        error = statistics.median(errors)
        worst = max(worst, abs(error))
        print(f"{name}: median error {error:+.1%} ({min(errors):+.1%} to {max(errors):+.1%})")
    if args.json:
        args.json.write_text(json.dumps(found, indent=1))
    return 1 if worst > LIMIT else 0


if __name__ == "__main__":
    sys.exit(main())
