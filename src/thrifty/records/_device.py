"""The device record."""

from dataclasses import dataclass

__all__ = ["Device"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Device:
    """One accelerator, as the training process sees it."""

    uuid: str
    """Identity that survives ``CUDA_VISIBLE_DEVICES`` and reboots."""

    device_index: int
    """Index in the framework's order, after ``CUDA_VISIBLE_DEVICES``."""

    nvml_index: int
    """Index in the driver's order (PCI bus order)."""

    name: str
    """Model name as the driver spells it."""

    memory_bytes: int
    """Total device memory."""
