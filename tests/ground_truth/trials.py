"""Trials of known losses: start one under ``thrifty run``, set its bill beside the truth.

A share is compared within its own run wherever the script could time what else falls under the
same cause (its start-up without the sleep, its fetches without the loss, its end); only for
``host`` is the clean control of the same script subtracted.
"""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from thrifty.records import CAUSES

__all__ = ["CAUSE_OF", "KINDS", "SCRIPT", "Trial", "loss_for", "run_trial"]

SCRIPT = Path(__file__).with_name("injected.py")
THRIFTY = str(Path(sys.executable).with_name("thrifty"))
PRICE_USD_PER_HOUR = 3.6  # a tenth of a cent per second

CAUSE_OF = {
    "getitem_sleep": "input_wait",
    "getitem_cpu": "input_wait",
    "workers_sleep": "input_wait",
    "step_sleep": "host",
    "step_cpu": "host",
    "forward_sleep": "host",
    "between_sleep": "host",
    "startup_sleep": "startup",
    "tail_sleep": "shutdown",
    "checkpoint": "checkpoint",
    "validation": "validation",
    "validation_without_eval": "validation",
}
KINDS = tuple(CAUSE_OF)
PHASES = {"startup", "shutdown", "checkpoint", "validation"}
"""Their time is theirs even while they wait for a core."""


@dataclass(frozen=True)
class Trial:
    """One run: what the script wrote down, and what the bill says."""

    kind: str
    record: dict[str, Any]
    truth: dict[str, Any]

    @property
    def wall_s(self) -> float:
        return float(self.record["wall_s"])

    def billed_s(self, cause: str) -> float:
        """Seconds that the bill gives to a cause."""
        (seconds,) = [line["seconds"] for line in self.record["bill"] if line["cause"] == cause]
        return float(seconds)

    def _told_s(self, name: str, *, with_wait: bool) -> float:
        told = self.truth[name]
        return told["spent_s"] - (0 if with_wait else told["waited_s"])

    @property
    def injected_s(self) -> float:
        """Seconds that were really lost, without those that belong to ``cpu_wait``."""
        if self.kind == "workers_sleep":
            return self._told_s("fetch", with_wait=False)  # what two workers could not hide
        return self._told_s("lost", with_wait=CAUSE_OF[self.kind] in PHASES)

    def innocent_s(self, control: "Trial") -> float:
        """Seconds that fall under the same cause without any injection."""
        cause = CAUSE_OF[self.kind]
        if cause == "startup":
            return self.truth["loop_age_s"] - self.injected_s
        if cause == "shutdown":
            return self.wall_s - self.truth["loop_end_age_s"] - self.injected_s
        if cause == "input_wait":
            return self._told_s("fetch", with_wait=False) - self.injected_s
        return control.billed_s(cause)

    @property
    def injected_fraction(self) -> float:
        return self.injected_s / self.wall_s

    def excess_fraction(self, control: "Trial") -> float:
        """Share of the wall time that the bill gives to the injection."""
        return (self.billed_s(CAUSE_OF[self.kind]) - self.innocent_s(control)) / self.wall_s

    def off_balance_s(self) -> float:
        """Distance of the bill's sum from the wall time."""
        total_s = self.wall_s * max(1, self.record["device_count"])
        return abs(sum(line["seconds"] for line in self.record["bill"]) - total_s)

    def check_books(self) -> None:
        """Every cause once and in order, none negative, seconds and dollars add up."""
        bill = self.record["bill"]
        assert [line["cause"] for line in bill] == list(CAUSES)
        assert all(line["seconds"] >= 0 for line in bill)
        assert self.off_balance_s() < 1e-3
        assert abs(sum(line["fraction"] for line in bill) - 1) < 1e-3
        cost_usd = self.wall_s * PRICE_USD_PER_HOUR / 3600
        assert abs(self.record["cost_usd"] - cost_usd) < 1e-6
        assert abs(sum(line["usd"] for line in bill) - cost_usd) < 1e-5


def loss_for(kind: str, fraction: float, clean_s: float, clean_loop_s: float) -> float:
    """Choose how long to sleep in all, for about that share of the run's wall time.

    Args:
        kind: What is injected.
        fraction: The share wanted, 0 to 0.9.
        clean_s: Wall time of the clean run.
        clean_loop_s: Time of its loop, which two workers can hide.
    """
    loss_s = fraction / (1 - fraction) * clean_s
    if kind == "workers_sleep" and fraction > 0:
        return 2 * (loss_s + clean_loop_s)
    return loss_s


def run_trial(
    folder: Path,
    kind: str,
    loss_s: float,
    *,
    before: tuple[str, ...] = (),
    more: tuple[str, ...] = (),
) -> Trial:
    """Run the script once under thrifty.

    Args:
        folder: An empty or missing folder for its files.
        kind: What to inject.
        loss_s: How much of it, in all.
        before: A command to put in front (``taskset -c 0``).
        more: More arguments for the script.
    """
    folder.mkdir(parents=True, exist_ok=True)
    environment = {k: v for k, v in os.environ.items() if not k.startswith("THRIFTY")}
    environment["THRIFTY_HOME"] = str(folder / "home")
    script = [str(SCRIPT), "--kind", kind, "--loss", f"{loss_s:.4f}", "--truth", "truth.json"]
    done = subprocess.run(
        [
            *before,
            *[THRIFTY, "run", "--json", "record.json", "--price", str(PRICE_USD_PER_HOUR)],
            *script,
            *more,
        ],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    if done.returncode or done.stderr:
        message = f"{kind} ended with {done.returncode}: {done.stderr.decode()}"
        raise RuntimeError(message)
    return Trial(
        kind=kind,
        record=json.loads((folder / "record.json").read_text()),
        truth=json.loads((folder / "truth.json").read_text()),
    )
