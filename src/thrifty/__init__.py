"""Know where every device-second and dollar of a training run goes, and get it back."""

import importlib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from thrifty.launch._api import bill, run, runs
    from thrifty.machines import inventory
    from thrifty.records import Device, Price, Run, ThriftyError

__all__ = ["Device", "Price", "Run", "ThriftyError", "bill", "inventory", "run", "runs"]

_HOMES = {
    "Device": "records",
    "Price": "records",
    "Run": "records",
    "ThriftyError": "records",
    "bill": "launch._api",
    "inventory": "machines",
    "run": "launch._api",
    "runs": "launch._api",
}


def __getattr__(name: str) -> object:
    """Import a public name when it is first asked for: a script waits for our imports."""
    if name not in _HOMES:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
