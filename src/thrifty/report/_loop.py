"""What the training loop alone took: the basis of cost per epoch and per 1,000 steps."""

from dataclasses import dataclass

from thrifty.records import BillLine, Run

__all__ = ["LoopCost", "largest_loss", "loop_cost"]

_OUTSIDE_THE_LOOP = ("startup", "shutdown", "compile")
_NOT_A_LOSS = ("compute", "unattributed")


@dataclass(frozen=True, kw_only=True, slots=True)
class LoopCost:
    """The training loop: every cause of the bill but startup, shutdown and compile."""

    wall_s: float
    """Wall seconds: the loop's device-seconds divided by the number of devices."""

    usd: float | None
    """Cost; None when no price is known."""

    def divided_by(self, count: float) -> "LoopCost":
        """Give the share of one of ``count`` equal parts, such as epochs."""
        usd = None if self.usd is None else self.usd / count
        return LoopCost(wall_s=self.wall_s / count, usd=usd)


def loop_cost(run: Run) -> LoopCost:
    """Sum what the training loop took: everything but startup, shutdown and compile.

    Those a longer run pays once as well. Validation, checkpoints and what is unattributed
    count: they come again with every epoch.
    """
    lines = [line for line in run.bill if line.cause not in _OUTSIDE_THE_LOOP]
    known = [line.usd for line in lines if line.usd is not None]
    return LoopCost(
        wall_s=sum(line.seconds for line in lines) / max(1, run.device_count),
        usd=sum(known) if known and len(known) == len(lines) else None,
    )


def largest_loss(run: Run) -> BillLine | None:
    """Find the largest cause that is neither compute nor unattributed; None without any."""
    losses = [line for line in run.bill if line.cause not in _NOT_A_LOSS and line.seconds > 0]
    return max(losses, key=lambda line: line.seconds, default=None)
