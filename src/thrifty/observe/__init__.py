"""Measure steps, stalls and transfers of a running script."""

__all__: list[str] = []
