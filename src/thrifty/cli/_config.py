"""``thrifty config``: read and change the saved defaults.

Only ``set`` and ``unset`` write, and only the one key that they name.
"""

import argparse
import difflib
import json
import sys
from typing import Any, Literal

from thrifty.machines import (
    CONFIG_KEYS,
    ConfigKey,
    SavedDefaults,
    known_key,
    read_defaults,
    resolve_price,
    save_default,
    unset_default,
)
from thrifty.records import Price, PriceError, UsageError

__all__ = ["EPILOG", "HELP", "configure", "execute"]

HELP = "show or change the saved defaults (price, machine, spot, live line)"

EPILOG = """\
settings:
  price_usd_per_hour  what one hour of the whole machine costs, like 2.10
  machine             a machine of the catalogue, like aws:g5.xlarge
  spot                true: the machine is rented at its spot price
  live                the live line: row (bottom), title (the window's), off

examples:
  thrifty config                              every setting and where it stands
  thrifty config set price_usd_per_hour 2.10  bill every run at $2.10 per hour
  thrifty config set machine aws:g5.xlarge    this machine's price for every run
  thrifty config get machine
  thrifty config unset price_usd_per_hour
"""

_ACTIONS = ("get", "set", "unset")
_WORDS_AFTER = {"get": "KEY", "set": "KEY VALUE", "unset": "KEY"}

_BUILT_IN: dict[ConfigKey, str | bool] = {"spot": False, "live": "row"}
"""What holds for a key that is not saved; the others have no value then."""

_Origin = Literal["saved", "built_in", "not_set"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("action", nargs="?", metavar="get|set|unset", help="what to do; none: show")
    parser.add_argument("key", nargs="?", metavar="KEY", help="which setting")
    parser.add_argument("value", nargs="?", metavar="VALUE", help="for set: its new value")
    parser.add_argument("--json", action="store_true", help="print JSON instead of text")


def execute(args: argparse.Namespace) -> int:
    """Run the command.

    Returns:
        0, or 1 when ``get`` asks for a setting that has no value.

    Raises:
        UsageError: Unknown action or key, a value it cannot take, or a file that cannot be
            read or written.
        PriceError: Not a price, or a machine that has none.
    """
    action: str | None = args.action
    key: str | None = args.key
    value: str | None = args.value
    if action is None:
        return _show(as_json=args.json)
    _check_words(action, key, value)
    if action == "get":
        return _get(known_key(str(key)), as_json=args.json)
    if action == "set":
        save_default(str(key), str(value))
        return _tell_change(str(key), changed=True, as_json=args.json)
    changed = unset_default(str(key))
    return _tell_change(str(key), changed=changed, as_json=args.json)


def _check_words(action: str, key: str | None, value: str | None) -> None:
    if action not in _ACTIONS:
        near = difflib.get_close_matches(action, _ACTIONS, n=1, cutoff=0.3)
        meant = near[0] if near else "get"
        if action in CONFIG_KEYS:
            fix = f"thrifty config get {action}"
        else:
            fix = f"thrifty config {meant} {_WORDS_AFTER[meant]}"
        problem = f"thrifty config does not know {action!r}; it knows get, set, unset"
        raise UsageError(problem, fix=fix)
    if key is None or (action == "set") != (value is not None):
        given = " ".join(word for word in (action, key, value) if word is not None)
        problem = f"thrifty config {action} takes {_WORDS_AFTER[action]}, got {given!r}"
        example = {"get": "machine", "set": "machine aws:g5.xlarge", "unset": "machine"}[action]
        raise UsageError(problem, fix=f"thrifty config {action} {example}")


def _show(*, as_json: bool) -> int:
    defaults = read_defaults()
    price, sentence = _default_price()
    if as_json:
        values = {key: _value_and_origin(defaults, key) for key in CONFIG_KEYS}
        record: dict[str, Any] = {
            "path": str(defaults.path),
            "exists": defaults.path.exists(),
            "values": {key: {"value": v, "origin": o} for key, (v, o) in values.items()},
            "unknown_keys": list(defaults.unknown_keys),
            "price_usd_per_hour": None if price is None else price.usd_per_hour,
        }
        _print(json.dumps(record, indent=2))
        return 0
    _print(str(defaults.path) + ("" if defaults.path.exists() else " (not written yet)"))
    for key in CONFIG_KEYS:
        value, origin = _value_and_origin(defaults, key)
        _print(f"  {key:<18}  {_plain(value):<24}  {origin.replace('_', ' ')}".rstrip())
    for key in defaults.unknown_keys:
        _print(f"  {key:<18}  unknown to this version, kept; thrifty config unset {key}")
    _print(sentence)
    return 0


def _get(key: ConfigKey, *, as_json: bool) -> int:
    value, origin = _value_and_origin(read_defaults(), key)
    if as_json:
        _print(json.dumps({"key": key, "value": value, "origin": origin}))
    elif origin == "not_set":
        sys.stderr.write(f"{key} is not set\n")
    else:
        _print(_plain(value))
    return 1 if origin == "not_set" else 0


def _tell_change(key: str, *, changed: bool, as_json: bool) -> int:
    if as_json:
        return _show(as_json=True)
    if not changed:
        _print(f"{key} was not set")
        return 0
    defaults = read_defaults()
    kept, origin = (
        _value_and_origin(defaults, known_key(key)) if key in CONFIG_KEYS else (None, "not_set")
    )
    if origin != "not_set":
        _print(f"{key} = {_plain(kept)} ({origin.replace('_', ' ')}) in {defaults.path}")
    else:
        _print(f"removed {key} from {defaults.path}")
    if key != "live":
        _print(_default_price()[1])
    return 0


def _value_and_origin(
    defaults: SavedDefaults, key: ConfigKey
) -> tuple[str | float | bool | None, _Origin]:
    value: str | float | bool | None = getattr(defaults, key)
    if value is not None:
        return value, "saved"
    built_in = _BUILT_IN.get(key)
    return built_in, "not_set" if built_in is None else "built_in"


def _default_price() -> tuple[Price | None, str]:
    """Resolve what a run without our options is billed at, and say it in a sentence."""
    subject = "a run without --price or --machine"
    try:
        price = resolve_price(price=None, machine=None, spot=False)
    except PriceError as error:
        # A later catalogue may have lost the saved machine: the other settings still show.
        return None, f"{subject} has no price: {error.problem}\n  fix: {error.fix}"
    if price is None:
        return None, f"{subject} shows time only"
    if price.machine is None:
        quoted = "price_usd_per_hour wins"
    else:
        quoted = f"{price.machine}, {price.kind.replace('_', ' ')}, as of {price.as_of}"
    usd = price.usd_per_hour
    shown = f"{usd:,.2f}" if round(usd, 2) == usd else f"{usd:,}"
    return price, f"{subject} is billed at ${shown} per hour ({quoted})"


def _plain(value: str | float | bool | None) -> str:  # noqa: FBT001 - one value of four types
    if isinstance(value, bool):
        return "true" if value else "false"
    return "-" if value is None else str(value)


def _print(line: str) -> None:
    sys.stdout.write(line + "\n")
