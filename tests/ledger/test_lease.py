import json
import os
import subprocess
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from thrifty.ledger._lease import (
    LEASE_S,
    Lease,
    is_alive,
    lease_of_this_process,
    read_lease,
    renew_lease,
    write_lease,
)

NOW = datetime(2026, 10, 1, 12, tzinfo=UTC)


@pytest.fixture
def mine() -> Lease:
    return lease_of_this_process()


@pytest.fixture
def elsewhere(mine: Lease) -> Lease:
    return replace(mine, boot_id="another boot", renewed_at=NOW.isoformat())


def test_a_lease_comes_back_as_it_was(tmp_path: Path, mine: Lease) -> None:
    write_lease(tmp_path / "lease.json", mine)
    assert read_lease(tmp_path / "lease.json") == mine


def test_a_renewal_overwrites_the_file_in_place(tmp_path: Path, mine: Lease) -> None:
    path = tmp_path / "lease.json"
    write_lease(path, mine)
    before = path.stat()
    later = replace(mine, renewed_at=lease_of_this_process().renewed_at)
    renew_lease(path, later)
    assert read_lease(path) == later
    assert (path.stat().st_ino, path.stat().st_size) == (before.st_ino, before.st_size)


def test_a_renewal_does_not_bring_a_deleted_lease_back(tmp_path: Path, mine: Lease) -> None:
    with pytest.raises(FileNotFoundError):
        renew_lease(tmp_path / "lease.json", mine)
    assert list(tmp_path.iterdir()) == []


def test_this_process_is_alive_however_old_its_renewal(mine: Lease) -> None:
    assert is_alive(replace(mine, renewed_at="2001-01-01T00:00:00+00:00"), now=NOW)


def test_a_later_process_with_the_same_number_does_not_count(mine: Lease) -> None:
    assert mine.pid_started is not None
    assert not is_alive(replace(mine, pid_started=mine.pid_started - 1), now=NOW)


def test_an_ended_process_is_dead_even_right_after_its_renewal(
    mine: Lease, other_process: subprocess.Popen[bytes]
) -> None:
    started = _started(other_process.pid)
    lease = replace(mine, pid=other_process.pid, pid_started=started)
    now = datetime.fromisoformat(lease.renewed_at)
    assert is_alive(lease, now=now)
    other_process.kill()
    os.waitid(os.P_PID, other_process.pid, os.WEXITED | os.WNOWAIT)  # ended, not collected
    assert not is_alive(lease, now=now)
    other_process.wait()
    assert not is_alive(lease, now=now)


def _started(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_bytes().rsplit(b")", 1)[1].split()[19])


@pytest.mark.parametrize(
    ("age_s", "state"),
    [
        (0, "alive"),
        (LEASE_S, "alive"),
        (LEASE_S + 1, "dead"),
        (-5, "alive"),
        (-LEASE_S - 1, "dead"),
    ],
)
def test_a_lease_of_another_boot_lives_for_two_minutes(
    elsewhere: Lease, age_s: float, state: str
) -> None:
    assert is_alive(elsewhere, now=NOW + timedelta(seconds=age_s)) == (state == "alive")


@pytest.mark.parametrize("name", ["host", "boot_id", "pid_namespace"])
def test_a_lease_of_another_machine_or_container_is_not_looked_up_here(
    mine: Lease, name: str
) -> None:
    # Its process number means nothing here, though a process of ours has it.
    lease = replace(mine, **{name: "another"}, renewed_at=NOW.isoformat())
    assert is_alive(lease, now=NOW)
    assert not is_alive(lease, now=NOW + timedelta(hours=1))


@pytest.mark.parametrize("name", ["boot_id", "pid_namespace", "pid_started"])
def test_a_machine_without_a_kernel_to_ask_goes_by_the_renewal(mine: Lease, name: str) -> None:
    lease = replace(mine, **{name: None}, renewed_at=NOW.isoformat())
    assert is_alive(lease, now=NOW)
    assert not is_alive(lease, now=NOW + timedelta(hours=1))


@pytest.mark.parametrize("text", ["", "yesterday", "2026-10-01T12:00:00", "9999-99-99", "\0"])
def test_a_renewal_at_no_time_is_dead(elsewhere: Lease, text: str) -> None:
    assert not is_alive(replace(elsewhere, renewed_at=text), now=NOW)


@pytest.mark.parametrize(
    "changes", [{"host": None}, {"pid": "1"}, {"pid": None}, {"renewed_at": 3}, {"boot_id": []}]
)
def test_a_lease_with_a_wrong_type_is_none(
    tmp_path: Path, mine: Lease, changes: dict[str, Any]
) -> None:
    path = tmp_path / "lease.json"
    path.write_text(json.dumps(asdict(mine) | changes))
    assert read_lease(path) is None


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "[" * 4000, " " * 5000, '{"pid": 1}'])
def test_a_lease_that_cannot_be_understood_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "lease.json").write_text(text)
    assert read_lease(tmp_path / "lease.json") is None


def test_no_lease_is_none(tmp_path: Path) -> None:
    assert read_lease(tmp_path / "lease.json") is None


@pytest.mark.parametrize("pid", [-1, 0, 10**30])
def test_an_impossible_process_number_is_dead(mine: Lease, pid: int) -> None:
    assert not is_alive(replace(mine, pid=pid), now=NOW)
