import errno
import os
from pathlib import Path

import pytest

from thrifty.ledger._files import held, ledger_error, read_plain, write_whole


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    write_whole(path, b"first")
    write_whole(path, b"second, which is longer")
    assert path.read_bytes() == b"second, which is longer"
    assert [p.name for p in tmp_path.iterdir()] == ["a.json"]


@pytest.mark.parametrize("call", ["write", "fsync", "replace"])
def test_a_write_that_fails_leaves_the_old_file_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    path = tmp_path / "a.json"
    write_whole(path, b"first")
    monkeypatch.setattr(Path if call == "replace" else os, call, full)
    with pytest.raises(OSError, match="No space left"):
        write_whole(path, b"second")
    monkeypatch.undo()
    assert path.read_bytes() == b"first"
    assert [p.name for p in tmp_path.iterdir()] == ["a.json"]


def test_short_writes_are_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: write(descriptor, data[:3]))
    write_whole(tmp_path / "a", b"0123456789")
    assert (tmp_path / "a").read_bytes() == b"0123456789"


def test_the_file_and_its_folder_are_synced_before_it_counts_as_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    fsync, replace = os.fsync, Path.replace

    def note_fsync(descriptor: int) -> None:
        calls.append("folder" if Path(f"/proc/self/fd/{descriptor}").is_dir() else "file")
        fsync(descriptor)

    def note_replace(self: Path, target: Path) -> Path:
        calls.append("replace")
        return replace(self, target)

    monkeypatch.setattr(os, "fsync", note_fsync)
    monkeypatch.setattr(Path, "replace", note_replace)
    write_whole(tmp_path / "a", b"x")
    assert calls == ["file", "replace", "folder"]


@pytest.mark.parametrize("code", [errno.EINVAL, errno.ENOTSUP, errno.EIO])
def test_a_folder_that_cannot_be_synced_matters_only_if_the_disk_is_at_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    fsync = os.fsync

    def refuse_folders(descriptor: int) -> None:
        if Path(f"/proc/self/fd/{descriptor}").is_dir():
            raise OSError(code, os.strerror(code))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", refuse_folders)
    if code == errno.EIO:
        with pytest.raises(OSError, match="Input/output error"):
            write_whole(tmp_path / "a", b"x")
    else:
        write_whole(tmp_path / "a", b"x")
    assert (tmp_path / "a").read_bytes() == b"x"


def test_a_pipe_is_refused_without_waiting_for_a_writer(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="not a plain file"):
        read_plain(tmp_path / "pipe", limit_bytes=10)


def test_a_device_is_refused(tmp_path: Path) -> None:
    (tmp_path / "zero").symlink_to("/dev/zero")
    with pytest.raises(OSError, match="not a plain file"):
        read_plain(tmp_path / "zero", limit_bytes=10)


def test_a_file_of_exactly_the_limit_is_read_and_one_byte_more_is_not(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"0123456789")
    assert read_plain(tmp_path / "a", limit_bytes=10) == b"0123456789"
    with pytest.raises(OSError, match="more than 9 bytes"):
        read_plain(tmp_path / "a", limit_bytes=9)


def test_an_exclusive_lock_keeps_others_out_until_it_is_given_back(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with held(path, exclusive=True, patience_s=0) as first:
        assert first is not None
        with held(path, exclusive=False, patience_s=0) as second:
            assert second is None
    with held(path, exclusive=True, patience_s=0) as third:
        assert third is not None


def test_shared_locks_do_not_keep_each_other_out(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with (
        held(path, exclusive=False, patience_s=0) as first,
        held(path, exclusive=False, patience_s=0) as second,
    ):
        assert first is not None
        assert second is not None


def test_a_lock_that_cannot_be_made_is_not_held(tmp_path: Path) -> None:
    with held(tmp_path / "no" / "lock", exclusive=True, patience_s=0) as lock:
        assert lock is None


@pytest.mark.parametrize(
    ("code", "fix"),
    [
        (errno.ENOSPC, "free some space"),
        (errno.EDQUOT, "free some space"),
        (errno.EROFS, "make it writable"),
        (errno.EACCES, "make it writable"),
        (errno.EIO, "set THRIFTY_HOME"),
    ],
)
def test_each_failure_of_the_disk_says_what_to_do(code: int, fix: str) -> None:
    error = ledger_error(OSError(code, os.strerror(code)), path=Path("/home/x"), action="cannot y")
    assert error.problem == f"cannot y at /home/x: {os.strerror(code)}"
    assert error.fix.startswith(fix)
    assert "\n" not in error.problem
