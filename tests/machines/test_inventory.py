"""Which devices a training process would see."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from thrifty.machines import inventory
from thrifty.records import Device, DeviceQueryError

TAIL = "-0000-0000-0000-000000000000"
A, B, C = f"GPU-aaaa1111{TAIL}", f"GPU-aaaa2222{TAIL}", f"GPU-bbbb3333{TAIL}"
STUB = Path(__file__).parents[1] / "fakes" / "nvml" / "nvml_stub.c"


@pytest.mark.parametrize(
    ("visible", "expected"),
    [
        (None, [0, 1, 2, 3]),
        ("", []),
        (" ", []),
        ("NoDevFiles", []),
        ("-1", []),
        ("0,1", [0, 1]),
        ("2,0", [2, 0]),
        ("0,0", []),
        ("0,-1,2", [0]),
        ("0,9,1", [0]),
        ("0,,1", [0]),
        ("9", []),
        (" 0, 1", [0, 1]),
        ("1gpu2,2x", [1, 2]),
        ("\u0661", []),
        (A, [0]),
        ("GPU-bbbb", [2]),
        ("GPU-aaaa", []),
        (f"{B},{A}", [1, 0]),
        (f"{A}, {B}", [0, 1]),
        (f"{A},{A}", []),
        ("GPU-aaaa1,GPU-aaaa11", []),
        (f"0,{B}", [0, 1]),
        (f"0,{A}", []),
        ("GPU-zzzz,0", []),
        ("MIG-zzzz,0", []),
    ],
)
def test_visible_devices_follow_the_written_rules(
    four_devices: Any, visible: str | None, expected: list[int]
) -> None:
    environ = {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}
    devices = inventory(environ=environ)
    assert expected == [device.nvml_index for device in devices]
    assert list(range(len(expected))) == [device.device_index for device in devices]
    assert four_devices.open_sessions == 0


def test_a_device_is_told_with_its_name_memory_and_identity(four_devices: Any) -> None:
    four_devices.devices[2].name = "NVIDIA H200"
    expected = Device(
        uuid=C, device_index=0, nvml_index=2, name="NVIDIA H200", memory_bytes=24 * 2**30
    )
    assert (expected,) == inventory(environ={"CUDA_VISIBLE_DEVICES": "2"})


@pytest.mark.usefixtures("four_devices")
def test_our_own_environment_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")
    assert [device.nvml_index for device in inventory()] == [3]


def test_a_mig_device_is_seen_alone_with_its_own_memory(four_devices: Any) -> None:
    fake = type(four_devices.devices[0])
    slices = [fake(f"MIG-{n}{TAIL}", memory=n * 2**30) for n in (5, 6)]
    for mig in slices:
        mig.parent = four_devices.devices[1]
    four_devices.mig_devices = slices
    visible = f"{slices[1].uuid},{slices[0].uuid}"
    (device,) = inventory(environ={"CUDA_VISIBLE_DEVICES": visible})
    assert (slices[1].uuid, 1, 6 * 2**30) == (device.uuid, device.nvml_index, device.memory_bytes)


def test_bindings_that_give_bytes_are_read_too(four_devices: Any) -> None:
    four_devices.devices[0].name = b"Tesla T4"
    assert inventory(environ={"CUDA_VISIBLE_DEVICES": "0"})[0].name == "Tesla T4"


def test_devices_of_other_users_are_left_out_and_not_counted(four_devices: Any) -> None:
    four_devices.devices[0].fails["handle"] = four_devices.NVML_ERROR_NO_PERMISSION
    assert [device.nvml_index for device in inventory(environ={})] == [1, 2, 3]
    assert [d.nvml_index for d in inventory(environ={"CUDA_VISIBLE_DEVICES": "0"})] == [1]


@pytest.mark.parametrize("code", ["NVML_ERROR_LIBRARY_NOT_FOUND", "NVML_ERROR_DRIVER_NOT_LOADED"])
def test_a_machine_without_a_driver_has_no_devices(nvml: Any, code: str) -> None:
    nvml.init_fails = getattr(nvml, code)
    assert inventory() == ()


def test_a_missing_package_means_no_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert inventory() == ()


def test_a_driver_that_does_not_start_is_an_error_with_a_remedy(nvml: Any) -> None:
    nvml.init_fails = 18  # driver and library of different versions
    with pytest.raises(DeviceQueryError, match="code 18") as met:
        inventory()
    assert "nvidia-smi" in met.value.fix


@pytest.mark.parametrize("question", ["handle", "uuid", "name", "memory"])
def test_a_driver_that_stops_answering_is_an_error_and_is_closed(
    four_devices: Any, question: str
) -> None:
    four_devices.devices[1].fails[question] = 15
    with pytest.raises(DeviceQueryError, match="stopped answering"):
        inventory()
    assert (four_devices.calls.count("init"), four_devices.open_sessions) == (1, 0)


def test_no_visible_device_leaves_the_driver_alone(four_devices: Any) -> None:
    assert inventory(environ={"CUDA_VISIBLE_DEVICES": ""}) == ()
    assert four_devices.calls == []


def test_the_package_is_loaded_only_when_devices_are_asked_for() -> None:
    code = "import sys, thrifty.machines; print([m for m in {} if m in sys.modules])"
    heavy = ["pynvml", "rich", "numpy", "torch"]
    found = subprocess.run(
        [sys.executable, "-c", code.format(heavy)], capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == "[]"
    # The test can fail: a module that is loaded is found.
    found = subprocess.run(
        [sys.executable, "-c", code.format(["thrifty.machines"])],
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout.strip() == "['thrifty.machines']"


@pytest.mark.skipif(shutil.which("gcc") is None, reason="builds a stub driver with gcc")
@pytest.mark.skipif(sys.platform != "linux", reason="a Linux shared object")
def test_the_real_bindings_over_a_stub_driver_agree(tmp_path: Path) -> None:
    library = tmp_path / "libnvidia-ml.so.1"
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, STUB], check=True)
    code = (
        "from thrifty.machines import DeviceSampler, inventory\n"
        "print([(d.nvml_index, d.name, d.memory_bytes) for d in inventory()])\n"
        "with DeviceSampler() as sampler:\n"
        "    s = sampler.sample()[0]\n"
        "    print(s.kernel_active_fraction, s.memory_used_bytes, s.power_w)\n"
        "print(sampler.failed_queries)\n"
    )
    calls = tmp_path / "calls"
    environ = os.environ | {
        "LD_LIBRARY_PATH": str(tmp_path),
        "STUB_NVML_CALLS": str(calls),
        "CUDA_VISIBLE_DEVICES": "GPU-bbbb,0",
    }
    done = subprocess.run(
        [sys.executable, "-c", code], env=environ, capture_output=True, text=True, check=True
    )
    lines = done.stdout.splitlines()
    assert lines[0] == "[(2, 'Stub 2', 3221225472), (0, 'Stub 0', 1073741824)]"
    assert lines[1:] == ["0.42 4096 None", "0"]
    words = calls.read_text().split()
    assert words.count("init") == words.count("shutdown") == 3
