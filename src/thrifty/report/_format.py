"""Figures as people read them: durations, dollars, counts, bytes, shares, ages.

Every function rounds first and picks the unit after, so that nothing prints as ``60.0 s`` or
``1024 KiB``. What is unknown (None, nan, infinite) prints as ``unknown``, never as 0, and what
is not quite zero never prints as zero.
"""

import math
from datetime import date

__all__ = [
    "UNKNOWN",
    "format_age",
    "format_bytes",
    "format_count",
    "format_duration",
    "format_price",
    "format_rate",
    "format_share",
    "format_usd",
    "format_whole_duration",
]

UNKNOWN = "unknown"

_MINUTE_S = 60
_HOUR_S = 3_600
_DAYS_FROM_H = 100
_MS_DIGIT_BELOW = 9.95
_SMALLEST_MS = 0.05
_CENTS_FROM_USD = 0.1
_SMALLEST_USD = 1e-6
_KIB = 1_024
_UNITS = ("KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
_DAYS_UNTIL = 60
_MONTHS_UNTIL = 24
_DAYS_PER_MONTH = 30.4375


def format_duration(seconds: float | None) -> str:
    """Write a duration with at most two units.

    Args:
        seconds: Any sign; None and nan are unknown.

    Example:
        >>> [format_duration(s) for s in (0, 0.0004, 3.2, 59.95, 250, 3599.9, 1e6)]
        ['0 s', '0.4 ms', '3.2 s', '1 min 00 s', '4 min 10 s', '1 h 00 min', '11 d 14 h']
    """
    if seconds is None or not math.isfinite(seconds):
        return UNKNOWN
    if seconds < 0:
        return f"-{format_duration(-seconds)}"
    if seconds == 0:
        return "0 s"
    if seconds < 1 and round(seconds * 1_000) < 1_000:  # noqa: PLR2004 - ms in a second
        return _below_a_second(seconds * 1_000)
    tenths = f"{seconds:.1f}"
    return f"{tenths} s" if float(tenths) < _MINUTE_S else format_whole_duration(seconds)


def _below_a_second(milliseconds: float) -> str:
    if milliseconds < _SMALLEST_MS:
        return "<0.1 ms"
    return f"{milliseconds:.{1 if milliseconds < _MS_DIGIT_BELOW else 0}f} ms"


def format_whole_duration(seconds: float | None) -> str:
    """Write a duration in whole seconds, as a clock that runs shows it.

    Args:
        seconds: Not negative; None and nan are unknown.

    Example:
        >>> [format_whole_duration(s) for s in (0, 12.4, 250, 7380)]
        ['0 s', '12 s', '4 min 10 s', '2 h 03 min']
    """
    if seconds is None or not math.isfinite(seconds):
        return UNKNOWN
    whole = round(seconds)
    if whole < _MINUTE_S:
        return f"{whole} s"
    if whole < _HOUR_S:
        return f"{whole // _MINUTE_S} min {whole % _MINUTE_S:02} s"
    minutes = round(seconds / _MINUTE_S)
    if minutes < _DAYS_FROM_H * 60:
        return f"{minutes // 60} h {minutes % 60:02} min"
    hours = round(seconds / _HOUR_S)
    return f"{hours // 24:,} d {hours % 24:02} h"


def format_usd(usd: float | None) -> str:
    """Write an amount of dollars: cents, or two significant digits of less than ten cents.

    Args:
        usd: Any sign; None and nan are unknown.

    Example:
        >>> [format_usd(usd) for usd in (0, 0.0004, 0.0123, 0.42, 9.416, 1234.5)]
        ['$0.00', '$0.0004', '$0.012', '$0.42', '$9.42', '$1,234.50']
    """
    if usd is None or not math.isfinite(usd):
        return UNKNOWN
    if usd < 0:
        return f"-{format_usd(-usd)}"
    if 0 < usd < _SMALLEST_USD:
        return "<$0.000001"
    decimals = 2
    if 0 < usd < _CENTS_FROM_USD:
        # Rounded to its two digits first: 0.00996 is 0.010, not 0.0100.
        decimals = 1 - int(f"{usd:.1e}".partition("e")[2])
    whole, _, digits = f"{usd:,.{decimals}f}".partition(".")
    return f"${whole}.{digits.rstrip('0'):0<2}"


def format_price(usd_per_hour: float | None) -> str:
    """Write an hourly price with the digits of its quotation, up to four.

    Args:
        usd_per_hour: None and nan are unknown.

    Example:
        >>> [format_price(p) for p in (1.006, 2.1, 98.32, 0.0116)]
        ['$1.006/h', '$2.10/h', '$98.32/h', '$0.0116/h']
    """
    if usd_per_hour is None or not math.isfinite(usd_per_hour):
        return UNKNOWN
    if 0 < usd_per_hour < 0.001:  # noqa: PLR2004 - four decimals would lose its digits
        return f"{format_usd(usd_per_hour)}/h"
    whole, _, decimals = f"{usd_per_hour:,.4f}".partition(".")
    return f"${whole}.{decimals.rstrip('0'):0<2}/h"


def format_count(n: float | None) -> str:
    """Write a count in full, with thousands separators.

    Args:
        n: A whole number; None and nan are unknown.

    Example:
        >>> format_count(1204)
        '1,204'
    """
    if n is None or not math.isfinite(n):
        return UNKNOWN
    return f"{n if isinstance(n, int) else round(n):,}"


def format_rate(per_s: float | None) -> str:
    """Write a rate with about three digits, without its unit.

    Args:
        per_s: Not negative; None and nan are unknown.

    Example:
        >>> [format_rate(r) for r in (0, 0.0123, 3.456, 99.96, 812.4, 1234567.0)]
        ['0', '0.012', '3.46', '100', '812', '1,234,567']
    """
    if per_s is None or not math.isfinite(per_s):
        return UNKNOWN
    if per_s == 0:
        return "0"
    if float(f"{per_s:.1f}") >= 100:  # noqa: PLR2004 - three digits
        return f"{per_s:,.0f}"
    if float(f"{per_s:.2f}") >= 10:  # noqa: PLR2004 - three digits
        return f"{per_s:.1f}"
    return f"{per_s:.2f}" if per_s >= 1 else f"{per_s:.2g}"


def format_bytes(n: float | None) -> str:
    """Write a size in binary units.

    Args:
        n: Bytes; None and nan are unknown.

    Example:
        >>> [format_bytes(n) for n in (0, 1023, 1536, 1048575, 4402341478)]
        ['0 B', '1,023 B', '1.5 KiB', '1.0 MiB', '4.1 GiB']
    """
    if n is None or not math.isfinite(n):
        return UNKNOWN
    if abs(n) < _KIB:
        return f"{n:,.0f} B"
    size = float(n)
    for unit in _UNITS:
        size /= _KIB
        if abs(float(f"{size:.1f}")) < _KIB:
            return f"{size:.1f} {unit}"
    return f"{size:,.1f} {_UNITS[-1]}"


def format_share(fraction: float | None, *, decimals: int = 1) -> str:
    """Write a share in percent; what is not nothing, or not all, never prints as that.

    Args:
        fraction: 0 to 1; None and nan are unknown.
        decimals: Of the percentage.

    Example:
        >>> [format_share(f) for f in (0, 0.00001, 0.2345, 0.99999, 1)]
        ['0.0 %', '<0.1 %', '23.4 %', '>99.9 %', '100.0 %']
    """
    if fraction is None or not math.isfinite(fraction):
        return UNKNOWN
    text = f"{fraction * 100:.{decimals}f}"
    smallest = 10.0**-decimals
    if fraction > 0 and float(text) == 0:
        return f"<{smallest:.{decimals}f} %"
    if fraction < 1 and float(text) == 100:  # noqa: PLR2004 - percent
        return f">{100 - smallest:.{decimals}f} %"
    return f"{text} %"


def format_age(quoted: date, today: date) -> str:
    """Write how long ago a day was; a day to come has no age.

    Example:
        >>> format_age(date(2025, 3, 2), date(2026, 12, 4))
        '21 months ago'
    """
    days = (today - quoted).days
    if days < 0:
        return "in the future"
    if days < 2:  # noqa: PLR2004 - days that have a name
        return ("today", "yesterday")[days]
    if days < _DAYS_UNTIL:
        return f"{days} days ago"
    months = int(days / _DAYS_PER_MONTH)
    if months < _MONTHS_UNTIL:
        return f"{months} months ago"
    return f"{months // 12} years ago"
