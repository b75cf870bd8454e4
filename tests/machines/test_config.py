"""The saved defaults, in a file that others may edit too."""

import os
import tomllib
from pathlib import Path

import pytest

from thrifty.machines import read_defaults, save_default, unset_default
from thrifty.records import PriceError, ThriftyError, UsageError


def written(home: Path, text: str | bytes) -> Path:
    home.mkdir(exist_ok=True)
    path = home / "config.toml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def test_a_missing_file_sets_nothing_and_is_not_made(home: Path) -> None:
    defaults = read_defaults()
    assert defaults.path == home / "config.toml"
    assert (defaults.price_usd_per_hour, defaults.machine) == (None, None)
    assert (defaults.spot, defaults.live, defaults.unknown_keys) == (None, None, ())
    assert not home.exists()


@pytest.mark.parametrize(
    ("key", "typed", "expected"),
    [
        ("price_usd_per_hour", "$2.10", 2.1),
        ("price_usd_per_hour", "1e-7", 1e-7),
        ("price_usd_per_hour", 3, 3.0),
        ("machine", "G5.XLARGE", "aws:g5.xlarge"),
        ("machine", "gcp:n1-standard-4+1xT4", "gcp:n1-standard-4+1xT4"),
        ("spot", "Yes", True),
        ("spot", "0", False),
        ("spot", True, True),
        ("live", "TITLE", "title"),
        ("live", "off", "off"),
    ],
)
def test_a_saved_value_comes_back(
    home: Path, key: str, typed: str | float, expected: str | float
) -> None:
    assert getattr(save_default(key, typed), key) == expected
    assert getattr(read_defaults(home), key) == expected
    assert tomllib.loads((home / "config.toml").read_text()) == {key: expected}


@pytest.mark.parametrize(
    ("key", "value", "remedy"),
    [
        ("price", "3", "price_usd_per_hour"),
        ("Machine", "aws:g5.xlarge", "machine"),
        ("price-usd-per-hour", "3", "price_usd_per_hour"),
        ("", "3", "thrifty config lists every key"),
        ("price_usd_per_hour", "2,10", "thrifty config set price_usd_per_hour 2.10"),
        ("price_usd_per_hour", True, "thrifty config set price_usd_per_hour 2.10"),
        ("price_usd_per_hour", "-1", "thrifty config set price_usd_per_hour 1"),
        ("machine", "aws:g5.xlrage", "aws:g5.xlarge"),
        ("spot", "maybe", "thrifty config set spot"),
        ("live", "rwo", "thrifty config set live row"),
        ("live", "", "thrifty config set live"),
    ],
)
def test_a_wrong_key_or_value_is_refused_and_nothing_is_written(
    home: Path,
    key: str,
    value: str | bool,  # noqa: FBT001 - what is refused
    remedy: str,
) -> None:
    with pytest.raises(ThriftyError) as met:
        save_default(key, value)
    assert remedy in met.value.fix
    assert not home.exists()


def test_an_edit_keeps_comments_unknown_keys_and_tables(home: Path) -> None:
    text = (
        '# mine\ncolour = "blue"  # kept\nmachine = "aws:g5.xlarge"\n'
        'list = [\n  1,\n  nan,\n]\n\n[other]\nmachine = "theirs"\n'
    )
    path = written(home, text)
    save_default("machine", "gcp:g2-standard-4")
    assert path.read_text() == text.replace("aws:g5.xlarge", "gcp:g2-standard-4")
    defaults = save_default("live", "off")
    assert defaults.unknown_keys == ("colour", "list", "other")
    assert path.read_text().index('live = "off"') < path.read_text().index("[other]")
    assert unset_default("machine")
    assert unset_default("live")
    assert path.read_text() == text.replace('machine = "aws:g5.xlarge"\n', "")


@pytest.mark.parametrize("line", ["'live' = 'row'\r\n", '\t"live"="row"', "live = 'row' # why\n"])
def test_a_key_written_in_another_way_is_replaced_not_doubled(home: Path, line: str) -> None:
    path = written(home, line)
    save_default("live", "off")
    assert path.read_text() == 'live = "off"\n'


def test_a_byte_order_mark_is_no_trouble(home: Path) -> None:
    written(home, b'\xef\xbb\xbflive = "off"\n')
    assert read_defaults().live == "off"


def test_an_unknown_key_of_the_file_can_be_removed(home: Path) -> None:
    path = written(home, 'colour = "blue"\nlive = "off"\n')
    assert unset_default("colour")
    assert path.read_text() == 'live = "off"\n'


def test_removing_what_is_not_set_changes_nothing(home: Path) -> None:
    assert not unset_default("machine")
    assert not home.exists()
    with pytest.raises(UsageError, match="no setting 'colour'"):
        unset_default("colour")


