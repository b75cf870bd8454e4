"""Read a price that a person typed: strict, because a slip here multiplies every figure."""

import math
import re

from thrifty.records import PriceError

__all__ = ["parse_usd_per_hour"]

_NUMBER = re.compile(r"\+?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_DECIMAL_COMMA = re.compile(r"\d*,\d{1,2}|\d+,\d{4,}", re.ASCII)
_THOUSANDS = re.compile(r"\d{1,3}(,\d{3})+(\.\d*)?", re.ASCII)

_LARGEST_USD_PER_HOUR = 1e6
"""Above any machine on sale; what is larger is a slip, and could overflow a bill."""


def parse_usd_per_hour(price: str | float) -> float:
    """Read USD per hour of the whole machine, as typed: ``2.10`` or ``$2.10``.

    Zero is legal: a machine of one's own.

    Raises:
        PriceError: Not a number, negative, not finite, or beyond any machine on sale.

    >>> parse_usd_per_hour("$2.10")
    2.1
    """
    if isinstance(price, str):
        value = _read(price)
    elif isinstance(price, bool):
        raise _not_a_number(str(price))
    else:
        value = float(price)
    if math.isnan(value):
        raise _not_a_number(str(price))
    if value < 0:
        problem = f"a price per hour is zero or more, got {price}"
        fix = f"--price {abs(value):g}, or --price 0 for a machine of your own"
        raise PriceError(problem, fix=fix if math.isfinite(value) else "--price 2.10")
    if value > _LARGEST_USD_PER_HOUR:
        problem = f"a price is at most {_LARGEST_USD_PER_HOUR:,.0f} USD per hour, got {price}"
        raise PriceError(problem, fix="type USD per hour of the whole machine, like --price 2.10")
    return value


def _read(typed: str) -> float:
    bare = typed.strip().removeprefix("$").strip()
    negative = "-" in (typed.strip()[:1], bare[:1])
    digits = bare.removeprefix("-").removeprefix("$") if negative else bare
    if _NUMBER.fullmatch(digits):
        # Adding 0 turns the -0.0 of "-0" into a plain zero.
        return (-float(digits) if negative else float(digits)) + 0.0
    if _DECIMAL_COMMA.fullmatch(digits):
        raise _not_a_number(typed, meant=digits.replace(",", "."))
    if _THOUSANDS.fullmatch(digits):
        raise _not_a_number(typed, meant=digits.replace(",", ""))
    raise _not_a_number(typed)


def _not_a_number(typed: str, *, meant: str = "2.10") -> PriceError:
    return PriceError(f"a price is a number of USD per hour, got {typed!r}", fix=f"--price {meant}")
