"""Which price a run is billed at."""

import datetime as dt
from pathlib import Path

import pytest

from thrifty.machines import price_age_days, resolve_price, save_default
from thrifty.records import Price, PriceError, UsageError

TODAY = dt.date(2026, 11, 30)


def test_a_typed_price_wins_over_everything(home: Path) -> None:
    save_default("price_usd_per_hour", "9")
    expected = Price(usd_per_hour=2.1, source="--price", as_of=None, kind="user")
    assert resolve_price(price="$2.10", machine="aws:g5.xlarge", spot=True, home=home) == expected


def test_a_typed_machine_wins_over_the_saved_price(home: Path) -> None:
    save_default("price_usd_per_hour", "9")
    price = resolve_price(price=None, machine="G5.xlarge", spot=False, home=home)
    assert price is not None
    assert (price.usd_per_hour, price.kind) == (1.006, "on_demand")
    assert (price.machine, price.as_of) == ("aws:g5.xlarge", "2025-03-02")
    assert "libcloud" in price.source


def test_a_saved_price_wins_over_a_saved_machine(home: Path) -> None:
    save_default("machine", "aws:g5.xlarge", home)
    save_default("price_usd_per_hour", 0, home)
    expected = Price(usd_per_hour=0.0, source="thrifty config", as_of=None, kind="user")
    assert resolve_price(price=None, machine=None, spot=False, home=home) == expected


def test_a_saved_machine_is_priced_as_the_saved_spot_says(home: Path) -> None:
    save_default("machine", "gcp:g2-standard-4", home)
    price = resolve_price(price=None, machine=None, spot=False, home=home)
    assert price is not None
    assert (price.usd_per_hour, price.kind) == (0.70683, "on_demand")
    save_default("spot", "true", home)
    price = resolve_price(price=None, machine=None, spot=False, home=home)
    assert price is not None
    assert (price.usd_per_hour, price.kind) == (0.2238, "spot")


def test_the_saved_spot_does_not_speak_of_a_typed_machine(home: Path) -> None:
    save_default("spot", "true", home)
    price = resolve_price(price=None, machine="aws:g5.xlarge", spot=False, home=home)
    assert price is not None
    assert price.kind == "on_demand"


def test_nobody_gave_a_price(home: Path) -> None:
    assert resolve_price(price=None, machine=None, spot=False, home=home) is None
    assert not home.exists()


def test_a_price_of_zero_is_a_price(home: Path) -> None:
    price = resolve_price(price=0.0, machine=None, spot=False, home=home)
    assert price is not None
    assert price.usd_per_hour == 0.0


def test_an_unknown_spot_price_is_refused_with_a_remedy(home: Path) -> None:
    with pytest.raises(PriceError, match=r"no spot price is known of aws:g5\.xlarge") as met:
        resolve_price(price=None, machine="aws:g5.xlarge", spot=True, home=home)
    assert "--price" in met.value.fix
    assert "--spot" in met.value.fix


def test_spot_passes_over_a_saved_price_which_says_nothing_of_spot(home: Path) -> None:
    save_default("price_usd_per_hour", "2", home)
    with pytest.raises(PriceError, match="--spot needs a machine"):
        resolve_price(price=None, machine=None, spot=True, home=home)
    save_default("machine", "gcp:g2-standard-4", home)
    price = resolve_price(price=None, machine=None, spot=True, home=home)
    assert price is not None
    assert (price.usd_per_hour, price.kind) == (0.2238, "spot")


def test_an_uncertain_price_says_so_in_its_source(home: Path) -> None:
    price = resolve_price(price=None, machine="aws:p4d.24xlarge", spot=False, home=home)
    assert price is not None
    assert price.source.endswith("; uncertain")


def test_a_broken_file_hurts_only_who_relies_on_it(home: Path) -> None:
    home.mkdir()
    (home / "config.toml").write_text("price_usd_per_hour = ?\n")
    assert resolve_price(price="1", machine=None, spot=False, home=home)
    assert resolve_price(price=None, machine="aws:g5.xlarge", spot=False, home=home)
    with pytest.raises(UsageError, match="line 1"):
        resolve_price(price=None, machine=None, spot=False, home=home)


@pytest.mark.parametrize(
    ("as_of", "expected"),
    [
        ("2026-11-30", 0),
        ("2025-03-02", 638),
        ("2026-11", 29),
        ("2026", 333),
        ("2027-01-01", 0),
        (None, None),
        ("", None),
        ("last week", None),
        ("2026-13", None),
        ("2026-02-30", None),
    ],
)
def test_the_age_counts_from_the_first_day_that_the_date_allows(
    as_of: str | None, expected: int | None
) -> None:
    price = Price(usd_per_hour=1.0, source="list", as_of=as_of, kind="on_demand")
    assert price_age_days(price, TODAY) == expected
