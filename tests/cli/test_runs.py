import argparse
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import get_args

import pytest

from thrifty.cli import _runs
from thrifty.ledger import Ledger
from thrifty.records import Run, RunStatus, UsageError

UNKNOWN = Run(
    run_id="1abc",
    number=None,
    status="completed",
    exit_code=0,
    script="train.py",
    argv=(),
    framework=None,
    world_size=None,
    machine_count=1,
    device_count=0,
    started_at="2026-10-01T09:30:00+00:00",
    wall_s=61.0,
    steps=None,
    samples=None,
    samples_per_s=None,
    epochs=None,
    price=None,
    cost_usd=None,
    bill=(),
    system=None,
    summary="",
    next_command="",
    notes=(),
)

Command = Callable[..., int]


def make(home: Path, **changes: object) -> int:
    import dataclasses

    run = dataclasses.replace(UNKNOWN, **changes)  # pyright: ignore[reportArgumentType]
    folder = Ledger(home).begin(run)
    if run.status != "running":
        folder.finish(run)
    return folder.number


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("THRIFTY_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("COLUMNS", "80")
    return tmp_path / "home"


@pytest.fixture
def runs(home: Path) -> Command:  # noqa: ARG001 - the home must be set before the command runs
    def execute(*argv: str) -> int:
        parser = argparse.ArgumentParser(prog="thrifty runs", epilog=_runs.EPILOG)
        _runs.configure(parser)
        return _runs.execute(parser.parse_args(argv))

    return execute


@pytest.fixture
def three_runs(home: Path) -> Path:
    make(home, run_id="a", script="train.py", status="completed")
    make(home, run_id="b", script="gan.py", status="failed")
    make(home, run_id="c", script="train.py", status="killed")
    return home


def listed(capsys: pytest.CaptureFixture[str]) -> list[int]:
    return [run["number"] for run in json.loads(capsys.readouterr().out)]


@pytest.mark.usefixtures("three_runs")
def test_runs_are_listed_newest_first(runs: Command, capsys: pytest.CaptureFixture[str]) -> None:
    assert runs() == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[-3:]] == ["3", "2", "1"]
    assert all(len(line) <= 80 for line in lines)
    assert "gan.py" in lines[-2]
    assert "failed" in lines[-2]


@pytest.mark.usefixtures("three_runs")
@pytest.mark.parametrize(
    ("argv", "numbers"),
    [
        ((), [3, 2, 1]),
        (("--limit", "2"), [3, 2]),
        (("--status", "failed"), [2]),
        (("--script", "train"), [3, 1]),
        (("--script", "train", "--status", "completed", "--limit", "1"), [1]),
        (("--status", "refused"), []),
    ],
)
def test_json_lists_the_records_that_were_asked_for(
    runs: Command, capsys: pytest.CaptureFixture[str], argv: tuple[str, ...], numbers: list[int]
) -> None:
    assert runs("--json", *argv) == 0
    assert listed(capsys) == numbers


def test_twenty_runs_are_shown_unless_more_are_asked_for(
    runs: Command, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in range(22):
        make(home)
    runs("--json")
    assert listed(capsys) == list(range(22, 2, -1))
    runs("--json", "--limit", "500")
    assert listed(capsys) == list(range(22, 0, -1))


def test_json_gives_whole_records(
    runs: Command, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make(home)
    runs("--json")
    (data,) = json.loads(capsys.readouterr().out)
    assert data == json.loads(json.dumps(UNKNOWN.to_json())) | {"number": 1}


def test_an_empty_ledger_says_how_to_make_a_run(
    runs: Command, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert runs() == 0
    met = capsys.readouterr()
    assert met.out == ""
    assert met.err == f"no runs in {home} yet; thrifty run train.py makes the first\n"
    assert not home.exists()


@pytest.mark.usefixtures("home")
def test_an_empty_ledger_is_an_empty_list_in_json(
    runs: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    assert runs("--json") == 0
    assert capsys.readouterr() == ("[]\n", "")


@pytest.mark.usefixtures("three_runs")
@pytest.mark.parametrize("argv", [("--status", "refused"), ("--script", "other")])
def test_a_choice_that_matches_nothing_is_told_from_an_empty_ledger(
    runs: Command, capsys: pytest.CaptureFixture[str], argv: tuple[str, ...]
) -> None:
    assert runs(*argv) == 0
    assert capsys.readouterr().err == "no such runs; thrifty runs shows the last of any kind\n"


def test_a_broken_record_is_a_warning_on_stderr_and_hides_no_other(
    runs: Command, three_runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = three_runs / "runs" / "2"
    (folder / "run.json").write_text('{"run_id": "\x1b[31m')
    assert runs("--json") == 0
    met = capsys.readouterr()
    assert [run["number"] for run in json.loads(met.out)] == [3, 1]
    assert met.err.startswith("warning: run 2 is not shown, its run.json: no JSON: ")
    assert met.err.endswith(f" ({folder})\n")
    assert "\x1b" not in met.err


def test_many_broken_records_are_three_warnings_and_a_count(
    runs: Command, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in [make(home) for _ in range(6)]:
        (home / "runs" / str(number) / "run.json").write_text("{")
    runs()
    warnings = [line for line in capsys.readouterr().err.splitlines() if "warning" in line]
    assert len(warnings) == 4
    assert warnings[0].startswith("warning: run 6 is not shown")
    assert warnings[3] == "warning: nor are 3 older ones that cannot be read"


@pytest.mark.parametrize("limit", ["0", "-3"])
@pytest.mark.usefixtures("three_runs")
def test_a_limit_that_shows_nothing_is_refused(runs: Command, limit: str) -> None:
    with pytest.raises(UsageError) as met:
        runs("--limit", limit)
    assert met.value.problem == f"--limit {limit} shows nothing; it must be 1 or more"
    assert met.value.fix == "thrifty runs --limit 20"


@pytest.mark.parametrize("argv", [("--status", "fine"), ("--limit", "many"), ("extra",)])
def test_other_arguments_are_refused_by_the_parser(runs: Command, argv: tuple[str, ...]) -> None:
    with pytest.raises(SystemExit) as met:
        runs(*argv)
    assert met.value.code == 2


def test_every_status_can_be_asked_for_and_is_named_in_the_help(
    runs: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        runs("--help")
    text = capsys.readouterr().out
    for status in get_args(RunStatus):
        assert status in text
        assert runs("--status", status) == 0


def test_a_script_name_that_is_no_text_can_be_printed(
    runs: Command, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make(home, script="\udcff\x1b[31m.py", argv=("\udcfe",))
    assert runs() == 0
    assert "\x1b" not in capsys.readouterr().out
    assert runs("--json") == 0
    assert json.loads(capsys.readouterr().out)[0]["script"] == "\udcff\x1b[31m.py"


def test_a_terminal_without_utf_8_gets_plain_characters(three_runs: Path) -> None:
    code = (
        "import argparse; from thrifty.cli import _runs; p = argparse.ArgumentParser();"
        "_runs.configure(p); _runs.execute(p.parse_args([]))"
    )
    environment = {"THRIFTY_HOME": str(three_runs), "PYTHONIOENCODING": "ascii", "COLUMNS": "30"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, check=True
    )
    assert done.stdout.decode("ascii").splitlines()[-1].split()[0] == "1"
