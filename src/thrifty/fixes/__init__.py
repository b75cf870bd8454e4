"""One file per fix: when it applies, what it saves, what it changes."""

__all__: list[str] = []
