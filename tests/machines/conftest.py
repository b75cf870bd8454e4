"""A driver that exists only here: ``pynvml`` with devices that we describe."""

import sys
import types
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

NOT_SUPPORTED, NO_PERMISSION, NOT_FOUND, DRIVER_NOT_LOADED = 3, 4, 6, 9
LIBRARY_NOT_FOUND, FUNCTION_NOT_FOUND, GPU_IS_LOST = 12, 13, 15


class NVMLError(Exception):
    def __init__(self, value: int) -> None:
        super().__init__(f"code {value}")
        self.value = value


@dataclass
class FakeDevice:
    uuid: str
    name: str = "NVIDIA A10G"
    memory: int = 24 * 2**30
    parent: "FakeDevice | None" = None
    fails: dict[str, int] = field(default_factory=dict)

    def answer(self, question: str, value: Any) -> Any:
        if question in self.fails:
            raise NVMLError(self.fails[question])
        return value


class FakeNvml(types.ModuleType):
    """The part of ``pynvml`` that we call; it remembers every call."""

    NVMLError = NVMLError
    NVML_ERROR_INVALID_ARGUMENT = 2
    NVML_ERROR_NOT_SUPPORTED = NOT_SUPPORTED
    NVML_ERROR_NO_PERMISSION = NO_PERMISSION
    NVML_ERROR_NOT_FOUND = NOT_FOUND
    NVML_ERROR_DRIVER_NOT_LOADED = DRIVER_NOT_LOADED
    NVML_ERROR_LIBRARY_NOT_FOUND = LIBRARY_NOT_FOUND
    NVML_ERROR_FUNCTION_NOT_FOUND = FUNCTION_NOT_FOUND

    def __init__(self) -> None:
        super().__init__("pynvml")
        self.calls: list[str] = []
        self.devices: list[FakeDevice] = []
        self.mig_devices: list[FakeDevice] = []
        self.init_fails: int | None = None

    @property
    def open_sessions(self) -> int:
        return self.calls.count("init") - self.calls.count("shutdown")

    def nvmlInit(self) -> None:  # noqa: N802
        if self.init_fails is not None:
            raise NVMLError(self.init_fails)
        self.calls.append("init")

    def nvmlShutdown(self) -> None:  # noqa: N802
        self.calls.append("shutdown")

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        return len(self.devices)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> FakeDevice:  # noqa: N802
        return self.devices[index].answer("handle", self.devices[index])

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> FakeDevice:  # noqa: N802
        for device in self.devices + self.mig_devices:
            if device.uuid == uuid:
                return device.answer("handle", device)
        raise NVMLError(NOT_FOUND)

    def nvmlDeviceGetDeviceHandleFromMigDeviceHandle(self, handle: FakeDevice) -> Any:  # noqa: N802
        return handle.parent

    def nvmlDeviceGetUUID(self, handle: FakeDevice) -> str:  # noqa: N802
        return handle.answer("uuid", handle.uuid)

    def nvmlDeviceGetName(self, handle: FakeDevice) -> str:  # noqa: N802
        return handle.answer("name", handle.name)

    def nvmlDeviceGetMemoryInfo(self, handle: FakeDevice) -> Any:  # noqa: N802
        self.calls.append("memory")
        info = types.SimpleNamespace(total=handle.memory, used=handle.memory // 4)
        return handle.answer("memory", info)

    def nvmlDeviceGetUtilizationRates(self, handle: FakeDevice) -> Any:  # noqa: N802
        self.calls.append("active")
        return handle.answer("active", types.SimpleNamespace(gpu=37, memory=5))

    def nvmlDeviceGetPowerUsage(self, handle: FakeDevice) -> int:  # noqa: N802
        self.calls.append("power")
        return handle.answer("power", 151_500)


@pytest.fixture
def nvml(monkeypatch: pytest.MonkeyPatch) -> FakeNvml:
    fake = FakeNvml()
    monkeypatch.setitem(sys.modules, "pynvml", fake)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return fake


@pytest.fixture
def four_devices(nvml: FakeNvml) -> FakeNvml:
    starts = ("GPU-aaaa1111", "GPU-aaaa2222", "GPU-bbbb3333", "GPU-cccc4444")
    nvml.devices = [FakeDevice(f"{start}-0000-0000-0000-000000000000") for start in starts]
    return nvml


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("THRIFTY_HOME", str(tmp_path / "home"))
    return tmp_path / "home"
