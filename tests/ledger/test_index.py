import contextlib
import random
import shutil
import sqlite3
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from thrifty.ledger import Ledger
from thrifty.ledger._files import held
from thrifty.ledger._folders import Header, Signature
from thrifty.records import LedgerError, Run


@pytest.fixture
def index(five_runs: Ledger, home: Path) -> Path:
    """The index file of a ledger of five runs, filled."""
    five_runs.runs()
    return home / "index.sqlite"


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Numbers of the records read from their folders to fill the index."""
    numbers: list[int] = []
    header = Ledger._header  # noqa: SLF001 - what the index calls to read a folder

    def note(self: Ledger, number: int, signature: Signature) -> Header:
        numbers.append(number)
        return header(self, number, signature)

    monkeypatch.setattr(Ledger, "_header", note)
    return numbers


def numbers(ledger: Ledger, **filters: Any) -> list[int | None]:
    return [run.number for run in ledger.runs(**filters)]


@contextlib.contextmanager
def opened(path: Path) -> Iterator[sqlite3.Connection]:
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as database:
        yield database


ALL = [5, 4, 3, 2, 1]


@pytest.mark.usefixtures("index")
def test_what_the_index_knows_is_not_read_again(five_runs: Ledger, reads: list[int]) -> None:
    assert numbers(five_runs) == ALL
    assert reads == []


def test_a_missing_index_is_made_anew(five_runs: Ledger, index: Path, reads: list[int]) -> None:
    for path in index.parent.glob("index.*"):
        path.unlink()
    assert numbers(five_runs) == ALL
    assert sorted(reads) == [1, 2, 3, 4, 5]
    assert index.exists()


def test_a_deleted_folder_is_forgotten(five_runs: Ledger, index: Path, home: Path) -> None:
    shutil.rmtree(home / "runs" / "3")
    assert numbers(five_runs) == [5, 4, 2, 1]
    with opened(index) as database:
        assert database.execute("SELECT count(*) FROM run").fetchone() == (4,)


@pytest.mark.usefixtures("index")
def test_a_folder_added_by_hand_is_found_under_its_own_number(
    five_runs: Ledger, home: Path
) -> None:
    shutil.copytree(home / "runs" / "3", home / "runs" / "9")
    assert numbers(five_runs) == [9, *ALL]
    assert five_runs.find("9").run_id == "3bcd3"


@pytest.mark.usefixtures("index")
def test_only_a_changed_record_is_read_again(
    five_runs: Ledger, edit: Callable[..., None], reads: list[int]
) -> None:
    edit(2, script="other.py", run_id="new")
    assert numbers(five_runs, script="other") == [2]
    assert five_runs.find("new").number == 2
    assert reads == [2]


@pytest.mark.usefixtures("index")
def test_a_record_put_back_from_a_backup_with_its_old_times_is_seen(
    five_runs: Ledger, home: Path, tmp_path: Path
) -> None:
    shutil.copytree(home / "runs" / "3", tmp_path / "backup", copy_function=shutil.copy2)
    shutil.rmtree(home / "runs" / "3")
    assert numbers(five_runs) == [5, 4, 2, 1]
    shutil.copytree(tmp_path / "backup", home / "runs" / "3", copy_function=shutil.copy2)
    assert numbers(five_runs) == ALL


@pytest.mark.parametrize(
    "content", [b"", b"x", b"no database at all " * 500, b"SQLite format 3\0" + bytes(5000)]
)
def test_a_file_that_is_no_index_is_replaced(
    five_runs: Ledger, index: Path, content: bytes
) -> None:
    for path in index.parent.glob("index.sqlite-*"):
        path.unlink()
    index.write_bytes(content)
    assert numbers(five_runs) == ALL
    with opened(index) as database:
        assert database.execute("SELECT count(*) FROM run").fetchone() == (5,)


@pytest.mark.parametrize(
    "statement",
    [
        "PRAGMA user_version = 0",
        "PRAGMA user_version = 2",
        "DROP TABLE run",
        "ALTER TABLE run RENAME TO other",
        "ALTER TABLE run DROP COLUMN problem",
        "ALTER TABLE run ADD COLUMN later",
        "UPDATE run SET script = 'other.py' WHERE number = 3",
        "UPDATE run SET run_id = 7, status = x'ff'",
        "UPDATE run SET problem = 'gone'",
        "UPDATE run SET status = CAST(x'ff' AS TEXT)",
        "DELETE FROM run",
        "CREATE TRIGGER t AFTER INSERT ON run BEGIN DELETE FROM run; END",
    ],
)
def test_an_index_that_somebody_changed_is_never_believed(
    five_runs: Ledger, index: Path, statement: str, edit: Callable[..., None]
) -> None:
    with opened(index) as database:
        database.execute(statement)
    edit(5, wall_s=7.0)
    for _ in range(2):
        assert numbers(five_runs) == ALL
        assert numbers(five_runs, script="train.py") == [5, 3, 1]
        assert numbers(five_runs, status="failed") == [3]


def test_random_damage_never_changes_an_answer(five_runs: Ledger, index: Path) -> None:
    with opened(index) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    good = index.read_bytes()
    dice = random.Random(142)
    for _ in range(60):
        bad = bytearray(good)
        for _ in range(dice.choice([1, 3, 50])):
            bad[dice.randrange(len(bad))] = dice.randrange(256)
        if dice.random() < 0.3:
            del bad[dice.randrange(len(bad)) :]
        for path in index.parent.glob("index.sqlite-*"):
            path.unlink()
        index.write_bytes(bad)
        assert numbers(five_runs) == ALL
        assert numbers(five_runs, script="gan") == [4, 2]


def test_a_log_left_beside_another_database_is_not_played_into_it(
    five_runs: Ledger, index: Path
) -> None:
    with opened(index) as database:
        database.execute("BEGIN IMMEDIATE")
        database.execute("DELETE FROM run WHERE number < 4")
        database.execute("COMMIT")
        log = Path(f"{index}-wal").read_bytes()
        assert log
    index.write_bytes(b"damaged")
    Path(f"{index}-wal").write_bytes(log)
    assert numbers(five_runs) == ALL
    assert five_runs.rebuild() == 5


def test_a_locked_index_is_done_without(
    five_runs: Ledger, index: Path, edit: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("thrifty.ledger._index._BUSY_S", 0.01)
    monkeypatch.setattr("thrifty.ledger._index._PAUSE_S", 0.01)
    edit(2, script="other.py")
    with opened(index) as database:
        database.execute("BEGIN EXCLUSIVE")
        assert numbers(five_runs) == ALL
        assert numbers(five_runs, script="other") == [2]
        assert five_runs.find("4bcd").number == 4
        assert index.exists()
    assert numbers(five_runs, script="other") == [2]


def test_an_index_that_is_being_replaced_is_done_without(
    five_runs: Ledger, index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("thrifty.ledger._index._BUSY_S", 0.01)
    with held(index.with_suffix(".lock"), exclusive=True, patience_s=0) as lock:
        assert lock is not None
        assert numbers(five_runs) == ALL
        with pytest.raises(LedgerError, match=r"cannot make the index: .* cannot be locked") as met:
            five_runs.rebuild()
    assert met.value.fix.startswith("nothing is lost")


@pytest.mark.parametrize("name", ["index.sqlite", "index.lock"])
def test_an_index_that_cannot_be_opened_is_done_without(
    five_runs: Ledger, home: Path, name: str
) -> None:
    (home / name).mkdir()
    assert numbers(five_runs) == ALL
    assert numbers(five_runs, status="failed", limit=1) == [3]
    with pytest.raises(LedgerError, match="cannot make the index"):
        five_runs.rebuild()


@pytest.mark.parametrize(
    "code", [sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL]
)
def test_an_index_on_a_disk_that_refuses_is_done_without(
    five_runs: Ledger, index: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    def refuse(*_args: object, **_options: object) -> None:
        error = sqlite3.OperationalError("refused")
        error.sqlite_errorcode = code
        raise error

    monkeypatch.setattr(sqlite3, "connect", refuse)
    assert numbers(five_runs) == ALL
    assert index.exists()


def test_a_python_without_sqlite_reads_the_folders(
    five_runs: Ledger, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "sqlite3", None)
    monkeypatch.delitem(sys.modules, "thrifty.ledger._index", raising=False)
    assert numbers(five_runs) == ALL
    assert not (home / "index.sqlite").exists()
    with pytest.raises(LedgerError, match="this Python has no sqlite3"):
        five_runs.rebuild()


def test_a_scan_reads_no_more_records_than_it_shows(
    five_runs: Ledger, home: Path, reads: list[int]
) -> None:
    (home / "index.sqlite").mkdir()
    assert numbers(five_runs, limit=2) == [5, 4]
    assert reads == [5, 4]


def test_the_index_keeps_a_write_ahead_log(index: Path) -> None:
    with opened(index) as database:
        assert database.execute("PRAGMA journal_mode").fetchone() == ("wal",)


@pytest.mark.usefixtures("index")
def test_a_rebuild_counts_the_runs_that_can_be_read(five_runs: Ledger, home: Path) -> None:
    (home / "runs" / "2" / "run.json").write_text("{")
    assert five_runs.rebuild() == 4
    assert numbers(five_runs) == [5, 4, 3, 1]


def test_a_ledger_without_runs_gets_no_index(ledger: Ledger, home: Path) -> None:
    assert ledger.rebuild() == 0
    assert ledger.runs() == []
    assert not home.exists()


def test_a_script_that_is_no_text_can_be_indexed_and_found(
    ledger: Ledger, make_run: Callable[..., Run]
) -> None:
    run = make_run(script="\udcff.py", run_id="\udcfe")
    ledger.begin(run).finish(run)
    assert numbers(ledger, script="\udcff") == [1]
    assert ledger.find("\udcfe").number == 1
