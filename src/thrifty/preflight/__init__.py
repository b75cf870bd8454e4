"""Run a script for a few steps on the CPU before any device is paid for."""

__all__: list[str] = []
