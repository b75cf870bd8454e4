"""The bill: every device-second of a run, each under exactly one cause."""

from dataclasses import dataclass
from typing import Literal, get_args

__all__ = ["CAUSES", "BillLine", "Cause"]

Cause = Literal[
    "startup",
    "input_wait",
    "transfer",
    "compute",
    "host",
    "cpu_wait",
    "communication",
    "validation",
    "checkpoint",
    "compile",
    "logging",
    "shutdown",
    "unattributed",
]

CAUSES: tuple[Cause, ...] = get_args(Cause)
"""All causes, in the order in which a bill prints them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class BillLine:
    """One cause and what it took."""

    cause: Cause
    """What the device-seconds went to."""

    seconds: float
    """Device-seconds (on a machine without devices: wall seconds)."""

    fraction: float
    """Share of the bill's total, 0 to 1."""

    usd: float | None
    """Cost; None when no price is known."""
