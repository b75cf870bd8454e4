"""The table of a bill: one line per cause, a bar, and a total that is the wall time.

Columns go in this order when the page is narrow: what the cause means, the bar, the decimal of
the share, the share, the dollars.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from thrifty.records import BillLine, Cause, Run
from thrifty.report._format import format_duration, format_share, format_usd
from thrifty.report._paint import Span, Style

__all__ = ["MEANINGS", "bill_table", "cause_label", "cause_style"]

MEANINGS: dict[Cause, str] = {
    "startup": "before the first step: imports, data, model",
    "input_wait": "the loop waited for its next batch",
    "transfer": "batches on their way to the device",
    "compute": "the model was computed",
    "host": "Python or a sleep kept the device waiting",
    "cpu_wait": "ready to run, but no core was free",
    "communication": "replicas waited for each other",
    "validation": "the model was evaluated",
    "checkpoint": "the model was saved",
    "compile": "the model was compiled",
    "logging": "metrics and logs were written",
    "shutdown": "after the last step, until the end",
    "unattributed": "not understood",
}
"""What each cause means, for the reader who meets it the first time."""

_STALLS = ("input_wait", "transfer", "host", "cpu_wait", "communication")
_DEVICE_TIME_FROM = 60
_BAR_MIN = 6
_BAR_MAX = 60
_BAR_BESIDE_MEANING = 24
_EIGHTHS = " ▏▎▍▌▋▊▉█"


def cause_label(cause: str) -> str:
    """Write a cause as words."""
    return cause.replace("_", " ")


def cause_style(cause: Cause) -> Style:
    """Choose a cause's style: compute is good, stalls and overheads are warm."""
    if cause == "compute":
        return "good"
    if cause == "unattributed":
        return "dim"
    return "stall" if cause in _STALLS else "overhead"


@dataclass(frozen=True, kw_only=True, slots=True)
class _Row:
    label: str
    fraction: float | None
    time: str
    share: str
    short_share: str
    usd: str
    meaning: str
    style: Style
    solid: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class _Layout:
    """Widths of the columns; 0 leaves a column out."""

    label: int
    bar: int
    time: int
    share: int
    usd: int
    meaning: int
    gap: int
    short_share: bool


def bill_table(run: Run, *, width: int, ascii_only: bool) -> Iterator[tuple[Span, ...]]:
    """Give the table's lines as styled pieces, at most ``width`` columns each."""
    rows = list(_rows(run))
    layout = _layout(run, rows, width)
    yield _heading(_time_heading(run, width), layout)
    for row in rows[:-1]:
        yield _line(row, layout, _bar(row, layout.bar, ascii_only=ascii_only))
    total = rows[-1]
    devices = max(1, run.device_count)
    sum_ = f"{format_duration(run.wall_s)} x {devices:,} devices" if devices > 1 else ""
    yield _line(total, layout, sum_ if len(sum_) <= layout.bar else "")


def _rows(run: Run) -> Iterator[_Row]:
    total_s = run.wall_s * max(1, run.device_count)
    shown = [line for line in run.bill if line.seconds > 0 or line.cause == "unattributed"]
    priced = run.price is not None or run.cost_usd is not None
    amounts = [format_usd(line.usd) for line in shown] + [format_usd(run.cost_usd)]
    usd = iter(_aligned(amounts) if priced else [""] * len(amounts))
    for line in shown:
        yield _cause_row(line, next(usd))
    yield _Row(
        label="total",
        fraction=None,
        time=format_duration(total_s),
        share=format_share(1),
        short_share=format_share(1, decimals=0),
        usd=next(usd),
        meaning="",
        style="bold",
    )


def _cause_row(line: BillLine, usd: str) -> _Row:
    return _Row(
        label=cause_label(line.cause),
        fraction=line.fraction,
        time=format_duration(line.seconds),
        share=format_share(line.fraction),
        short_share=format_share(line.fraction, decimals=0),
        usd=usd,
        meaning=MEANINGS.get(line.cause, ""),
        style=cause_style(line.cause),
        solid=line.cause != "unattributed",
    )


