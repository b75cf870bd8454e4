import dataclasses
import math
import re
import subprocess
import sys
from datetime import UTC

import pytest
from report_samples import (
    CATALOGUE_PRICE,
    CLEAN,
    EVERY_CAUSE,
    FAILED_AT_IMPORT,
    HOSTILE,
    HUGE,
    INPUT_BOUND,
    RUNS,
    TODAY,
    make_run,
)

from thrifty.records import CAUSES, Run, RunStatus
from thrifty.report import render_bill
from thrifty.report._plain import cells


def bill(run: Run, **options: bool | int) -> str:
    return render_bill(run, today=TODAY, tz=UTC, **options)  # type: ignore[arg-type]


def line_of(text: str, start: str) -> str:
    return next(line for line in text.splitlines() if line.startswith(start))


def test_a_bill_reads_as_it_was_designed() -> None:
    assert (
        bill(INPUT_BOUND)
        == """\
run 42  experiments/resnet/train.py --data '/mnt/images/train set' --workers 2
status     completed, started 2026-12-04 12:00
wall time  2 min 05 s, 1 device, torch
price      $1.006/h on demand, aws:g5.xlarge,
           quoted 2025-03-02 (21 months ago) by apache-libcloud

cause                                                    time    share      cost
startup       ██▌                                       9.1 s    7.3 %  $0.0025
input wait    █████████████████▏                   1 min 01 s   49.0 %  $0.017
transfer      ▋                                         2.2 s    1.8 %  $0.00061
compute       ██████████▊                              38.6 s   30.9 %  $0.011
host          █▍                                        4.9 s    3.9 %  $0.0014
validation    ██▏                                       7.7 s    6.2 %  $0.0022
unattributed  ░                                         1.2 s    1.0 %  $0.00034
total                                              2 min 05 s  100.0 %  $0.035

training   1,204 steps, 3 complete epochs, 77,056 samples, 812 samples/s
loop cost  $0.011 and 38.6 s per epoch, $0.027 and 1 min 36 s per 1,000 steps
machine    1.4 of 4 cores used, peak memory 4.1 GiB, 1.2 GiB read,
           20.0 MiB written, CPU pressure 3.1 % of the time

not understood
- a second DataLoader is made inside the loop (line 88); its fetches are input
  wait

The largest loss is input wait: 61.3 s (49 %, $0.017) in which the device had no
batch; to see what would help:
  thrifty run train.py"""
    )


@pytest.mark.parametrize("width", [1, 32, 40, 50, 60, 80, 120, 200, 400])
@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize("ascii_only", [False, True])
def test_no_line_is_wider_than_the_page_or_ends_in_spaces(
    name: str,
    width: int,
    ascii_only: bool,  # noqa: FBT001
) -> None:
    text = bill(RUNS[name], width=width, ascii_only=ascii_only)
    lines = text.split("\n")
    assert max(cells(line) for line in lines) <= max(width, 32)
    assert [line for line in lines if line != line.rstrip()] == []
    assert "nan" not in text
    assert text.isascii() or not ascii_only


def test_only_causes_that_took_time_have_a_line_and_unattributed_always() -> None:
    text = bill(FAILED_AT_IMPORT)
    table = text.partition("\n\n")[2].partition("\n\n")[0].splitlines()
    assert [row.split()[0] for row in table] == [
        *("cause", "startup", "shutdown", "unattributed", "total")
    ]
    assert line_of(text, "unattributed").split() == ["unattributed", "0", "s", "0.0", "%"]


def test_every_cause_can_stand_in_one_bill() -> None:
    text = bill(EVERY_CAUSE)
    assert all(line_of(text, cause.replace("_", " ")) for cause in CAUSES)


def test_the_total_is_wall_time_times_devices() -> None:
    total = line_of(bill(EVERY_CAUSE), "total")
    assert total.split("  ")[0] == "total"
    assert "12 min 27 s x 8 devices" in total
    assert "1 h 40 min  100.0 %  $20.41" in total
    assert "device time" in line_of(bill(EVERY_CAUSE), "cause")


