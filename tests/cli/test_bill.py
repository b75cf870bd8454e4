import argparse
import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import thrifty.launch
from thrifty.cli import _bill
from thrifty.ledger import Ledger
from thrifty.records import CAUSES, BillLine, LedgerError, Run, UsageError

RUN = Run(
    run_id="1abc",
    number=None,
    status="completed",
    exit_code=0,
    script="train.py",
    argv=("--lr", "0.1"),
    framework="torch",
    world_size=1,
    machine_count=1,
    device_count=0,
    started_at="2026-10-01T09:30:00+00:00",
    wall_s=13.0,
    steps=100,
    samples=3200,
    samples_per_s=290.5,
    epochs=2,
    price=None,
    cost_usd=None,
    bill=tuple(BillLine(cause=c, seconds=1.0, fraction=1 / 13, usd=None) for c in CAUSES),
    system=None,
    summary="Most of it was compute.",
    next_command="thrifty run train.py",
    notes=(),
)

Command = Callable[..., int]


def changed(**changes: Any) -> Run:
    return dataclasses.replace(RUN, **changes)


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ledger:
    monkeypatch.setenv("THRIFTY_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(thrifty.launch, "recover", lambda _folder: None)
    return Ledger(tmp_path / "home")


@pytest.fixture
def bill(ledger: Ledger) -> Command:  # noqa: ARG001 - the home must be set before the command runs
    def execute(*argv: str) -> int:
        parser = argparse.ArgumentParser(prog="thrifty bill", epilog=_bill.EPILOG)
        _bill.configure(parser)
        return _bill.execute(parser.parse_args(argv))

    return execute


@pytest.fixture
def two_runs(ledger: Ledger) -> Ledger:
    for run_id in ("1abc", "9fed"):
        run = changed(run_id=run_id)
        ledger.begin(run).finish(run)
    return ledger


@pytest.fixture
def killed(ledger: Ledger) -> Path:
    """A run whose launcher was killed before it closed the books."""
    folder = ledger.begin(changed(bill=(), wall_s=0.0, exit_code=None, notes=()))
    (folder.path / "lease.json").unlink()
    return folder.path


@pytest.mark.usefixtures("two_runs")
@pytest.mark.parametrize(
    ("argv", "number"), [((), 2), (("last",), 2), (("1",), 1), (("1ab",), 1), (("9",), 2)]
)
def test_json_prints_the_record_that_was_meant(
    bill: Command, capsys: pytest.CaptureFixture[str], argv: tuple[str, ...], number: int
) -> None:
    assert bill("--json", *argv) == 0
    run_id = {1: "1abc", 2: "9fed"}[number]
    expected = json.loads(json.dumps(changed(run_id=run_id, number=number).to_json()))
    assert json.loads(capsys.readouterr().out) == expected


@pytest.mark.usefixtures("two_runs")
@pytest.mark.parametrize("width", [60, 80, 200])
def test_the_bill_is_drawn_as_wide_as_asked(
    bill: Command, capsys: pytest.CaptureFixture[str], width: int
) -> None:
    assert bill("1", "--width", str(width)) == 0
    met = capsys.readouterr()
    lines = met.out.splitlines()
    assert max(len(line) for line in lines) <= width
    assert "train.py" in met.out
    assert "Most of it was compute." in met.out
    assert "unattributed" in met.out
    assert met.err == ""


@pytest.mark.usefixtures("two_runs")
def test_the_terminals_width_is_the_default(
    bill: Command, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "50")
    bill()
    narrow = capsys.readouterr().out
    bill("--width", "50")
    assert narrow == capsys.readouterr().out


@pytest.mark.parametrize("width", ["0", "-1", "39"])
def test_a_width_that_holds_no_bill_is_refused(bill: Command, width: str) -> None:
    with pytest.raises(UsageError) as met:
        bill("--width", width)
    assert met.value.problem == f"--width {width} is too narrow for a bill; it needs 40"
    assert met.value.fix == "thrifty bill --width 80"


def test_an_empty_ledger_and_an_unknown_run_are_errors_that_say_what_to_type(
    bill: Command, ledger: Ledger
) -> None:
    with pytest.raises(LedgerError, match="is empty") as met:
        bill()
    assert met.value.fix == "thrifty run train.py"
    ledger.begin(RUN).finish(RUN)
    with pytest.raises(LedgerError, match="no run '7'") as met:
        bill("7")
    assert "thrifty runs" in met.value.fix


def test_without_a_recovery_an_incomplete_run_is_shown_as_it_is(
    bill: Command, killed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert killed.name == "1"
    assert bill("--json") == 0
    data = json.loads(capsys.readouterr().out)
    assert (data["status"], data["bill"]) == ("incomplete", [])
    assert bill() == 0
    assert "incomplete" in capsys.readouterr().out


def test_the_books_of_a_killed_launchers_run_are_closed_and_kept(
    bill: Command,
    ledger: Ledger,
    killed: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folders: list[Path] = []

    def recover(folder: Path) -> Run:
        folders.append(folder)
        return changed(number=1, status="incomplete", wall_s=13.0)

    monkeypatch.setattr(thrifty.launch, "recover", recover, raising=False)
    for _ in range(2):
        assert bill("--json") == 0
        assert len(json.loads(capsys.readouterr().out)["bill"]) == len(CAUSES)
    assert set(folders) == {killed}
    assert ledger.find("1").bill == RUN.bill


def test_a_recovery_that_finds_too_little_changes_nothing(ledger: Ledger, killed: Path) -> None:
    before = (killed / "run.json").read_bytes()
    run = _bill.bill_of(ledger, "1", recover=lambda _: None)
    assert (run.status, run.bill) == ("incomplete", ())
    assert (killed / "run.json").read_bytes() == before


def test_a_recovered_bill_that_cannot_be_kept_is_still_shown(
    ledger: Ledger,
    killed: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(run: Run) -> None:
        problem = f"cannot write {run.number}"
        raise LedgerError(problem, fix="free some space")

    monkeypatch.setattr(ledger, "amend", refuse)
    recovered = changed(number=1, status="incomplete")
    assert _bill.bill_of(ledger, "1", recover=lambda _: recovered) == recovered
    assert capsys.readouterr().err == "warning: the recovered bill is not kept: cannot write 1\n"
    assert killed.exists()


@pytest.mark.parametrize("status", ["completed", "failed", "no_training", "running"])
def test_only_an_incomplete_run_is_recovered(ledger: Ledger, status: str) -> None:
    def never(folder: Path) -> Run | None:
        pytest.fail(f"recovered {folder}")

    run = changed(status=status, bill=())
    folder = ledger.begin(run)
    if status != "running":
        folder.finish(run)
    assert _bill.bill_of(ledger, "1", recover=never).status == status


def test_a_newer_run_that_cannot_be_read_is_told(
    bill: Command, two_runs: Ledger, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = two_runs.folder(2)
    (folder / "run.json").write_text("{")
    assert bill("--json") == 0
    met = capsys.readouterr()
    assert json.loads(met.out)["number"] == 1
    assert met.err.startswith("warning: run 2 is newer, but its run.json: no JSON")
    bill("1", "--json")
    assert capsys.readouterr().err == ""
