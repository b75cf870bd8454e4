"""From totals to a bill: the split of the loop, the notes, the exact sum."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thrifty.analyze import Totals, attribute, lines
from thrifty.records import CAUSES, Price

S = 1_000_000_000
NOTHING = Totals(
    startup_ns=0,
    fetch_ns=0,
    fetch_queue_ns=0,
    loop_ns=0,
    loop_cpu_ns=0,
    loop_queue_ns=0,
    validation_ns=0,
    checkpoint_ns=0,
    compile_ns=0,
    logging_ns=0,
    shutdown_ns=0,
    lost_ns=0,
    idle_ticks=0,
    idle_active_ticks=0,
    extra_queue_ns=0,
    queue_known=True,
    trained=True,
    steps=10,
    steps_are_backwards=False,
    samples=None,
    epochs=None,
    training_ns=0,
    device_fetch_ns=0,
    device_loop_ns=0,
    python_fraction=None,
)


def split(wall_s, *, has_devices=False, **figures):
    scaled = {k: int(v * S) if k.endswith("_ns") else v for k, v in figures.items()}
    found = attribute(replace(NOTHING, **scaled), wall_ns=int(wall_s * S), has_devices=has_devices)
    assert sum(found.ns.values()) == int(wall_s * S)
    return {cause: ns / S for cause, ns in found.ns.items() if ns}


def test_a_loop_on_its_core_is_compute():
    assert split(10, loop_ns=10, loop_cpu_ns=10) == {"compute": 10}


def test_a_loop_that_sleeps_while_nothing_else_works_is_host():
    found = split(10, loop_ns=10, loop_cpu_ns=6, idle_ticks=40, idle_active_ticks=0)
    assert found == {"compute": 6, "host": 4}


def test_a_loop_that_waits_for_its_own_helpers_is_compute():
    found = split(10, loop_ns=10, loop_cpu_ns=6, idle_ticks=40, idle_active_ticks=40)
    assert found == {"compute": 10}


def test_half_of_the_sleep_with_helpers_at_work_is_half_compute():
    found = split(10, loop_ns=10, loop_cpu_ns=6, idle_ticks=40, idle_active_ticks=20)
    assert found == {"compute": 8, "host": 2}


def test_helpers_without_a_core_are_cpu_wait():
    found = split(
        10, loop_ns=10, loop_cpu_ns=5, idle_ticks=40, idle_active_ticks=40, extra_queue_ns=5
    )
    assert found == {"compute": 5, "cpu_wait": 5}


def test_the_run_queue_is_cpu_wait_in_the_loop_and_while_fetching():
    found = split(20, loop_ns=10, loop_cpu_ns=7, loop_queue_ns=3, fetch_ns=10, fetch_queue_ns=4)
    assert found == {"compute": 7, "cpu_wait": 7, "input_wait": 6}


def test_python_that_holds_the_interpreter_is_host():
    found = split(10, loop_ns=10, loop_cpu_ns=10, python_fraction=0.3)
    assert found == {"compute": 7, "host": 3}


def test_too_few_looks_leave_the_sleep_unattributed():
    assert split(10, loop_ns=10, loop_cpu_ns=6, idle_ticks=2) == {
        "compute": 6,
        "unattributed": 4,
    }


def test_on_a_machine_with_devices_a_sleeping_loop_may_wait_for_the_device():
    found = split(10, loop_ns=10, loop_cpu_ns=2, idle_ticks=40, has_devices=True)
    assert found == {"compute": 10}


def test_the_devices_own_clock_decides_what_was_waiting_for_data():
    found = split(
        10,
        fetch_ns=6,
        loop_ns=4,
        has_devices=True,
        device_fetch_ns=1,
        device_loop_ns=9,
    )
    assert found == {"input_wait": 1, "compute": 9}


def test_nothing_recorded_is_unattributed_whole():
    found = attribute(None, wall_ns=5 * S, has_devices=False)
    assert found.ns["unattributed"] == 5 * S
    assert sum(found.ns.values()) == 5 * S


def test_what_the_records_miss_is_unattributed():
    assert split(10, startup_ns=4, loop_ns=5, loop_cpu_ns=5) == {
        "startup": 4,
        "compute": 5,
        "unattributed": 1,
    }


def test_counting_backward_passes_is_said():
    found = attribute(replace(NOTHING, steps_are_backwards=True), wall_ns=S, has_devices=False)
    assert "backward" in found.notes[0]


def test_a_kernel_that_tells_no_run_queue_is_said():
    found = attribute(replace(NOTHING, queue_known=False), wall_ns=S, has_devices=False)
    assert "cpu_wait" in found.notes[0]


figure = st.integers(0, 10**12)


@given(st.builds(Totals, **dict.fromkeys(
    [f.name for f in NOTHING.__dataclass_fields__.values() if f.name.endswith("_ns")], figure
), idle_ticks=st.integers(0, 99), idle_active_ticks=st.integers(0, 99), queue_known=st.booleans(),
    trained=st.booleans(), steps=st.integers(0, 9), steps_are_backwards=st.booleans(),
    samples=st.none(), epochs=st.none(),
    python_fraction=st.none() | st.floats(0, 1)), figure, st.booleans())  # fmt: skip
def test_any_totals_balance_and_no_cause_is_negative(totals, wall_ns, has_devices):
    totals = replace(totals, idle_active_ticks=min(totals.idle_active_ticks, totals.idle_ticks))
    found = attribute(totals, wall_ns=wall_ns, has_devices=has_devices)
    assert sum(found.ns.values()) == wall_ns
    assert min(found.ns.values()) >= 0


@pytest.mark.parametrize("device_count", [0, 1, 8])
def test_dollars_add_up_to_the_hour_of_the_machine(device_count):
    price = Price(usd_per_hour=36.0, source="test", as_of=None, kind="user")
    found = attribute(replace(NOTHING, startup_ns=100 * S), wall_ns=100 * S, has_devices=False)
    made = lines(found, device_count=device_count, price=price)
    assert [line.cause for line in made] == list(CAUSES)
    assert sum(line.seconds for line in made) == pytest.approx(100 * max(1, device_count))
    assert sum(line.usd for line in made) == pytest.approx(1.0)


def test_without_a_price_there_are_no_dollars_not_zero_dollars():
    found = attribute(None, wall_ns=S, has_devices=False)
    assert {line.usd for line in lines(found, device_count=0, price=None)} == {None}