def test_the_bar_goes_first_when_the_page_is_narrow() -> None:
    narrow = line_of(bill(INPUT_BOUND, width=40), "input wait")
    assert narrow == "input wait   1 min 01 s  49 % $0.017"


def test_a_wide_page_says_what_each_cause_means_and_caps_its_bars() -> None:
    lines = bill(CLEAN, width=400).splitlines()
    compute = next(line for line in lines if line.startswith("compute"))
    assert compute.endswith("the model was computed")
    assert 50 < compute.count("█") <= 60


def test_something_never_draws_as_an_empty_bar() -> None:
    assert "▏" in line_of(bill(CLEAN), "shutdown")
    assert "#" in line_of(bill(CLEAN, ascii_only=True), "shutdown")


def test_a_cent_is_not_the_smallest_amount() -> None:
    cheap = make_run({"compute": 1.0}, price=CATALOGUE_PRICE)
    assert line_of(bill(cheap), "total").endswith("$0.00028")


def test_without_a_price_there_is_time_only_and_what_to_type() -> None:
    text = bill(CLEAN)
    assert "$" not in text
    assert "thrifty config set price_usd_per_hour 2.10, or --price 2.10" in text


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, "$1.006/h on demand, aws:g5.xlarge, quoted 2025-03-02 (21 months ago) by apache"),
        ({"kind": "spot", "machine": None}, "$1.006/h spot, quoted 2025-03-02 (21 months ago)"),
        ({"as_of": None}, "quoted on an unknown day by apache-libcloud"),
        ({"as_of": "March"}, "quoted March by apache-libcloud"),
        ({"kind": "user", "source": "--price", "as_of": None}, "$1.006/h, set by --price"),
        (
            {"kind": "user", "source": "thrifty config", "as_of": "2026-12-03"},
            "set by thrifty config, 2026-12-03 (yesterday)",
        ),
    ],
)
def test_a_price_says_who_quoted_it_and_when(changes: dict[str, str], expected: str) -> None:
    price = dataclasses.replace(CATALOGUE_PRICE, **changes)
    run = dataclasses.replace(INPUT_BOUND, price=price)
    assert expected in bill(run, width=200)


@pytest.mark.parametrize(
    ("status", "exit_code", "expected"),
    [
        ("completed", 0, "completed,"),
        ("failed", 3, "failed (exit code 3),"),
        ("interrupted", -2, "interrupted by Ctrl-C (SIGINT),"),
        ("killed", -9, "killed (SIGKILL),"),
        ("killed", -99, "killed (signal 99),"),
        ("running", None, "still running,"),
        ("incomplete", None, "incomplete: its end was not seen,"),
        ("no_training", 0, "ended without a training step,"),
        ("refused", None, "refused: it was not started,"),
    ],
)
def test_the_status_is_in_words(status: RunStatus, exit_code: int | None, expected: str) -> None:
    run = dataclasses.replace(CLEAN, status=status, exit_code=exit_code)
    assert line_of(bill(run), "status").startswith(f"status     {expected}")


def test_a_run_without_a_training_step_says_so_and_has_no_cost_per_step() -> None:
    for run in (FAILED_AT_IMPORT, HOSTILE):
        text = bill(run)
        assert "training   no training step was seen" in text
        assert "per epoch" not in text
        assert "per 1,000 steps" not in text


def test_steps_that_could_not_be_seen_are_not_none() -> None:
    run = dataclasses.replace(CLEAN, steps=None)
    text = bill(run, width=200)
    assert "steps unknown: no optimizer update could be seen, 3 complete epochs" in text
    assert "per epoch" in text
    assert "per 1,000 steps" not in text


def test_cost_per_epoch_and_per_thousand_steps_are_those_of_the_loop() -> None:
    run = make_run(
        {"startup": 3_600, "compute": 7_200, "shutdown": 60},
        price=dataclasses.replace(CATALOGUE_PRICE, usd_per_hour=1.0),
        epochs=4,
        steps=500,
    )
    assert line_of(bill(run, width=120), "loop cost") == (
        "loop cost  $0.50 and 30 min 00 s per epoch, $4.00 and 4 h 00 min per 1,000 steps"
    )


