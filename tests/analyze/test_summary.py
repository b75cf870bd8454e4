"""The last sentence of a bill."""

from dataclasses import replace

import pytest

from thrifty.analyze import Attribution, conclude, lines
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
        next_command="",
        notes=(),
    )


@pytest.mark.parametrize("cause", [c for c in CAUSES if c not in ("compute", "unattributed")])
def test_each_cause_has_a_sentence_with_its_share_and_a_command_that_keeps_the_arguments(cause):
    run = conclude(run_with(compute=50, **{cause: 50}))
    assert "50.0 s (50 %)" in run.summary
    assert run.next_command.endswith("train.py --lr '0.1 2'")


def test_the_largest_loss_is_named_not_compute():
    run = conclude(run_with(compute=90, input_wait=6, host=4, usd=36))
    assert run.summary.startswith("Largest loss: 6.0 s (6 %, $0.06) went to waiting for data")


def test_a_run_without_losses_says_so():
    assert conclude(run_with(compute=10)).summary == "No loss was found."


def test_a_run_that_could_not_be_seen_says_how_to_be_seen():
    assert conclude(run_with(unattributed=10)).next_command == "thrifty run train.py"


def test_a_run_without_training_is_not_blamed_for_start_up():
    run = conclude(run_with(startup=9, status="no_training", steps=0))
    assert run.summary.startswith("No training")
    assert run.next_command == "python train.py --help"


def test_a_run_that_died_before_its_first_step_says_what_that_cost():
    run = conclude(run_with(startup=33, status="failed", steps=0, usd=36))
    assert "before its first step, after 33.0 s and $0.33" in run.summary


def test_a_run_that_died_in_training_says_after_which_step():
    run = replace(run_with(compute=30, host=3, status="failed", steps=1234), exit_code=7)
    assert conclude(run).summary.startswith(
        "It ended after 1,234 steps, after 33.0 s (exit code 7). Largest loss: 3.0 s"
    )


@pytest.mark.parametrize(
    ("script", "argv", "startup", "again"),
    [
        (
            "-m pkg.train",
            ("-x",),
            "py-spy record -o profile.svg -s -- python -m pkg.train -x",
            "thrifty run -m pkg.train -x",
        ),
        (
            "bash",
            ("train.sh",),
            "py-spy record -o profile.svg -s -- bash train.sh",
            "thrifty run -- bash train.sh",
        ),
        (
            "my train.py",
            (),
            "py-spy record -o profile.svg -s -- python 'my train.py'",
            "thrifty run 'my train.py'",
        ),
    ],
)
def test_commands_can_be_pasted_whatever_was_run(script, argv, startup, again):
    run = replace(run_with(startup=9), script=script, argv=argv)
    assert conclude(run).next_command == startup
    run = replace(run_with(input_wait=9), script=script, argv=argv)
    assert conclude(run).next_command == again


@pytest.mark.parametrize(
    ("price", "options"),
    [
        (Price(usd_per_hour=2.1, source="--price", as_of=None, kind="user"), "--price 2.1 "),
        (Price(usd_per_hour=2.1, source="thrifty config", as_of=None, kind="user"), ""),
        (
            Price(usd_per_hour=1, source="x", as_of=None, kind="spot", machine="gcp:g2"),
            "--machine gcp:g2 --spot ",
        ),
    ],
)
def test_the_same_run_again_is_priced_the_same(price, options):
    run = replace(run_with(input_wait=9), argv=(), price=price)
    assert conclude(run).next_command == f"thrifty run {options}train.py"
