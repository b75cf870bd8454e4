import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from thrifty.ledger import Ledger
from thrifty.ledger._lease import lease_of_this_process
from thrifty.records import LedgerError, Run


def numbers(ledger: Ledger, **filters: Any) -> list[int | None]:
    return [run.number for run in ledger.runs(**filters)]


def test_runs_come_newest_first(five_runs: Ledger) -> None:
    assert numbers(five_runs) == [5, 4, 3, 2, 1]


def test_runs_can_be_limited(five_runs: Ledger) -> None:
    assert numbers(five_runs, limit=2) == [5, 4]
    assert numbers(five_runs, limit=0) == []


def test_runs_can_be_chosen_by_status_and_script(five_runs: Ledger) -> None:
    assert numbers(five_runs, status="failed") == [3]
    assert numbers(five_runs, script="gan") == [4, 2]
    assert numbers(five_runs, status="completed", script="train", limit=1) == [5]
    assert numbers(five_runs, script="GAN") == []


def test_a_record_comes_back_with_every_field(ledger: Ledger, make_run: Callable[..., Run]) -> None:
    run = make_run()
    ledger.begin(run).finish(run)
    assert ledger.runs() == [replace(run, number=1)]


def test_a_run_is_found_by_number_last_id_and_the_beginning_of_its_id(five_runs: Ledger) -> None:
    found = [five_runs.find(text).number for text in ("4", "last", "2bcd2", "3b", "1bcd")]
    assert found == [4, 5, 2, 3, 1]


def test_a_number_goes_before_an_id_that_begins_with_it(
    ledger: Ledger, make_run: Callable[..., Run]
) -> None:
    for run_id in ("2abc", "3abc"):
        ledger.begin(make_run(run_id)).finish(make_run(run_id))
    assert ledger.find("2").run_id == "3abc"
    assert ledger.find("3").run_id == "3abc"  # there is no run 3


def test_an_id_that_begins_another_is_meant_itself(
    ledger: Ledger, make_run: Callable[..., Run]
) -> None:
    for run_id in ("abc", "abcd"):
        ledger.begin(make_run(run_id)).finish(make_run(run_id))
    assert ledger.find("abc").number == 1


def test_the_beginning_of_several_ids_is_refused_with_their_numbers(
    ledger: Ledger, make_run: Callable[..., Run]
) -> None:
    for n in range(7):
        ledger.begin(make_run(f"abc{n}")).finish(make_run(f"abc{n}"))
    with pytest.raises(LedgerError) as met:
        ledger.find("abc")
    shown = "7 (abc6), 6 (abc5), 5 (abc4), 4 (abc3), 3 (abc2), ..."
    assert met.value.problem == f"'abc' begins the id of 7 runs: {shown}"
    assert met.value.fix == "thrifty bill 7, or more letters of the id"


@pytest.mark.parametrize(
    "text", ["99", "nope", "", "0", "-1", "²", "1/../2", "9" * 5000, "\0", "\x1b"]
)
def test_an_unknown_run_is_refused_with_what_there_is(
    five_runs: Ledger, home: Path, text: str
) -> None:
    with pytest.raises(LedgerError) as met:
        five_runs.find(text)
    assert met.value.problem == f"no run {text!r}: the ledger in {home} has 5 runs, 1 to 5"
    assert met.value.fix == "thrifty runs, to see them, or thrifty bill, for the last one"


@pytest.mark.parametrize("text", ["last", "1", "abc"])
def test_an_empty_ledger_says_how_to_make_a_run(ledger: Ledger, home: Path, text: str) -> None:
    with pytest.raises(LedgerError) as met:
        ledger.find(text)
    assert met.value.problem == f"no run {text!r}: the ledger in {home} is empty"
    assert met.value.fix == "thrifty run train.py"


