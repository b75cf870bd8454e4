"""``thrifty config`` as typed."""

import argparse
import json
from pathlib import Path

import pytest

from thrifty.cli import _config as command
from thrifty.machines import CONFIG_KEYS
from thrifty.records import PriceError, ThriftyError, UsageError


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("THRIFTY_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def run(*words: str) -> int:
    parser = argparse.ArgumentParser()
    command.configure(parser)
    return command.execute(parser.parse_args(words))


def test_every_setting_is_shown_with_where_it_comes_from(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run() == 0
    assert f"{home / 'config.toml'} (not written yet)" in capsys.readouterr().out
    run("set", "machine", "AWS:g5.xlarge")
    capsys.readouterr()
    assert run() == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines[0] == [str(home / "config.toml")]
    assert lines[1] == ["price_usd_per_hour", "-", "not", "set"]
    assert lines[2] == ["machine", "aws:g5.xlarge", "saved"]
    assert lines[3] == ["spot", "false", "built", "in"]
    assert lines[4] == ["live", "row", "built", "in"]
    assert "$1.006 per hour (aws:g5.xlarge, on demand, as of 2025-03-02)" in " ".join(lines[5])


def test_the_settings_as_json(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("set", "price_usd_per_hour", "2.10")
    capsys.readouterr()
    assert run("--json") == 0
    record = json.loads(capsys.readouterr().out)
    assert (record["path"], record["exists"]) == (str(home / "config.toml"), True)
    assert record["values"] == {
        "price_usd_per_hour": {"value": 2.1, "origin": "saved"},
        "machine": {"value": None, "origin": "not_set"},
        "spot": {"value": False, "origin": "built_in"},
        "live": {"value": "row", "origin": "built_in"},
    }
    assert (record["unknown_keys"], record["price_usd_per_hour"]) == ([], 2.1)


def test_get_prints_the_bare_value(capsys: pytest.CaptureFixture[str]) -> None:
    run("set", "price_usd_per_hour", "$2.10")
    capsys.readouterr()
    assert run("get", "price_usd_per_hour") == 0
    assert run("get", "spot") == 0
    assert capsys.readouterr().out == "2.1\nfalse\n"
    assert run("get", "live", "--json") == 0
    expected = {"key": "live", "value": "row", "origin": "built_in"}
    assert json.loads(capsys.readouterr().out) == expected


def test_get_of_what_is_not_set_prints_nothing_and_exits_1(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run("get", "machine") == 1
    told = capsys.readouterr()
    assert (told.out, told.err) == ("", "machine is not set\n")


def test_set_tells_what_a_run_costs_now(capsys: pytest.CaptureFixture[str]) -> None:
    run("set", "machine", "aws:g5.xlarge")
    run("set", "price_usd_per_hour", "2.1")
    assert "billed at $2.10 per hour (price_usd_per_hour wins" in capsys.readouterr().out


def test_unset_goes_back_to_the_built_in(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("set", "live", "off")
    run("set", "machine", "aws:g5.xlarge")
    capsys.readouterr()
    assert run("unset", "live") == 0
    assert run("unset", "machine") == 0
    assert run("unset", "machine") == 0
    path = home / "config.toml"
    assert capsys.readouterr().out.splitlines() == [
        f"live = row (built in) in {path}",
        f"removed machine from {path}",
        "a run without --price or --machine shows time only",
        "machine was not set",
    ]


def test_a_change_answers_json_with_all_settings(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("set", "live", "title", "--json") == 0
    assert json.loads(capsys.readouterr().out)["values"]["live"]["value"] == "title"


def test_unknown_keys_of_the_file_are_reported_and_kept(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home.mkdir()
    (home / "config.toml").write_text('colour = "blue"\n')
    run("set", "live", "off")
    run()
    assert "colour" in capsys.readouterr().out
    assert "blue" in (home / "config.toml").read_text()
    run("unset", "colour")
    assert "removed colour" in capsys.readouterr().out


def test_a_saved_machine_that_left_the_catalogue_is_told(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home.mkdir()
    (home / "config.toml").write_text('machine = "aws:g5.xlrage"\n')
    assert run() == 0
    out = capsys.readouterr().out
    assert "has no price: no machine 'aws:g5.xlrage'" in out
    assert "fix: type aws:g5.xlarge" in out
    run("--json")
    assert json.loads(capsys.readouterr().out)["price_usd_per_hour"] is None


@pytest.mark.parametrize(
    ("words", "kind", "remedy"),
    [
        (["set", "price", "3"], UsageError, "type price_usd_per_hour"),
        (["set", "price_usd_per_hour", "-1"], PriceError, "set price_usd_per_hour 1"),
        (["set", "price_usd_per_hour", "2,10"], PriceError, "set price_usd_per_hour 2.10"),
        (["set", "machine", "g5.xlrage"], PriceError, "aws:g5.xlarge"),
        (["set", "machine"], UsageError, "thrifty config set machine aws:g5.xlarge"),
        (["set"], UsageError, "thrifty config set machine aws:g5.xlarge"),
        (["get"], UsageError, "thrifty config get machine"),
        (["get", "machine", "x"], UsageError, "thrifty config get machine"),
        (["get", "machines"], UsageError, "type machine"),
        (["unset"], UsageError, "thrifty config unset machine"),
        (["unset", "colour"], UsageError, "thrifty config lists every key"),
        (["machine"], UsageError, "thrifty config get machine"),
        (["sett", "live", "off"], UsageError, "thrifty config set KEY VALUE"),
        (["?"], UsageError, "thrifty config get KEY"),
    ],
)
def test_a_slip_is_answered_with_what_to_type(
    home: Path, words: list[str], kind: type[ThriftyError], remedy: str
) -> None:
    with pytest.raises(kind) as met:
        run(*words)
    assert remedy in met.value.fix
    assert not home.exists()


def test_the_help_names_every_setting_and_its_examples_work() -> None:
    assert all(f"  {key} " in command.EPILOG for key in CONFIG_KEYS)
    examples = [
        line.strip().partition("  ")[0].split()[2:]
        for line in command.EPILOG.splitlines()
        if line.startswith("  thrifty config")
    ]
    assert len(examples) == 5
    assert [run(*words) for words in examples] == [0] * 5
