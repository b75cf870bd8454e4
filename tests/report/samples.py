"""Runs to look at: print them with ``python tests/report/samples.py [WIDTH] [--colour]``."""

import dataclasses
import sys
from collections.abc import Mapping
from datetime import UTC, date

from thrifty.records import CAUSES, BillLine, Price, Progress, Run, SystemUse
from thrifty.report import live_text, render_bill, render_runs

TODAY = date(2026, 12, 4)

CATALOGUE_PRICE = Price(
    usd_per_hour=1.006,
    source="apache-libcloud",
    as_of="2025-03-02",
    kind="on_demand",
    machine="aws:g5.xlarge",
)

SYSTEM = SystemUse(
    cores_available=4.0,
    cores_used=1.37,
    peak_memory_bytes=4_402_341_478,
    read_bytes=1_288_490_189,
    written_bytes=20_971_520,
    cpu_pressure_fraction=0.031,
    throttled_s=None,
    kernel_active_fraction=None,
)


def make_run(seconds: Mapping[str, float], **changes: object) -> Run:
    """Build a run whose books balance: the wall time is the sum of the causes."""
    devices = changes.get("device_count", 0)
    price = changes.get("price")
    assert isinstance(devices, int)
    assert price is None or isinstance(price, Price)
    total = sum(seconds.values())
    wall = total / max(1, devices)
    per_device_second = None if price is None else price.usd_per_hour / 3_600 / max(1, devices)
    bill = tuple(
        BillLine(
            cause=cause,
            seconds=seconds.get(cause, 0.0),
            fraction=seconds.get(cause, 0.0) / total if total else 0.0,
            usd=None if per_device_second is None else seconds.get(cause, 0.0) * per_device_second,
        )
        for cause in CAUSES
    )
    run = Run(
        run_id="20261204-120000-abcdef",
        number=42,
        status="completed",
        exit_code=0,
        script="train.py",
        argv=("--lr", "0.1"),
        framework="torch",
        world_size=1,
        machine_count=1,
        device_count=0,
        started_at="2026-12-04T12:00:00+00:00",
        wall_s=wall,
        steps=1_204,
        samples=77_056,
        samples_per_s=812.4,
        epochs=3,
        price=None,
        cost_usd=None if price is None else wall * price.usd_per_hour / 3_600,
        bill=bill,
        system=SYSTEM,
        summary="Nothing stands out: 96 % of the time was compute.",
        next_command="thrifty run train.py",
        notes=(),
    )
    return dataclasses.replace(run, **changes)


CLEAN = make_run(
    {
        "startup": 3.21,
        "input_wait": 0.31,
        "compute": 250.4,
        "checkpoint": 0.84,
        "shutdown": 0.0004,
        "unattributed": 0.4,
    }
)

INPUT_BOUND = make_run(
    {
        "startup": 9.1,
        "input_wait": 61.3,
        "transfer": 2.2,
        "compute": 38.6,
        "host": 4.9,
        "validation": 7.7,
        "unattributed": 1.2,
    },
    script="experiments/resnet/train.py",
    argv=("--data", "/mnt/images/train set", "--workers", "2"),
    device_count=1,
    price=CATALOGUE_PRICE,
    summary=(
        "The largest loss is input wait: 61.3 s (49 %, $0.017) in which the device had no batch; "
        "to see what would help"
    ),
    notes=("a second DataLoader is made inside the loop (line 88); its fetches are input wait",),
)

FAILED_AT_IMPORT = make_run(
    {"startup": 0.412, "shutdown": 0.021},
    number=43,
    status="failed",
    exit_code=1,
    argv=(),
    framework=None,
    world_size=None,
    steps=None,
    samples=None,
    samples_per_s=None,
    epochs=None,
    system=None,
    summary="The script ended after 0.4 s without a training step: see its own error above.",
)

