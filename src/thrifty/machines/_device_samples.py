"""What each device is doing now, asked often and cheaply.

The launcher samples at 10 Hz while somebody else's training runs: once started, nothing
here raises. What the driver does not tell is None, never 0.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from thrifty.machines._inventory import inventory
from thrifty.machines._nvml import close_nvml, open_nvml
from thrifty.records import Device

__all__ = ["DeviceSample", "DeviceSampler"]


@dataclass(frozen=True, kw_only=True, slots=True)
class DeviceSample:
    """One device at one moment."""

    device_index: int
    """Index in the framework's order."""

    kernel_active_fraction: float | None
    """Share of the driver's last period (a sixth of a second to one second) in which any
    kernel ran, 0 to 1. Not the share of the device that was used."""

    memory_used_bytes: int | None
    """By all processes, and what the driver keeps for itself."""

    power_w: float | None
    """Draw of the whole board, as the driver averages it."""


class DeviceSampler:
    """Keep the driver open and sample devices; inert without a driver.

    Entering it may raise ``DeviceQueryError``; sampling and leaving never do.

    Args:
        devices: Which to sample; None for ``inventory()``.

    >>> with DeviceSampler(()) as sampler:
    ...     sampler.sample()
    ()
    """

    def __init__(self, devices: Sequence[Device] | None = None) -> None:
        self.failed_queries = 0
        """Questions that the driver could not answer this time (not those it never can)."""
        self._asked = devices
        self._nvml: Any | None = None
        self._queries: list[_DeviceQueries] = []

    def __enter__(self) -> Self:
        """Open the driver and find the devices.

        Raises:
            DeviceQueryError: There is a driver, and it does not answer.
        """
        devices = inventory() if self._asked is None else self._asked
        if devices:
            self._nvml = open_nvml()
        if self._nvml is not None:
            self._queries = [_DeviceQueries(self._nvml, device) for device in devices]
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close the driver."""
        self._queries = []
        if self._nvml is not None:
            close_nvml(self._nvml)
            self._nvml = None

    def sample(self) -> tuple[DeviceSample, ...]:
        """Ask every device once, in the order of ``device_index`` as given.

        Returns:
            Nothing without a driver, before entering and after leaving.
        """
        samples = tuple(queries.sample() for queries in self._queries)
        self.failed_queries += sum(queries.take_failures() for queries in self._queries)
        return samples


class _DeviceQueries:
    """The three questions to one device, without those it said it can never answer."""

    def __init__(self, nvml: Any, device: Device) -> None:
        self._device_index = device.device_index
        self._error: type[Exception] = nvml.NVMLError
        self._never = {nvml.NVML_ERROR_NOT_SUPPORTED, nvml.NVML_ERROR_FUNCTION_NOT_FOUND}
        self._failures = 0
        self._questions: dict[str, Callable[[Any], Any]] = {
            "active": nvml.nvmlDeviceGetUtilizationRates,
            "memory": nvml.nvmlDeviceGetMemoryInfo,
            "power": nvml.nvmlDeviceGetPowerUsage,
        }
        self._handle: Any = None
        try:
            self._handle = nvml.nvmlDeviceGetHandleByUUID(device.uuid)
        except nvml.NVMLError:  # the device fell off the bus since it was listed
            self._failures += 1
            self._questions.clear()

    def sample(self) -> DeviceSample:
        active = self._ask("active")
        memory = self._ask("memory")
        milliwatts = self._ask("power")
        return DeviceSample(
            device_index=self._device_index,
            kernel_active_fraction=None if active is None else active.gpu / 100,
            memory_used_bytes=None if memory is None else int(memory.used),
            power_w=None if milliwatts is None else milliwatts / 1000,
        )

    def take_failures(self) -> int:
        failures, self._failures = self._failures, 0
        return failures

    def _ask(self, what: str) -> Any | None:
        question = self._questions.get(what)
        if question is None:
            return None
        try:
            return question(self._handle)
        except self._error as error:
            if getattr(error, "value", None) in self._never:
                del self._questions[what]
            else:
                self._failures += 1
            return None