def test_less_than_one_epoch_has_no_cost_per_epoch() -> None:
    assert "per epoch" not in bill(dataclasses.replace(CLEAN, epochs=0))


def test_one_is_singular() -> None:
    run = dataclasses.replace(CLEAN, steps=1, epochs=1, samples=1)
    assert "1 step, 1 complete epoch, 1 sample," in bill(run)


def test_unknown_system_figures_are_left_out_not_zero() -> None:
    assert CLEAN.system is not None
    system = dataclasses.replace(
        CLEAN.system,
        peak_memory_bytes=None,
        read_bytes=None,
        written_bytes=None,
        cpu_pressure_fraction=None,
    )
    text = bill(dataclasses.replace(CLEAN, system=system))
    assert line_of(text, "machine") == "machine    1.4 of 4 cores used"
    assert "could not be sampled" in bill(dataclasses.replace(CLEAN, system=None))


def test_a_record_whose_books_do_not_balance_is_called_a_fault() -> None:
    text = bill(dataclasses.replace(CLEAN, wall_s=CLEAN.wall_s + 1), width=120)
    assert "this is a fault of thrifty" in text
    assert "fault" not in bill(CLEAN)
    assert "fault" not in bill(HUGE)
    lost = dataclasses.replace(CLEAN.bill[0], seconds=math.nan, fraction=math.nan)
    broken = bill(dataclasses.replace(CLEAN, bill=(lost, *CLEAN.bill[1:])), width=120)
    assert "fault of thrifty" in broken
    assert "nan" not in broken


def test_a_run_without_a_bill_says_so() -> None:
    refused = dataclasses.replace(CLEAN, status="refused", bill=(), wall_s=0.0, steps=None)
    assert "There is no bill: nothing was measured." in bill(refused)


def test_a_run_outside_the_ledger_has_no_number() -> None:
    text = bill(HOSTILE)
    assert text.startswith("run  ")
    assert "ledger     not recorded" in text


@pytest.mark.parametrize("colour", [False, True])
def test_nothing_from_the_run_reaches_the_terminal_as_a_command(colour: bool) -> None:  # noqa: FBT001
    text = bill(HOSTILE, colour=colour, width=200)
    text = re.sub(r"\x1b\[(?:0|1|2|1;36|31|32|33)m", "", text)
    assert all(character.isprintable() or character == "\n" for character in text)
    assert "[bold red]" in text
    assert "[blink]x[/blink]" in text
    assert "owned" not in text
    text.encode()


def test_colour_changes_no_word() -> None:
    for run in RUNS.values():
        coloured = re.sub(r"\x1b\[[0-9;]*m", "", bill(run, colour=True))
        assert coloured == bill(run)


def test_colours_go_by_groups() -> None:
    text = bill(EVERY_CAUSE, colour=True)
    assert "\x1b[32mcompute" in text
    assert "\x1b[31minput wait" in text
    assert "\x1b[33mcheckpoint" in text
    assert "\x1b[2munattributed" in text


def test_the_summary_comes_last_and_the_command_on_a_line_of_its_own() -> None:
    *_, summary, command = bill(FAILED_AT_IMPORT).splitlines()
    assert summary == FAILED_AT_IMPORT.summary
    assert command == "  thrifty run train.py"


def test_a_command_is_never_broken_however_narrow_the_page() -> None:
    long = "thrifty run train.py " + "--option value " * 20 + "--last 1"
    run = dataclasses.replace(FAILED_AT_IMPORT, next_command=long)
    assert bill(run, width=40).splitlines()[-1] == f"  {long}"


def test_a_hostile_command_cannot_write_escapes() -> None:
    run = dataclasses.replace(FAILED_AT_IMPORT, next_command="thrifty run \x1b[2Jx")
    assert "\x1b" not in bill(run)


def test_importing_the_reports_loads_no_rich() -> None:
    code = "import sys, thrifty.report; sys.exit('rich' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
