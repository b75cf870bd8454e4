"""What the live line knows while the script trains."""

from dataclasses import dataclass
from typing import Literal

__all__ = ["Progress", "ProgressPhase"]

ProgressPhase = Literal["startup", "training", "validation", "checkpoint", "compile", "shutdown"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Progress:
    """One moment of a run in progress."""

    wall_s: float
    """Since the script's process started."""

    phase: ProgressPhase
    """What the training process is doing now."""

    steps: int | None
    """Optimizer updates so far."""

    epoch_fraction: float | None
    """Position in the current pass over the training loader, 0 to 1; None when its
    length is unknown or not to be believed (an endless sampler)."""

    epochs: int | None
    """Complete passes so far; None when no loader was seen."""

    epoch_eta_s: float | None
    """Until the current pass ends; None when ``epoch_fraction`` is None or too few steps
    were seen to say."""

    samples_per_s: float | None
    """Over about the last ten seconds."""

    input_wait_fraction: float | None
    """Share of about the last ten seconds of the loop spent waiting for data."""

    usd: float | None
    """Cost so far; None when no price is known."""
