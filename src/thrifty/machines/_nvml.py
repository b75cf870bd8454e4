"""Open and close NVIDIA's management library, which is missing on most machines.

``pynvml`` (package nvidia-ml-py) is loaded here on first use. Asking it creates no context
on a device, so it costs the user's script nothing.
"""

import importlib
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from thrifty.records import DeviceQueryError

__all__ = ["close_nvml", "nvml_session", "open_nvml"]


def open_nvml() -> Any | None:
    """Load and initialise the library; pair it with ``close_nvml``.

    Returns:
        The ``pynvml`` module, or None without the package or without a driver.

    Raises:
        DeviceQueryError: There is a driver, and it does not answer.
    """
    try:
        nvml: Any = importlib.import_module("pynvml")
    except ImportError:
        return None
    try:
        nvml.nvmlInit()
    except nvml.NVMLError as error:
        if error.value in {nvml.NVML_ERROR_LIBRARY_NOT_FOUND, nvml.NVML_ERROR_DRIVER_NOT_LOADED}:
            return None
        raise driver_error(error, "could not be initialised") from error
    return nvml


def close_nvml(nvml: Any) -> None:
    """Give the library back; a driver that broke meanwhile has nothing left to give back."""
    try:
        nvml.nvmlShutdown()
    except nvml.NVMLError:
        return


@contextmanager
def nvml_session() -> Generator[Any | None]:
    """Keep the library open for a block; yields None without a driver.

    Raises:
        DeviceQueryError: There is a driver, and it does not answer.
    """
    nvml = open_nvml()
    if nvml is None:
        yield None
        return
    try:
        yield nvml
    except nvml.NVMLError as error:
        raise driver_error(error, "stopped answering") from error
    finally:
        close_nvml(nvml)


def driver_error(error: Exception, what: str) -> DeviceQueryError:
    """Word a failure of the driver for the user."""
    return DeviceQueryError(
        f"the NVIDIA driver {what}: {error}",
        fix="run nvidia-smi: if it fails too, restart the machine or its driver; "
        'to go on without devices: CUDA_VISIBLE_DEVICES="" thrifty ...',
    )
