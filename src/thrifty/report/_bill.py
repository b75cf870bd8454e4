"""The bill of one run as text: where every second and every dollar went.

It prints what the record says and works nothing out but ratios. Unknown figures are left out or
called unknown, and ``unattributed`` has a line even when it is nothing.
"""

import math
import signal
from collections.abc import Iterator
from datetime import UTC, date, datetime, tzinfo

from thrifty.records import FEW_STEPS, Price, Run
from thrifty.report._causes import bill_table
from thrifty.report._format import (
    UNKNOWN,
    format_age,
    format_bytes,
    format_count,
    format_duration,
    format_price,
    format_rate,
    format_share,
    format_usd,
)
from thrifty.report._loop import LoopCost, loop_cost
from thrifty.report._paint import Span, Style, paint
from thrifty.report._plain import cells, command_line, plain, wrap

__all__ = ["STATUS_WORDS", "local_time", "render_bill"]

STATUS_WORDS = {
    "completed": "completed",
    "failed": "failed",
    "interrupted": "interrupted by Ctrl-C",
    "killed": "killed",
    "incomplete": "incomplete: its end was not seen",
    "no_training": "ended without a training step",
    "refused": "refused: it was not started",
    "running": "still running",
}

_MIN_WIDTH = 32
_PROSE_WIDTH = 110
_LABEL_WIDTH = 11
_BALANCE_S = 0.001


def render_bill(  # noqa: PLR0913 - each is a property of the page, with a default
    run: Run,
    *,
    width: int = 80,
    colour: bool = False,
    ascii_only: bool = False,
    today: date | None = None,
    tz: tzinfo | None = None,
) -> str:
    """Write the bill of one run as lines of at most ``width`` columns.

    Cost per epoch and per 1,000 steps is that of the training loop, which is every cause but
    startup and shutdown, divided by complete epochs and by steps: what one more of them costs.
    With several devices the time of a cause is device-seconds, the time per epoch wall seconds.

    Args:
        run: The record; its texts are untrusted and printed without escape sequences.
        width: Columns; fewer than 32 count as 32.
        colour: Write colours as escape sequences.
        ascii_only: For a stream that cannot encode block characters.
        today: For the age of the price; the current day by default.
        tz: Of the time shown; the machine's by default.

    Returns:
        Lines joined by newlines, without one at the end.
    """
    page = _Page(max(width, _MIN_WIDTH), colour=colour, ascii_only=ascii_only)
    _header(page, run, today=today or datetime.now(UTC).date(), tz=tz)
    page.blank()
    if run.bill:
        for line in bill_table(run, width=page.width, ascii_only=ascii_only):
            page.line(*line)
    else:
        page.line(("There is no bill: nothing was measured.", ""))
    page.blank()
    _training(page, run)
    _system(page, run)
    notes = [*run.notes, *_imbalance(run)]
    if notes:
        page.blank()
        page.line(("not understood", "bold"))
        for note in notes:
            page.paragraph(note, first="- ")
    if run.summary:
        page.blank()
        colon = ":" if run.next_command and not run.summary.endswith(".") else ""
        page.paragraph(f"{run.summary}{colon}", style="bold")
    if run.next_command:
        # On a line of its own and never broken: it is there to be pasted.
        command = plain(run.next_command, ascii_only=ascii_only)
        page.line(("  ", ""), (command, "bold"))
    return "\n".join(page.lines)


class _Page:
    """Lines so far, and how wide and how plain they must be."""

    def __init__(self, width: int, *, colour: bool, ascii_only: bool) -> None:
        self.width = width
        self.colour = colour
        self.ascii_only = ascii_only
        self.lines: list[str] = []

    def line(self, *spans: Span) -> None:
        self.lines.append(paint(spans, colour=self.colour))

    def blank(self) -> None:
        if self.lines and self.lines[-1]:
            self.lines.append("")

    def paragraph(self, text: str, *, first: str = "", style: Style = "") -> None:
        """Add a wrapped text; its later lines are indented as far as ``first`` reaches."""
        room = min(self.width, _PROSE_WIDTH) - cells(first)
        lead = first
        for part in wrap(plain(text, ascii_only=self.ascii_only), room):
            self.line((lead, ""), (part, style))
            lead = " " * cells(first)

    def fact(self, label: str, *parts: str) -> None:
        """Add a labelled line; where it is too long it breaks between its parts."""
        room = min(self.width, _PROSE_WIDTH) - _LABEL_WIDTH
        lines = [""]
        for index, part in enumerate(plain(p, ascii_only=self.ascii_only) for p in parts):
            text = part if index == len(parts) - 1 else f"{part},"
            joined = f"{lines[-1]} {text}".strip()
            if cells(joined) <= room:
                lines[-1] = joined
                continue
            pieces = wrap(text, room)
            lines = [*(line for line in lines if line), *pieces]
        lead = label
        for line in lines:
            self.line((f"{lead:<{_LABEL_WIDTH}}", "dim"), (line, ""))
            lead = ""


def _header(page: _Page, run: Run, *, today: date, tz: tzinfo | None) -> None:
    name = "run" if run.number is None else f"run {run.number}"
    command = command_line(
        run.script, run.argv, width=page.width - len(name) - 2, ascii_only=page.ascii_only
    )
    page.line((name, "title"), ("  ", ""), (command, "bold"))
    if run.number is None:
        page.fact("ledger", "not recorded")
    page.fact("status", _ending(run), f"started {local_time(run.started_at, tz)}")
    page.fact("wall time", format_duration(run.wall_s), *_machines(run))
    if run.price is None:
        page.fact(
            "price",
            "unknown: time only",
            "set one: thrifty config set price_usd_per_hour 2.10",
            "or --price 2.10",
        )
    else:
        page.fact("price", *_price(run.price, today))


