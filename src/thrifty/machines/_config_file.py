"""Read and edit ``config.toml``: a few flat keys that may live beside what others wrote.

An edit touches the one line of its key, so that comments and unknown keys stay as they
are; it is read back before it replaces the file, and refused when it would change anything
else. A half-written file is never left behind.
"""

import contextlib
import json
import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path

from thrifty.records import UsageError

__all__ = ["drop_value", "line_of", "read_values", "write_value"]


def read_values(path: Path) -> dict[str, object]:
    """Read all values of the file; a missing file has none.

    Raises:
        UsageError: It cannot be read, or is not TOML; the fix names the line.
    """
    return _parse(_read_text(path), path)


def write_value(path: Path, key: str, value: str | float | bool) -> None:  # noqa: FBT001
    """Set one top-level key and keep everything else as it is.

    Raises:
        UsageError: The file cannot be read, edited by line, or written.
    """
    text = _read_text(path)
    line = f"{key} = {_toml(value)}"
    lines = text.split("\n") if text else []
    at = line_of(text, key)
    if at is not None:
        # What follows the value on its line, a comment or a carriage return, goes with it.
        lines[at - 1] = line
    else:
        if lines and lines[-1] == "":
            lines.pop()
        lines.insert(_end_of_top_level(lines), line)
    edited = "\n".join(lines).rstrip("\n") + "\n"
    _replace(path, text, edited, {**_parse(text, path), key: value})


def drop_value(path: Path, key: str) -> bool:
    """Remove one top-level key and keep everything else as it is.

    Returns:
        Whether the key was there.

    Raises:
        UsageError: The file cannot be read, edited by line, or written.
    """
    text = _read_text(path)
    values = _parse(text, path)
    if key not in values:
        return False
    lines = text.split("\n")
    at = line_of(text, key)
    if at is not None:
        del lines[at - 1]
    del values[key]
    _replace(path, text, "\n".join(lines), values)
    return True


def line_of(text: str, key: str) -> int | None:
    """Number the line, from 1, that sets a top-level key; None when no single line does."""
    name = re.escape(key)
    pattern = re.compile(rf"""[ \t]*(?:{name}|"{name}"|'{name}')[ \t]*=""")
    lines = text.split("\n")
    top_level = lines[: _end_of_top_level(lines)]
    return next((n for n, line in enumerate(top_level, start=1) if pattern.match(line)), None)


def _end_of_top_level(lines: list[str]) -> int:
    """Count the lines before the first table's header."""
    headers = (n for n, line in enumerate(lines) if line.lstrip().startswith("["))
    return next(headers, len(lines))


def _read_text(path: Path) -> str:
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return ""
    except OSError as error:
        problem = f"the saved defaults in {path} cannot be read: {error.strerror}"
        raise UsageError(problem, fix=f"make {path} readable, or move it away") from error
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        number = data.count(b"\n", 0, error.start) + 1
        problem = f"{path}, line {number}: not UTF-8 text (byte {data[error.start]:#04x})"
        raise UsageError(problem, fix=f"save the file as UTF-8, or move {path} away") from error


def _parse(text: str, path: Path) -> dict[str, object]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        lines = text.split("\n")
        told = re.search(r"\(at line (\d+), column \d+\)", str(error))
        number = min(int(told.group(1)), len(lines)) if told else len(lines)
        reason = str(error).partition(" (at ")[0]
        problem = f"{path}, line {number}: {reason}: {lines[number - 1].strip()[:80]!r}"
        fix = f'edit line {number} to read like: machine = "aws:g5.xlarge", or delete the line'
        raise UsageError(problem, fix=fix) from error


def _replace(path: Path, text: str, edited: str, expected: Mapping[str, object]) -> None:
    """Put the edited text in the file's place, if it says exactly what is expected."""
    try:
        said = tomllib.loads(edited)
    except tomllib.TOMLDecodeError:
        said = None
    # As text, because a NaN in somebody else's key is not equal to itself.
    if said is None or _as_text(said) != _as_text(expected):
        problem = f"{path} holds values over several lines that an edit of one line would change"
        raise UsageError(problem, fix=f"edit {path} by hand")
    if edited == text:
        return
    try:
        _write_atomically(path, edited)
    except OSError as error:
        problem = f"the saved defaults in {path} cannot be written: {error.strerror}"
        fix = "make the folder writable, or name another one: THRIFTY_HOME=FOLDER thrifty config"
        raise UsageError(problem, fix=fix) from error


def _as_text(values: Mapping[str, object]) -> dict[str, str]:
    return {key: repr(value) for key, value in values.items()}


def _write_atomically(path: Path, text: str) -> None:
    import tempfile  # with all it loads, for a rare command only

    target = Path(os.path.realpath(path))  # a linked file stays a link
    target.parent.mkdir(parents=True, exist_ok=True)
    mode = target.stat().st_mode & 0o777 if target.exists() else 0o644
    handle, temporary = tempfile.mkstemp(prefix=".config-", suffix=".tmp", dir=target.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        Path(temporary).replace(target)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(temporary).unlink()
        raise
    _sync_folder(target.parent)


def _sync_folder(folder: Path) -> None:
    """Make the new name itself survive a power cut, where the system can."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _toml(value: str | float | bool) -> str:  # noqa: FBT001
    if isinstance(value, bool):
        return "true" if value else "false"
    # A JSON string is a TOML string too.
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)
