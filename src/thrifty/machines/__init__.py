"""What this machine has, what machines can be rented, and what each costs."""

import importlib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from thrifty.machines._catalogue import MachineType, find_machine, machine_types
    from thrifty.machines._config import (
        CONFIG_KEYS,
        ConfigKey,
        LiveStyle,
        SavedDefaults,
        known_key,
        read_defaults,
        save_default,
        unset_default,
    )
    from thrifty.machines._cores import usable_cores, usable_memory_bytes
    from thrifty.machines._device_samples import DeviceSample, DeviceSampler
    from thrifty.machines._home import thrifty_home
    from thrifty.machines._inventory import inventory
    from thrifty.machines._pricing import price_age_days, resolve_price

__all__ = [
    "CONFIG_KEYS",
    "ConfigKey",
    "DeviceSample",
    "DeviceSampler",
    "LiveStyle",
    "MachineType",
    "SavedDefaults",
    "find_machine",
    "inventory",
    "known_key",
    "machine_types",
    "price_age_days",
    "read_defaults",
    "resolve_price",
    "save_default",
    "thrifty_home",
    "unset_default",
    "usable_cores",
    "usable_memory_bytes",
]

_HOMES = {
    "CONFIG_KEYS": "_config",
    "ConfigKey": "_config",
    "DeviceSample": "_device_samples",
    "DeviceSampler": "_device_samples",
    "LiveStyle": "_config",
    "MachineType": "_catalogue",
    "SavedDefaults": "_config",
    "find_machine": "_catalogue",
    "inventory": "_inventory",
    "known_key": "_config",
    "machine_types": "_catalogue",
    "price_age_days": "_pricing",
    "read_defaults": "_config",
    "resolve_price": "_pricing",
    "save_default": "_config",
    "thrifty_home": "_home",
    "unset_default": "_config",
    "usable_cores": "_cores",
    "usable_memory_bytes": "_cores",
}


def __getattr__(name: str) -> object:
    """Import a public name when it is first asked for: a script waits for our imports."""
    if name not in _HOMES:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