@pytest.mark.parametrize("text", ['[colour]\nlive = "x"\n', "colour = [\n  1,\n]\n"])
def test_removing_a_value_of_several_lines_is_left_to_the_user(home: Path, text: str) -> None:
    path = written(home, text)
    with pytest.raises(UsageError, match="several lines") as met:
        unset_default("colour")
    assert met.value.fix == f"edit {path} by hand"
    assert path.read_text() == text


def test_a_line_inside_a_longer_text_is_not_taken_for_the_key(home: Path) -> None:
    text = 'text = """\nlive = "row"\n"""\n'
    path = written(home, text)
    with pytest.raises(UsageError, match="several lines"):
        save_default("live", "off")
    assert path.read_text() == text


@pytest.mark.parametrize(
    ("text", "line", "remedy"),
    [
        ("live = 'row'\nspot = tru\n", 2, "delete the line"),
        ("\n\nmachine = \n", 3, "delete the line"),
        ("live = 'row", 1, "delete the line"),
        ("live = 'row'\nlive = 'off'\n", 2, "delete the line"),
        (b"# ok\nlive = '\xff'\n", 2, "UTF-8"),
        ("\nprice_usd_per_hour = '2.10'\n", 2, "thrifty config unset price_usd_per_hour"),
        ("price_usd_per_hour = true\n", 1, "thrifty config set price_usd_per_hour 2.10"),
        ("price_usd_per_hour = -1\n", 1, "thrifty config set price_usd_per_hour 2.10"),
        ("price_usd_per_hour = nan\n", 1, "thrifty config set price_usd_per_hour 2.10"),
        ("spot = 'true'\n", 1, "thrifty config set spot true"),
        ("spot = 1\n", 1, "thrifty config set spot true"),
        ("machine = 3\n", 1, "thrifty config set machine aws:g5.xlarge"),
        ("# a\nlive = 'blink'\n", 2, "thrifty config set live title"),
    ],
)
def test_a_broken_file_is_told_with_its_line_and_the_remedy(
    home: Path, text: str | bytes, line: int, remedy: str
) -> None:
    path = written(home, text)
    with pytest.raises(UsageError) as met:
        read_defaults()
    assert f"{path}, line {line}: " in met.value.problem
    assert remedy in met.value.fix


def test_a_table_in_a_keys_place_is_told(home: Path) -> None:
    path = written(home, "[machine]\nname = 'x'\n")
    with pytest.raises(UsageError) as met:
        read_defaults()
    assert met.value.problem.startswith(f"{path}: machine cannot be")


def test_the_remedy_for_a_wrong_value_works(home: Path) -> None:
    written(home, "price_usd_per_hour = '2.10'\n")
    save_default("price_usd_per_hour", "2.10")
    assert read_defaults().price_usd_per_hour == 2.1
    written(home, "price_usd_per_hour = '2.10'\n")
    unset_default("price_usd_per_hour")
    assert read_defaults().price_usd_per_hour is None


def test_a_machine_that_left_the_catalogue_does_not_hide_the_other_settings(home: Path) -> None:
    written(home, "machine = 'aws:gone'\nlive = 'off'\n")
    assert (read_defaults().machine, read_defaults().live) == ("aws:gone", "off")


@pytest.mark.usefixtures("home")
def test_machine_and_spot_without_a_known_price_are_not_saved_together() -> None:
    save_default("machine", "aws:g5.xlarge")
    with pytest.raises(PriceError, match=r"no spot price is known of aws:g5\.xlarge"):
        save_default("spot", "true")
    unset_default("machine")
    save_default("spot", "true")
    with pytest.raises(PriceError) as met:
        save_default("machine", "aws:g5.xlarge")
    assert "thrifty config unset spot" in met.value.fix
    assert save_default("machine", "gcp:g2-standard-4").spot is True


def test_a_folder_in_the_files_place_is_told(home: Path) -> None:
    (home / "config.toml").mkdir(parents=True)
    with pytest.raises(UsageError, match="cannot be read") as met:
        read_defaults()
    assert "move it away" in met.value.fix


def test_a_home_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match=r"cannot be (read|written)"):
        save_default("live", "off", tmp_path / "file" / "home")


def test_a_failed_write_leaves_the_old_file_and_no_other(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_default("live", "off")

    def disk_full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", disk_full)
    with pytest.raises(UsageError, match="No space left on device") as met:
        save_default("live", "row")
    assert "THRIFTY_HOME" in met.value.fix
    assert [path.name for path in home.iterdir()] == ["config.toml"]
    assert read_defaults().live == "off"


def test_a_linked_file_stays_a_link_and_keeps_its_mode(home: Path, tmp_path: Path) -> None:
    home.mkdir()
    kept = tmp_path / "dotfiles.toml"
    kept.write_text("")
    kept.chmod(0o640)
    (home / "config.toml").symlink_to(kept)
    save_default("live", "off")
    assert (home / "config.toml").is_symlink()
    assert kept.read_text() == 'live = "off"\n'
    assert kept.stat().st_mode & 0o777 == 0o640
