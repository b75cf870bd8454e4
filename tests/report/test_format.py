import math
from collections.abc import Callable
from datetime import date, timedelta

import pytest

from thrifty.report import _format as module
from thrifty.report import format_bytes, format_count, format_duration, format_usd


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (0, "0 s"),
        (0.000_000_1, "<0.1 ms"),
        (0.000_049, "<0.1 ms"),
        (0.000_06, "0.1 ms"),
        (0.0004, "0.4 ms"),
        (0.009_94, "9.9 ms"),
        (0.009_96, "10 ms"),
        (0.31, "310 ms"),
        (0.9994, "999 ms"),
        (0.9996, "1.0 s"),
        (3.2, "3.2 s"),
        (59.94, "59.9 s"),
        (59.95, "1 min 00 s"),
        (60, "1 min 00 s"),
        (250, "4 min 10 s"),
        (3_599.4, "59 min 59 s"),
        (3_599.9, "1 h 00 min"),
        (7_380, "2 h 03 min"),
        (7_199, "2 h 00 min"),
        (359_969, "99 h 59 min"),
        (359_971, "4 d 04 h"),
        (8.64e9, "100,000 d 00 h"),
        (-3.2, "-3.2 s"),
    ],
)
def test_a_duration_rounds_before_it_picks_its_unit(seconds: float, expected: str) -> None:
    assert format_duration(seconds) == expected


@pytest.mark.parametrize(
    ("usd", "expected"),
    [
        (0, "$0.00"),
        (0.000_000_5, "<$0.000001"),
        (0.000_001_2, "$0.0000012"),
        (0.0004, "$0.0004"),
        (0.000_345, "$0.00034"),
        (0.004_96, "$0.005"),
        (0.009_96, "$0.01"),
        (0.0123, "$0.012"),
        (0.0996, "$0.10"),
        (0.42, "$0.42"),
        (0.999, "$1.00"),
        (9.416, "$9.42"),
        (1_234.5, "$1,234.50"),
        (-0.004, "-$0.004"),
    ],
)
def test_dollars_keep_two_digits_of_what_is_less_than_ten_cents(usd: float, expected: str) -> None:
    assert format_usd(usd) == expected


@pytest.mark.parametrize("exponent", range(1, 12))
def test_what_costs_something_never_prints_as_nothing(exponent: int) -> None:
    assert float(format_usd(10.0**-exponent).lstrip("<$")) > 0


@pytest.mark.parametrize(
    ("price", "expected"),
    [
        (1.006, "$1.006/h"),
        (2.1, "$2.10/h"),
        (2, "$2.00/h"),
        (0.0116, "$0.0116/h"),
        (0.000_4, "$0.0004/h"),
        (12_583.04, "$12,583.04/h"),
        (0, "$0.00/h"),
    ],
)
def test_a_price_keeps_the_digits_of_its_quotation(price: float, expected: str) -> None:
    assert module.format_price(price) == expected


@pytest.mark.parametrize(
    ("n", "expected"),
    [(0, "0"), (999, "999"), (1_204, "1,204"), (10**18 + 1, "1,000,000,000,000,000,001")],
)
def test_a_count_is_exact(n: int, expected: str) -> None:
    assert format_count(n) == expected


@pytest.mark.parametrize(
    ("n", "expected"),
    [
        (0, "0 B"),
        (1_023, "1,023 B"),
        (1_024, "1.0 KiB"),
        (2**20 - 1, "1.0 MiB"),
        (4_402_341_478, "4.1 GiB"),
        (2**60, "1.0 EiB"),
        (2**72, "4,096.0 EiB"),
    ],
)
def test_bytes_round_before_they_pick_their_unit(n: int, expected: str) -> None:
    assert format_bytes(n) == expected


@pytest.mark.parametrize(
    ("rate", "expected"),
    [
        (0, "0"),
        (0.0123, "0.012"),
        (3.456, "3.46"),
        (9.996, "10.0"),
        (99.96, "100"),
        (812.4, "812"),
        (1_234_567.0, "1,234,567"),
    ],
)
def test_a_rate_has_about_three_digits(rate: float, expected: str) -> None:
    assert module.format_rate(rate) == expected


@pytest.mark.parametrize(
    ("fraction", "decimals", "expected"),
    [
        (0, 1, "0.0 %"),
        (0.000_4, 1, "<0.1 %"),
        (0.004, 0, "<1 %"),
        (0.2345, 0, "23 %"),
        (0.9999, 1, ">99.9 %"),
        (0.999, 0, ">99 %"),
        (1, 1, "100.0 %"),
    ],
)
def test_a_share_is_neither_nothing_nor_all_unless_it_is(
    fraction: float, decimals: int, expected: str
) -> None:
    assert module.format_share(fraction, decimals=decimals) == expected


@pytest.mark.parametrize(
    ("days", "expected"),
    [
        (0, "today"),
        (1, "yesterday"),
        (59, "59 days ago"),
        (60, "1 months ago"),
        (62, "2 months ago"),
        (642, "21 months ago"),
        (731, "2 years ago"),
        (-1, "in the future"),
    ],
)
def test_an_age_is_said_in_words(days: int, expected: str) -> None:
    today = date(2026, 12, 4)
    assert module.format_age(today - timedelta(days=days), today) == expected


@pytest.mark.parametrize(
    "write",
    [
        format_duration,
        module.format_whole_duration,
        format_usd,
        module.format_price,
        format_count,
        module.format_rate,
        format_bytes,
        module.format_share,
    ],
)
@pytest.mark.parametrize("value", [None, math.nan, math.inf, -math.inf])
def test_the_unknown_is_called_unknown(
    write: Callable[[float | None], str], value: float | None
) -> None:
    assert write(value) == "unknown"


@pytest.mark.parametrize("value", [1e308, 1.7e308, 5e-324, 1e300])
def test_no_number_however_large_stops_a_list(value: float) -> None:
    for write in (format_duration, format_usd, format_count, format_bytes):
        assert write(value)
