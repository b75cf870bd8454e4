"""Sampling devices while somebody else's training runs."""

from typing import Any

import pytest

from thrifty.machines import DeviceSample, DeviceSampler, inventory
from thrifty.records import DeviceQueryError


@pytest.mark.usefixtures("four_devices")
def test_a_sample_tells_activity_memory_and_power_in_our_units() -> None:
    with DeviceSampler() as sampler:
        samples = sampler.sample()
    expected = DeviceSample(
        device_index=0, kernel_active_fraction=0.37, memory_used_bytes=6 * 2**30, power_w=151.5
    )
    assert expected == samples[0]
    assert [sample.device_index for sample in samples] == [0, 1, 2, 3]


def test_the_driver_is_opened_once_and_closed_once(four_devices: Any) -> None:
    with DeviceSampler(inventory()) as sampler:
        before = four_devices.calls.count("init")
        for _ in range(10):
            sampler.sample()
        assert before == four_devices.calls.count("init")
        assert four_devices.open_sessions == 1
    assert four_devices.open_sessions == 0
    assert sampler.sample() == ()


def test_a_failing_query_is_unknown_and_counted_and_asked_again(four_devices: Any) -> None:
    device = four_devices.devices[1]
    with DeviceSampler() as sampler:
        device.fails["power"] = 15
        sample = sampler.sample()[1]
        assert (sample.power_w, sample.kernel_active_fraction) == (None, 0.37)
        assert sampler.failed_queries == 1
        device.fails.clear()
        assert sampler.sample()[1].power_w == 151.5
        assert sampler.failed_queries == 1


@pytest.mark.usefixtures("four_devices")
def test_what_the_driver_never_tells_is_asked_once_and_is_no_failure(nvml: Any) -> None:
    nvml.devices = nvml.devices[:1]
    nvml.devices[0].fails["active"] = nvml.NVML_ERROR_NOT_SUPPORTED
    with DeviceSampler() as sampler:
        values = [sampler.sample()[0].kernel_active_fraction for _ in range(3)]
    assert values == [None, None, None]
    assert (nvml.calls.count("active"), nvml.calls.count("power")) == (1, 3)
    assert sampler.failed_queries == 0


def test_a_device_lost_since_it_was_listed_is_unknown_and_counted(four_devices: Any) -> None:
    devices = inventory()
    four_devices.devices[0].fails["handle"] = 15
    with DeviceSampler(devices) as sampler:
        first, second = sampler.sample()[:2]
    nothing = DeviceSample(
        device_index=0, kernel_active_fraction=None, memory_used_bytes=None, power_w=None
    )
    assert nothing == first
    assert second.power_w == 151.5
    assert sampler.failed_queries == 1


def test_a_driver_that_breaks_before_the_end_does_not_raise(
    four_devices: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> None:
        raise four_devices.NVMLError(999)

    with DeviceSampler() as sampler:
        monkeypatch.setattr(four_devices, "nvmlShutdown", broken)
    assert sampler.sample() == ()


def test_a_machine_without_a_driver_gives_no_samples(nvml: Any) -> None:
    nvml.init_fails = nvml.NVML_ERROR_LIBRARY_NOT_FOUND
    with DeviceSampler() as sampler:
        assert sampler.sample() == ()
    assert sampler.failed_queries == 0


def test_no_visible_device_leaves_the_driver_closed(four_devices: Any) -> None:
    with DeviceSampler(()) as sampler:
        assert sampler.sample() == ()
    assert four_devices.calls == []


def test_a_driver_that_does_not_answer_is_told_at_the_start(nvml: Any) -> None:
    nvml.init_fails = 999
    with pytest.raises(DeviceQueryError), DeviceSampler():
        pass
