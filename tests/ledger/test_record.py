import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from thrifty.ledger._record import RecordError, dump_run, load_run, parse_run
from thrifty.records import Run


def changed(run: Run, **changes: Any) -> bytes:
    return json.dumps(json.loads(dump_run(run)) | changes).encode()


def test_a_run_comes_back_as_it_was(make_run: Callable[..., Run]) -> None:
    run = make_run(number=142, argv=("", "a b", "ünï", "\n\x1b[31m", "nul\0"))
    assert parse_run(dump_run(run)) == run


def test_a_run_of_unknowns_comes_back_as_it_was(make_run: Callable[..., Run]) -> None:
    unknown = dict.fromkeys(
        ["exit_code", "framework", "world_size", "steps", "samples", "samples_per_s", "epochs"]
    )
    unknown |= dict.fromkeys(["price", "cost_usd", "system"])
    run = make_run(**unknown, bill=(), notes=())
    assert parse_run(dump_run(run)) == run


def test_an_argument_that_is_no_text_keeps_its_bytes(make_run: Callable[..., Run]) -> None:
    run = make_run(argv=(os.fsdecode(b"\xff\xfe.pt"),))
    assert os.fsencode(parse_run(dump_run(run)).argv[0]) == b"\xff\xfe.pt"


def test_fields_of_later_versions_are_ignored_at_every_depth(make_run: Callable[..., Run]) -> None:
    run = make_run()
    data = json.loads(dump_run(run)) | {"findings": [{"a": 1}]}
    data["price"]["later"] = 1
    data["bill"][0]["later"] = 1
    assert parse_run(json.dumps(data).encode()) == run


def test_a_whole_number_is_a_number_of_seconds(make_run: Callable[..., Run]) -> None:
    assert parse_run(changed(make_run(), wall_s=13)).wall_s == 13.0


@pytest.mark.parametrize("name", [n for n in Run.__slots__ if n != "schema_version"])
def test_a_missing_field_is_named(make_run: Callable[..., Run], name: str) -> None:
    data = json.loads(dump_run(make_run()))
    del data[name]
    with pytest.raises(RecordError, match=f"^the record has no {name}$"):
        parse_run(json.dumps(data).encode())


BAD_VALUES = [
    ("status", "fine", "status is 'fine', not completed or failed or"),
    ("status", ["running"], "status is"),
    ("exit_code", "0", "exit_code is '0', not a whole number"),
    ("exit_code", True, "exit_code is True"),
    ("exit_code", 1.5, "exit_code is 1.5"),
    ("exit_code", 10**30, "exit_code is 1000"),
    ("script", None, "script is None, not text"),
    ("argv", "ab", "argv is 'ab', not a list"),
    ("argv", ["a", 1], r"argv\[1\] is 1, not text"),
    ("wall_s", float("nan"), "wall_s is nan, not a finite number"),
    ("wall_s", float("inf"), "wall_s is inf"),
    ("wall_s", 10**400, "wall_s is 1000"),
    ("wall_s", False, "wall_s is False"),
    ("steps", {}, "steps is {}"),
    ("price", 2.1, "price is 2.1, not an object"),
    ("price", {"usd_per_hour": 1}, r"price has no source"),
    ("system", {"cores_used": []}, "system has no cores_available"),
    ("bill", {"cause": "host"}, "bill is"),
    ("bill", [3], r"bill\[0\] is 3, not an object"),
    ("bill", [{"cause": "magic", "seconds": 1, "fraction": 1, "usd": 1}], "cause is 'magic'"),
    ("bill", [{"cause": "host", "seconds": float("nan"), "fraction": 1, "usd": 1}], "is nan"),
    ("notes", [None], r"notes\[0\] is None"),
]


@pytest.mark.parametrize(("name", "value", "message"), BAD_VALUES)
def test_a_value_of_another_type_is_named(
    make_run: Callable[..., Run], name: str, value: object, message: str
) -> None:
    with pytest.raises(RecordError, match=message):
        parse_run(changed(make_run(), **{name: value}))


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b"3",
        b'"text"',
        b"\xff\xfe\x00",
        b"{}",
        b"[" * 200_000,
        b"9" * 10_000,
        b'{"schema_version": ' + b"9" * 10_000 + b"}",
    ],
)
def test_what_is_no_record_is_refused_in_one_short_printable_line(text: bytes) -> None:
    with pytest.raises(RecordError) as met:
        parse_run(text)
    assert len(str(met.value)) < 160
    assert str(met.value).isprintable()


def test_every_cut_of_a_record_is_refused(make_run: Callable[..., Run]) -> None:
    text = dump_run(make_run()).rstrip()
    for length in range(len(text)):
        with pytest.raises(RecordError):
            parse_run(text[:length])


def test_escape_sequences_of_a_hostile_record_do_not_reach_the_message(
    make_run: Callable[..., Run],
) -> None:
    with pytest.raises(RecordError) as met:
        parse_run(changed(make_run(), status="\x1b[2J\n\u202e"))
    assert str(met.value).isprintable()


def test_a_record_of_another_schema_version_is_not_guessed_at(make_run: Callable[..., Run]) -> None:
    with pytest.raises(RecordError, match="schema version '2'; this thrifty reads 1"):
        parse_run(changed(make_run(), schema_version="2"))


def test_what_could_not_be_read_back_is_not_written(make_run: Callable[..., Run]) -> None:
    with pytest.raises(RecordError, match="wall_s is nan"):
        dump_run(make_run(wall_s=float("nan")))


def test_a_huge_file_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    with path.open("wb") as file:
        file.truncate(1 << 40)  # a sparse terabyte
    with pytest.raises(RecordError, match="cannot be read: more than"):
        load_run(path)


def test_a_missing_file_is_told_apart(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        load_run(tmp_path / "run.json")
