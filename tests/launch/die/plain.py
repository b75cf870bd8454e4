"""Run a command in a folder of its own, plainly or under thrifty, and say what came of it."""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from thrifty.records import CAUSES

__all__ = ["PYTHON", "THRIFTY", "WAYS", "Outcome", "Place", "check_books", "unlike"]

PYTHON = sys.executable
THRIFTY = str(Path(PYTHON).with_name("thrifty"))
WAYS: list[dict[str, Any]] = tomllib.loads(
    Path(__file__).with_name("ways.toml").read_text(encoding="utf-8")
)["way"]


@dataclass(frozen=True)
class Outcome:
    """All that a caller can see of a command."""

    returncode: int
    stdout: bytes
    stderr: bytes


class Place:
    """A folder for the script, beside it the ledger's home and the record."""

    def __init__(self, root: Path) -> None:
        self.folder = root / "scripts"
        self.home = root / "home"
        self.record_file = root / "record.json"
        self.environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("PYTHON", "THRIFTY"))
        } | {"THRIFTY_HOME": str(self.home), "OMP_NUM_THREADS": "1"}

    def arrange(self, way: dict[str, Any]) -> None:
        """Lay the files of a way out afresh, so that both runs meet the same folder."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        files = dict(way.get("files", {}))
        if "script" in way:
            files["script.py"] = way["script"]
        for name, text in files.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        if "setup" in way:
            subprocess.run(
                ["bash", "-ec", way["setup"]],
                cwd=self.folder,
                check=True,
                env=self.environment | {"PYTHON": PYTHON},
            )

    def fill(self, text: str) -> str:
        """Put the folder and the interpreter where they are meant."""
        return text.replace("$FOLDER", str(self.folder)).replace("$PYTHON", PYTHON)

    def command(self, way: dict[str, Any], *, watched: bool, options: list[str]) -> list[str]:
        """Give the words to type."""
        ours = [THRIFTY, "run", "--json", str(self.record_file), *options] if watched else []
        if "command" in way:
            theirs = [self.fill(word) for word in way["command"]]
            typed = [*ours, "--", *theirs] if watched else theirs
        else:
            theirs = [self.fill(word) for word in way.get("target", ["script.py"])]
            typed = [*(ours or [PYTHON]), *theirs]
        if "shell" in way:
            typed = ["bash", "-c", way["shell"], "bash", *typed]
        return typed

    def run(
        self, way: dict[str, Any], *, watched: bool, options: list[str] | None = None
    ) -> Outcome:
        """Run a way once."""
        self.arrange(way)
        environment = self.environment | {k: self.fill(v) for k, v in way.get("env", {}).items()}
        for name in way.get("unset", []):
            environment.pop(name, None)
        done = subprocess.run(
            self.command(way, watched=watched, options=options or []),
            cwd=self.folder,
            env=environment,
            input=way.get("stdin", "").encode(),
            capture_output=True,
            timeout=90,
            check=False,
            start_new_session=True,
        )
        return Outcome(done.returncode, done.stdout, done.stderr)

    def record(self) -> dict[str, Any]:
        """Read what ``--json`` wrote."""
        return json.loads(self.record_file.read_text(encoding="utf-8"))


def unlike(text: bytes) -> bytes:
    """Take out what differs between any two processes: addresses and process ids."""
    text = re.sub(rb"0x[0-9a-f]{6,}", b"0x", text)
    return re.sub(rb"line \d+: +\d+ ", b"line: ", text)  # bash on a child that a signal ended


def check_books(record: dict[str, Any]) -> None:
    """Every cause once and in order, none negative, and the sum is the wall time."""
    bill = record["bill"]
    assert [line["cause"] for line in bill] == list(CAUSES)
    assert all(line["seconds"] >= 0 for line in bill)
    total_s = record["wall_s"] * max(1, record["device_count"])
    assert abs(sum(line["seconds"] for line in bill) - total_s) < 1e-3
