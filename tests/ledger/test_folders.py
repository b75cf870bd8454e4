import errno
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from thrifty.ledger import Ledger
from thrifty.ledger._folders import Scan, number_of, scan
from thrifty.ledger._lease import lease_of_this_process, read_lease
from thrifty.ledger._record import load_run
from thrifty.records import LedgerError, Run


def test_a_begun_run_has_a_number_a_record_and_a_lease(
    ledger: Ledger, home: Path, make_run: Callable[..., Run]
) -> None:
    folder = ledger.begin(make_run(status="completed"))
    assert (folder.number, folder.path) == (1, home / "runs" / "1")
    assert folder.run == make_run(number=1, status="running")
    assert load_run(folder.path / "run.json") == folder.run
    lease = read_lease(folder.path / "lease.json")
    assert lease is not None
    assert replace(lease, renewed_at="") == replace(lease_of_this_process(), renewed_at="")


def test_a_home_that_thrifty_makes_is_the_users_own(
    ledger: Ledger, home: Path, make_run: Callable[..., Run]
) -> None:
    ledger.begin(make_run())
    assert home.stat().st_mode & 0o777 == 0o700


def test_a_home_that_was_there_keeps_its_mode(
    ledger: Ledger, home: Path, make_run: Callable[..., Run]
) -> None:
    home.mkdir()
    home.chmod(0o775)
    ledger.begin(make_run())
    assert home.stat().st_mode & 0o777 == 0o775


def test_an_update_and_the_end_replace_the_record(
    ledger: Ledger, make_run: Callable[..., Run]
) -> None:
    folder = ledger.begin(make_run())
    folder.update(make_run(status="running", steps=50))
    assert load_run(folder.path / "run.json").steps == 50
    folder.finish(make_run(steps=70))
    assert load_run(folder.path / "run.json") == make_run(number=1, steps=70)
    assert folder.run == make_run(number=1, steps=70)
    assert sorted(p.name for p in folder.path.iterdir()) == ["lease.json", "run.json"]


def test_a_run_cannot_finish_as_running(ledger: Ledger, make_run: Callable[..., Run]) -> None:
    folder = ledger.begin(make_run())
    with pytest.raises(ValueError, match="not 'running'"):
        folder.finish(make_run(status="running"))


def test_a_renewal_only_changes_the_time(ledger: Ledger, make_run: Callable[..., Run]) -> None:
    folder = ledger.begin(make_run())
    before = read_lease(folder.path / "lease.json")
    folder.renew()
    after = read_lease(folder.path / "lease.json")
    assert before is not None
    assert after is not None
    assert after.renewed_at > before.renewed_at
    assert replace(after, renewed_at=before.renewed_at) == before


def test_a_renewal_in_a_deleted_folder_says_so(
    ledger: Ledger, make_run: Callable[..., Run]
) -> None:
    folder = ledger.begin(make_run())
    shutil.rmtree(folder.path)
    with pytest.raises(LedgerError, match="cannot renew the run's lease"):
        folder.renew()
    with pytest.raises(LedgerError, match="cannot write"):
        folder.finish(make_run())


def test_numbers_count_up(ledger: Ledger, make_run: Callable[..., Run]) -> None:
    assert [ledger.begin(make_run()).number for _ in range(3)] == [1, 2, 3]


def test_a_number_is_not_used_again_when_the_last_folder_is_deleted(
    ledger: Ledger, make_run: Callable[..., Run]
) -> None:
    for _ in range(3):
        last = ledger.begin(make_run())
    shutil.rmtree(last.path)
    assert ledger.begin(make_run()).number == 4


def test_a_number_is_not_used_again_when_every_folder_is_deleted(
    ledger: Ledger, home: Path, make_run: Callable[..., Run]
) -> None:
    for _ in range(3):
        ledger.begin(make_run())
    for number in (1, 2, 3):
        shutil.rmtree(home / "runs" / str(number))
    assert ledger.begin(make_run()).number == 4


@pytest.mark.parametrize("text", ["", "x", "-5", "99999999999999999999", "999999999999", "\0"])
def test_a_damaged_counter_is_ignored(
    ledger: Ledger, home: Path, make_run: Callable[..., Run], text: str
) -> None:
    ledger.begin(make_run())
    (home / "runs" / ".last").write_text(text)
    assert ledger.begin(make_run()).number == 2


def test_numbers_go_on_after_the_highest_folder_when_the_counter_is_lost(
    ledger: Ledger, home: Path, make_run: Callable[..., Run]
) -> None:
    for _ in range(3):
        ledger.begin(make_run())
    (home / "runs" / ".last").unlink()
    assert ledger.begin(make_run()).number == 4


def test_a_counter_that_cannot_be_used_does_not_stop_a_run(
    ledger: Ledger, home: Path, make_run: Callable[..., Run]
) -> None:
    (home / "runs" / ".last").mkdir(parents=True)
    assert [ledger.begin(make_run()).number for _ in range(3)] == [1, 2, 3]


