"""What the bill of each script must say: one function per script, and one for all.

A check is a sentence, whether it holds, and the figures it looked at. The sentences come
from reading the scripts: which loop trains, which only evaluates, what runs before the
first step.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from _catalogue import Script
from _execute import Outcome

__all__ = ["CHECKS", "Check", "check_common", "check_script"]

_CAUSES = (
    *("startup", "input_wait", "transfer", "compute", "host", "cpu_wait", "communication"),
    *("validation", "checkpoint", "compile", "logging", "shutdown", "unattributed"),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Check:
    """One claim about one record."""

    claim: str
    """What a profiler must get right."""

    holds: bool
    """Whether the record says so."""

    seen: str
    """The figures it was read from."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Bill:
    """What the checks below look at, and shorthand for their questions."""

    record: dict[str, Any]

    text: str = ""
    """What ``thrifty bill`` prints for this run."""

    observed: Outcome | None = None
    """The run itself, for the figures that the script prints about itself."""

    def s(self, *causes: str) -> float:
        """Add up the seconds of some causes."""
        return sum(line["seconds"] for line in self.record["bill"] if line["cause"] in causes)

    def share(self, *causes: str) -> float:
        """Give the fraction of the wall time."""
        return self.s(*causes) / self.record["wall_s"]

    def more_than(self, limit: float, *causes: str, below: float = 1.0) -> Check:
        """Claim that some causes together took a share within bounds."""
        share = self.share(*causes)
        return Check(
            claim=f"{' + '.join(causes)} between {limit:.0%} and {below:.0%} of the wall time",
            holds=limit < share <= below,
            seen=f"{share:.1%} ({self.s(*causes):.2f} s)",
        )

    def none_of(self, *causes: str) -> Check:
        """Claim that the script has nothing that could be billed to these."""
        return Check(
            claim=f"no {' or '.join(causes)}",
            holds=self.s(*causes) == 0,
            seen=f"{self.s(*causes):.3f} s",
        )

    def silent_on(self, words: str, reason: str) -> Check:
        """Claim that the printed bill does not say something."""
        found = [line.strip() for line in self.text.splitlines() if words in line]
        return Check(claim=f"no '{words}': {reason}", holds=not found, seen=" | ".join(found))

    def same(self, field: str, expected: object) -> Check:
        """Claim the value of one field."""
        found = self.record.get(field)
        return Check(claim=f"{field} = {expected}", holds=found == expected, seen=repr(found))


def check_common(
    script: Script, record: dict[str, Any], plain: Outcome, observed: Outcome
) -> Iterator[Check]:
    """Check what must hold for every script.

    Yields:
        The books balance, the steps are exact, the wall time is the script's own.
    """
    bill = _Bill(record=record)
    total_s = sum(line["seconds"] for line in record["bill"])
    due_s = record["wall_s"] * max(1, record["device_count"])
    yield Check(
        claim="the bill adds up to the wall time within 1 ms",
        holds=abs(total_s - due_s) <= 0.001,
        seen=f"{total_s:.4f} of {due_s:.4f} s",
    )
    yield Check(
        claim="every cause once, in order, none negative",
        holds=tuple(line["cause"] for line in record["bill"]) == _CAUSES
        and all(line["seconds"] >= 0 for line in record["bill"]),
        seen=", ".join(f"{line['cause']} {line['seconds']:.3f}" for line in record["bill"]),
    )
    yield bill.same("steps", script.steps)
    yield bill.same("exit_code", plain.exit_code)
    yield bill.same("status", "completed")
    yield bill.same("framework", "torch")
    yield Check(
        claim="wall_s is the script's: below the runner's, by less than 2 s",
        holds=0 <= observed.wall_s - record["wall_s"] < 2,
        seen=f"{record['wall_s']:.2f} s, runner {observed.wall_s:.2f} s",
    )
    yield Check(
        claim="at most 10 % unattributed",
        holds=bill.share("unattributed") <= 0.1,
        seen=f"{bill.share('unattributed'):.1%}",
    )
    yield Check(
        claim="start-up is more than importing torch takes (0.3 s)",
        holds=bill.s("startup") > 0.3,
        seen=f"{bill.s('startup'):.2f} s",
    )
    # Leaving Python with torch loaded takes time, whatever the script did last.
    yield Check(
        claim="shutdown is more than nothing (0.05 s)",
        holds=bill.s("shutdown") > 0.05,
        seen=f"{bill.s('shutdown'):.3f} s",
    )


def _mnist(bill: _Bill) -> Iterator[Check]:
    yield bill.more_than(0.0, "validation", below=0.6)
    # ToTensor and Normalize run inside next(loader) on the main thread.
    yield bill.more_than(0.005, "input_wait", below=0.6)
    yield bill.more_than(0.05, "startup", below=0.95)
    yield bill.same("samples", 4000)  # 2 passes over 2,000 images; the test set is not in it
    yield bill.same("epochs", 2)
    yield bill.none_of("checkpoint", "compile", "communication")


def _dcgan(bill: _Bill) -> Iterator[Check]:
    yield bill.more_than(0.0, "input_wait", below=0.9)  # two workers draw random images
    yield bill.more_than(0.0, "checkpoint", below=0.3)  # two torch.save calls
    yield bill.none_of("validation", "compile")
    yield bill.same("samples", 1000)
    yield bill.same("epochs", 1)


