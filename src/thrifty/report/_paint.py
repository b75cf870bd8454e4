"""Styled text for a terminal, with the sixteen colours that its theme defines.

Colour repeats what the words already say, so a bill without colour has lost nothing.
"""

from collections.abc import Iterable
from typing import Literal

__all__ = ["Span", "Style", "paint"]

Style = Literal["", "bold", "dim", "good", "stall", "overhead", "title"]

Span = tuple[str, Style]
"""A piece of text and how it looks."""

_SGR: dict[Style, str] = {
    "bold": "1",
    "dim": "2",
    "good": "32",  # green: what the run was for
    "stall": "31",  # red: the device waited
    "overhead": "33",  # yellow: time beside the training itself
    "title": "1;36",
}


def paint(spans: Iterable[Span], *, colour: bool) -> str:
    """Join the pieces of one line; without colour no escape sequence is written."""
    pieces = [span for span in spans if span[0]]
    while pieces and not (pieces[-1][0].rstrip(" ")):
        pieces.pop()
    if not pieces:
        return ""
    last, style = pieces[-1]
    pieces[-1] = (last.rstrip(" "), style)
    if not colour:
        return "".join(text for text, _ in pieces)
    return "".join(
        f"\x1b[{_SGR[style]}m{text}\x1b[0m" if style and text.strip() else text
        for text, style in pieces
    )