def _ending(run: Run) -> str:
    words = STATUS_WORDS.get(run.status, run.status)
    if run.exit_code is None or run.exit_code == 0:
        return words
    if run.exit_code > 0:
        return f"{words} (exit code {run.exit_code})"
    try:
        return f"{words} ({signal.Signals(-run.exit_code).name})"
    except ValueError:
        return f"{words} (signal {-run.exit_code})"


def _machines(run: Run) -> Iterator[str]:
    if run.machine_count > 1:
        yield _counted(run.machine_count, "machine")
    if run.device_count == 0:
        yield "no device (CPU only)"
    else:
        yield _counted(run.device_count, "device")
    if run.world_size is not None and run.world_size > 1:
        yield f"{format_count(run.world_size)} training processes"
    if run.framework is not None:
        yield run.framework


def _price(price: Price, today: date) -> Iterator[str]:
    when = _quotation_day(price.as_of, today) if price.as_of else ""
    if price.kind == "user":
        yield format_price(price.usd_per_hour)
        yield f"set by {price.source}"
        if when:
            yield when
        return
    yield f"{format_price(price.usd_per_hour)} {'spot' if price.kind == 'spot' else 'on demand'}"
    if price.machine is not None:
        yield price.machine
    # The catalogue's source also names where the machine's shape and licence come from.
    source, *more = (part.strip() for part in price.source.split(";"))
    doubt = ", uncertain" if "uncertain" in more else ""
    yield f"quoted {when or 'on an unknown day'} by {source.partition(' (')[0]}{doubt}"


def _quotation_day(as_of: str, today: date) -> str:
    try:
        return f"{as_of} ({format_age(date.fromisoformat(as_of[:10]), today)})"
    except ValueError:
        return as_of


def local_time(started_at: str, tz: tzinfo | None) -> str:
    """Write a UTC time of a record as local date and minute; what is no time stays as it is."""
    try:
        return f"{datetime.fromisoformat(started_at).astimezone(tz):%Y-%m-%d %H:%M}"
    except (ValueError, OverflowError):
        return started_at


def _training(page: _Page, run: Run) -> None:
    if run.status == "no_training" or not (run.steps or run.samples or run.epochs):
        page.fact("training", "no training step was seen")
        return
    if run.steps is None:
        steps = "steps unknown: no optimizer update could be seen"
    else:
        steps = _counted(run.steps, "step")
    seen = [steps]
    if run.epochs is not None:
        seen.append(_counted(run.epochs, "complete epoch"))
    if run.samples is not None:
        seen.append(_counted(run.samples, "sample"))
    if run.samples_per_s is not None:
        seen.append(f"{format_rate(run.samples_per_s)} samples/s")
    page.fact("training", *seen)
    loop = loop_cost(run)
    costs: list[str] = []
    if run.epochs:
        costs.append(f"{_per(loop.divided_by(run.epochs))} per epoch")
    if run.steps and run.steps >= FEW_STEPS:
        costs.append(f"{_per(loop.divided_by(run.steps / 1_000))} per 1,000 steps")
    if costs and run.bill:
        page.fact("loop cost", *costs)


def _counted(n: int, noun: str) -> str:
    return f"{format_count(n)} {noun}{'' if n == 1 else 's'}"


def _per(cost: LoopCost) -> str:
    duration = format_duration(cost.wall_s)
    return duration if cost.usd is None else f"{format_usd(cost.usd)} and {duration}"


def _system(page: _Page, run: Run) -> None:
    system = run.system
    if system is None:
        page.fact("machine", "use not known: it could not be sampled")
        return
    parts = [f"{_cores(system.cores_used)} of {_cores(system.cores_available)} cores used"]
    if system.peak_memory_bytes is not None:
        parts.append(f"peak memory {format_bytes(system.peak_memory_bytes)}")
    if system.read_bytes is not None:
        parts.append(f"{format_bytes(system.read_bytes)} read")
    if system.written_bytes is not None:
        parts.append(f"{format_bytes(system.written_bytes)} written")
    if system.cpu_pressure_fraction is not None:
        waited = format_share(system.cpu_pressure_fraction)
        parts.append(f"CPU pressure {waited} of the time")
    if system.kernel_active_fraction is not None:
        active = format_share(system.kernel_active_fraction)
        parts.append(f"some kernel ran {active} of the time")
    if system.throttled_s:
        parts.append(f"stopped by the CPU quota for {format_duration(system.throttled_s)}")
    page.fact("machine", *parts)


def _cores(n: float) -> str:
    if not math.isfinite(n):
        return UNKNOWN
    tenths = f"{n:,.1f}"
    if n > 0 and float(f"{n:.1f}") == 0:
        return "<0.1"
    return tenths.removesuffix(".0") if n else "0"


def _imbalance(run: Run) -> Iterator[str]:
    """Own up when a record does not keep the promise that its lines add up."""
    total = run.wall_s * max(1, run.device_count)
    billed = math.fsum(line.seconds for line in run.bill)
    if run.bill and not abs(billed - total) <= max(_BALANCE_S, 1e-9 * total):
        yield (
            f"the causes add up to {format_duration(billed)}, not to the total of "
            f"{format_duration(total)}: this is a fault of thrifty"
        )
