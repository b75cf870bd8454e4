from thrifty.report._paint import paint


def test_without_colour_there_are_only_words() -> None:
    assert paint([("a", "stall"), (" b  ", "bold"), ("   ", "")], colour=False) == "a b"


def test_colour_is_taken_back_after_every_piece() -> None:
    expected = "\x1b[31ma\x1b[0m \x1b[1mb\x1b[0m"
    assert paint([("a", "stall"), (" ", ""), ("b ", "bold")], colour=True) == expected


def test_spaces_are_not_painted() -> None:
    assert paint([("  ", "stall"), ("a", "")], colour=True) == "  a"
    assert paint([("  ", "stall")], colour=True) == ""
