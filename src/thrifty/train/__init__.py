"""Exact batches, accumulation, precision, data and model parallel training."""

__all__: list[str] = []
