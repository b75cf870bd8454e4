"""Records in, text, HTML or terminal screen out."""

__all__: list[str] = []
