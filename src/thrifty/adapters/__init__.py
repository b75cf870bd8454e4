"""The only code that knows a framework: torch, keras, lightning, ignite."""

__all__: list[str] = []
