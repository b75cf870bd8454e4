"""The all-in-one training loop, built from the pieces below it."""

__all__: list[str] = []
