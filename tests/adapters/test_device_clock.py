"""Waiting for data by the device's own clock, on a device in simulated time."""

import importlib.util
from pathlib import Path

import pytest

from thrifty.adapters._device_clock import DeviceClock
from thrifty.observe._events import DEVICE_FETCH, DEVICE_LOOP

SPEC = importlib.util.spec_from_file_location(
    "async_device", Path(__file__).parent.parent / "fakes" / "async_device.py"
)
FAKES = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(FAKES)


class Kept:
    def __init__(self):
        self.intervals = []

    def interval(self, kind, began_ns, ended_ns, took_ns):
        self.intervals.append((kind, began_ns, ended_ns, took_ns))

    def total_ms(self, kind):
        return sum(took for found, _, _, took in self.intervals if found == kind) / 1e6


@pytest.fixture
def device():
    return FAKES.AsyncDevice()


@pytest.fixture
def kept():
    return Kept()


def train(device, kept, *, fetch_ms, work_ms, steps=50, sync=None):
    clock = DeviceClock(kept, device, device.clock)
    for step in range(steps):
        clock.boundary(DEVICE_FETCH)
        device.host(fetch_ms)
        clock.boundary(DEVICE_LOOP)
        device.launch(work_ms / 2)
        if sync == "middle":
            device.synchronize()
        device.launch(work_ms / 2)
        if sync == "end" or (sync == "tenth" and step % 10 == 9):
            device.synchronize()
    device.synchronize()
    clock.drain()
    return clock


def test_fetching_behind_a_busy_device_is_not_waiting(device, kept):
    train(device, kept, fetch_ms=4, work_ms=10)
    # Only the first fetch found the device idle.
    assert kept.total_ms(DEVICE_FETCH) == pytest.approx(4, abs=1)
    assert kept.total_ms(DEVICE_LOOP) == pytest.approx(490, abs=12)


def test_the_part_of_a_fetch_that_the_device_waited_for_is_found(device, kept):
    train(device, kept, fetch_ms=14, work_ms=10)
    assert kept.total_ms(DEVICE_FETCH) == pytest.approx(50 * 4 + 10, abs=10)


@pytest.mark.parametrize("sync", ["middle", "end", "tenth"])
def test_reads_that_wait_for_the_device_do_not_change_the_totals_unduly(device, kept, sync):
    train(device, kept, fetch_ms=4, work_ms=10, sync=sync)
    exposed = {"middle": 0, "end": 50 * 4, "tenth": 5 * 4}[sync]
    assert kept.total_ms(DEVICE_FETCH) == pytest.approx(exposed + 4, abs=5)
    total = kept.total_ms(DEVICE_FETCH) + kept.total_ms(DEVICE_LOOP)
    assert total == pytest.approx(device.host_ns / 1e6, abs=15)


def test_nothing_is_ever_synchronised_by_us(device, kept):
    clock = DeviceClock(kept, device, device.clock)
    for _ in range(100):
        clock.boundary(DEVICE_FETCH)
        device.host(1)
        clock.boundary(DEVICE_LOOP)
        device.launch(5)
    assert device.synchronisations == 0


def test_a_device_far_behind_costs_a_bounded_number_of_events(device, kept):
    clock = DeviceClock(kept, device, device.clock)
    for _ in range(5000):
        clock.boundary(DEVICE_FETCH)
        clock.boundary(DEVICE_LOOP)
        device.launch(50)
    assert device.events_made <= 129


def test_events_are_used_again(device, kept):
    train(device, kept, fetch_ms=1, work_ms=1, steps=500)
    assert device.events_made <= 8


def test_a_device_that_sleeps_is_left_asleep(device, kept):
    device.initialized = False
    train(device, kept, fetch_ms=1, work_ms=1)
    assert device.events_made == 0


def test_a_graph_under_capture_is_left_alone(device, kept):
    device.capturing = True
    train(device, kept, fetch_ms=1, work_ms=1)
    assert device.events_made == 0


def test_a_forked_child_forgets_its_parents_events(device, kept):
    clock = DeviceClock(kept, device, device.clock)
    clock.boundary(DEVICE_FETCH)
    clock.forget_after_fork()
    device.initialized = False
    clock.boundary(DEVICE_LOOP)
    clock.drain()
    assert kept.intervals == []
