"""CPU time that our hooks add to each step of the script's main thread, and what rivals add.

    python bench/overhead/hooks.py [--rounds 20] [--rivals DIR] [--json FILE] [--quick]

Three looks, each with two plain arms beside it (A/A):
  alone        the hooks of one step over functions that do nothing (goal <= 15 us per step)
  in the loop  the tiny model in one process, hooks taken out and put back block by block
  end to end   whole processes in alternation, plain or under ``thrifty run``
               (goal: upper end of the 95 % interval <= 20 us per step)

The tiny model is an MLP 32-64-10 on batches of 32 that are ready (``_tiny_model.py``); a step
of it takes about a tenth of a millisecond, so in a real script the share is far smaller.

Rivals run in the same rounds. torch.profiler comes with torch; the others want environments of
their own, all below one folder outside this repository:
  python -m venv DIR/traceml && DIR/traceml/bin/pip install traceml-ai torch==2.13.0
  python -m venv DIR/lightning && DIR/lightning/bin/pip install lightning torch==2.13.0
Lightning's profiler is compared with Lightning without it.
"""

import argparse
import json
import random
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
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
    verdict,
    write_json,
)

from thrifty.launch._target import script_environment

ALONE_GOAL_US = 15
WHOLE_GOAL_US = 20
MODEL = str(HERE / "_tiny_model.py")
PLAIN, AGAIN = "plain", "plain again"


@dataclass(frozen=True, kw_only=True, slots=True)
class Arm:
    """One way to run the tiny model."""

    name: str
    command: tuple[str, ...]
    """What stands before the model's own arguments."""
    inside: str = "nothing"
    """What the model's script does itself (``--with``)."""
    controls: tuple[str, ...] = (PLAIN, AGAIN)
    """What it is compared with."""
    package: str | None = None
    """Whose version to tell; None for ours and for torch's."""


def arms_at(rivals: Path | None) -> tuple[list[Arm], dict[str, str]]:
    """Give the arms that can run here, and why the others cannot."""
    python = sys.executable
    arms = [
        Arm(name=PLAIN, command=(python, MODEL)),
        Arm(name=AGAIN, command=(python, MODEL), controls=(PLAIN,)),
        Arm(name="thrifty run", command=(THRIFTY, "run", "--quiet", MODEL)),
        Arm(name="torch.profiler", command=(python, MODEL), inside="torch_profiler"),
    ]
    absent: dict[str, str] = {}
    traceml = rivals and rivals / "traceml" / "bin" / "traceml"
    if traceml and traceml.exists():
        command = (str(traceml), "run", "--logs-dir", "traceml-logs", MODEL, "--args")
        arms.append(
            Arm(name="traceml trace_step", command=command, inside="traceml", package="traceml-ai")
        )
    else:
        absent["traceml trace_step"] = "not installed"
    lightning = rivals and rivals / "lightning" / "bin" / "python"
    if lightning and lightning.exists():
        for name, inside, control in (
            ("lightning", "lightning", ()),
            ("lightning again", "lightning", ("lightning",)),
            ("lightning simple", "lightning_simple", ("lightning", "lightning again")),
        ):
            command = (str(lightning), MODEL)
            arms.append(
                Arm(
                    name=name,
                    command=command,
                    inside=inside,
                    controls=control,
                    package="lightning",
                )
            )
    else:
        absent["lightning simple"] = "not installed"
    return arms, absent


def version_of(arm: Arm) -> str | None:
    """Ask an arm's own environment for the version of what it runs."""
    if arm.package is None:
        return None
    code = f"import importlib.metadata as m; print(m.version({arm.package!r}))"
    python = Path(arm.command[0]).with_name("python")
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
    return done.stdout.strip() or None


def run_arm(arm: Arm, folder: Path, blocks: int, steps: int) -> dict[str, Any] | str:
    """Run one process; give what the model wrote, or why it wrote nothing."""
    out = folder / "out.json"
    out.unlink(missing_ok=True)
    command = [*arm.command, "--out", str(out), "--with", arm.inside]
    command += ["--blocks", str(blocks), "--steps", str(steps)]
    done = subprocess.run(
        command,
        cwd=folder,
        env=clean_environment(folder / "home"),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        check=False,
    )
    if done.returncode or not out.exists():
        said = done.stderr.decode(errors="replace").strip().splitlines()
        return f"failed ({done.returncode}): {said[-1][:100] if said else 'said nothing'}"
    return json.loads(out.read_text(encoding="utf-8"))


def end_to_end(arms: Sequence[Arm], rounds: int, blocks: int, steps: int) -> dict[str, Any]:
    """Run every arm once per round, each round in another order."""
    found: dict[str, list[dict[str, Any]]] = {arm.name: [] for arm in arms}
    failed: dict[str, str] = {}
    draw = random.Random(3)  # noqa: S311 (an order, nothing secret)
    order = list(arms)
    with tempfile.TemporaryDirectory() as folder:
        for number in range(rounds):
            draw.shuffle(order)
            for arm in order:
                if arm.name in failed:
                    continue
                result = run_arm(arm, Path(folder), blocks, steps)
                if isinstance(result, str):
                    failed[arm.name] = result
                else:
                    found[arm.name].append(result)
            print(f"round {number + 1} of {rounds}", file=sys.stderr, flush=True)
    per_step = {
        name: [statistics.median(one["block_us_per_step"]) for one in results]
        for name, results in found.items()
        if name not in failed
    }
    stops = [one["stop_us_per_step"] for one in found["torch.profiler"]]
    torches = {name: results[0]["torch"] for name, results in found.items() if results}
    return {"us_per_step": per_step, "failed": failed, "stop_us": stops, "torch": torches}