def test_an_absurd_folder_name_is_no_reason_to_count_on_from_it(
    ledger: Ledger, home: Path, make_run: Callable[..., Run]
) -> None:
    (home / "runs" / "999999999999").mkdir(parents=True)
    assert ledger.begin(make_run()).number == 1


def test_a_file_in_the_way_only_costs_its_number(
    ledger: Ledger, home: Path, make_run: Callable[..., Run]
) -> None:
    (home / "runs").mkdir(parents=True)
    (home / "runs" / ".last").mkdir()
    (home / "runs" / "1").touch()
    assert ledger.begin(make_run()).number == 2


@pytest.mark.parametrize(
    ("name", "number"),
    [("1", 1), ("142", 142), ("999999999999", 999999999999)]
    + [
        (name, None)
        for name in ("", "0", "01", "-1", "+1", "1_0", " 1", "1\n", "a", "1.5", "²", "٣", "1" * 13)
    ],
)
def test_only_plain_numbers_name_a_run_folder(name: str, number: int | None) -> None:
    assert number_of(name) == number


def test_a_home_that_does_not_exist_has_no_runs(home: Path) -> None:
    assert scan(home / "runs") == Scan(records={}, without=())


def test_a_folder_whose_launcher_is_only_beginning_is_not_missed(home: Path) -> None:
    (home / "runs" / "1").mkdir(parents=True)
    (home / "runs" / "2").mkdir()
    (home / "runs" / "2" / "lease.json").touch()
    (home / "runs" / "2" / ".run.json.0123").touch()
    assert scan(home / "runs").without == ()


def test_a_folder_with_data_but_no_record_is_told(home: Path) -> None:
    (home / "runs" / "3" / "records").mkdir(parents=True)
    (home / "runs" / "4").touch()
    assert scan(home / "runs").without == (3,)


def test_runs_that_cannot_be_listed_are_an_error(home: Path) -> None:
    home.mkdir()
    (home / "runs").touch()
    with pytest.raises(LedgerError, match=r"cannot list the runs at .*: Not a directory"):
        scan(home / "runs")


def test_a_home_that_is_a_file_says_so(
    ledger: Ledger, home: Path, make_run: Callable[..., Run]
) -> None:
    home.touch()
    with pytest.raises(LedgerError, match="cannot make a run folder") as met:
        ledger.begin(make_run())
    assert "THRIFTY_HOME" in met.value.fix


def test_a_record_that_could_not_be_read_back_is_refused_and_leaves_no_folder(
    ledger: Ledger, home: Path, make_run: Callable[..., Run]
) -> None:
    with pytest.raises(LedgerError, match="wall_s is nan, not a finite number"):
        ledger.begin(make_run(wall_s=float("nan")))
    assert [p.name for p in (home / "runs").iterdir()] == [".last"]


