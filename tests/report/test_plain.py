import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thrifty.report import can_print_blocks
from thrifty.report._plain import cells, command_line, plain, shorten_middle, wrap

ANY_TEXT = st.text(st.characters(codec=None), max_size=80)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("train.py", "train.py"),
        ("a\x1b[31;1mb\x1b[0m", "ab"),
        ("a\x1b]0;owned\x07b", "ab"),
        ("a\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\", "alink"),
        ("a\x1bPq#0\x1b\\b", "ab"),
        ("a\x9b31mb\x9d0;t\x9cc", "abc"),
        ("a\x1b]0;never ended", "a0;never ended"),
        ("a\x1b7b\x1bcc", "abc"),
        ("\x1b", ""),
        ("a\r\nb\tc", "a  b c"),
        ("a\x00\x07\x08\x7f\x85b", "a b"),
        ("\u202eyp.niart", "yp.niart"),
        ("caf\u00e9 \u8bad\u7ec3", "caf\u00e9 \u8bad\u7ec3"),
        ("bad\udcff.py", "bad\\xff.py"),
        ("[bold red]x[/]", "[bold red]x[/]"),
    ],
)
def test_what_a_terminal_would_obey_is_stripped(text: str, expected: str) -> None:
    assert plain(text) == expected


def test_ascii_only_spells_other_characters_out() -> None:
    assert plain("caf\u00e9\udcff", ascii_only=True) == "caf\\xe9\\xff"


@given(ANY_TEXT)
def test_plain_text_holds_no_control_characters_and_can_be_encoded(text: str) -> None:
    safe = plain(text)
    assert not [c for c in safe if unicodedata.category(c) in ("Cc", "Cf", "Cs")]
    safe.encode()
    plain(text, ascii_only=True).encode("ascii")


def test_a_hostile_text_of_a_megabyte_takes_one_pass() -> None:
    # Were each introducer to search for an end, this would take hours.
    assert plain("\x9d" * 500_000 + "\x1b]" * 250_000) == ""


@pytest.mark.parametrize(
    ("text", "width", "expected"),
    [
        ("train.py", 8, "train.py"),
        ("experiments/train.py", 12, "exp…train.py"),
        ("abcdef", 3, "a…f"),
        ("abcdef", 2, "ab"),
        ("abcdef", 0, ""),
        ("\u8bad\u7ec3\u8bad\u7ec3", 5, "…\u7ec3"),
    ],
)
def test_a_long_text_is_shortened_in_the_middle(text: str, width: int, expected: str) -> None:
    assert shorten_middle(text, width) == expected


@given(ANY_TEXT, st.integers(0, 30), st.booleans())
def test_a_shortened_text_fits(text: str, width: int, ascii_only: bool) -> None:  # noqa: FBT001
    safe = plain(text, ascii_only=ascii_only)
    assert cells(shorten_middle(safe, width, ascii_only=ascii_only)) <= width


@given(ANY_TEXT, st.integers(2, 30))
def test_wrapping_loses_nothing_and_fits(text: str, width: int) -> None:
    safe = plain(text)
    lines = wrap(safe, width)
    assert max(cells(line) for line in lines) <= width
    assert re.sub(r"\s", "", "".join(lines)) == re.sub(r"\s", "", safe)


def test_the_script_survives_its_arguments() -> None:
    argv = ("--data", "a b", "--name", "x" * 100)
    assert command_line("train.py", argv, width=40) == "train.py --data 'a b' --name xxxxxxxxxx…"
    assert command_line("train.py", argv, width=16) == "train.py"
    assert command_line("train.py", (), width=16) == "train.py"


def test_an_empty_argument_is_seen() -> None:
    assert command_line("train.py", ("", "\u00e9"), width=40) == "train.py '' \u00e9"


@given(ANY_TEXT, st.lists(ANY_TEXT, max_size=4), st.integers(10, 80))
def test_a_command_line_fits(script: str, argv: list[str], width: int) -> None:
    assert cells(command_line(script, argv, width=width)) <= width


@pytest.mark.parametrize(
    ("encoding", "expected"),
    [("utf-8", True), ("ascii", False), ("latin-1", False), (None, False), ("no-such", False)],
)
def test_only_an_encoding_with_blocks_can_print_them(
    encoding: str | None,
    expected: bool,  # noqa: FBT001
) -> None:
    assert can_print_blocks(encoding) is expected