def _aligned(amounts: list[str]) -> list[str]:
    """Pad on the right so that decimal points stand under each other."""
    decimals = [len(amount.partition(".")[2]) for amount in amounts]
    longest = max(decimals)
    return [
        amount + " " * (longest - n) if n else amount
        for amount, n in zip(amounts, decimals, strict=True)
    ]


def _layout(run: Run, rows: list[_Row], width: int) -> _Layout:
    label = max(len(row.label) for row in rows)
    time = max(len(_time_heading(run, width)), *(len(row.time) for row in rows))
    share = max(len(row.share) for row in rows)
    short_share = max(len(row.short_share) for row in rows)
    usd = max(len(row.usd) for row in rows)
    meaning = max(len(row.meaning) for row in rows)

    def fit(bar: int, share: int, usd: int, *, gap: int = 2, short: bool = False) -> _Layout:
        return _Layout(
            label=label, bar=bar, time=time, share=share, usd=usd, meaning=0, gap=gap,
            short_share=short,
        )  # fmt: skip

    full = fit(0, share, usd)
    spare = width - _total_width(full) - full.gap
    if spare - full.gap - meaning >= _BAR_BESIDE_MEANING:
        bar = min(_BAR_MAX, spare - full.gap - meaning)
        return _Layout(
            label=label, bar=bar, time=time, share=share, usd=usd, meaning=meaning,
            gap=full.gap, short_share=False,
        )  # fmt: skip
    if spare >= _BAR_MIN:
        return fit(min(_BAR_MAX, spare), share, usd)
    narrower = (
        full,
        fit(0, short_share, usd, gap=1, short=True),
        fit(0, 0, usd, gap=1),
        fit(0, 0, 0, gap=1),
    )
    return next((one for one in narrower if _total_width(one) <= width), narrower[-1])


def _total_width(layout: _Layout) -> int:
    columns = (layout.bar, layout.time, layout.share, layout.usd, layout.meaning)
    return layout.label + sum(layout.gap + column for column in columns if column)


def _time_heading(run: Run, width: int) -> str:
    return "device time" if run.device_count > 1 and width >= _DEVICE_TIME_FROM else "time"


def _heading(time: str, layout: _Layout) -> tuple[Span, ...]:
    row = _Row(
        label="cause", fraction=None, time=time, share="share", short_share="share",
        usd="cost", meaning="", style="dim",
    )  # fmt: skip
    return tuple((text, "dim") for text, _ in _line(row, layout, ""))


def _line(row: _Row, layout: _Layout, bar: str) -> tuple[Span, ...]:
    gap = " " * layout.gap
    whole_line: Style = row.style if row.style in ("dim", "bold") else ""
    spans: list[Span] = [(f"{row.label:<{layout.label}}", row.style)]
    if layout.bar:
        spans.append((f"{gap}{bar:<{layout.bar}}", row.style))
    spans.append((f"{gap}{row.time:>{layout.time}}", whole_line))
    if layout.share:
        share = row.short_share if layout.short_share else row.share
        spans.append((f"{gap}{share:>{layout.share}}", whole_line))
    if layout.usd:
        spans.append((f"{gap}{row.usd:>{layout.usd}}", whole_line))
    if layout.meaning:
        spans.append((f"{gap}{row.meaning}", "dim"))
    return tuple(spans)


def _bar(row: _Row, width: int, *, ascii_only: bool) -> str:
    """Draw a share of the whole; something never draws as nothing."""
    fraction = row.fraction
    if not width or fraction is None or not math.isfinite(fraction) or fraction <= 0:
        return ""
    length = min(fraction, 1.0) * width
    if ascii_only or not row.solid:
        glyph = ("#" if row.solid else ".") if ascii_only else "░"
        return glyph * max(1, round(length))
    full, eighths = divmod(max(1, round(length * 8)), 8)
    return "█" * full + (_EIGHTHS[eighths] if eighths else "")
