"""How much later the first line of a script runs under ``thrifty run``.

    python bench/overhead/startup.py [--rounds 40] [--json FILE] [--quick]

The script says when its first line ran; this file says when it asked for the start; all
processes of a machine share that clock. Two plain arms (A/A), the hooks without the launcher,
and ``thrifty run``, in another order each round (goal <= 60 ms). Wall time, so that only a
machine with nothing else to do gives a figure.
"""

import argparse
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from _measure import (
    THRIFTY,
    clean_environment,
    keeps,
    paired,
    print_table,
    verdict,
    write_json,
)

from thrifty.launch._target import script_environment

GOAL_MS = 60
FIRST_LINE = "import time; print(time.perf_counter_ns())\n"


def start_ms(command: list[str], environment: dict[str, str], cwd: Path) -> float:
    """Start a command whose script says when its first line ran; give how long that took."""
    began = time.perf_counter_ns()
    done = subprocess.run(
        command,
        env=environment,
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        check=True,
    )
    return (int(done.stdout) - began) / 1e6


def measure(rounds: int) -> dict[str, list[float]]:
    """Start each arm once per round, after one round that warms the caches."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        script = folder / "first_line.py"
        script.write_text(FIRST_LINE, encoding="utf-8")
        plain = clean_environment(folder / "home")
        records = folder / "records"
        records.mkdir()
        python = [sys.executable, str(script)]
        arms = {
            "plain": (python, plain),
            "plain again": (python, plain),
            "hooks only": (python, script_environment(plain, records)),
            "thrifty run": ([THRIFTY, "run", "--quiet", str(script)], plain),
        }
        found: dict[str, list[float]] = {arm: [] for arm in arms}
        order = list(arms)
        draw = random.Random(5)  # noqa: S311 (an order, nothing secret)
        for number in range(rounds + 1):
            draw.shuffle(order)
            for arm in order:
                took = start_ms(*arms[arm], folder)
                if number:
                    found[arm].append(took)
    return found


def main() -> int:
    """Print the table; exit 1 when the goal is missed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--quick", action="store_true", help="few: tries the script")
    args = parser.parse_args()
    found = measure(6 if args.quick else args.rounds)
    controls = found["plain"], found["plain again"]
    later = {
        "plain again": paired(found["plain again"], found["plain"]),
        "hooks only": paired(found["hooks only"], *controls),
        "thrifty run": paired(found["thrifty run"], *controls),
    }
    cells = [("plain", f"{statistics.median(found['plain']):.1f}", "")]
    for arm, added in later.items():
        cells.append((arm, f"{statistics.median(found[arm]):.1f}", added.text()))
    print_table(("start to first line", "ms", "later by ms [95 %]"), cells)
    verdicts = [
        verdict(later["thrifty run"].median, GOAL_MS, "ms", what="the first line runs later by")
    ]
    added_ms = {arm: each.to_json() for arm, each in later.items()}
    write_json(args.json, "startup", {"ms": found, "later_ms": added_ms, "verdicts": verdicts})
    return 0 if keeps(verdicts, trial=args.quick) else 1


if __name__ == "__main__":
    sys.exit(main())
