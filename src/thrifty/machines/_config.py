"""The saved defaults: what a run costs and shows when its command line does not say.

Nothing here changes without ``thrifty config set``. Unknown keys of the file belong to
somebody else: they are told and kept.
"""

import difflib
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast, get_args

from thrifty.machines._catalogue import find_machine
from thrifty.machines._config_file import drop_value, line_of, read_values, write_value
from thrifty.machines._home import thrifty_home
from thrifty.machines._price_input import parse_usd_per_hour
from thrifty.records import PriceError, ThriftyError, UsageError

__all__ = [
    "CONFIG_KEYS",
    "ConfigKey",
    "LiveStyle",
    "SavedDefaults",
    "read_defaults",
    "save_default",
    "unset_default",
]

ConfigKey = Literal["price_usd_per_hour", "machine", "spot", "live"]
CONFIG_KEYS: tuple[ConfigKey, ...] = get_args(ConfigKey)
"""All keys, in the order in which ``thrifty config`` prints them."""

LiveStyle = Literal["row", "title", "off"]
_LIVE_STYLES: tuple[LiveStyle, ...] = get_args(LiveStyle)

_YES_NO = dict.fromkeys(("true", "yes", "on", "1"), True) | dict.fromkeys(
    ("false", "no", "off", "0"), False
)

_EXAMPLES: dict[ConfigKey, str] = {
    "price_usd_per_hour": "2.10",
    "machine": "aws:g5.xlarge",
    "spot": "true",
    "live": "title",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class SavedDefaults:
    """What the file says; None for a key that it does not set."""

    path: Path
    """The file, which need not exist."""

    price_usd_per_hour: float | None
    """Of the whole machine; wins over ``machine``."""

    machine: str | None
    """``provider:instance`` of the catalogue."""

    spot: bool | None
    """Whether ``machine`` is rented at its spot price."""

    live: LiveStyle | None
    """Where the live line goes: a reserved row, the terminal's title, nowhere."""

    unknown_keys: tuple[str, ...]
    """Keys of the file that this version does not know."""


def read_defaults(home: Path | None = None) -> SavedDefaults:
    """Read the saved defaults; a missing file sets none.

    Args:
        home: Folder of ``config.toml``; None for ``thrifty_home()``.

    Raises:
        UsageError: The file cannot be read, or a line of it cannot be used; the fix names it.
    """
    path = _path(home)
    found = read_values(path)
    checked = {key: _checked(path, key, found[key]) for key in CONFIG_KEYS if key in found}
    return SavedDefaults(
        path=path,
        price_usd_per_hour=cast("float | None", checked.get("price_usd_per_hour")),
        machine=cast("str | None", checked.get("machine")),
        spot=cast("bool | None", checked.get("spot")),
        live=cast("LiveStyle | None", checked.get("live")),
        unknown_keys=tuple(key for key in found if key not in CONFIG_KEYS),
    )


def save_default(key: str, value: str | float | bool, home: Path | None = None) -> SavedDefaults:  # noqa: FBT001 - one value of three types
    """Check a value and save it; everything else in the file stays as it is.

    Returns:
        All saved defaults as they are now.

    Raises:
        UsageError: No such key, a value it cannot take, or a file that cannot be written.
        PriceError: Not a price, or a machine that the catalogue does not have or cannot
            price as ``spot`` says.
    """
    path = _path(home)
    known = known_key(key)
    accepted = _accepted(known, value)
    _check_spot_price({**read_values(path), known: accepted}, changed=known)
    write_value(path, known, accepted)
    return read_defaults(home)


def unset_default(key: str, home: Path | None = None) -> bool:
    """Remove a key from the file, also one that this version does not know.

    Returns:
        Whether it was set.

    Raises:
        UsageError: No such key, or a file that cannot be read or written.
    """
    path = _path(home)
    if key in read_values(path):
        return drop_value(path, key)
    known_key(key)
    return False


def known_key(key: str) -> ConfigKey:
    """Narrow a typed key to one that exists.

    Raises:
        UsageError: No such key.
    """
    for known in CONFIG_KEYS:
        if key == known:
            return known
    typed = key.lower().replace("-", "_")
    near = [known for known in CONFIG_KEYS if typed and typed in known]
    near += difflib.get_close_matches(typed, CONFIG_KEYS, n=1, cutoff=0.4)
    fix = f"type {near[0]}" if near else "thrifty config lists every key"
    problem = f"no setting {key!r}; there are {', '.join(CONFIG_KEYS)}"
    raise UsageError(problem, fix=fix)


def _path(home: Path | None) -> Path:
    return (thrifty_home() if home is None else home) / "config.toml"


def _checked(path: Path, key: ConfigKey, value: object) -> str | float | bool:
    """Take a value from the file, where its type must be right as well.

    A machine is looked up only when a price is asked for: an upgrade that drops it from the
    catalogue must not hide the other settings.
    """
    types = {"price_usd_per_hour": (int, float), "spot": (bool,)}.get(key, (str,))
    right_type = isinstance(value, types) and isinstance(value, bool) == (key == "spot")
    problem = f"{key} cannot be {value!r}"
    if right_type:
        try:
            return cast("str", value) if key == "machine" else _accepted(key, cast("str", value))
        except ThriftyError as error:
            problem = error.problem
    number = line_of(path.read_text(encoding="utf-8-sig"), key)
    where = f"{path}, line {number}" if number else str(path)
    fix = f"thrifty config set {key} {_EXAMPLES[key]}, or thrifty config unset {key}"
    problem = f"{where}: {problem}"
    raise UsageError(problem, fix=fix)


def _accepted(key: ConfigKey, value: str | float | bool) -> str | float | bool:  # noqa: FBT001
    if key == "price_usd_per_hour":
        return _accepted_price(value)
    if key == "machine":
        return find_machine(str(value)).name
    typed = str(value).strip().lower()
    if key == "spot" and typed in _YES_NO:
        return _YES_NO[typed]
    if key == "live" and typed in _LIVE_STYLES:
        return typed
    choices = ("true", "false") if key == "spot" else _LIVE_STYLES
    near = difflib.get_close_matches(typed, choices, n=1, cutoff=0.0)
    problem = f"{key} is one of {', '.join(choices)}, got {value!r}"
    raise UsageError(problem, fix=f"thrifty config set {key} {near[0]}")


def _accepted_price(value: str | float | bool) -> float:  # noqa: FBT001
    try:
        return parse_usd_per_hour(value)
    except PriceError as error:
        fix = error.fix.replace("--price ", "thrifty config set price_usd_per_hour ")
        raise PriceError(error.problem, fix=fix) from error


def _check_spot_price(values: dict[str, object], *, changed: ConfigKey) -> None:
    """Refuse to save a machine and ``spot`` that together have no known price."""
    name = values.get("machine")
    if changed not in {"machine", "spot"} or values.get("spot") is not True:
        return
    if not isinstance(name, str):
        return
    machine = find_machine(name)
    if machine.spot_usd_per_hour is None:
        problem = f"no spot price is known of {machine.name}"
        first = "leave spot alone" if changed == "spot" else "thrifty config unset spot"
        fix = f"{first}, or save the price you pay: thrifty config set price_usd_per_hour 0.70"
        raise PriceError(problem, fix=fix)
