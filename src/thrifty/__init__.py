"""Know where every device-second and dollar of a training run goes, and get it back."""

from thrifty.records import Device, ThriftyError

__all__ = ["Device", "ThriftyError"]
