"""How long the books take to close after a script's exit, and whether a long run costs memory.

    python bench/overhead/closing.py [--repeats 6] [--pace 40000] [--json FILE] [--quick]

Closing: from the exit of the script's process (its pidfd tells) to the launcher's own, after
100,000 real steps of the smallest kind, as fast as they go (goal <= 300 ms); the same with the
bill printed on a terminal; and after a script that never trains, twice (A/A).

Memory: the launcher's peak resident memory and the records' peak size on disk after 100,000,
1,000,000 and 10,000,000 synthetic steps at a set pace; neither may grow with the steps. The
default pace is about twice that of the real steps above, the fastest that PyTorch takes.
"""

import argparse
import contextlib
import json
import os
import pty
import random
import select
import subprocess
import sys
import tempfile
import termios
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from _measure import (
    HERE,
    THRIFTY,
    clean_environment,
    interval,
    keeps,
    paired,
    print_table,
    stopped,
    verdict,
    write_json,
)

GOAL_MS = 300
MEMORY_GOAL_RATIO = 1.25
DISK_GOAL_MB = 16
"""A few segments of 1 MiB: being written, being read, reserved ahead."""
PACED, SYNTHETIC = str(HERE / "_paced.py"), str(HERE / "_synthetic.py")
LIMIT_S = 60


@contextlib.contextmanager
def standard_error(*, terminal: bool) -> Iterator[int]:
    """Give a file for the launcher's text: a terminal that somebody reads, or nothing."""
    if not terminal:
        yield subprocess.DEVNULL
        return
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 80))

    def drain() -> None:
        with contextlib.suppress(OSError):  # the other side is closed
            while os.read(ours, 65536):
                pass

    reader = threading.Thread(target=drain, daemon=True)
    reader.start()
    try:
        yield theirs
    finally:
        os.close(theirs)
        reader.join(1)
        os.close(ours)


def pid_when_ready(ready: Path, process: "subprocess.Popen[bytes]") -> int:
    """Wait until the script has written its process id.

    Raises:
        SystemExit: It has not.
    """
    limit = time.perf_counter() + LIMIT_S
    while not ready.exists():
        if process.poll() is not None or time.perf_counter() > limit:
            message = f"{process.args} did not start its script (status {process.poll()})"
            raise SystemExit(message)
        time.sleep(0.02)
    return int(ready.read_text(encoding="utf-8"))


