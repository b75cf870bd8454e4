"""Count steps: a step is the largest per-optimizer count within a phase of training.

The two optimizers of a GAN, and the thousand of an optimizer-in-backward, interleave: one
phase, so their largest count is the number of steps. Two trainings one after the other do
not: their counts add up. Without any optimizer, backward passes are counted.
"""

__all__ = ["StepCounter"]


class StepCounter:
    """Count updates per optimizer, and when each optimizer was first and last seen.

    Example:
        >>> gan = StepCounter()
        >>> for _ in range(5):
        ...     gan.fetch(), gan.step(0), gan.step(1)
        (None, None, None)
        (None, None, None)
        (None, None, None)
        (None, None, None)
        (None, None, None)
        >>> gan.total()
        5
    """

    def __init__(self) -> None:
        self._fetches = 0
        self._backwards = 0
        self._seen: dict[int, list[int]] = {}
        self._total = 0
        self._stale = False

    @property
    def counts_backwards(self) -> bool:
        """No optimizer was seen: the total counts backward passes."""
        return not self._seen and self._backwards > 0

    def fetch(self) -> None:
        """A batch for training was fetched."""
        self._fetches += 1

    def backward(self) -> None:
        """A backward pass began."""
        self._backwards += 1

    def step(self, optimizer: int) -> None:
        """An optimizer updated its parameters."""
        place = self._fetches or self._backwards
        seen = self._seen.get(optimizer)
        if seen is None:
            self._seen[optimizer] = [place, place, 1]
        else:
            seen[1] = place
            seen[2] += 1
        self._stale = True

    def total(self) -> int:
        """Give the steps so far."""
        if not self._seen:
            return self._backwards
        if self._stale:
            self._total = self._count()
            self._stale = False
        return self._total

    def _count(self) -> int:
        total = largest = 0
        end = -1
        for first, last, count in sorted(self._seen.values()):
            if first > end >= 0:
                total += largest
                largest = 0
            largest = max(largest, count)
            end = max(end, last)
        return total + largest
