"""Prices as people type them."""

import math

import pytest

from thrifty.machines._price_input import parse_usd_per_hour
from thrifty.records import PriceError


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("2.10", 2.1),
        ("$2.10", 2.1),
        (" $ 2.10 ", 2.1),
        ("+2", 2.0),
        (".5", 0.5),
        ("3.", 3.0),
        ("1e-2", 0.01),
        ("0", 0.0),
        ("-0", 0.0),
        (0, 0.0),
        (2, 2.0),
        (2.1, 2.1),
        ("1000000", 1e6),
    ],
)
def test_a_price_is_read(typed: str | float, expected: float) -> None:
    price = parse_usd_per_hour(typed)
    assert price == expected
    assert math.copysign(1, price) == 1


@pytest.mark.parametrize(
    ("typed", "remedy"),
    [
        ("2,10", "--price 2.10"),
        ("$2,1", "--price 2.1"),
        ("1,234.50", "--price 1234.50"),
        ("1,234", "--price 1234"),
        ("two", "--price 2.10"),
        ("", "--price 2.10"),
        ("$", "--price 2.10"),
        ("$$2", "--price 2.10"),
        ("2.10.1", "--price 2.10"),
        ("2.10/h", "--price 2.10"),
        ("1_000", "--price 2.10"),
        ("0x10", "--price 2.10"),
        ("\u0662.\u0661", "--price 2.10"),
        ("nan", "--price 2.10"),
        ("inf", "--price 2.10"),
        (True, "--price 2.10"),
        (math.nan, "--price 2.10"),
        (-math.inf, "--price 2.10"),
        (math.inf, "--price 2.10"),
        ("1e400", "--price 2.10"),
        ("1000001", "--price 2.10"),
        ("-2.10", "--price 2.1, or --price 0"),
        ("-$2.10", "--price 2.1, or --price 0"),
        ("$-2.10", "--price 2.1, or --price 0"),
        (-3, "--price 3, or --price 0"),
    ],
)
def test_what_is_no_price_is_refused_with_what_to_type(typed: str | float, remedy: str) -> None:
    with pytest.raises(PriceError) as met:
        parse_usd_per_hour(typed)
    assert str(typed) in met.value.problem
    assert remedy in met.value.fix
