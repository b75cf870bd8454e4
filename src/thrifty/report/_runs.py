"""The ledger's list: one line per run, as much of it as the page is wide."""

from collections.abc import Sequence
from datetime import tzinfo

from thrifty.records import Run, RunStatus
from thrifty.report._bill import local_time
from thrifty.report._causes import cause_label, cause_style
from thrifty.report._format import format_count, format_duration, format_share, format_usd
from thrifty.report._loop import largest_loss
from thrifty.report._paint import Span, Style, paint
from thrifty.report._plain import cells, command_line, plain, shorten_middle

__all__ = ["render_runs"]

_NOTHING = "-"
_GAP = "  "
_MIN_WIDTH = 32
_MIN_SCRIPT = 12
_FULL_SCRIPT = 24

_STATUS: dict[RunStatus, tuple[str, Style]] = {
    "completed": ("completed", ""),
    "failed": ("failed", "stall"),
    "interrupted": ("interrupted", "overhead"),
    "killed": ("killed", "stall"),
    "incomplete": ("incomplete", "overhead"),
    "no_training": ("no training", "overhead"),
    "refused": ("refused", "overhead"),
    "running": ("running", "good"),
}

_RIGHT = ("run", "wall", "steps", "cost")

_COLUMNS = (
    ("run", "started", "script", "status", "wall", "steps", "cost", "largest loss"),
    ("run", "day", "script", "status", "wall", "steps", "cost", "largest loss"),
    ("run", "day", "script", "status", "wall", "cost", "largest loss"),
    ("run", "script", "status", "wall", "cost", "largest loss"),
    ("run", "script", "status", "wall", "cost"),
    ("run", "script", "status", "wall"),
    ("run", "script", "status"),
    ("run", "script"),
)
"""Which columns to show, from a wide page to a narrow one."""


def render_runs(
    runs: Sequence[Run],
    *,
    width: int = 80,
    colour: bool = False,
    ascii_only: bool = False,
    tz: tzinfo | None = None,
) -> str:
    """Write a list of runs, in the order given, as lines of at most ``width`` columns.

    The largest loss is the largest cause that is neither compute nor unattributed.

    Args:
        runs: The records; their texts are untrusted.
        width: Columns; fewer than 32 count as 32.
        colour: Write colours as escape sequences.
        ascii_only: For a stream that cannot encode the ellipsis.
        tz: Of the times shown; the machine's by default.

    Returns:
        Lines joined by newlines, without one at the end.
    """
    if not runs:
        return "No runs yet. To make one, type:\n  thrifty run train.py"
    width = max(width, _MIN_WIDTH)
    table = [_figures(run, tz) for run in runs]
    known = {
        name
        for name in ("steps", "cost", "largest loss")
        if any(row[name][0] != _NOTHING for row in table)
    }
    names, widths = _choose(table, known, width)
    for row, run in zip(table, runs, strict=True):
        row["script"] = (
            command_line(run.script, run.argv, width=widths["script"], ascii_only=ascii_only),
            "",
        )
    widths["script"] = max(len("script"), *(cells(row["script"][0]) for row in table))
    heading: dict[str, Span] = {
        name: ("started" if name == "day" else name, "dim") for name in names
    }
    return "\n".join(paint(_line(row, names, widths), colour=colour) for row in (heading, *table))


def _figures(run: Run, tz: tzinfo | None) -> dict[str, Span]:
    started = shorten_middle(plain(local_time(run.started_at, tz), ascii_only=True), 16)
    loss = largest_loss(run)
    loss_span: Span = (_NOTHING, "")
    if loss is not None:
        share = format_share(loss.fraction, decimals=0)
        loss_span = (f"{cause_label(loss.cause)} {share}", cause_style(loss.cause))
    return {
        "run": (_NOTHING if run.number is None else str(run.number), "bold"),
        "started": (started, ""),
        "day": (started[:10], ""),
        "status": _STATUS.get(run.status, (run.status, "")),
        "wall": (format_duration(run.wall_s), ""),
        "steps": (_NOTHING if run.steps is None else format_count(run.steps), ""),
        "cost": (_NOTHING if run.cost_usd is None else format_usd(run.cost_usd), ""),
        "largest loss": loss_span,
    }


def _choose(
    table: list[dict[str, Span]], known: set[str], width: int
) -> tuple[list[str], dict[str, int]]:
    """Take the most columns that leave the script enough room."""
    optional = {"steps", "cost", "largest loss"}
    names: list[str] = []
    widths: dict[str, int] = {}
    for index, columns in enumerate(_COLUMNS):
        names = [name for name in columns if name not in optional or name in known]
        widths = {
            name: max(len("started" if name == "day" else name), *(len(r[name][0]) for r in table))
            for name in names
            if name != "script"
        }
        room = width - sum(widths.values()) - len(_GAP) * (len(names) - 1)
        widths["script"] = room
        if room >= (_FULL_SCRIPT if index == 0 else _MIN_SCRIPT):
            break
    return names, widths


def _line(row: dict[str, Span], names: list[str], widths: dict[str, int]) -> list[Span]:
    spans: list[Span] = []
    for name in names:
        text, style = row[name]
        pad = " " * (widths[name] - cells(text))
        gap = _GAP if spans else ""
        lead, tail = (gap + pad, "") if name in _RIGHT else (gap, pad)
        spans.extend(((lead, ""), (text, style), (tail, "")))
    return spans
