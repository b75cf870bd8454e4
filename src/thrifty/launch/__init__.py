"""Start a script under observation, follow its children, close its books."""

__all__: list[str] = []
