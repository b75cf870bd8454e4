"""Paired trials of a script with and without a change: the saving, its interval, and the loss."""

__all__: list[str] = []
