"""Optuna search that stops at a budget."""

__all__: list[str] = []
