"""Every run ever made, and the refusal to repeat one."""

__all__: list[str] = []