def test_a_run_whose_launcher_lives_is_running(
    ledger: Ledger, make_run: Callable[..., Run]
) -> None:
    ledger.begin(make_run())
    assert ledger.find("1").status == "running"
    assert numbers(ledger, status="running") == [1]
    assert numbers(ledger, status="incomplete") == []


BEGIN = """
import sys
from pathlib import Path
from thrifty.ledger import Ledger
ledger = Ledger(Path(sys.argv[1]))
ledger.begin(ledger.find("1"))
"""


def test_a_run_whose_launcher_died_is_incomplete_and_says_so(
    ledger: Ledger, home: Path, make_run: Callable[..., Run]
) -> None:
    ledger.begin(make_run()).finish(make_run(notes=()))
    subprocess.run([sys.executable, "-c", BEGIN, home], check=True)
    run = ledger.find("last")
    assert (run.number, run.status) == (2, "incomplete")
    assert run.notes[-1].startswith("its launcher (process ")
    assert run.notes[-1].endswith(") ended without closing the books")
    assert numbers(ledger, status="incomplete") == [2]
    assert numbers(ledger, status="running") == []
    assert json.loads((home / "runs" / "2" / "run.json").read_text())["status"] == "running"


def test_a_run_without_a_lease_is_incomplete(ledger: Ledger, make_run: Callable[..., Run]) -> None:
    folder = ledger.begin(make_run())
    (folder.path / "lease.json").unlink()
    assert ledger.find("1").status == "incomplete"
    assert ledger.find("1").notes[-1] == "it has no lease.json that says who keeps it running"


@pytest.mark.parametrize(("age_s", "status"), [(60, "running"), (600, "incomplete")])
def test_a_run_of_another_machine_is_believed_by_its_renewal(
    ledger: Ledger, make_run: Callable[..., Run], age_s: float, status: str
) -> None:
    folder = ledger.begin(make_run())
    renewed_at = datetime.now(UTC) - timedelta(seconds=age_s)
    lease = replace(lease_of_this_process(), host="elsewhere", renewed_at=renewed_at.isoformat())
    (folder.path / "lease.json").write_text(json.dumps(asdict(lease)))
    assert ledger.find("1").status == status


