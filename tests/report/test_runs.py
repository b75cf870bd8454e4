import dataclasses
from datetime import UTC, timedelta, timezone

import pytest
from report_samples import CLEAN, FAILED_AT_IMPORT, INPUT_BOUND, RUNS

from thrifty.report import render_runs
from thrifty.report._plain import cells

REAL = [CLEAN, INPUT_BOUND, FAILED_AT_IMPORT]


def test_no_runs_says_what_to_type() -> None:
    assert render_runs([]) == "No runs yet. To make one, type:\n  thrifty run train.py"


def test_a_wide_list_has_every_column() -> None:
    heading, _, row, failed = render_runs(REAL, width=200, tz=UTC).splitlines()
    assert heading.split() == [
        *("run", "started", "script", "status", "wall", "steps", "cost", "largest", "loss")
    ]
    assert row.split("  ") == [
        " 42",
        "2026-12-04 12:00",
        "experiments/resnet/train.py --data '/mnt/images/train set' --workers 2",
        "completed",
        "2 min 05 s",
        "1,204",
        "$0.035",
        "input wait 49 %",
    ]
    assert failed.split()[-5:] == ["-", "-", "startup", "95", "%"]


def test_a_list_of_eighty_columns_keeps_what_was_lost() -> None:
    heading = render_runs(REAL, width=80, tz=UTC).splitlines()[0]
    assert heading.split() == [
        *("run", "started", "script", "status", "wall", "cost", "largest", "loss")
    ]


@pytest.mark.parametrize("width", [1, 32, 40, 60, 80, 100, 200])
@pytest.mark.parametrize("ascii_only", [False, True])
def test_no_line_is_wider_than_the_page(width: int, ascii_only: bool) -> None:  # noqa: FBT001
    text = render_runs(list(RUNS.values()), width=width, ascii_only=ascii_only)
    assert max(cells(line) for line in text.splitlines()) <= max(width, 32)
    assert len(text.splitlines()) == len(RUNS) + 1
    assert text.isascii() or not ascii_only


def test_columns_that_nothing_is_known_about_are_left_out() -> None:
    heading = render_runs([FAILED_AT_IMPORT], width=200).splitlines()[0]
    assert "cost" not in heading
    assert "steps" not in heading


def test_the_start_is_shown_in_local_time() -> None:
    tz = timezone(timedelta(hours=-13))
    assert "2026-12-03 23:00" in render_runs([CLEAN], width=200, tz=tz)


def test_a_start_that_is_no_time_is_shown_without_its_escapes() -> None:
    broken = dataclasses.replace(CLEAN, started_at="\x1b[2Jnever")
    text = render_runs([broken], width=200)
    assert "never" in text
    assert "\x1b" not in text


def test_colour_changes_no_word() -> None:
    coloured = render_runs(REAL, width=120, colour=True, tz=UTC)
    for code in ("1", "2", "31", "32", "33", "0"):
        coloured = coloured.replace(f"\x1b[{code}m", "")
    assert coloured == render_runs(REAL, width=120, tz=UTC)
