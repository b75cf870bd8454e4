"""Read a checkpoint and strip what inference does not need."""

__all__: list[str] = []
