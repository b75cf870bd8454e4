"""Which price a run is billed at, and how old that price is.

The nearest word wins: ``--price``, then ``--machine``, then the saved defaults. A price that
nobody gave stays unknown.
"""

import datetime as dt
from pathlib import Path

from thrifty.machines._catalogue import MachineType, find_machine
from thrifty.machines._config import read_defaults
from thrifty.machines._price_input import parse_usd_per_hour
from thrifty.records import Price, PriceError

__all__ = ["price_age_days", "resolve_price"]


def resolve_price(
    *, price: str | float | None, machine: str | None, spot: bool, home: Path | None = None
) -> Price | None:
    """Choose the price of a run: ``--price``, else ``--machine``, else the saved default.

    The saved defaults are read only when neither is given, so that a broken file cannot
    hurt who typed a price. The saved ``spot`` speaks of the saved ``machine`` only.

    Args:
        price: USD per hour of the whole machine, as typed. With it the others are not read.
        machine: ``provider:instance`` of the catalogue.
        spot: Ask for the machine's spot price.
        home: Folder of the saved defaults; None for ``thrifty_home()``.

    Returns:
        None when nobody gave a price.

    Raises:
        PriceError: Not a price, no such machine, or no spot price known.
        UsageError: The saved defaults cannot be read.
    """
    if price is not None:
        typed = parse_usd_per_hour(price)
        return Price(usd_per_hour=typed, source="--price", as_of=None, kind="user")
    if machine is not None:
        return _price_of(find_machine(machine), spot=spot)
    saved = read_defaults(home)
    # A saved price does not say whether it is a spot price, so --spot passes it over.
    if saved.price_usd_per_hour is not None and not spot:
        usd_per_hour = saved.price_usd_per_hour
        return Price(usd_per_hour=usd_per_hour, source="thrifty config", as_of=None, kind="user")
    if saved.machine is not None:
        return _price_of(find_machine(saved.machine), spot=spot or saved.spot is True)
    if spot:
        problem = "--spot needs a machine whose spot price is known, and none is given or saved"
        raise PriceError(problem, fix="add --machine gcp:g2-standard-4, or type --price 0.70")
    return None


def _price_of(machine: MachineType, *, spot: bool) -> Price:
    usd_per_hour = machine.spot_usd_per_hour if spot else machine.on_demand_usd_per_hour
    if usd_per_hour is None:
        on_demand = f"{machine.on_demand_usd_per_hour:.4g}"
        problem = f"no spot price is known of {machine.name} (on demand: ${on_demand} per hour)"
        fix = "type the spot price you pay, like --price 0.70, or leave --spot out"
        raise PriceError(problem, fix=fix)
    return Price(
        usd_per_hour=usd_per_hour,
        source=f"{machine.source}; uncertain" if machine.uncertain else machine.source,
        as_of=machine.as_of,
        kind="spot" if spot else "on_demand",
        machine=machine.name,
    )


def price_age_days(price: Price, today: dt.date) -> int | None:
    """Count the days since a price was quoted.

    A date that names only a month or a year counts from its first day, so that no price
    looks fresher than it is.

    Returns:
        None when the price carries no date, or one that cannot be read.

    >>> quoted = Price(usd_per_hour=1.0, source="list", as_of="2025-03", kind="on_demand")
    >>> price_age_days(quoted, dt.date(2025, 4, 2))
    32
    """
    try:
        year, month, day = (*(int(part) for part in (price.as_of or "").split("-")), 1, 1)[:3]
        quoted = dt.date(year, month, day)
    except ValueError:
        return None
    return max(0, (today - quoted).days)