def peak_memory_bytes(process_id: int) -> int:
    """Give a process's peak resident memory, 0 once it has ended."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{process_id}/status").read_text(encoding="utf-8").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return 0


def bytes_on_disk(folder: Path) -> int:
    """Add up what the files below a folder occupy."""
    total = 0
    for path in folder.rglob("*"):
        with contextlib.suppress(OSError):  # deleted meanwhile
            total += path.stat().st_blocks * 512
    return total


def watch(script: list[str], *, terminal: bool = False, sizes: bool = False) -> dict[str, Any]:
    """Run a script under ``thrifty run``.

    Args:
        script: Its path and arguments, without ``--ready``.
        terminal: The launcher's standard error is one, so that it prints the bill.
        sizes: Follow the launcher's memory and the records' size; that takes some CPU time.

    Returns:
        closing_ms, steps as in the record, and with ``sizes`` memory_mb, disk_mb and
        left_mb, what was not yet read when the script ended.
    """
    with tempfile.TemporaryDirectory() as name, standard_error(terminal=terminal) as error:
        folder = Path(name)
        ready = folder / "ready"
        command = [THRIFTY, "run", "--json", "record.json", *script, "--ready", str(ready)]
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=clean_environment(folder / "home"),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=error,
        )
        try:
            script_exit = os.pidfd_open(pid_when_ready(ready, process))
            memory = disk = left = 0
            while not select.select([script_exit], [], [], 0.25 if sizes else None)[0]:
                memory = max(memory, peak_memory_bytes(process.pid))
                disk = max(disk, bytes_on_disk(folder / "home" / "records"))
            ended = time.perf_counter()
            if sizes:
                left = bytes_on_disk(folder / "home" / "records")
                while process.poll() is None:
                    memory = max(memory, peak_memory_bytes(process.pid))
                    time.sleep(0.005)
            process.wait()
            closing_ms = (time.perf_counter() - ended) * 1e3
            os.close(script_exit)
        finally:
            stopped(process)
        record = json.loads((folder / "record.json").read_text(encoding="utf-8"))
    found = {"closing_ms": closing_ms, "steps": record["steps"], "wall_s": record["wall_s"]}
    if sizes:
        found |= {"memory_mb": memory / 2**20, "disk_mb": disk / 2**20, "left_mb": left / 2**20}
    return found


def show_closing(steps: int, repeats: int) -> tuple[dict[str, Any], float]:
    """Print how long closing takes; give the figures and the one that the goal is for."""
    real = [PACED, "--steps", str(steps)]
    idle = [PACED, "--rate", "0", "--seconds", "1"]
    trained, shown = f"{steps:,} steps", f"{steps:,} steps, bill on a terminal"
    arms = {
        "no training": (idle, False),
        "no training again": (idle, False),
        trained: (real, False),
        shown: (real, True),
    }
    runs: dict[str, list[dict[str, Any]]] = {arm: [] for arm in arms}
    order = list(arms)
    draw = random.Random(6)  # noqa: S311 (an order, nothing secret)
    for _ in range(repeats):
        draw.shuffle(order)
        for arm in order:
            script, terminal = arms[arm]
            runs[arm].append(watch(script, terminal=terminal))
    cells = []
    for arm, found in runs.items():
        took = [one["closing_ms"] for one in found]
        base = [one["closing_ms"] for one in runs["no training"]]
        more = paired(took, base).text("+.0f") if arm != "no training" else ""
        wall_s = found[0]["wall_s"]
        pace = f"{found[0]['steps'] / wall_s:,.0f}" if found[0]["steps"] else ""
        cells.append((arm, pace, interval(took).text(".0f"), f"{max(took):.0f}", more))
    headings = ("script's exit to ours", "steps/s", "ms [95 %]", "longest", "beside no training")
    print_table(headings, cells)
    median = interval([one["closing_ms"] for one in runs[trained]]).median
    return {"runs": runs, "steps": steps}, median


def show_sizes(counts: tuple[int, ...], pace: int) -> list[dict[str, Any]]:
    """Print memory and disk by the number of synthetic steps."""
    found: list[dict[str, Any]] = []
    cells: list[tuple[str, ...]] = []
    for count in counts:
        one = watch([SYNTHETIC, "--steps", str(count), "--pace", str(pace)], sizes=True)
        found.append(one | {"asked_steps": count, "pace_per_s": pace})
        cells.append(
            (
                f"{count:,}",
                f"{one['steps'] or 0:,}",
                f"{count / one['wall_s']:,.0f}",
                f"{one['memory_mb']:.1f}",
                f"{one['disk_mb']:.1f}",
                f"{one['left_mb']:.1f}",
                f"{one['closing_ms']:.0f}",
            )
        )
    headings = (
        "synthetic steps",
        "counted",
        "steps/s",
        "peak memory MB",
        "peak disk MB",
        "unread at exit MB",
        "closing ms",
    )
    print_table(headings, cells)
    return found


def main() -> int:
    """Print the tables; exit 1 when a goal is missed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=6)
    parser.add_argument("--pace", type=int, default=40_000, help="synthetic steps per second")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--quick", action="store_true", help="few and short: tries the script")
    args = parser.parse_args()
    steps, repeats = (10_000, 1) if args.quick else (100_000, args.repeats)
    few = (10_000, 50_000, 200_000)
    closing, median_ms = show_closing(steps, repeats)
    print()
    counts = few if args.quick else (100_000, 1_000_000, 10_000_000)
    sizes = show_sizes(counts, args.pace)
    print()
    ratio = sizes[-1]["memory_mb"] / sizes[0]["memory_mb"]
    verdicts = [
        verdict(median_ms, GOAL_MS, "ms", what=f"closing after {steps:,} steps"),
        verdict(
            ratio,
            MEMORY_GOAL_RATIO,
            "times",
            what=f"memory at {counts[-1]:,} steps beside {counts[0]:,}",
        ),
        verdict(sizes[-1]["disk_mb"], DISK_GOAL_MB, "MB", what=f"disk at {counts[-1]:,} steps"),
    ]
    counted = all(one["steps"] == one["asked_steps"] for one in sizes)
    if not counted:
        print("MISSED: the record does not count every step")
    write_json(args.json, "closing", {"closing": closing, "sizes": sizes, "verdicts": verdicts})
    return 0 if keeps(verdicts, trial=args.quick) and counted else 1


if __name__ == "__main__":
    sys.exit(main())
