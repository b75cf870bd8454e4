"""One line that says how a run goes while it goes.

It is drawn beside a script that trains, several times a second, so it is made of plain strings.
Nothing in it comes from the script but numbers.
"""

import math

from thrifty.records import Progress
from thrifty.report._format import (
    format_count,
    format_rate,
    format_usd,
    format_whole_duration,
)

__all__ = ["live_text"]

_GAP = "  "
_MINUTE_S = 60
_HOUR_MIN = 60
_ETA_ROUND_FROM_S = 90


def live_text(progress: Progress, *, width: int) -> str:
    """Write one moment of a run in at most ``width`` columns, all ASCII.

    What is unknown is left out. On a narrow line the least important parts go first: the name,
    the step, the phase while it trains, samples/s, the ETA, input wait, dollars, progress.

    Args:
        progress: The moment.
        width: Columns.
    """
    parts = _parts(progress)
    shown = [text for _, text in parts if text]
    for _, least in sorted(parts):
        line = _GAP.join(shown).replace(f"{_GAP}(ETA", " (ETA")
        if len(line) <= width:
            return line
        if least:
            shown.remove(least)
    return ""


def _parts(progress: Progress) -> list[tuple[int, str]]:
    """Give importance and text of each part, in the order in which they stand."""
    steps = _known(progress.steps)
    rate = _known(progress.samples_per_s)
    wait = _known(progress.input_wait_fraction)
    usd = _known(progress.usd)
    return [
        (0, "thrifty"),
        (9, format_whole_duration(progress.wall_s)),
        (2 if progress.phase == "training" else 8, progress.phase),
        (7, _epoch(progress)),
        (4, _eta(progress)),
        (1, "" if steps is None else f"step {format_count(steps)}"),
        (3, "" if rate is None else f"{format_rate(rate)} samples/s"),
        (5, "" if wait is None else f"input wait {round(_clamped(wait) * 100)} %"),
        (6, "" if usd is None else format_usd(usd)),
    ]


def _known(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _clamped(fraction: float) -> float:
    return min(max(fraction, 0.0), 1.0)


def _epoch(progress: Progress) -> str:
    fraction = _known(progress.epoch_fraction)
    # Rounded down: 100 % is said when the pass is complete, not shortly before.
    done = "" if fraction is None else f"{math.floor(_clamped(fraction) * 100)} %"
    if progress.epochs is None:
        return done
    # After the end of a pass, validation still belongs to it.
    between = progress.phase != "training" and fraction is None and progress.epochs > 0
    current = f"epoch {format_count(progress.epochs + (0 if between else 1))}"
    return f"{current}: {done}" if done else current


def _eta(progress: Progress) -> str:
    eta_s = _known(progress.epoch_eta_s)
    if eta_s is None or _known(progress.epoch_fraction) is None:
        return ""
    eta_s = max(eta_s, 0.0)
    if eta_s < _ETA_ROUND_FROM_S:
        return f"(ETA {round(eta_s)} s)"
    minutes = round(eta_s / _MINUTE_S)
    if minutes < _HOUR_MIN:
        return f"(ETA {minutes} min)"
    return f"(ETA {format_whole_duration(minutes * _MINUTE_S)})"
