"""The devices of this machine, as a training process started now would see them.

The driver is asked, never a framework: that would create a context on the device and break
processes forked later. What it cannot tell: CUDA puts the fastest device first unless
``CUDA_DEVICE_ORDER=PCI_BUS_ID``, and the driver counts in bus order; on a machine with
devices of several kinds an index may therefore mean another device here than there.
Devices of other makers are not seen.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from thrifty.machines._nvml import nvml_session
from thrifty.records import Device

__all__ = ["inventory"]

_INDEX = re.compile(r"[+-]?\d+", re.ASCII)


def inventory(*, environ: Mapping[str, str] | None = None) -> tuple[Device, ...]:
    """List the devices that ``CUDA_VISIBLE_DEVICES`` leaves visible, in its order.

    Entries are separated by commas: an index in the driver's order (what follows its
    digits is ignored), the beginning of a UUID that only one device has, or one MIG device.
    An entry that is none of these ends the list, and so does a MIG device, since a process
    can use only one. A device named twice leaves none. Empty means none.

    Args:
        environ: Environment of the training process; None for our own.

    Returns:
        Nothing without the driver or the package nvidia-ml-py.

    Raises:
        DeviceQueryError: There is a driver, and it does not answer.

    Source: https://docs.nvidia.com/cuda/cuda-c-programming-guide/#env-vars and
        https://docs.nvidia.com/datacenter/tesla/mig-user-guide/ (read 2026-11); duplicates
        and trailing characters as the driver treats them, also in torch 2.13's
        ``torch.cuda``.
    """
    visible = (os.environ if environ is None else environ).get("CUDA_VISIBLE_DEVICES")
    if visible is not None and not visible.strip():
        return ()
    with nvml_session() as nvml:
        if nvml is None:
            return ()
        present = _present(nvml)
        chosen = present if visible is None else _visible(nvml, present, visible)
        return tuple(
            Device(
                uuid=found.uuid,
                device_index=device_index,
                nvml_index=found.nvml_index,
                name=_text(nvml.nvmlDeviceGetName(found.handle)),
                memory_bytes=int(nvml.nvmlDeviceGetMemoryInfo(found.handle).total),
            )
            for device_index, found in enumerate(chosen)
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class _Found:
    uuid: str
    nvml_index: int
    handle: Any


def _present(nvml: Any) -> list[_Found]:
    """List what the driver shows to this process; other processes' devices are left out."""
    present: list[_Found] = []
    for nvml_index in range(int(nvml.nvmlDeviceGetCount())):
        try:
            handle = nvml.nvmlDeviceGetHandleByIndex(nvml_index)
        except nvml.NVMLError as error:
            if error.value == nvml.NVML_ERROR_NO_PERMISSION:
                continue
            raise
        uuid = _text(nvml.nvmlDeviceGetUUID(handle))
        present.append(_Found(uuid=uuid, nvml_index=nvml_index, handle=handle))
    return present


def _visible(nvml: Any, present: list[_Found], visible: str) -> list[_Found]:
    chosen: list[_Found] = []
    for entry in visible.split(","):
        name = entry.strip()
        found = _mig(nvml, present, name) if name.startswith("MIG-") else _named(present, name)
        if found is None:
            break
        if any(found.uuid == earlier.uuid for earlier in chosen):
            return []
        chosen.append(found)
        if name.startswith("MIG-"):
            break
    return chosen


def _named(present: list[_Found], name: str) -> _Found | None:
    """Find a device by index or by the beginning of its UUID."""
    if name.startswith("GPU-"):
        matching = [found for found in present if found.uuid.startswith(name)]
        return matching[0] if len(matching) == 1 else None
    digits = _INDEX.match(name)
    index = int(digits.group()) if digits else -1
    # The position among the devices that this process may see, as CUDA counts.
    return present[index] if 0 <= index < len(present) else None


def _mig(nvml: Any, present: list[_Found], name: str) -> _Found | None:
    """Find a MIG device by its own UUID; its index is that of the device it is a slice of."""
    try:
        handle = nvml.nvmlDeviceGetHandleByUUID(name)
        parent = nvml.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(handle)
        parent_uuid = _text(nvml.nvmlDeviceGetUUID(parent))
    except nvml.NVMLError as error:
        if error.value in {nvml.NVML_ERROR_NOT_FOUND, nvml.NVML_ERROR_INVALID_ARGUMENT}:
            return None
        raise
    whole = next((found for found in present if found.uuid == parent_uuid), None)
    return None if whole is None else replace(whole, uuid=name, handle=handle)


def _text(value: str | bytes) -> str:
    """Read what older bindings give as bytes."""
    return value.decode() if isinstance(value, bytes) else value
