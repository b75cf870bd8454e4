"""Pure functions from records to records: attribute, diagnose, predict, advise."""

__all__: list[str] = []
