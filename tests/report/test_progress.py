import dataclasses
import math

import pytest
from report_samples import STARTING, TRAINING

from thrifty.records import Progress
from thrifty.report import live_text

FULL = (
    "thrifty  4 min 10 s  training  epoch 3: 41 % (ETA 2 min)  step 1,204  812 samples/s"
    "  input wait 23 %  $0.07"
)


def test_a_wide_line_says_everything() -> None:
    assert live_text(TRAINING, width=200) == FULL


def test_what_is_unknown_is_left_out() -> None:
    assert live_text(STARTING, width=200) == "thrifty  3 s  startup"


@pytest.mark.parametrize("width", range(-1, 120))
@pytest.mark.parametrize("progress", [TRAINING, STARTING])
def test_the_line_never_passes_its_width(progress: Progress, width: int) -> None:
    assert len(live_text(progress, width=width)) <= max(width, 0)


def test_the_least_important_parts_go_first() -> None:
    assert live_text(TRAINING, width=len(FULL)) == FULL
    assert live_text(TRAINING, width=len(FULL) - 1) == FULL.removeprefix("thrifty  ")
    assert live_text(TRAINING, width=40) == "4 min 10 s  epoch 3: 41 %  $0.07"
    assert live_text(TRAINING, width=12) == "4 min 10 s"
    assert live_text(TRAINING, width=5) == ""


def test_a_phase_that_is_not_training_stays_on_a_narrow_line() -> None:
    saving = dataclasses.replace(TRAINING, phase="checkpoint")
    assert live_text(saving, width=24) == "4 min 10 s  checkpoint"


@pytest.mark.parametrize(
    ("eta_s", "expected"),
    [
        (0.2, "(ETA 0 s)"),
        (89.4, "(ETA 89 s)"),
        (90.1, "(ETA 2 min)"),
        (3_569, "(ETA 59 min)"),
        (3_571, "(ETA 1 h 00 min)"),
        (-4, "(ETA 0 s)"),
    ],
)
def test_an_eta_is_no_more_exact_than_it_can_be(eta_s: float, expected: str) -> None:
    assert expected in live_text(dataclasses.replace(TRAINING, epoch_eta_s=eta_s), width=200)


def test_without_a_believable_length_there_is_no_eta() -> None:
    endless = dataclasses.replace(TRAINING, epoch_fraction=None)
    assert "epoch 3  step" in live_text(endless, width=200)


def test_validation_after_a_pass_belongs_to_that_pass() -> None:
    after = dataclasses.replace(TRAINING, phase="validation", epoch_fraction=None)
    assert "validation  epoch 2  step" in live_text(after, width=200)
    within = dataclasses.replace(TRAINING, phase="validation")
    assert "validation  epoch 3: 41 %" in live_text(within, width=200)
    first = dataclasses.replace(after, epochs=0)
    assert "validation  epoch 1  step" in live_text(first, width=200)


def test_a_position_without_epochs_is_still_shown() -> None:
    assert "training  41 % (ETA" in live_text(dataclasses.replace(TRAINING, epochs=None), width=99)


def test_a_hundred_percent_is_not_said_early() -> None:
    late = dataclasses.replace(TRAINING, epoch_fraction=0.9999)
    assert "epoch 3: 99 %" in live_text(late, width=200)


def test_broken_figures_are_left_out() -> None:
    broken = dataclasses.replace(
        TRAINING,
        epoch_fraction=math.nan,
        epoch_eta_s=math.inf,
        samples_per_s=math.nan,
        input_wait_fraction=math.nan,
        usd=math.inf,
    )
    assert live_text(broken, width=200) == "thrifty  4 min 10 s  training  epoch 3  step 1,204"