def test_a_launcher_that_finishes_while_it_is_looked_up_is_not_called_dead(
    ledger: Ledger, make_run: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = ledger.begin(make_run())

    def finish_now(*_args: object, **_options: object) -> bool:
        folder.finish(make_run())
        return False  # the launcher has ended by now

    monkeypatch.setattr("thrifty.ledger._ledger.is_alive", finish_now)
    assert ledger.find("1").status == "completed"


def test_a_finished_run_needs_no_lease(five_runs: Ledger, home: Path) -> None:
    (home / "runs" / "4" / "lease.json").unlink()
    assert five_runs.find("4").status == "completed"


HOSTILE = {
    "cut off": lambda text: text[: len(text) // 2],
    "empty": lambda _: "",
    "another type": lambda _: "[1, 2]",
    "a NaN in the bill": lambda text: text.replace('"seconds": 1.0', '"seconds": NaN'),
    "deep": lambda _: "[" * 100_000,
    "binary": lambda _: "\0" * 1000,
}


@pytest.mark.parametrize("kind", HOSTILE)
@pytest.mark.parametrize("index", ["an index", "no index"])
def test_a_broken_record_is_left_out_and_told(
    five_runs: Ledger, home: Path, kind: str, index: str
) -> None:
    path = home / "runs" / "3" / "run.json"
    path.write_text(HOSTILE[kind](path.read_text()))
    if index == "no index":
        (home / "index.sqlite").mkdir()
    assert numbers(five_runs) == [5, 4, 2, 1]
    ((number, problem),) = five_runs.unreadable().items()
    assert number == 3
    assert problem.startswith("its run.json: ")
    assert problem.isprintable()
    with pytest.raises(LedgerError, match=r"^run 3 cannot be read: its run.json: ") as met:
        five_runs.find("3")
    assert str(home / "runs" / "3") in met.value.fix
    assert five_runs.find("5").number == 5
    assert path.exists()


def test_the_broken_last_record_does_not_hide_the_one_before(five_runs: Ledger, home: Path) -> None:
    (home / "runs" / "5" / "run.json").write_text("{")
    assert five_runs.find("last").number == 4


def test_a_pipe_in_place_of_a_record_does_not_hang(five_runs: Ledger, home: Path) -> None:
    path = home / "runs" / "3" / "run.json"
    path.unlink()
    os.mkfifo(path)
    assert numbers(five_runs) == [5, 4, 2, 1]
    assert five_runs.unreadable() == {3: "its run.json: cannot be read: not a plain file"}


def test_a_folder_that_lost_its_record_is_told(five_runs: Ledger, home: Path) -> None:
    (home / "runs" / "3" / "run.json").unlink()
    (home / "runs" / "3" / "records").mkdir()
    assert numbers(five_runs) == [5, 4, 2, 1]
    assert five_runs.unreadable() == {3: "it has no run.json"}
    with pytest.raises(LedgerError, match=r"run 3 cannot be read: it has no run.json"):
        five_runs.find("3")


def test_a_mended_record_is_shown_again(five_runs: Ledger, home: Path) -> None:
    path = home / "runs" / "3" / "run.json"
    text = path.read_text()
    path.write_text("{")
    assert numbers(five_runs) == [5, 4, 2, 1]
    path.write_text(text)
    assert numbers(five_runs) == [5, 4, 3, 2, 1]
    assert five_runs.unreadable() == {}


def test_the_folders_name_is_the_number_whatever_the_record_says(
    five_runs: Ledger, home: Path, edit: Callable[..., None]
) -> None:
    edit(3, number=77)
    assert five_runs.find("3").number == 3
    shutil.move(home / "runs" / "3", home / "runs" / "8")
    assert five_runs.find("8").run_id == "3bcd3"


def test_a_run_can_be_amended_after_its_launcher_died(
    ledger: Ledger, make_run: Callable[..., Run]
) -> None:
    folder = ledger.begin(make_run())
    (folder.path / "lease.json").unlink()
    ledger.amend(make_run(number=1, status="killed"))
    assert ledger.find("1").status == "killed"


@pytest.mark.parametrize("number", [None, 9])
def test_a_run_that_does_not_exist_cannot_be_amended(
    five_runs: Ledger, make_run: Callable[..., Run], number: int | None
) -> None:
    with pytest.raises(LedgerError, match=f"no run '{number}'"):
        five_runs.amend(make_run(number=number))


def test_a_home_that_is_a_file_cannot_be_listed(ledger: Ledger, home: Path) -> None:
    home.touch()
    with pytest.raises(LedgerError, match="cannot list the runs"):
        ledger.runs()


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write anywhere")
def test_a_read_only_home_can_be_read(
    five_runs: Ledger, home: Path, make_run: Callable[..., Run]
) -> None:
    for path in (home / "runs", home):
        path.chmod(0o500)
    assert numbers(five_runs) == [5, 4, 3, 2, 1]
    with pytest.raises(LedgerError, match=r"cannot make a run folder .*: Permission denied"):
        five_runs.begin(make_run())
    for path in (home, home / "runs"):
        path.chmod(0o700)


def test_beginning_and_finishing_a_run_loads_no_sqlite(
    home: Path, make_run: Callable[..., Run], ledger: Ledger
) -> None:
    ledger.begin(make_run()).finish(make_run())
    code = BEGIN + "assert 'sqlite3' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", code, home], check=False)
    assert done.returncode == 0
    # The same test can fail: a listing loads it.
    code = f"{code.replace('assert', 'ledger.runs(); assert')}"
    done = subprocess.run(
        [sys.executable, "-c", code, home], check=False, stderr=subprocess.DEVNULL
    )
    assert done.returncode == 1
