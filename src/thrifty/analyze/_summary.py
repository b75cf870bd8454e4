"""The last sentence of a bill: the largest loss, what it cost, and what to type next."""

import shlex
from dataclasses import replace

from thrifty.records import BillLine, Cause, Run

__all__ = ["conclude"]

_GOOD: tuple[Cause, ...] = ("compute", "unattributed")
_MOSTLY = 0.5
_ENDED_EARLY = ("failed", "killed", "interrupted")

_MEANING: dict[Cause, str] = {
    "startup": "went by before the first step",
    "input_wait": "went to waiting for data",
    "transfer": "went to copying data to the device",
    "host": "went to the CPU side keeping the loop waiting, by Python or by sleeping",
    "cpu_wait": "went to threads that were ready but had no core",
    "communication": "went to waiting for other ranks",
    "validation": "went to validation",
    "checkpoint": "went to saving checkpoints",
    "compile": "went to compiling",
    "logging": "went to logging",
    "shutdown": "went by after the last step",
}

_LOOK = "To see which lines it is"
_NEXT: dict[Cause, tuple[str, str]] = {
    "startup": (_LOOK, "{look}"),
    "input_wait": ("Give the DataLoader one worker more, then compare", "{again}"),
    "transfer": ("Pin the loader's memory, then compare", "{again}"),
    "host": (_LOOK, "{look}"),
    "cpu_wait": ("Stop what else runs, or compare with one thread", "OMP_NUM_THREADS=1 {again}"),
    "communication": ("Compare with one device", "{again}"),
    "validation": ("Validate less often or on fewer batches, then compare", "{again}"),
    "checkpoint": ("Save less often, then compare", "{again}"),
    "compile": ("A longer run pays it once; compare without torch.compile", "{again}"),
    "logging": ("Log less often, then compare", "{again}"),
    "shutdown": (_LOOK, "{look}"),
}


def conclude(run: Run) -> Run:
    """Say the one thing that a reader should take away, and what to type next.

    Args:
        run: With its bill; its own ``summary`` and ``next_command`` are not read.

    Returns:
        The run with both.
    """
    sentence, command = _conclusion(run)
    return replace(run, summary=sentence, next_command=command)


def _conclusion(run: Run) -> tuple[str, str]:
    again = _again(run)
    if run.status == "no_training":
        what = "No training step was seen; see what the script takes"
        return what, shlex.join([*_words(run), "--help"]) if _is_script(run) else again
    stopped = ""
    if run.status in _ENDED_EARLY:
        if not run.steps:
            return f"It ended before its first step, {_spent(run)}. When it is mended", again
        steps = "step" if run.steps == 1 else "steps"
        stopped = f"It ended after {run.steps:,} {steps}, {_spent(run)}. "
    losses = [line for line in run.bill if line.cause not in _GOOD and line.seconds > 0]
    unknown = next((line for line in run.bill if line.cause == "unattributed"), None)
    if unknown is not None and unknown.fraction > _MOSTLY:
        return f"{stopped}Most of this run could not be seen. If it is Python", (
            "thrifty run train.py"
        )
    if not losses:
        return f"{stopped}No loss was found.", again
    worst = max(losses, key=lambda line: line.seconds)
    what, command = _NEXT[worst.cause]
    sentence = f"{stopped}Largest loss: {_amount(worst)} {_MEANING[worst.cause]}. {what}"
    return sentence, command.format(again=again, look=_look(run))


def _words(run: Run) -> list[str]:
    """Give what starts the script without us."""
    module, _, name = run.script.partition(" ")
    if module == "-m" and name:
        return ["python", "-m", name]
    return ["python", run.script] if _is_script(run) else [run.script]


def _is_script(run: Run) -> bool:
    """Tell a Python script or module from any other command."""
    return run.script.startswith("-m ") or run.script.endswith((".py", ".pyz", "/"))


def _look(run: Run) -> str:
    return "py-spy record -o profile.svg -s -- " + shlex.join([*_words(run), *run.argv])


def _again(run: Run) -> str:
    """Give the command that runs it again, as it was priced."""
    options: list[str] = []
    price = run.price
    if price is not None and price.machine is not None:
        options += ["--machine", price.machine]
        if price.kind == "spot":
            options.append("--spot")
    elif price is not None and price.source == "--price":
        options += ["--price", f"{price.usd_per_hour:g}"]
    words = _words(run)
    if words[0] == "python":
        words = words[1:]
    elif not _is_script(run):
        words = ["--", *words]
    return shlex.join(["thrifty", "run", *options, *words, *run.argv])


def _spent(run: Run) -> str:
    usd = "" if run.cost_usd is None else f" and ${run.cost_usd:.2g}"
    code = "" if not run.exit_code else f" (exit code {run.exit_code})"
    return f"after {_seconds(run.wall_s)}{usd}{code}"


def _amount(line: BillLine) -> str:
    share = f"{line.fraction * 100:.0f} %" if line.fraction >= 0.01 else "under 1 %"  # noqa: PLR2004
    usd = "" if line.usd is None else f", ${line.usd:.2g}" if line.usd < 1 else f", ${line.usd:.2f}"
    return f"{_seconds(line.seconds)} ({share}{usd})"


def _seconds(seconds: float) -> str:
    if seconds < 120:  # noqa: PLR2004 (two minutes read better in seconds)
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min"
