"""``run.json``: a run's record as text, and back, believing nothing that the text says.

The file may be cut off, edited by hand, made hostile or written by another version. Every
value is held against the type that ``Run`` declares, so that whoever gets a ``Run`` from the
ledger can trust its fields, and a field added to ``Run`` is checked without a word here.
"""

import dataclasses
import functools
import json
import math
import types
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, cast

from thrifty.ledger._files import read_plain
from thrifty.records import SCHEMA_VERSION, Run

__all__ = ["RecordError", "dump_run", "load_run", "parse_run"]

_LIMIT_BYTES = 16 << 20
"""Far above the longest command line that Linux accepts (2 MiB, six bytes a character)."""

_INTEGER_LIMIT = 2**63
_SHOWN_CHARACTERS = 60


class RecordError(ValueError):
    """The text is no record of a run; the message says where and why."""


def dump_run(run: Run) -> bytes:
    """Write a run as the JSON text that ``parse_run`` reads.

    Raises:
        RecordError: A field holds what the record cannot keep (a NaN, another type).
    """
    data = run.to_json()
    _run_of(data)
    # ASCII, so that an argument that is no valid UTF-8 survives as its surrogate's escape.
    text = json.dumps(data, indent=1).encode("ascii") + b"\n"
    if len(text) > _LIMIT_BYTES:
        msg = f"the record has {len(text):,} bytes, more than {_LIMIT_BYTES:,}"
        raise RecordError(msg)
    return text


def parse_run(text: bytes) -> Run:
    """Read one run; fields of later versions are ignored.

    Raises:
        RecordError: It is cut off, no JSON, or a field is missing or of another type.
    """
    try:
        data = json.loads(text)
    except RecursionError as error:
        msg = "its JSON is nested too deeply"
        raise RecordError(msg) from error
    except ValueError as error:  # bad JSON, bad UTF-8, a number of 5,000 digits
        msg = f"no JSON: {_short(str(error))}"
        raise RecordError(msg) from error
    return _run_of(data)


def load_run(path: Path) -> Run:
    """Read one ``run.json``.

    Raises:
        FileNotFoundError: There is none.
        RecordError: It cannot be read, or is no record.
    """
    try:
        return parse_run(read_plain(path, limit_bytes=_LIMIT_BYTES))
    except FileNotFoundError:
        raise
    except OSError as error:
        msg = f"cannot be read: {error.strerror}"
        raise RecordError(msg) from error


def _run_of(data: object) -> Run:
    if isinstance(data, dict):
        version = cast("dict[str, object]", data).get("schema_version", SCHEMA_VERSION)
        if version != SCHEMA_VERSION:
            # Its fields may mean something else, so nothing of it is shown.
            msg = f"schema version {_short(repr(version))}; this thrifty reads {SCHEMA_VERSION}"
            raise RecordError(msg)
    return cast("Run", _fitted(cast("object", data), Run, "the record"))


@functools.cache
def _fields(kind: type[Any]) -> tuple[tuple[str, Any, bool], ...]:
    hints = typing.get_type_hints(kind)
    return tuple(
        (f.name, hints[f.name], f.default is dataclasses.MISSING) for f in dataclasses.fields(kind)
    )


def _fitted(value: object, hint: Any, where: str) -> Any:
    """Give the value as the declared type holds it, or say where it does not fit."""
    if dataclasses.is_dataclass(hint):
        return _fitted_record(value, cast("type[Any]", hint), where)
    origin = typing.get_origin(hint)
    if origin in {types.UnionType, typing.Union}:
        return _fitted_union(value, typing.get_args(hint), where)
    if origin is Literal:
        if isinstance(value, str) and value in typing.get_args(hint):
            return value
        raise _misfit(value, " or ".join(typing.get_args(hint)), where)
    if origin is tuple:
        if not isinstance(value, list | tuple):
            raise _misfit(value, "a list", where)
        inner = typing.get_args(hint)[0]
        items = cast("list[object]", value)
        return tuple(_fitted(item, inner, f"{where}[{i}]") for i, item in enumerate(items))
    return _fitted_scalar(value, hint, where)


def _fitted_record(value: object, kind: type[Any], where: str) -> Any:
    if not isinstance(value, Mapping):
        raise _misfit(value, "an object", where)
    met = cast("Mapping[str, object]", value)
    values: dict[str, Any] = {}
    for name, hint, needed in _fields(kind):
        if name in met:
            values[name] = _fitted(met[name], hint, name if kind is Run else f"{where}.{name}")
        elif needed:
            msg = f"{where} has no {name}"
            raise RecordError(msg)
    return kind(**values)


def _fitted_union(value: object, hints: tuple[Any, ...], where: str) -> Any:
    if value is None and types.NoneType in hints:
        return None
    (hint,) = (h for h in hints if h is not types.NoneType)  # records only say "X | None"
    return _fitted(value, hint, where)


def _fitted_scalar(value: object, hint: Any, where: str) -> Any:
    if hint is str and isinstance(value, str):
        return value
    if hint is bool and isinstance(value, bool):
        return value
    if isinstance(value, bool):
        raise _misfit(value, _NAMES[hint], where)
    if hint is int and isinstance(value, int) and -_INTEGER_LIMIT <= value < _INTEGER_LIMIT:
        return value
    if hint is float and isinstance(value, int) and -_INTEGER_LIMIT <= value < _INTEGER_LIMIT:
        return float(value)
    if hint is float and isinstance(value, float) and math.isfinite(value):
        return value
    raise _misfit(value, _NAMES[hint], where)


_NAMES: dict[Any, str] = {
    str: "text",
    bool: "true or false",
    int: "a whole number",
    float: "a finite number",
}
"""The plain types of a record; another one fails with a KeyError until it is added here."""


def _misfit(value: object, expected: str, where: str) -> RecordError:
    return RecordError(f"{where} is {_short(repr(value))}, not {expected}")


def _short(text: str) -> str:
    # Printable only: the text came from a file that anybody may have written.
    plain = "".join(c if c.isprintable() else "?" for c in text[: _SHOWN_CHARACTERS + 1])
    return plain if len(plain) <= _SHOWN_CHARACTERS else plain[:_SHOWN_CHARACTERS] + "..."
