"""The last sentence of a bill."""

import pytest

from thrifty.analyze import Attribution, lines, summarise
from thrifty.records import CAUSES, Price, Run

S = 1_000_000_000


def run_with(*, status="completed", steps=10, usd=None, **seconds):
    ns = dict.fromkeys(CAUSES, 0) | {cause: int(s * S) for cause, s in seconds.items()}
    price = usd and Price(usd_per_hour=usd, source="test", as_of=None, kind="user")
    wall_s = sum(seconds.values())
    return Run(
        run_id="r",
        number=1,
        status=status,
        exit_code=0,
        script="train.py",
        argv=("--lr", "0.1 2"),
        framework="torch",
        world_size=1,
        machine_count=1,
        device_count=0,
        started_at="2026-11-30T10:00:00+00:00",
        wall_s=wall_s,
        steps=steps,
        samples=None,
        samples_per_s=None,
        epochs=None,
        price=price,
        cost_usd=usd and usd * wall_s / 3600,
        bill=lines(Attribution(ns=ns, notes=()), device_count=0, price=price),
        system=None,
        summary="",
        notes=(),
    )


@pytest.mark.parametrize("cause", [c for c in CAUSES if c not in ("compute", "unattributed")])
def test_each_cause_has_a_sentence_with_its_share_and_something_to_type(cause):
    sentence = summarise(run_with(compute=50, **{cause: 50}))
    assert "50.0 s (50 %)" in sentence
    assert "train.py --lr '0.1 2'" in sentence


def test_the_largest_loss_is_named_not_compute():
    sentence = summarise(run_with(compute=90, input_wait=6, host=4, usd=36))
    assert sentence.startswith("Largest loss: 6.0 s (6 %, $0.06) went to waiting for data")


def test_a_run_without_losses_says_so():
    assert summarise(run_with(compute=10)) == "No loss was found."


def test_a_run_that_could_not_be_seen_says_how_to_be_seen():
    assert "thrifty run" in summarise(run_with(unattributed=10))


def test_a_run_without_training_is_not_blamed_for_start_up():
    assert summarise(run_with(startup=9, status="no_training", steps=0)).startswith("No training")


def test_a_run_that_died_early_is_told_to_die_where_it_is_free():
    sentence = summarise(run_with(startup=33, status="failed", steps=0, usd=36))
    assert "before its first step, after 33.0 s and $0.33" in sentence
