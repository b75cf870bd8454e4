"""The record of one run, as ``--json`` prints it and the ledger keeps it."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

from thrifty.records._bill import BillLine
from thrifty.records._price import Price

__all__ = ["FEW_STEPS", "SCHEMA_VERSION", "Run", "RunStatus", "SystemUse"]

FEW_STEPS = 10
"""Below so many steps no rate is told: one slow step would be most of it."""

SCHEMA_VERSION = "1"
"""Changes when a field's meaning changes; new fields alone do not change it."""

RunStatus = Literal[
    "completed",
    "failed",
    "interrupted",
    "killed",
    "incomplete",
    "no_training",
    "refused",
    "running",
]


@dataclass(frozen=True, kw_only=True, slots=True)
class SystemUse:
    """What the run's whole process tree used of the machine, by sampling."""

    cores_available: float
    """Cores that the run may use: the least of affinity, cgroup quota and machine."""

    cores_used: float
    """CPU seconds of the whole process tree per wall second."""

    peak_memory_bytes: int | None
    """Largest sum of resident memory of the process tree at one sample."""

    read_bytes: int | None
    """Read from storage by the processes that could be sampled."""

    written_bytes: int | None
    """Written to storage by the processes that could be sampled."""

    cpu_pressure_fraction: float | None
    """Share of the run during which some task of the machine waited for a core (PSI)."""

    throttled_s: float | None
    """Time during which the cgroup's CPU quota stopped it."""

    kernel_active_fraction: float | None
    """Share of the run during which some kernel ran, mean over the devices; None without
    devices or when the driver does not tell. Not the share of the device that was used."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Run:
    """One run of one script: what it was, how it ended, and its bill."""

    schema_version: str = SCHEMA_VERSION
    """Version of this record's meaning."""

    run_id: str
    """Unique on every machine."""

    number: int | None
    """Short name in this ledger; None when the ledger could not be written."""

    status: RunStatus
    """How it ended, or ``running``."""

    exit_code: int | None
    """The script's own; minus the signal's number when a signal ended it; None while it runs."""

    script: str
    """Path, module (``-m pkg.mod``) or command, as typed."""

    argv: tuple[str, ...]
    """The script's own arguments."""

    framework: str | None
    """``torch`` ...; None when none was seen."""

    world_size: int | None
    """Training processes seen; None when none was seen."""

    machine_count: int
    """Machines that took part."""

    device_count: int
    """Accelerators reserved for the run; 0 on a CPU machine."""

    started_at: str
    """UTC, ISO 8601."""

    wall_s: float
    """From the start of the script's process to its end."""

    steps: int | None
    """Optimizer updates of the model being trained; None when they could not be seen."""

    samples: int | None
    """Rows trained on, as fetched from the data loader; None when they could not be seen."""

    samples_per_s: float | None
    """Samples per second while it trained: fetches and loop, without validation, checkpoints,
    logging and compilation; None below ten steps."""

    epochs: int | None
    """Complete passes over the training loader; None when no loader was seen."""

    price: Price | None
    """None when no price is known."""

    cost_usd: float | None
    """``wall_s`` times the price; None when no price is known."""

    bill: tuple[BillLine, ...]
    """Every cause once, in the order of ``CAUSES``."""

    system: SystemUse | None
    """None when it could not be sampled."""

    summary: str
    """One plain sentence: the largest loss, what it cost, what to do next."""

    next_command: str
    """What to type for that; empty when there is nothing to type."""

    notes: tuple[str, ...]
    """What was not understood or could not be measured."""

    def to_json(self) -> dict[str, Any]:
        """Give the record as plain JSON values.

        Returns:
            Nested dicts and lists in the fields' order.
        """
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Run":
        """Read a record that ``to_json`` wrote; fields of later versions are ignored.

        Raises:
            KeyError: A field is missing.
            TypeError: A field has another shape.
        """
        known = {f.name for f in dataclasses.fields(cls)}
        values = {key: value for key, value in data.items() if key in known}
        price = cast("dict[str, Any] | None", values["price"])
        system = cast("dict[str, Any] | None", values["system"])
        values["argv"] = tuple(values["argv"])
        values["notes"] = tuple(values["notes"])
        values["price"] = None if price is None else Price(**price)
        values["system"] = None if system is None else SystemUse(**system)
        values["bill"] = tuple(BillLine(**line) for line in values["bill"])
        return cls(**values)
