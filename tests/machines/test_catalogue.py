"""The machines that can be rented."""

import csv
import math
import re
from importlib import resources
from pathlib import Path

import pytest

from thrifty.machines import find_machine, machine_types
from thrifty.machines._catalogue import load_catalogue, pick_machine, read_rows
from thrifty.records import PriceError

HEADER = (
    "provider,instance,region,vcpus,mem_gib,accelerator,accelerator_count,"
    "accelerator_mem_gib,price_per_hour,spot_price,source,as_of,note"
)
GOOD = "aws,a.large,us,2,4,,,,0.5,,list,2025-01-01,"
DOCS = Path(__file__).parents[2] / "docs" / "prices.md"


def table(name: str) -> list[dict[str, str]]:
    text = (resources.files("thrifty.machines") / name).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


def test_a_machine_is_found_with_its_price_source_and_date() -> None:
    machine = find_machine("aws:g5.xlarge")
    assert (machine.name, machine.vcpus, machine.memory_bytes) == ("aws:g5.xlarge", 4, 16 * 2**30)
    assert (machine.accelerator, machine.accelerator_count) == ("A10G", 1)
    assert machine.accelerator_memory_bytes == 22 * 2**30
    assert (machine.on_demand_usd_per_hour, machine.spot_usd_per_hour) == (1.006, None)
    assert "apache-libcloud" in machine.source
    assert machine.as_of == "2025-03-02"
    assert not machine.uncertain


@pytest.mark.parametrize(
    "name", ["AWS:G5.XLARGE", " aws : g5.xlarge ", "g5.xlarge", "G5.xlarge", "aws:g5.xlarge\n"]
)
def test_case_spaces_and_a_left_out_provider_do_not_matter(name: str) -> None:
    assert find_machine(name).name == "aws:g5.xlarge"


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("aws:g5.xlrage", "aws:g5.xlarge"),
        ("g5.xlrage", "aws:g5.xlarge"),
        ("amazon:g5.xlarge", "aws:g5.xlarge"),
        ("aws/g5.xlarge", "aws:g5.xlarge"),
        ("gcp:g5.xlarge", "aws:g5.xlarge"),
        ("azure:NC12", "azure:Standard_NC12s_v3"),
        ("lambda:h100", "lambda:gpu_1x_h100_pcie"),
        ("aws:", "providers: aws, gcp, azure, lambda, runpod"),
        ("", "providers: aws, gcp, azure, lambda, runpod"),
        (":", "like aws:g5.xlarge"),
        ("aws:zzzzzz", "like aws:g5.xlarge"),
        ("\ud83d\0", "like aws:g5.xlarge"),
    ],
)
def test_an_unknown_name_is_answered_with_the_nearest_and_what_to_type(
    name: str, shown: str
) -> None:
    with pytest.raises(PriceError) as met:
        find_machine(name)
    assert repr(name) in met.value.problem
    assert shown in met.value.fix
    assert "--price 2.10" in met.value.fix


def test_a_name_that_two_providers_have_asks_for_the_provider() -> None:
    known, broken = read_rows([HEADER, GOOD, GOOD.replace("aws", "gcp")])
    with pytest.raises(PriceError, match=r"2 providers have a machine 'a\.large'") as met:
        pick_machine("a.large", known, broken)
    assert "aws:a.large" in met.value.fix


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ("aws,b.large,us,2,4,,,,free,,list,2025,", "could not convert"),
        ("aws,b.large,us,2,4,,,,,,list,2025,", "price_per_hour is empty"),
        ("aws,b.large,us,2,4,,,,-1,,list,2025,", "expected a number above 0"),
        ("aws,b.large,us,2,4,,,,nan,,list,2025,", "expected a number above 0"),
        ("aws,b.large,us,2,4,,,,0.5,inf,list,2025,", "expected a number above 0"),
        ("aws,b.large,us,2,4,T4,many,16,0.5,,list,2025,", "invalid literal"),
        ("aws,b.large,us,2,4,,,,0.5,,,2025,", "source is empty"),
        ("aws,b.large,us,2,4,,,,0.5,,list,,", "as_of is empty"),
        ("aws,b.large", "vcpus is empty"),
        ('aws,b.large,us,2,4,,,,0.5,,"left open,2025,', "as_of is empty"),
    ],
)
def test_a_broken_row_says_why_and_breaks_no_other(row: str, why: str) -> None:
    known, broken = read_rows([HEADER, row, "", GOOD])
    assert list(known) == ["aws:a.large"]
    with pytest.raises(PriceError, match=rf"row of aws:b\.large is broken: line 2: .*{why}") as met:
        pick_machine("aws:b.large", known, broken)
    assert "--price" in met.value.fix


def test_a_table_without_a_column_breaks_rows_and_does_not_raise() -> None:
    known, broken = read_rows(["provider,instance", "aws,b.large"])
    assert (known, list(broken)) == ({}, ["aws:b.large"])


def test_a_missing_table_is_told_with_a_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load_catalogue.cache_clear()
    monkeypatch.setattr(resources, "files", lambda _: tmp_path)
    with pytest.raises(PriceError, match="cannot be read") as met:
        machine_types()
    assert "pip install" in met.value.fix


def test_every_row_of_the_shipped_table_can_be_read() -> None:
    load_catalogue.cache_clear()
    known, broken = load_catalogue()
    assert broken == {}
    assert len(known) == len(table("instances.csv")) == 171
    assert tuple(known.values()) == machine_types()


def test_every_shipped_price_has_a_source_and_an_iso_date() -> None:
    for machine in machine_types():
        assert machine.source
        assert re.fullmatch(r"20\d\d(-[01]\d(-[0-3]\d)?)?", machine.as_of), machine


def test_every_shipped_accelerator_has_figures_and_sources() -> None:
    rows = table("accelerators.csv")
    assert len({row["name"] for row in rows}) == len(rows) == 35
    figures = [name for name in rows[0] if name.endswith(("tflops", "gb_s", "gb", "_w", "_dir"))]
    for row in rows:
        assert row["sources"], row["name"]
        assert float(row["mem_gb"]) > 0, row["name"]
        assert row["bf16_tflops"] or row["fp16_tflops"], row["name"]
        assert all(math.isfinite(float(row[name])) for name in figures if row[name]), row["name"]


def test_the_page_of_prices_lists_every_machine() -> None:
    page = DOCS.read_text(encoding="utf-8")
    assert [m.name for m in machine_types() if f"`{m.instance}`" not in page] == []
