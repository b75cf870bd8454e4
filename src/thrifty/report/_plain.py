"""Text from outside made safe to print, and measured in terminal columns.

A script's name, its arguments and its notes are whatever somebody typed or a file said. Printed
as they are, an escape sequence among them could recolour the bill, move the cursor over its
figures or retitle the terminal. Nothing here interprets markup: there is none.
"""

import re
import shlex
import unicodedata
from collections.abc import Sequence

__all__ = ["can_print_blocks", "cells", "command_line", "plain", "shorten_middle", "wrap"]

_ESCAPES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # control sequences (colours, cursor)
    # strings with a terminator (titles, clipboard, hyperlinks); one without it stays readable
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x90\x98-\x9f]*(?:\x07|\x1b\\|\x9c)"
    r"|\x1b[ -/]*[0-~]"  # two-character escapes
)
_NO_WIDTH = ("Mn", "Me")
_MIN_ARGUMENTS = 8
_BYTE_OF_SURROGATE = 0xDC00


def plain(text: str, *, ascii_only: bool = False) -> str:
    r"""Strip what a terminal would obey instead of show; white space becomes spaces.

    Args:
        text: Anything, including bytes that Python could not decode (lone surrogates).
        ascii_only: Write other characters as ``\xe9``.

    Example:
        >>> plain("a\x1b[31mb\x07\nc")
        'ab c'
    """
    if text.isascii() and text.isprintable():
        return text
    safe = "".join(_safe(character) for character in _ESCAPES.sub("", text))
    return safe.encode("ascii", "backslashreplace").decode() if ascii_only else safe


def _safe(character: str) -> str:
    if character.isspace():
        return " "
    category = unicodedata.category(character)
    if category == "Cs":
        # Undecodable bytes of a file name: printing them raw would raise in the stream.
        return f"\\x{(ord(character) - _BYTE_OF_SURROGATE) & 0xFF:02x}"
    # Cf holds the direction marks with which a name can be made to read backwards.
    return "" if category in ("Cc", "Cf") else character


def cells(text: str) -> int:
    """Count the terminal columns that a text takes (wide characters take two)."""
    if text.isascii():
        return len(text)
    return sum(_cells_of(character) for character in text)


def _cells_of(character: str) -> int:
    if unicodedata.category(character) in _NO_WIDTH:
        return 0
    return 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1


def _head(text: str, width: int) -> str:
    taken = 0
    for index, character in enumerate(text):
        taken += _cells_of(character)
        if taken > width:
            return text[:index]
    return text


def _tail(text: str, width: int) -> str:
    taken = 0
    for index in range(len(text) - 1, -1, -1):
        taken += _cells_of(text[index])
        if taken > width:
            return text[index + 1 :]
    return text


def shorten_middle(text: str, width: int, *, ascii_only: bool = False) -> str:
    """Shorten a text in its middle to at most ``width`` columns; more is kept of its end.

    The end of a path names the file.

    Example:
        >>> shorten_middle("experiments/long/train.py", 15, ascii_only=True)
        'expe...train.py'
    """
    if cells(text) <= width:
        return text
    dots = "..." if ascii_only else "…"
    kept = width - len(dots)
    if kept < 2:  # noqa: PLR2004 - one character on each side
        return _head(text, max(width, 0))
    tail = min(kept - 1, (2 * kept + 2) // 3)
    return _head(text, kept - tail) + dots + _tail(text, tail)


def command_line(script: str, argv: Sequence[str], *, width: int, ascii_only: bool = False) -> str:
    """Write what was run in at most ``width`` columns: the script survives its arguments.

    Args:
        script: Path, module or command, as typed.
        argv: The script's arguments; quoted as a shell would need them.
        width: Columns.
        ascii_only: Use ASCII characters only.
    """
    whole_name = name = plain(script, ascii_only=ascii_only)
    arguments = " ".join(_quote(plain(part, ascii_only=ascii_only)) for part in argv)
    if not arguments:
        return shorten_middle(name, width, ascii_only=ascii_only)
    name = shorten_middle(
        name, max(width * 2 // 3, width - cells(arguments) - 1), ascii_only=ascii_only
    )
    room = width - cells(name) - 1
    if cells(arguments) <= room:
        return f"{name} {arguments}"
    if room < _MIN_ARGUMENTS:
        return shorten_middle(whole_name, width, ascii_only=ascii_only)
    dots = "..." if ascii_only else "…"
    return f"{name} {_head(arguments, room - len(dots))}{dots}"


def _quote(argument: str) -> str:
    # shlex quotes every letter that is not ASCII; a shell does not need that.
    if argument and not re.search(r"[\s\"'`$&|;<>()*?#~\\\[\]{}!]", argument):
        return argument
    return shlex.quote(argument)


def wrap(text: str, width: int) -> list[str]:
    """Break a text into lines of at most ``width`` columns; long words are cut.

    Returns:
        At least one line.
    """
    lines: list[str] = []
    line = ""
    for word in text.split():
        if line and cells(line) + 1 + cells(word) > width:
            lines.append(line)
            line = ""
        rest = f"{line} {word}" if line else word
        while cells(rest) > width:
            piece = _head(rest, width) or rest[0]
            lines.append(piece)
            rest = rest[len(piece) :]
        line = rest
    return [*lines, line] if line or not lines else lines


def can_print_blocks(encoding: str | None) -> bool:
    """Tell whether a stream of this encoding can print bars and the ellipsis.

    Args:
        encoding: ``stream.encoding``; None when the stream has none.
    """
    try:
        "█▏░…".encode(encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True
