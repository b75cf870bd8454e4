"""Where thrifty keeps its things."""

import os
import pwd
from pathlib import Path

import pytest

from thrifty.machines import thrifty_home


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("THRIFTY_HOME", "XDG_DATA_HOME", "TMPDIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", "/home/ada")


def test_the_default_is_below_the_users_home() -> None:
    assert thrifty_home() == Path("/home/ada/.local/share/thrifty")


def test_xdg_data_home_moves_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", "/data")
    assert thrifty_home() == Path("/data/thrifty")


@pytest.mark.parametrize("value", ["", "relative/data"])
def test_an_xdg_data_home_that_is_not_absolute_is_ignored(
    value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", value)
    assert thrifty_home() == Path("/home/ada/.local/share/thrifty")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("/ledger", "/ledger"),
        ("~/ledger", "/home/ada/ledger"),
        ("", "/home/ada/.local/share/thrifty"),
    ],
)
def test_thrifty_home_wins(value: str, expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", "" if not value else "/data")
    monkeypatch.setenv("THRIFTY_HOME", value)
    assert thrifty_home() == Path(expected)


def test_a_relative_thrifty_home_starts_at_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("THRIFTY_HOME", "ledger")
    assert thrifty_home() == tmp_path / "ledger"


def test_a_deleted_current_folder_does_not_raise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    monkeypatch.setenv("THRIFTY_HOME", "ledger")
    gone.rmdir()
    assert thrifty_home() == Path("ledger")


def test_an_unknown_tilde_user_is_taken_as_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THRIFTY_HOME", "~nobody-has-this-name/x")
    assert thrifty_home() == Path.cwd() / "~nobody-has-this-name/x"


@pytest.mark.parametrize("home", [None, "", "relative"])
def test_without_a_home_the_account_tells(
    home: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if home is None:
        monkeypatch.delenv("HOME")
    else:
        monkeypatch.setenv("HOME", home)
    account = pwd.getpwuid(os.getuid()).pw_dir
    assert thrifty_home() == Path(account) / ".local/share/thrifty"


def test_without_home_and_account_a_folder_of_ones_own_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def no_account(_: int) -> None:
        raise KeyError

    monkeypatch.delenv("HOME")
    monkeypatch.setattr(pwd, "getpwuid", no_account)
    assert thrifty_home() == Path(f"/tmp/thrifty-{os.getuid()}")
    monkeypatch.setenv("TMPDIR", "/scratch")
    assert thrifty_home() == Path(f"/scratch/thrifty-{os.getuid()}")


def test_naming_the_folder_does_not_make_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("THRIFTY_HOME", str(tmp_path / "a"))
    assert not thrifty_home().exists()
