"""Packed containers, and the loader that feeds a device from them."""

__all__: list[str] = []
