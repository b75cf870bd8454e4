"""The errors. Every one says what happened, and what to do about it."""

__all__ = ["DeviceQueryError", "LedgerError", "PriceError", "ThriftyError", "UsageError"]


class ThriftyError(Exception):
    """Base of all errors raised on purpose.

    Args:
        problem: What happened, with the value that was met.
        fix: The next thing to type or change. It has no default, so that an error
            without a remedy cannot be written.
    """

    def __init__(self, problem: str, *, fix: str) -> None:
        super().__init__(f"{problem}\n  fix: {fix}")
        self.problem = problem
        self.fix = fix


class DeviceQueryError(ThriftyError):
    """The driver is installed but did not answer."""


class PriceError(ThriftyError):
    """A price or a machine name that cannot be used."""


class LedgerError(ThriftyError):
    """The ledger has no such run, or cannot be read or written."""


class UsageError(ThriftyError):
    """An option or argument that cannot be used."""