@pytest.fixture
def full_disk(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Makes every write that needs space fail, until the reserve is deleted."""
    write, unlink = os.write, Path.unlink

    def fill() -> None:
        full = True

        def write_or_not(descriptor: int, data: bytes) -> int:
            if full:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return write(descriptor, data)

        def unlink_and_free(path: Path, **options: bool) -> None:
            nonlocal full
            unlink(path, **options)
            full = full and path.name != ".reserve"

        monkeypatch.setattr(os, "write", write_or_not)
        monkeypatch.setattr(Path, "unlink", unlink_and_free)

    return fill


def test_a_run_cannot_begin_on_a_full_disk_and_one_line_says_why(
    ledger: Ledger, home: Path, make_run: Callable[..., Run], full_disk: Callable[[], None]
) -> None:
    ledger.begin(make_run())
    full_disk()
    with pytest.raises(LedgerError) as met:
        ledger.begin(make_run())
    where = home / "runs" / "2"
    assert met.value.problem == f"cannot begin the run's record at {where}: No space left on device"
    assert met.value.fix == "free some space, or set THRIFTY_HOME to a folder on another disk"
    assert not where.exists()


def test_the_books_are_closed_on_a_full_disk_with_the_space_kept_for_it(
    ledger: Ledger, make_run: Callable[..., Run], full_disk: Callable[[], None]
) -> None:
    folder = ledger.begin(make_run())
    full_disk()
    folder.renew()  # needs no space
    folder.finish(make_run(steps=70))
    assert load_run(folder.path / "run.json").steps == 70


def test_without_that_space_the_old_record_stays_and_one_line_says_why(
    ledger: Ledger, make_run: Callable[..., Run], full_disk: Callable[[], None]
) -> None:
    folder = ledger.begin(make_run())
    (folder.path / ".reserve").unlink()
    full_disk()
    with pytest.raises(LedgerError, match=r"cannot write at .*run.json: No space left") as met:
        folder.finish(make_run(steps=70))
    assert "\n" not in met.value.problem
    assert load_run(folder.path / "run.json").status == "running"


LIMITED = """
import resource, sys
from pathlib import Path
from thrifty.ledger import Ledger
from thrifty.records import LedgerError
ledger = Ledger(Path(sys.argv[1]))
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
print(len(ledger.runs()), len(ledger.unreadable()))
try:
    ledger.begin(ledger.find("last"))
except LedgerError as error:
    print(error.problem)
"""


def test_where_no_file_may_be_written_reading_works_and_beginning_says_why(
    five_runs: Ledger, home: Path, tmp_path: Path
) -> None:
    for limit in (0, 100):
        done = subprocess.run(
            [sys.executable, "-c", LIMITED, home, str(limit)],
            capture_output=True,
            text=True,
            check=True,
            cwd=tmp_path,
        )
        first, second = done.stdout.splitlines()
        assert first == "5 0"
        assert second.startswith("cannot begin the run's record at ")
        assert second.endswith(": File too large")
        assert len(five_runs.runs()) == 5


CHURN = """
import sys
from dataclasses import replace
from pathlib import Path
from thrifty.ledger import Ledger
ledger = Ledger(Path(sys.argv[1]))
run = ledger.find("1")
print("ready", flush=True)
while True:
    folder = ledger.begin(run)
    for step in range(5):
        folder.renew()
        folder.update(replace(run, status="running", steps=step))
    folder.finish(run)
    ledger.runs(limit=5)
"""


@pytest.mark.parametrize("after_runs", [1, 3, 6, 10])
def test_a_launcher_killed_while_it_writes_leaves_a_ledger_that_reads(
    ledger: Ledger, home: Path, make_run: Callable[..., Run], after_runs: int
) -> None:
    ledger.begin(make_run()).finish(make_run())
    with subprocess.Popen([sys.executable, "-c", CHURN, home], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        while len(scan(home / "runs").records) <= after_runs:
            assert process.poll() is None
        process.kill()
    runs = ledger.runs()
    assert ledger.unreadable() == {}
    assert {run.status for run in runs} <= {"completed", "incomplete"}
    assert [run.status for run in runs].count("incomplete") <= 1
    assert len(runs) > after_runs
    assert ledger.begin(make_run()).number > max(run.number for run in runs)


LAUNCHERS = """
import sys
from dataclasses import replace
from pathlib import Path
from thrifty.ledger import Ledger
ledger = Ledger(Path(sys.argv[1]))
run = ledger.find("1")
print("ready", flush=True)
sys.stdin.readline()
for n in range(20):
    folder = ledger.begin(replace(run, run_id=f"{sys.argv[2]}-{n}"))
    folder.finish(replace(run, run_id=f"{sys.argv[2]}-{n}"))
    if n % 5 == 0:
        ledger.runs(limit=3)
    print(folder.number)
"""


def test_eight_launchers_at_once_get_160_numbers_and_lose_nothing(
    ledger: Ledger, make_run: Callable[..., Run], home: Path
) -> None:
    ledger.begin(make_run()).finish(make_run())
    launchers = [
        subprocess.Popen(
            [sys.executable, "-c", LAUNCHERS, home, f"launcher{n}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for n in range(8)
    ]
    for launcher in launchers:
        assert launcher.stdout is not None
        assert launcher.stdout.readline() == "ready\n"
    outputs = []
    for launcher in launchers:
        assert launcher.stdin is not None
        launcher.stdin.write("go\n")
        launcher.stdin.flush()
    for launcher in launchers:
        output, _ = launcher.communicate()
        assert launcher.returncode == 0
        outputs.extend(int(line) for line in output.split())
    assert sorted(outputs) == list(range(2, 162))
    runs = ledger.runs()
    assert [run.number for run in runs] == list(range(161, 0, -1))
    assert {run.status for run in runs} == {"completed"}
    wanted = {f"launcher{n}-{k}" for n in range(8) for k in range(20)} | {"3f9c2a"}
    assert {run.run_id for run in runs} == wanted
    assert ledger.rebuild() == 161


def test_without_locks_the_folders_themselves_keep_the_numbers_apart(
    ledger: Ledger, home: Path, make_run: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_locks(*_: object) -> None:
        raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP))

    monkeypatch.setattr("fcntl.flock", no_locks)
    (home / "runs").mkdir(parents=True)
    real, taken = Path.mkdir, []

    def raced(path: Path, *args: Any, **options: Any) -> None:
        if path.name == "1" and not taken:
            taken.append(path)
            real(path)  # another launcher was faster
        real(path, *args, **options)

    monkeypatch.setattr(Path, "mkdir", raced)
    assert ledger.begin(make_run()).number == 2
    assert len(taken) == 1


def test_the_lease_of_a_new_run_is_there_before_its_record(
    home: Path, make_run: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []
    replace_file = Path.replace

    def note(path: Path, target: Path) -> Path:
        seen.append(Path(target).name)
        return replace_file(path, target)

    monkeypatch.setattr(Path, "replace", note)
    Ledger(home).begin(make_run())
    assert seen == ["lease.json", "run.json"]
    assert json.loads((home / "runs" / "1" / "run.json").read_text())["number"] == 1
