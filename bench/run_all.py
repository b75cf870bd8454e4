"""Run every benchmark whose figures stand in ``bench/RESULTS.md``, one after the other.

    python bench/run_all.py [--quick] [--out DIR] [--rivals DIR] [--only NAME ...]

Leave the machine alone meanwhile: it takes under an hour, and only CPU times and ratios
survive a neighbour. Figures are printed; ``--out`` keeps them as JSON too, and nothing else is
written. ``--rivals`` is the folder of ``overhead/hooks.py``. ``--quick`` tries each script in a
few minutes and gives no results. Exit status 1 when a goal is missed or a script fails.
"""

import argparse
import shlex
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent


@dataclass(frozen=True, kw_only=True, slots=True)
class Bench:
    """One script."""

    name: str
    script: str
    """Below this folder."""
    quick: tuple[str, ...] = ("--quick",)
    """What makes it short."""
    has_rivals: bool = False


BENCHES = (
    Bench(name="hooks", script="overhead/hooks.py", has_rivals=True),
    Bench(name="samples", script="overhead/samples.py"),
    Bench(name="startup", script="overhead/startup.py"),
    Bench(name="closing", script="overhead/closing.py"),
    Bench(
        name="sweep",
        script="ground_truth/sweep.py",
        quick=("--kinds", "step_sleep", "--sizes", "0", "0.4"),
    ),
    Bench(name="contention", script="ground_truth/contention.py", quick=("--repeats", "1")),
)


def run(bench: Bench, args: argparse.Namespace) -> int:
    """Run one; give its exit status."""
    command = [sys.executable, str(HERE / bench.script)]
    if args.quick:
        command += bench.quick
    if bench.has_rivals and args.rivals is not None:
        command += ["--rivals", str(args.rivals)]
    if args.out is not None:
        command += ["--json", str(args.out / f"{bench.name}.json")]
    print(f"\n== {bench.name}: {shlex.join(command)}", flush=True)
    return subprocess.run(command, check=False).returncode


def main() -> int:
    """Run them and say what came of each."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = [bench.name for bench in BENCHES]
    parser.add_argument("--quick", action="store_true", help="try the scripts: no results")
    parser.add_argument("--out", type=Path, help="folder for one JSON file of each")
    parser.add_argument("--rivals", type=Path, help="folder with the rivals' environments")
    parser.add_argument("--only", nargs="+", choices=names, default=names)
    args = parser.parse_args()
    if args.out is not None:
        args.out.mkdir(parents=True, exist_ok=True)
    done: list[tuple[str, int, float]] = []
    for bench in BENCHES:
        if bench.name in args.only:
            began = time.perf_counter()
            status = run(bench, args)
            done.append((bench.name, status, time.perf_counter() - began))
    print("\n== what was run")
    for name, status, seconds in done:
        outcome = "as it should" if status == 0 else f"exit status {status}: see above"
        print(f"{name:12}{seconds / 60:6.1f} min  {outcome}")
    if args.quick:
        print("trials only (--quick): no figure above is a result")
    return 1 if any(status for _, status, _ in done) else 0


if __name__ == "__main__":
    sys.exit(main())
