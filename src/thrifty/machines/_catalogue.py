"""The machines that can be rented, with what each cost when somebody last looked.

The table is data with a source and a date in every row, never fetched from the network
here. A row that cannot be read is told to whoever asks for it and hurts no other.
"""

import csv
import difflib
import functools
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import zip_longest

from thrifty.records import PriceError

__all__ = [
    "MachineType",
    "find_machine",
    "load_catalogue",
    "machine_types",
    "pick_machine",
    "read_rows",
]

_BYTES_PER_GIB = 2**30
_OR_ITS_PRICE = (
    "for a machine that is not listed give its price: --price 2.10, or for every run "
    "thrifty config set price_usd_per_hour 2.10"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class MachineType:
    """One kind of machine that a provider rents out."""

    provider: str
    """``aws``, ``gcp``, ``azure``, ``lambda``, ``runpod``."""

    instance: str
    """The provider's own name for it."""

    region: str
    """Where the price was asked, in the provider's spelling."""

    vcpus: float
    """As the provider counts: on most x86 types a hyper-thread, two to a core. A share of
    a host, like one TPU chip's, need not be whole."""

    memory_bytes: int
    """Of the host."""

    accelerator: str | None
    """Model name; None on a machine without devices."""

    accelerator_count: int
    """Devices in the machine."""

    accelerator_memory_bytes: int | None
    """Of one device; None on a machine without devices."""

    on_demand_usd_per_hour: float
    """Of the whole machine, Linux."""

    spot_usd_per_hour: float | None
    """None when the source had none: then it is unknown, not equal to on demand."""

    source: str
    """Where price and shape were read, with the source's licence."""

    as_of: str
    """ISO date of the source, as exact as it says: day, month or year."""

    note: str
    """What to know before believing the row; empty when there is nothing."""

    @property
    def name(self) -> str:
        """What ``--machine`` takes: ``provider:instance``."""
        return f"{self.provider}:{self.instance}"

    @property
    def uncertain(self) -> bool:
        """Whether the price was computed or not checked, as ``note`` says."""
        return self.note.startswith("uncertain")


def machine_types() -> tuple[MachineType, ...]:
    """List every machine of the catalogue that can be read, in the table's order.

    Raises:
        PriceError: The table is missing from the installation.
    """
    return tuple(load_catalogue()[0].values())


def find_machine(name: str) -> MachineType:
    """Find a machine by ``provider:instance``, or by its instance name if only one has it.

    Upper and lower case are the same.

    Raises:
        PriceError: No such machine, more than one, or its row cannot be read.

    >>> find_machine("AWS:g5.xlarge").accelerator
    'A10G'
    """
    known, broken = load_catalogue()
    return pick_machine(name, known, broken)


def pick_machine(
    name: str, known: Mapping[str, MachineType], broken: Mapping[str, str]
) -> MachineType:
    """Find a machine in a table that ``read_rows`` read.

    Raises:
        PriceError: No such machine, more than one, or its row cannot be read.
    """
    wanted = ":".join(part.strip() for part in name.strip().lower().split(":"))
    if wanted in known:
        return known[wanted]
    if wanted in broken:
        problem = f"the catalogue's row of {wanted} is broken: {broken[wanted]}"
        raise PriceError(problem, fix=_OR_ITS_PRICE)
    same = [machine for key, machine in known.items() if key.partition(":")[2] == wanted]
    if len(same) == 1:
        return same[0]
    if same:
        names = ", ".join(machine.name for machine in same)
        problem = f"{len(same)} providers have a machine {name!r}: {names}"
        raise PriceError(problem, fix=f"name the provider too: {same[0].name}")
    near = _nearest(wanted, known)
    if near:
        fix = f"type {near[0]}" + (f" (or {', '.join(near[1:])})" if near[1:] else "")
    else:
        providers = ", ".join(dict.fromkeys(machine.provider for machine in known.values()))
        fix = f"type PROVIDER:INSTANCE, like aws:g5.xlarge (providers: {providers})"
    problem = f"no machine {name!r} in the catalogue"
    raise PriceError(problem, fix=f"{fix}; {_OR_ITS_PRICE}")


def _nearest(wanted: str, known: Mapping[str, MachineType]) -> list[str]:
    provider, colon, instance = wanted.partition(":")
    if not colon:
        instance = provider
    within = {key.partition(":")[2]: key for key in known}
    if colon and any(key.startswith(f"{provider}:") for key in known):
        within = {key.partition(":")[2]: key for key in known if key.startswith(f"{provider}:")}
    found = difflib.get_close_matches(instance, within, n=3, cutoff=0.6)
    if not found and instance:
        found = [key for key in within if instance in key][:3]
    if not found:
        # A provider glued on by another sign, as in aws/g5.xlarge.
        whole = difflib.get_close_matches(wanted, known, n=3, cutoff=0.7)
        return [known[key].name for key in whole]
    return [known[within[key]].name for key in found]


@functools.cache
def load_catalogue() -> tuple[dict[str, MachineType], dict[str, str]]:
    """Read the table of this installation, once.

    Raises:
        PriceError: The table is missing.
    """
    from importlib import resources

    try:
        text = (resources.files("thrifty.machines") / "instances.csv").read_text(encoding="utf-8")
    except OSError as error:
        problem = f"the machine catalogue of this installation cannot be read: {error}"
        fix = "pip install --force-reinstall thrifty, or give the price: --price 2.10"
        raise PriceError(problem, fix=fix) from error
    return read_rows(text.splitlines())


def read_rows(lines: Iterable[str]) -> tuple[dict[str, MachineType], dict[str, str]]:
    """Read the table: the machines by lower-case name, and by name what is wrong with a row."""
    known: dict[str, MachineType] = {}
    broken: dict[str, str] = {}
    columns: list[str] = []
    for number, line in enumerate(lines, start=1):
        # Line by line, or a quotation mark left open would swallow the rows below it.
        cells = next(csv.reader([line]), list[str]())
        if number == 1:
            columns = cells
        elif cells:
            row = dict(zip_longest(columns, cells[: len(columns)], fillvalue=""))
            key = f"{row.get('provider', '')}:{row.get('instance', '')}".lower()
            try:
                known[key] = _read_row(row)
            except (KeyError, ValueError) as error:
                broken[key] = f"line {number}: {error}"
    return known, broken


def _read_row(row: Mapping[str, str]) -> MachineType:
    has_accelerator = row["accelerator"] != ""
    return MachineType(
        provider=_required(row, "provider"),
        instance=_required(row, "instance"),
        region=row["region"],
        vcpus=_amount(row, "vcpus"),
        memory_bytes=round(_amount(row, "mem_gib") * _BYTES_PER_GIB),
        accelerator=row["accelerator"] or None,
        accelerator_count=int(row["accelerator_count"]) if has_accelerator else 0,
        accelerator_memory_bytes=(
            round(_amount(row, "accelerator_mem_gib") * _BYTES_PER_GIB) if has_accelerator else None
        ),
        on_demand_usd_per_hour=_amount(row, "price_per_hour"),
        spot_usd_per_hour=_amount(row, "spot_price") if row["spot_price"] else None,
        source=_required(row, "source"),
        as_of=_required(row, "as_of"),
        note=row["note"],
    )


def _required(row: Mapping[str, str], column: str) -> str:
    if not row[column]:
        problem = f"{column} is empty"
        raise ValueError(problem)
    return row[column]


def _amount(row: Mapping[str, str], column: str) -> float:
    value = float(_required(row, column))
    if not (math.isfinite(value) and value > 0):
        problem = f"{column} is {row[column]}, expected a number above 0"
        raise ValueError(problem)
    return value
