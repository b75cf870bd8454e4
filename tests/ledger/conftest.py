import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from thrifty.ledger import Ledger
from thrifty.records import CAUSES, BillLine, Price, Run, SystemUse

MakeRun = Callable[..., Run]


@pytest.fixture
def make_run() -> MakeRun:
    def make(run_id: str = "3f9c2a", **changes: Any) -> Run:
        values: dict[str, Any] = {
            "run_id": run_id,
            "number": None,
            "status": "completed",
            "exit_code": 0,
            "script": "train.py",
            "argv": ("--lr", "0.1"),
            "framework": "torch",
            "world_size": 1,
            "machine_count": 1,
            "device_count": 0,
            "started_at": "2026-10-01T09:30:00+00:00",
            "wall_s": 13.0,
            "steps": 100,
            "samples": 3200,
            "samples_per_s": 290.5,
            "epochs": 2,
            "price": Price(
                usd_per_hour=2.1, source="--price", as_of="2026-10-01", kind="user", machine=None
            ),
            "cost_usd": 0.0076,
            "bill": tuple(
                BillLine(cause=cause, seconds=1.0, fraction=1 / 13, usd=0.0006) for cause in CAUSES
            ),
            "system": SystemUse(
                cores_available=2.0,
                cores_used=1.5,
                peak_memory_bytes=1 << 30,
                read_bytes=None,
                written_bytes=0,
                cpu_pressure_fraction=0.1,
                throttled_s=None,
                kernel_active_fraction=None,
            ),
            "summary": "Most of it was compute.",
            "next_command": "thrifty run train.py",
            "notes": ("one note",),
        }
        return Run(**values | changes)

    return make


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def ledger(home: Path) -> Ledger:
    return Ledger(home)


@pytest.fixture
def five_runs(ledger: Ledger, make_run: MakeRun) -> Ledger:
    for n in range(1, 6):
        run = make_run(f"{n}bcd{n}", script="train.py" if n % 2 else "gan.py")
        status = "failed" if n == 3 else "completed"
        ledger.begin(run).finish(make_run(run.run_id, script=run.script, status=status))
    return ledger


@pytest.fixture
def edit(home: Path) -> Callable[..., None]:
    """Changes values in a run's ``run.json``, as a text editor would."""

    def change(number: int, /, **changes: Any) -> None:
        path = home / "runs" / str(number) / "run.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | changes))

    return change


@pytest.fixture
def other_process() -> Iterator[subprocess.Popen[bytes]]:
    """A process that lives until the test ends it."""
    code = "import sys; sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE) as process:
        yield process
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, 9)
