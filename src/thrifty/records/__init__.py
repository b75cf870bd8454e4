"""Plain frozen dataclasses that pass between layers, their units, and the errors."""

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
