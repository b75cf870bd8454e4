"""Run public training scripts with and without ``thrifty run`` and compare.

Every script runs twice from the same fresh copy of its checkout: plain, then observed. The
table says whether exit code, standard output, standard error and the files left behind are
equal, and whether the bill says what a reader of the script knows. The scripts' code is not
part of this project: README.md tells how to get it. Exit status 0 when everything holds, 1
when something does not, 2 for a wrong command line.
"""

import argparse
import dataclasses
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from _catalogue import SCRIPTS, Script, Site
from _checks import Check, check_common, check_script
from _compare import differences, normaliser_named
from _execute import Outcome, execute, files_left, fresh_folder

_LIMIT_S = 300
_SHOWN_LINES = 6


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """What came out for one script."""

    number: str
    title: str
    problem: str | None
    """Why it could not be compared; None when it was."""

    plain: Outcome | None = None
    observed: Outcome | None = None
    stdout_differs: tuple[str, ...] = ()
    stderr_differs: tuple[str, ...] = ()
    files_differ: tuple[str, ...] = ()
    unsteady: bool = False
    """Two plain runs differ as well, so that a difference says nothing about us."""

    record: dict[str, Any] | None = None
    text: str = ""
    """What ``thrifty bill`` prints afterwards."""

    checks: tuple[Check, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether the script behaved the same and its bill is right."""
        if self.problem is not None or self.plain is None or self.observed is None:
            return False
        differs = bool(self.stdout_differs or self.stderr_differs or self.files_differ)
        return (
            self.plain.exit_code == self.observed.exit_code
            and (not differs or self.unsteady)
            and all(check.holds for check in self.checks)
        )


def _environment(script: Script, site: Site, private: Path) -> dict[str, str]:
    """Build the whole environment of a run: nothing of the user's own settings leaks in.

    ``private`` receives temporary files, caches and our ledger, fresh for each run, so that
    the second run finds no warm compile cache of the first.
    """
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL") if name in os.environ}
    for name in ("home", "tmp"):
        (private / name).mkdir(parents=True)
    env = {
        **kept,
        "HOME": str(private / "home"),
        "TMPDIR": str(private / "tmp"),
        "TORCHINDUCTOR_CACHE_DIR": str(private / "tmp" / "inductor"),
        "OMP_NUM_THREADS": "2",
        "PYTHONHASHSEED": "0",
        "CUDA_VISIBLE_DEVICES": "",
        "HF_HUB_OFFLINE": "1",
        "WANDB_MODE": "offline",
        "MPLBACKEND": "Agg",
        "COLUMNS": "80",
    }
    env |= {name: value.format(root=site.root, data=site.data) for name, value in script.env}
    return env


def _run_once(
    script: Script, source: Path, work: Path, python: str, record: Path | None
) -> Outcome:
    site = Site(root=fresh_folder(work / script.number / "run"), data=work / "data", python=python)
    for part in script.parts:
        target = site.root / part
        target.parent.mkdir(parents=True, exist_ok=True)
        if (source / part).is_dir():
            shutil.copytree(source / part, target)
        else:
            shutil.copy2(source / part, target)
    if script.prepare is not None:
        script.prepare(site)
    front = [python]
    if record is not None:
        front = [str(Path(python).parent / "thrifty"), "run", "--json", str(record)]
    env = _environment(script, site, fresh_folder(work / script.number / "private"))
    outcome = execute(
        [*front, *script.command],
        folder=site.root / script.folder,
        env=env,
        limit_s=_LIMIT_S,
    )
    cache = Path(env["TORCHINDUCTOR_CACHE_DIR"])
    files = files_left(site.root, cache, hashed=script.weights_repeat)
    return dataclasses.replace(outcome, files=files)


def _bill_text(private: Path, python: str) -> str:
    """Print the bill of the run whose ledger lies in ``private``."""
    done = subprocess.run(
        [str(Path(python).parent / "thrifty"), "bill"],
        env={"HOME": str(private / "home"), "COLUMNS": "100", "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout + done.stderr


def _compare(
    script: Script, first: Outcome, second: Outcome
) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    extra = [normaliser_named(name) for name in script.normalisers]
    return (
        tuple(differences(first.stdout, second.stdout, extra)),
        tuple(differences(first.stderr, second.stderr, extra)),
        tuple(differences("\n".join(first.files), "\n".join(second.files), extra)),
    )


def measure(script: Script, *, checkouts: Path, work: Path, python: str, plain_only: bool) -> Row:
    """Run one script plain and observed.

    Args:
        script: Which.
        checkouts: Folder of the checkouts.
        work: Folder for data and copies.
        python: Interpreter of the script's environment, with thrifty installed beside it.
        plain_only: Run it plain twice, which shows whether the normalisers suffice.

    Returns:
        What was seen.
    """
    source = checkouts / script.checkout
    missing = [part for part in script.parts if not (source / part).exists()]
    if missing:
        problem = f"{source / missing[0]} is missing: see README.md for the checkouts"
        return Row(number=script.number, title=script.title, problem=problem)
    plain = _run_once(script, source, work, python, None)
    (work / script.number / "plain.out").write_text(plain.stdout, encoding="utf-8")
    (work / script.number / "plain.err").write_text(plain.stderr, encoding="utf-8")
    row = Row(number=script.number, title=script.title, problem=None, plain=plain)
    if plain.exit_code != 0:
        tail = plain.stderr.strip().splitlines()[-1:]
        return dataclasses.replace(row, problem=f"plain: exit {plain.exit_code}: {tail}")
    path = work / script.number / "record.json"
    path.unlink(missing_ok=True)
    observed = _run_once(script, source, work, python, None if plain_only else path)
    (work / script.number / "observed.out").write_text(observed.stdout, encoding="utf-8")
    (work / script.number / "observed.err").write_text(observed.stderr, encoding="utf-8")
    text = "" if plain_only else _bill_text(work / script.number / "private", python)
    (work / script.number / "bill.txt").write_text(text, encoding="utf-8")
    stdout, stderr, files = _compare(script, plain, observed)
    unsteady = False
    if (stdout or stderr or files) and not plain_only:
        again = _run_once(script, source, work, python, None)
        unsteady = any(_compare(script, plain, again))
    row = dataclasses.replace(
        row,
        observed=observed,
        stdout_differs=stdout,
        stderr_differs=stderr,
        files_differ=files,
        unsteady=unsteady,
    )
    if plain_only:
        return row
    if not path.exists():
        return dataclasses.replace(row, problem="thrifty run wrote no record")
    record = json.loads(path.read_text(encoding="utf-8"))
    checks = (
        *check_common(script, record, plain, observed),
        *check_script(script, record, text, observed),
    )
    return dataclasses.replace(row, record=record, text=text, checks=checks)


def _same(different: Sequence[str], *, unsteady: bool) -> str:
    if not different:
        return "same"
    return "unsteady" if unsteady else f"{len(different)} lines"


def _top(record: dict[str, Any]) -> str:
    lines = sorted(record["bill"], key=lambda line: -line["seconds"])[:3]
    return ", ".join(f"{line['cause']} {line['fraction']:.0%}" for line in lines)


def _print_row(row: Row) -> None:
    if row.plain is None or row.observed is None:
        took = (
            "" if row.plain is None else f" ({row.plain.wall_s:.1f} s, CPU {row.plain.cpu_s:.1f} s)"
        )
        print(f"{row.number}  {row.problem}{took}", flush=True)
        return
    record = row.record
    codes = f"{row.plain.exit_code}/{row.observed.exit_code}"
    cells = (
        row.number,
        "ok" if row.passed else "FAIL",
        codes,
        _same(row.stdout_differs, unsteady=row.unsteady),
        _same(row.stderr_differs, unsteady=row.unsteady),
        _same(row.files_differ, unsteady=row.unsteady),
        "" if record is None else str(record["steps"]),
        f"{row.plain.wall_s:.1f}/{row.observed.wall_s:.1f}",
        f"{row.plain.cpu_s:.1f}/{row.observed.cpu_s:.1f}",
        "" if record is None else _top(record),
    )
    print(_LINE.format(*cells), flush=True)
    if row.problem is not None:
        print(f"      {row.problem}")
    if not row.unsteady:
        for name, lines in (
            ("stdout", row.stdout_differs),
            ("stderr", row.stderr_differs),
            ("files", row.files_differ),
        ):
            for line in lines[:_SHOWN_LINES]:
                print(f"      {name}: {line[:150]}")
    for check in row.checks:
        if not check.holds:
            print(f"      wrong: {check.claim}; seen {check.seen}")


_LINE = "{:<4} {:<4} {:<5} {:<8} {:<8} {:<8} {:<7} {:<11} {:<11} {}"
_HEAD = ("", "", "exit", "stdout", "stderr", "files", "steps", "wall s", "CPU s", "top causes")


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--checkouts", type=Path, required=True, help="folder of the checkouts")
    parser.add_argument("--work", type=Path, required=True, help="folder for data and copies")
    parser.add_argument("--python", default=sys.executable, help="interpreter with torch")
    parser.add_argument("--vision-python", help="interpreter with torchvision (default: --python)")
    parser.add_argument("--only", help="numbers, such as S01,S03")
    parser.add_argument("--json", type=Path, help="write everything seen to this file")
    parser.add_argument("--plain", action="store_true", help="run plain twice: no thrifty")
    args = parser.parse_args(argv)
    known = {script.number for script in SCRIPTS}
    wanted = known if args.only is None else set(args.only.split(","))
    if not wanted <= known:
        parser.error(f"--only: {sorted(wanted - known)} not among {sorted(known)}")
    args.only = wanted
    for name in (args.python, args.vision_python or args.python):
        if not args.plain and not (Path(name).parent / "thrifty").exists():
            parser.error(f"no thrifty beside {name}: pip install it there")
    return args


def main(argv: Sequence[str] | None = None) -> int:
    """Run the scripts and print the table.

    Returns:
        The exit status.
    """
    args = _arguments(argv)
    print(_LINE.format(*_HEAD))
    rows: list[Row] = []
    for script in SCRIPTS:
        if script.number not in args.only:
            continue
        vision = script.environment == "vision" and args.vision_python is not None
        row = measure(
            script,
            checkouts=args.checkouts.resolve(),
            work=args.work.resolve(),
            python=args.vision_python if vision else args.python,
            plain_only=args.plain,
        )
        rows.append(row)
        _print_row(row)
    if args.json is not None:
        data = [{**dataclasses.asdict(row), "passed": row.passed} for row in rows]
        args.json.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    passed = sum(row.passed for row in rows)
    claim = "behave the same" if args.plain else "behave the same and have a right bill"
    print(f"{passed} of {len(rows)} scripts {claim}")
    return 0 if passed == len(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