def _vae(bill: _Bill) -> Iterator[Check]:
    yield bill.more_than(0.0, "validation", below=0.6)
    yield bill.more_than(0.0, "input_wait", below=0.6)
    yield bill.none_of("checkpoint", "compile")  # save_image is no checkpoint
    yield bill.same("samples", 4000)


def _ppo(bill: _Bill) -> Iterator[Check]:
    # The rollout runs without gradients, but it is the training's own data collection.
    yield bill.none_of("validation", "checkpoint", "compile")
    yield bill.more_than(0.2, "host", "compute", "cpu_wait", "logging", below=0.99)
    # The environments are Python: some 3 % of the loop on a quiet machine.
    yield bill.more_than(0.002, "host", below=0.5)
    # No loader: what is not seen is not claimed.
    yield bill.same("epochs", None)


def _nanogpt(bill: _Bill) -> Iterator[Check]:
    yield bill.more_than(0.0, "validation", below=0.6)
    yield bill.more_than(0.0, "checkpoint", below=0.3)
    yield bill.none_of("compile", "communication")
    yield bill.same("epochs", None)


def _makemore(bill: _Bill) -> Iterator[Check]:
    yield bill.more_than(0.0, "validation", below=0.5)
    yield bill.more_than(0.0, "input_wait", below=0.9)
    # A sampler of 1e10 draws: no pass ever ends.
    yield Check(
        claim="no pass over the data is claimed",
        holds=bill.record["epochs"] in (None, 0),
        seen=repr(bill.record["epochs"]),
    )
    yield bill.silent_on("epoch", "a pass of 1e10 draws never ends")
    yield bill.same("samples", 505 * 32)
    yield bill.none_of("compile")


def _adder(bill: _Bill) -> Iterator[Check]:
    # The callback of the first batch evaluates both splits before the second step.
    yield bill.more_than(0.0, "validation", below=0.6)
    yield bill.none_of("compile", "communication")
    yield bill.same("samples", 120 * 64)


def _lightning(bill: _Bill) -> Iterator[Check]:
    yield bill.more_than(0.5, "startup")
    # Two single batches of a 64-weight layer: what follows them is leaving Python.
    yield bill.more_than(0.0, "validation", below=0.1)
    yield bill.same("samples", 2)
    yield bill.same("samples_per_s", None)
    yield bill.silent_on("per 1,000 steps", "one step is no rate")


def _ignite(bill: _Bill) -> Iterator[Check]:
    # The evaluator passes over the training data first, then over the validation data.
    yield from _ignite_evaluators(bill)
    yield bill.same("samples", 2000)
    yield bill.same("epochs", 1)
    yield bill.none_of("checkpoint", "compile")


def _ignite_evaluators(bill: _Bill) -> Iterator[Check]:
    """Compare with the time that Ignite's own log gives its two evaluator runs."""
    log = "" if bill.observed is None else bill.observed.stderr
    found = re.findall(r"evaluator INFO: Engine run finished.*?(\d+):(\d+):(\d+\.\d+)", log)
    own_s = sum(3600 * int(hours) + 60 * int(minutes) + float(s) for hours, minutes, s in found)
    yield Check(
        claim=f"validation is what the evaluators log, {own_s:.2f} s, within 20 % + 0.1 s",
        holds=len(found) == 2 and abs(bill.s("validation") - own_s) <= 0.2 * own_s + 0.1,
        seen=f"{bill.s('validation'):.2f} s",
    )


def _keras_loop(bill: _Bill) -> Iterator[Check]:
    yield bill.more_than(0.05, "compute", "host", "cpu_wait", below=0.95)
    yield bill.same("samples", 4000)
    yield bill.same("epochs", 2)
    yield bill.none_of("validation", "checkpoint", "compile")


def _keras_fit(bill: _Bill) -> Iterator[Check]:
    yield bill.more_than(0.5, "startup")
    yield bill.same("samples_per_s", None)
    yield bill.silent_on("per 1,000 steps", "two steps are no rate")


def _compiled(bill: _Bill) -> Iterator[Check]:
    yield bill.more_than(0.3, "compile")
    # Compiling the evaluation's graph is compiling, not validation.
    yield bill.more_than(0.0, "validation", below=0.05)
    # 21 steps of some 15 ms on a quiet machine: all else in the loop is the compiler's.
    yield bill.more_than(0.0, "compute", "host", "cpu_wait", below=0.15)
    loop_s = bill.s("compute", "host", "cpu_wait", "input_wait")
    about_s = loop_s / 21 * 1000
    yield Check(
        claim=f"the cost per 1,000 steps leaves the compiling out: about {about_s:.0f} s",
        holds="min" not in "".join(re.findall(r"loop cost(.*)per 1,000 steps", bill.text)),
        seen="".join(re.findall(r"loop cost.*", bill.text)),
    )


CHECKS: dict[str, Callable[[_Bill], Iterator[Check]]] = {
    "S01": _mnist,
    "S03": _dcgan,
    "S05": _vae,
    "S08": _ppo,
    "S09": _nanogpt,
    "S11": _makemore,
    "S13": _adder,
    "S15": _lightning,
    "S16": _ignite,
    "S18": _keras_loop,
    "S20": _keras_fit,
    "S25": _compiled,
}
"""What the note of each script asks for."""


def check_script(
    script: Script, record: dict[str, Any], text: str, observed: Outcome
) -> Iterator[Check]:
    """Check what the script's own note asks for.

    Yields:
        One check per claim.
    """
    yield from CHECKS[script.number](_Bill(record=record, text=text, observed=observed))
