"""Plain frozen dataclasses that pass between layers, their units, and the errors."""

import importlib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from thrifty.records._bill import CAUSES, BillLine, Cause
    from thrifty.records._device import Device
    from thrifty.records._errors import (
        DeviceQueryError,
        LedgerError,
        PriceError,
        ThriftyError,
        UsageError,
    )
    from thrifty.records._price import Price, PriceKind
    from thrifty.records._progress import Progress, ProgressPhase
    from thrifty.records._run import FEW_STEPS, SCHEMA_VERSION, Run, RunStatus, SystemUse

__all__ = [
    "CAUSES",
    "FEW_STEPS",
    "SCHEMA_VERSION",
    "BillLine",
    "Cause",
    "Device",
    "DeviceQueryError",
    "LedgerError",
    "Price",
    "PriceError",
    "PriceKind",
    "Progress",
    "ProgressPhase",
    "Run",
    "RunStatus",
    "SystemUse",
    "ThriftyError",
    "UsageError",
]

_HOMES = {
    "CAUSES": "_bill",
    "FEW_STEPS": "_run",
    "SCHEMA_VERSION": "_run",
    "BillLine": "_bill",
    "Cause": "_bill",
    "Device": "_device",
    "DeviceQueryError": "_errors",
    "LedgerError": "_errors",
    "Price": "_price",
    "PriceError": "_errors",
    "PriceKind": "_price",
    "Progress": "_progress",
    "ProgressPhase": "_progress",
    "Run": "_run",
    "RunStatus": "_run",
    "SystemUse": "_run",
    "ThriftyError": "_errors",
    "UsageError": "_errors",
}


def __getattr__(name: str) -> object:
    """Import a public name when it is first asked for: a script waits for our imports."""
    if name not in _HOMES:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
