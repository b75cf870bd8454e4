"""A price somebody quoted: never without its source."""

from dataclasses import dataclass
from typing import Literal

__all__ = ["Price", "PriceKind"]

PriceKind = Literal["on_demand", "spot", "user"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Price:
    """What one hour of the whole machine costs."""

    usd_per_hour: float
    """Of the machine with all its devices."""

    source: str
    """Who said so: ``--price``, ``thrifty config``, or the catalogue's own source."""

    as_of: str | None
    """ISO date of the quotation; None when the source gives none."""

    kind: PriceKind
    """On demand, spot, or what the user typed."""

    machine: str | None = None
    """``provider:instance`` when it comes from the catalogue."""