def show_end_to_end(arms: Sequence[Arm], absent: dict[str, str], whole: dict[str, Any]) -> Any:
    """Print the table; give its rows as plain data."""
    found, failed = whole["us_per_step"], whole["failed"]
    cells: list[tuple[str, ...]] = []
    rows: dict[str, Any] = {}
    for arm in arms:
        if arm.name in failed or not all(name in found for name in arm.controls):
            cells.append((arm.name, "-", failed.get(arm.name, "its control failed"), ""))
            continue
        median = statistics.median(found[arm.name])
        controls = [found[name] for name in arm.controls if arm.name != PLAIN]
        added = paired(found[arm.name], *controls) if controls else None
        version = version_of(arm)
        rows[arm.name] = {
            "us_per_step": median,
            "added_us_per_step": added and added.to_json(),
            "compared_with": arm.controls if controls else (),
            "version": version,
            "torch": whole["torch"][arm.name],
        }
        cells.append((arm.name, f"{median:.1f}", added.text() if added else "", version or ""))
    cells += [(name, "-", why, "") for name, why in absent.items()]
    headings = ("end to end", "us/step", "added us/step [95 %]", "version")
    print_table(headings, cells)
    stop = interval(whole["stop_us"]) if whole["stop_us"] else None
    if stop is not None:
        print(f"torch.profiler's stop: {stop.text('.0f')} us more for each step it recorded")
    return {"rows": rows, "absent": absent, "failed": failed, "stop": stop and stop.to_json()}


def inside(rounds: int, repeats: int, steps: int) -> dict[str, Any]:
    """Measure within one process that the hooks are attached to."""
    with tempfile.TemporaryDirectory() as folder:
        records = Path(folder) / "records"
        records.mkdir()
        out = Path(folder) / "out.json"
        command = [sys.executable, str(HERE / "_hooked.py"), "--out", str(out)]
        command += ["--rounds", str(rounds), "--repeats", str(repeats), "--steps", str(steps)]
        environment = script_environment(clean_environment(Path(folder)), records)
        subprocess.run(command, env=environment, check=True)
        return json.loads(out.read_text(encoding="utf-8"))


def show_inside(found: dict[str, Any]) -> dict[str, Any]:
    """Print what one step's hooks take by themselves, and within the loop."""
    cells: list[tuple[str, ...]] = []
    result: dict[str, Any] = {}
    places = found["alone"]
    total: dict[str, list[float]] = {
        arm: [sum(each) for each in zip(*(place[arm] for place in places.values()), strict=True)]
        for arm in ("bare", "again", "hooked")
    }
    looks = {f"alone: {name}": place for name, place in places.items()}
    looks["alone: all of a step"] = total
    loop = found["loop"]
    for place in places:
        looks[f"in the loop: {place}"] = loop | {"hooked": loop[place]}
    looks["in the loop: all of a step"] = loop
    for name, arms in looks.items():
        added = paired(arms["hooked"], arms["bare"], arms["again"])
        same = paired(arms["again"], arms["bare"])
        bare = statistics.median(arms["bare"])
        cells.append((name, f"{bare:.2f}", same.text("+.2f"), added.text("+.2f")))
        result[name] = {"bare_us": bare, "a_a_us": same.to_json(), "added_us": added.to_json()}
    print_table(("in one process", "bare us", "A/A us [95 %]", "added us/step [95 %]"), cells)
    return result


def main() -> int:
    """Print the tables; exit 1 when a goal is missed (with --quick only when nothing ran)."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=20, help="processes of each arm")
    parser.add_argument("--rivals", type=Path, help="folder with the rivals' environments")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--quick", action="store_true", help="few and short: tries the script")
    args = parser.parse_args()
    rivals = args.rivals and args.rivals.absolute()
    rounds, blocks, steps = (2, 3, 200) if args.quick else (args.rounds, 12, 400)
    one = show_inside(inside(*((20, 500, 100) if args.quick else (150, 1000, 100))))
    print()
    arms, absent = arms_at(rivals)
    whole = end_to_end(arms, rounds, blocks, steps)
    rows = show_end_to_end(arms, absent, whole)
    print()
    verdicts = [
        verdict(
            one["alone: all of a step"]["added_us"]["median"],
            ALONE_GOAL_US,
            "us/step",
            what="hooks alone",
        )
    ]
    ours = rows["rows"].get("thrifty run")
    if ours is None:
        print(f"thrifty run: {whole['failed'].get('thrifty run', 'no control')}")
    else:
        high = ours["added_us_per_step"]["high"]
        verdicts.append(
            verdict(high, WHOLE_GOAL_US, "us/step", what="end to end, upper end of the interval")
        )
    found = {"in_one_process": one, "end_to_end": rows, "raw": whole, "verdicts": verdicts}
    write_json(args.json, "hooks", found)
    return 0 if ours is not None and keeps(verdicts, trial=args.quick) else 1


if __name__ == "__main__":
    sys.exit(main())
