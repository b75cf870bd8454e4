"""Sweep each kind of known loss from 0 to 80 % of the wall time; set the bill beside the truth.

    python bench/ground_truth/sweep.py [--kinds step_sleep] [--sizes 0 0.2] [--json OUT.json]

A clean control runs before each kind, so that a machine that changes its mood is seen: their
spread is printed beside the errors.
"""

import argparse
import json
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "ground_truth"))

import trials  # noqa: E402 - found by the line above

SIZES = (0.0, 0.1, 0.2, 0.4, 0.6, 0.8)
LIMIT = 0.02


def parse() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kinds", nargs="+", default=list(trials.KINDS), choices=trials.KINDS)
    parser.add_argument("--sizes", nargs="+", type=float, default=list(SIZES))
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--json", type=Path)
    return parser.parse_args()


def cell(kind: str, size: float, control: Any) -> dict[str, Any]:
    """Run one trial and compare it."""
    loss_s = trials.loss_for(kind, size, control.wall_s, control.truth["loop_s"])
    with tempfile.TemporaryDirectory() as folder:
        trial = trials.run_trial(Path(folder), kind, loss_s)
    billed = trial.excess_fraction(control)
    return {
        "kind": kind,
        "size": size,
        "wall_s": trial.wall_s,
        "injected_fraction": trial.injected_fraction,
        "billed_fraction": billed,
        "error": billed - trial.injected_fraction,
        "cpu_wait_fraction": trial.billed_s("cpu_wait") / trial.wall_s,
        "unattributed_fraction": trial.billed_s("unattributed") / trial.wall_s,
        "off_balance_s": trial.off_balance_s(),
        "control_wall_s": control.wall_s,
        "control_host_s": control.billed_s("host"),
    }


def main() -> int:
    """Print the table; exit 1 when a share is off by more than two points."""
    args = parse()
    cells: list[dict[str, Any]] = []
    print(f"{'kind':24}{'size':>6}{'wall s':>8}{'true':>8}{'billed':>8}{'error':>8}{'balance':>10}")
    for kind in args.kinds:
        for repeat in range(args.repeats):
            with tempfile.TemporaryDirectory() as folder:
                control = trials.run_trial(Path(folder), "none", 0.0)
            for size in args.sizes:
                found = cell(kind, size, control) | {"repeat": repeat}
                cells.append(found)
                bad = abs(found["error"]) > LIMIT or found["off_balance_s"] > 1e-3
                print(
                    f"{kind:24}{size:6.0%}{found['wall_s']:8.2f}"
                    f"{found['injected_fraction']:8.1%}{found['billed_fraction']:8.1%}"
                    f"{found['error']:+8.1%}{found['off_balance_s']:10.1e}"
                    f"{'  <--' if bad else ''}",
                    flush=True,
                )
    worst = max(cells, key=lambda found: abs(found["error"]))
    hosts = [found["control_host_s"] / found["control_wall_s"] for found in cells]
    print(
        f"worst error {worst['error']:+.2%} ({worst['kind']} at {worst['size']:.0%}); "
        f"clean control's host {min(hosts):.1%} to {max(hosts):.1%} of its wall "
        f"(median {statistics.median(hosts):.1%})"
    )
    if args.json:
        args.json.write_text(json.dumps({"cells": cells}, indent=1))
    off = [found for found in cells if abs(found["error"]) > LIMIT]
    return 1 if off else 0


if __name__ == "__main__":
    sys.exit(main())
