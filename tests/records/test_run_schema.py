"""The JSON Schema says what ``Run.to_json`` writes, and the page tells every field."""

import copy
import dataclasses
import json
import re
from importlib.resources import files
from pathlib import Path
from typing import Any, get_args

import jsonschema
import pytest

from thrifty.records import (
    CAUSES,
    SCHEMA_VERSION,
    BillLine,
    Price,
    PriceKind,
    Run,
    RunStatus,
    SystemUse,
)

SCHEMA: dict[str, Any] = json.loads(
    files("thrifty.records").joinpath("run.schema.json").read_text(encoding="utf-8")
)
PAGE = Path(__file__).parents[2] / "docs" / "record.md"
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)

FULL = Run(
    run_id="3f9c2a",
    number=142,
    status="completed",
    exit_code=0,
    script="train.py",
    argv=("--lr", "0.1"),
    framework="torch",
    world_size=1,
    machine_count=1,
    device_count=1,
    started_at="2026-10-01T09:30:00.250000+00:00",
    wall_s=13.0,
    steps=100,
    samples=3200,
    samples_per_s=290.5,
    epochs=2,
    price=Price(usd_per_hour=2.1, source="--price", as_of="2026-10-01", kind="user"),
    cost_usd=0.0076,
    bill=tuple(BillLine(cause=c, seconds=1.0, fraction=1 / 13, usd=0.0006) for c in CAUSES),
    system=SystemUse(
        cores_available=2.0,
        cores_used=1.5,
        peak_memory_bytes=1,
        read_bytes=1,
        written_bytes=1,
        cpu_pressure_fraction=0.1,
        throttled_s=0.0,
        kernel_active_fraction=0.31,
    ),
    summary="Most of it was compute.",
    next_command="thrifty run train.py",
    notes=("one note",),
)

UNKNOWN = dataclasses.replace(
    FULL,
    number=None,
    exit_code=None,
    framework=None,
    world_size=None,
    steps=None,
    samples=None,
    samples_per_s=None,
    epochs=None,
    price=None,
    cost_usd=None,
    bill=(),
    system=None,
    notes=(),
)


def as_json(run: Run) -> dict[str, Any]:
    return json.loads(json.dumps(run.to_json()))


def accepts(data: object) -> bool:
    return VALIDATOR.is_valid(data)


def names(kind: type[Any]) -> list[str]:
    return [field.name for field in dataclasses.fields(kind)]


def test_the_schema_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("run", [FULL, UNKNOWN], ids=["full", "unknown"])
def test_a_record_fits(run: Run) -> None:
    VALIDATOR.validate(as_json(run))


@pytest.mark.parametrize("status", get_args(RunStatus))
def test_every_status_fits(status: str) -> None:
    assert accepts(as_json(FULL) | {"status": status})


def test_a_field_of_a_later_version_fits() -> None:
    assert accepts(as_json(FULL) | {"findings": [{"cause": "input_wait"}]})


@pytest.mark.parametrize("name", names(Run))
def test_a_record_without_one_of_its_fields_does_not_fit(name: str) -> None:
    data = as_json(FULL)
    del data[name]
    assert not accepts(data)


WRONG: list[tuple[str, Any]] = [
    ("schema_version", 1),
    ("schema_version", "2"),
    ("run_id", ""),
    ("number", 0),
    ("number", "142"),
    ("status", "fine"),
    ("exit_code", 1.5),
    ("argv", "--lr"),
    ("argv", [1]),
    ("framework", 1),
    ("world_size", 0),
    ("machine_count", 0),
    ("device_count", -1),
    ("started_at", "2026-10-01"),
    ("started_at", "2026-10-01T09:30:00+02:00"),
    ("wall_s", None),
    ("wall_s", -1),
    ("wall_s", "13"),
    ("steps", -1),
    ("samples", 0.5),
    ("price", 2.1),
    ("price", {"usd_per_hour": 2.1}),
    ("cost_usd", -1),
    ("bill", None),
    ("bill", [as_json(FULL)["bill"][0]]),
    ("bill", as_json(FULL)["bill"][::-1]),
    ("bill", as_json(FULL)["bill"] + as_json(FULL)["bill"][:1]),
    ("system", {}),
    ("summary", None),
    ("notes", [None]),
]


@pytest.mark.parametrize(("name", "value"), WRONG)
def test_a_wrong_value_does_not_fit(name: str, value: object) -> None:
    assert not accepts(as_json(FULL) | {name: value})


@pytest.mark.parametrize("name", ["price", "system"])
def test_the_records_inside_know_their_fields_exactly(name: str) -> None:
    for key in as_json(FULL)[name]:
        data = as_json(FULL)
        del data[name][key]
        assert not accepts(data)
    data = as_json(FULL)
    data[name]["later"] = 1
    assert not accepts(data)


@pytest.mark.parametrize(
    ("key", "value"),
    [("cause", "magic"), ("seconds", None), ("seconds", -1), ("fraction", 50), ("usd", "1")],
)
def test_a_wrong_line_of_the_bill_does_not_fit(key: str, value: object) -> None:
    data = as_json(FULL)
    data["bill"][3][key] = value
    assert not accepts(data)


def test_the_schema_names_the_fields_of_the_records_and_no_others() -> None:
    line = SCHEMA["$defs"]["bill_line"]
    properties = SCHEMA["properties"]
    met = {
        kind: (list(part["properties"]), part["required"])
        for kind, part in (
            (Run, SCHEMA),
            (BillLine, line),
            (Price, properties["price"]),
            (SystemUse, properties["system"]),
        )
    }
    assert met == {kind: (names(kind), names(kind)) for kind in met}


def test_the_schema_lists_the_causes_statuses_and_kinds_of_the_records() -> None:
    properties = SCHEMA["properties"]
    assert tuple(SCHEMA["$defs"]["bill_line"]["properties"]["cause"]["enum"]) == CAUSES
    assert tuple(properties["status"]["enum"]) == get_args(RunStatus)
    assert tuple(properties["price"]["properties"]["kind"]["enum"]) == get_args(PriceKind)
    assert properties["schema_version"]["const"] == SCHEMA_VERSION


def untold(page: str) -> list[str]:
    """Give the names of the record that have no row of their own on the page."""
    told = set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE))
    wanted = [name for kind in (Run, BillLine, Price, SystemUse) for name in names(kind)]
    return [name for name in (*wanted, *get_args(RunStatus)) if name not in told]


def test_the_page_tells_every_field_status_and_cause() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert untold(page) == []
    assert " ".join(CAUSES) in page.replace("\n", " ")


def test_a_page_that_forgets_a_field_would_be_caught() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert untold(page.replace("| `steps` |", "| steps |")) == ["steps"]


def test_a_record_survives_its_own_json() -> None:
    for run in (FULL, UNKNOWN):
        assert Run.from_json(copy.deepcopy(as_json(run))) == run
