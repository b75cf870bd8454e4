"""The last sentence of a bill: the largest loss, what it cost, what to type next."""

import shlex

from thrifty.records import BillLine, Cause, Run

__all__ = ["summarise"]

_GOOD: tuple[Cause, ...] = ("compute", "unattributed")

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

_NEXT: dict[Cause, str] = {
    "startup": "a longer run pays it once; time its imports with: python -X importtime {script}",
    "input_wait": "give the DataLoader one worker more, then compare: {again}",
    "transfer": "pin the loader's memory, then compare: {again}",
    "host": "see which line it is with: py-spy record -o profile.svg -- python {script}",
    "cpu_wait": "stop what else runs or set fewer threads, then compare: OMP_NUM_THREADS=1 {again}",
    "communication": "compare with one device: {again}",
    "validation": "validate less often or on fewer batches, then compare: {again}",
    "checkpoint": "save less often, then compare: {again}",
    "compile": "a longer run pays it once; compare without torch.compile: {again}",
    "logging": "log less often, then compare: {again}",
    "shutdown": "see what the script does at its end: python -X faulthandler {script}",
}


def summarise(run: Run) -> str:
    """Say the one thing that a reader should take away.

    Args:
        run: With its bill; its own ``summary`` is not read.
    """
    script = _typed(run)
    again = f"thrifty run {script}"
    total = sum(line.seconds for line in run.bill)
    if run.status == "no_training":
        return (
            f"No training step was seen in {_seconds(run.wall_s)}: to see the script's own "
            f"command line, type: thrifty run {run.script} --help"
            if total
            else "No training step was seen."
        )
    if run.status in {"failed", "killed", "interrupted"} and not run.steps:
        return _early_end(run)
    losses = [line for line in run.bill if line.cause not in _GOOD and line.seconds > 0]
    if not losses:
        unknown = next((line for line in run.bill if line.cause == "unattributed"), None)
        if unknown is not None and unknown.fraction > 0.5:  # noqa: PLR2004 (most of it)
            return (
                "Where this run's time went could not be seen; if it is Python, start it as: "
                "thrifty run train.py"
            )
        return "No loss was found."
    worst = max(losses, key=lambda line: line.seconds)
    command = _NEXT[worst.cause].format(script=script, again=again)
    return f"Largest loss: {_amount(worst)} {_MEANING[worst.cause]}; {command}"


def _early_end(run: Run) -> str:
    usd = "" if run.cost_usd is None else f" and ${run.cost_usd:.2g}"
    return (
        f"It ended before its first step, after {_seconds(run.wall_s)}{usd}: mend it where a "
        f"start is free, then type: thrifty run {_typed(run)}"
    )


def _typed(run: Run) -> str:
    """Give the script and its arguments as a shell takes them."""
    module, _, name = run.script.partition(" ")
    words = [module, name] if module == "-m" and name else [run.script]
    return shlex.join([*words, *run.argv])


def _amount(line: BillLine) -> str:
    share = f"{line.fraction * 100:.0f} %" if line.fraction >= 0.01 else "under 1 %"  # noqa: PLR2004
    usd = "" if line.usd is None else f", ${line.usd:.2g}" if line.usd < 1 else f", ${line.usd:.2f}"
    return f"{_seconds(line.seconds)} ({share}{usd})"


def _seconds(seconds: float) -> str:
    if seconds < 120:  # noqa: PLR2004 (two minutes read better in seconds)
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min"