EVERY_CAUSE = make_run(
    {cause: 7.3 * (index + 1) ** 2 for index, cause in enumerate(CAUSES)},
    number=1_044,
    status="interrupted",
    exit_code=-2,
    script="-m vision.classification.train",
    device_count=8,
    machine_count=2,
    world_size=16,
    price=Price(usd_per_hour=98.32, source="--price", as_of=None, kind="user"),
    system=dataclasses.replace(SYSTEM, throttled_s=31.0, cores_available=96.0, cores_used=88.0),
)

HUGE = make_run(
    {
        "startup": 3_600.0,
        "input_wait": 8.64e9,
        "compute": 7.2e10,
        "communication": 1.2e10,
        "unattributed": 1.0,
    },
    number=1_234_567,
    status="killed",
    exit_code=-9,
    device_count=1_024,
    world_size=1_024,
    machine_count=128,
    steps=12_345_678_901,
    samples=10**16,
    samples_per_s=123_456_789.0,
    epochs=1_000_000,
    price=Price(
        usd_per_hour=12_583.04,
        source="apache-libcloud",
        as_of="2026-12-03",
        kind="spot",
        machine="aws:p5.48xlarge",
    ),
    system=SystemUse(
        cores_available=24_576.0,
        cores_used=0.0004,
        peak_memory_bytes=2**58,
        read_bytes=2**67,
        written_bytes=1_023,
        cpu_pressure_fraction=0.99999,
        throttled_s=0.0,
        kernel_active_fraction=0.31,
    ),
)

HOSTILE = make_run(
    {"startup": 1.0, "compute": 0.00001, "unattributed": 2.0},
    number=None,
    status="no_training",
    exit_code=3,
    script="\x1b]0;owned\x07\x1b[31m[bold red]a/very/long/"
    + "deep/" * 40
    + "训练\u202eyp.niart.py",
    argv=("--name", "\x1b[2Jgone\r\n", "caf\u00e9\udcff", "", "[/]", "\x9b1mx"),
    steps=0,
    samples=None,
    samples_per_s=None,
    epochs=None,
    price=Price(usd_per_hour=0.0116, source="thrifty\x1b[1m config", as_of="soon", kind="user"),
    summary="\x1b[5mNo training step was seen.",
    notes=("\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\ [blink]x[/blink]", "w" * 300),
)

RUNS = {
    "clean": CLEAN,
    "input_bound": INPUT_BOUND,
    "failed_at_import": FAILED_AT_IMPORT,
    "every_cause": EVERY_CAUSE,
    "huge": HUGE,
    "hostile": HOSTILE,
}

TRAINING = Progress(
    wall_s=250.4,
    phase="training",
    steps=1_204,
    epoch_fraction=0.4199,
    epochs=2,
    epoch_eta_s=118.0,
    samples_per_s=812.4,
    input_wait_fraction=0.231,
    usd=0.07,
)

STARTING = Progress(
    wall_s=3.4,
    phase="startup",
    steps=None,
    epoch_fraction=None,
    epochs=None,
    epoch_eta_s=None,
    samples_per_s=None,
    input_wait_fraction=None,
    usd=None,
)

if __name__ == "__main__":
    columns = int(sys.argv[1]) if len(sys.argv) > 1 else 80
    for one in RUNS.values():
        sys.stdout.write(
            render_bill(
                one,
                width=columns,
                colour="--colour" in sys.argv,
                ascii_only="--ascii" in sys.argv,
                today=TODAY,
                tz=UTC,
            )
            + "\n"
            + "=" * columns
            + "\n"
        )
    sys.stdout.write(
        render_runs(
            list(RUNS.values()),
            width=columns,
            colour="--colour" in sys.argv,
            ascii_only="--ascii" in sys.argv,
            tz=UTC,
        )
        + "\n"
    )
    sys.stdout.writelines(
        live_text(progress, width=columns) + "\n" for progress in (STARTING, TRAINING)
    )
