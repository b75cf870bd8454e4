"""What this machine has, what machines can be rented, and what each costs."""

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
