"""What was asked to run."""

import os
import sys
from pathlib import Path

import pytest

from thrifty.cli._run import split
from thrifty.launch._target import parse_target, script_environment
from thrifty.records import UsageError


@pytest.mark.parametrize(
    ("words", "ours", "theirs"),
    [
        (["train.py"], [], ["train.py"]),
        (["--quiet", "train.py", "--quiet"], ["--quiet"], ["train.py", "--quiet"]),
        (["--price", "2", "train.py"], ["--price", "2"], ["train.py"]),
        (["--price=2", "train.py"], ["--price=2"], ["train.py"]),
        (["-q", "-m", "pkg", "-q"], ["-q"], ["-m", "pkg", "-q"]),
        (["-mpkg"], [], ["-mpkg"]),
        (["--", "--price", "2"], [], ["--", "--price", "2"]),
        (["--price"], ["--price"], []),
        ([], [], []),
        (["--spot", "-"], ["--spot"], ["-"]),
    ],
)
def test_our_options_end_where_the_script_begins(words, ours, theirs):
    assert split(words) == (ours, theirs)


@pytest.mark.parametrize(
    ("words", "command"),
    [
        (["train.py", "-x"], (sys.executable, "train.py", "-x")),
        (["-m", "pkg.mod", "-m"], (sys.executable, "-m", "pkg.mod", "-m")),
        (["-mpkg.mod"], (sys.executable, "-m", "pkg.mod")),
        (["--", "bash", "-c", "exit 3"], ("bash", "-c", "exit 3")),
        (["--", "--"], ("--",)),
    ],
)
def test_words_become_the_command_that_a_plain_start_would_run(words, command):
    assert parse_target(words).command == command


@pytest.mark.parametrize("words", [[], ["--"], ["-m"]])
def test_nothing_to_run_is_an_error_with_an_example(words):
    with pytest.raises(UsageError, match="thrifty run"):
        parse_target(words)


def test_the_scripts_environment_has_one_folder_and_one_variable_more(tmp_path):
    before = {"A": "1", "PYTHONPATH": "/x"}
    after = script_environment(before, tmp_path)
    folder, rest = after.pop("PYTHONPATH").split(os.pathsep, 1)
    assert rest == "/x"
    assert (Path(folder) / "sitecustomize.py").exists()
    assert after.pop("THRIFTY_ATTACH") == f"{tmp_path}|{os.getpid()}"
    assert after == {"A": "1"}
    assert before == {"A": "1", "PYTHONPATH": "/x"}


def test_a_run_inside_a_run_is_not_attached_to_the_outer_one(tmp_path):
    outer = script_environment({}, tmp_path / "outer")
    assert "THRIFTY_ATTACH" not in script_environment(outer, None)
