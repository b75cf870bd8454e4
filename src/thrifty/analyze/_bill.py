"""From what one process did to the bill: each cause's seconds, dollars, and one sentence.

The split of the loop on a machine whose processor is the device: the loop thread's time in
the run queue is ``cpu_wait``; its sleep is ``host`` unless another thread of the process
worked meanwhile (an operator's helper threads), which is ``compute``, or ``cpu_wait`` as far
as that helper waited for a core longer than the loop thread did; the rest of the loop is
``compute``, less the share during which the interpreter itself ran, where it was looked at.
"""

from dataclasses import dataclass

from thrifty.analyze._fold import Totals
from thrifty.records import CAUSES, BillLine, Cause, Price

__all__ = ["Attribution", "attribute", "lines"]

_FEW_LOOKS = 5
_SECONDS_PER_HOUR = 3600
_NS = 1_000_000_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Attribution:
    """Nanoseconds by cause, and what could not be told."""

    ns: dict[Cause, int]
    """Every cause; the sum is the wall time."""

    notes: tuple[str, ...]
    """One sentence each."""


def attribute(totals: Totals | None, *, wall_ns: int, has_devices: bool) -> Attribution:
    """Give every nanosecond of the wall time to one cause.

    Args:
        totals: What the training process recorded; None when nothing was recorded.
        wall_ns: From the start of the script's process to its end.
        has_devices: The machine has accelerators, so a sleeping loop may be waiting for one.

    Returns:
        Times that are not negative and sum to ``wall_ns``.
    """
    ns: dict[Cause, int] = dict.fromkeys(CAUSES, 0)
    notes: list[str] = []
    if totals is not None:
        ns["startup"] = totals.startup_ns
        ns["validation"] = totals.validation_ns
        ns["checkpoint"] = totals.checkpoint_ns
        ns["compile"] = totals.compile_ns
        ns["logging"] = totals.logging_ns
        ns["shutdown"] = totals.shutdown_ns
        if has_devices and totals.device_fetch_ns + totals.device_loop_ns:
            _split_by_device(totals, ns, notes)
        else:
            fetch_queue_ns = _within(totals.fetch_queue_ns, totals.fetch_ns)
            ns["input_wait"] = totals.fetch_ns - fetch_queue_ns
            ns["cpu_wait"] = fetch_queue_ns
            _split_loop(totals, ns, notes, has_devices=has_devices)
        _say_what_is_unknown(totals, notes)
    _balance(ns, wall_ns)
    return Attribution(ns=ns, notes=tuple(notes))


def _within(value: int, most: int) -> int:
    return max(0, min(value, most))


def _split_by_device(totals: Totals, ns: dict[Cause, int], notes: list[str]) -> None:
    """Part fetches and loop by the device's own clock: only what it waited is input_wait."""
    wall = totals.fetch_ns + totals.loop_ns
    seen = totals.device_fetch_ns + totals.device_loop_ns
    ns["input_wait"] = wall * totals.device_fetch_ns // seen
    ns["compute"] = wall - ns["input_wait"]
    notes.append(
        "device: waiting for data is by the device's own clock; waits for the CPU between its "
        "operators are inside compute"
    )


def _split_loop(
    totals: Totals, ns: dict[Cause, int], notes: list[str], *, has_devices: bool
) -> None:
    wall = totals.loop_ns
    queue = _within(totals.loop_queue_ns, wall)
    cpu = _within(totals.loop_cpu_ns, wall - queue)
    idle = wall - queue - cpu
    ns["cpu_wait"] += queue
    if has_devices:
        ns["compute"] += wall - queue
        if wall:
            notes.append(
                "device: compute holds whatever of the loop was not seen to be something else, "
                "waits of the device for the CPU included"
            )
        return
    if totals.idle_ticks >= _FEW_LOOKS:
        active = idle * totals.idle_active_ticks // totals.idle_ticks
    elif totals.idle_ticks == 0 and idle * 50 < wall:
        active = idle  # never seen asleep: scheduling noise within the operators
    else:
        ns["unattributed"] += idle
        if idle * 100 > wall:
            notes.append("too few looks at the loop to tell why its thread slept")
        idle = active = 0
    helper_wait = min(active, totals.extra_queue_ns)
    ns["cpu_wait"] += helper_wait
    ns["host"] += idle - active
    python = 0
    if totals.python_fraction is not None:
        # Looks meet Python that waits for a core as well: that part is cpu_wait already.
        python = min(cpu, int(wall * totals.python_fraction * cpu / max(1, cpu + queue)))
    ns["host"] += python
    ns["compute"] += cpu + active - helper_wait - python


def _say_what_is_unknown(totals: Totals, notes: list[str]) -> None:
    if totals.lost_ns:
        notes.append(
            "recording stopped before the script did (no space was left for its records): "
            "free space, or set THRIFTY_HOME to a folder on another disk"
        )
    if totals.trained and not totals.queue_known:
        notes.append("this kernel does not tell how long threads wait for a core: no cpu_wait")
    if totals.steps_are_backwards:
        notes.append("no optimizer was seen: each backward pass counts as a step")


def _balance(ns: dict[Cause, int], wall_ns: int) -> None:
    """Make the sum exact: what is missing is unattributed, what is over came off the edges.

    Only the process's last instants can be over: its last record is written by a clock read
    inside the process, the wall time ends when the launcher learns of the exit.
    """
    missing = wall_ns - sum(ns.values())
    if missing >= 0:
        ns["unattributed"] += missing
        return
    for cause in ("shutdown", "unattributed", "startup", *CAUSES):
        cut = min(ns[cause], -missing)
        ns[cause] -= cut
        missing += cut


def lines(
    attribution: Attribution, *, device_count: int, price: Price | None
) -> tuple[BillLine, ...]:
    """Turn nanoseconds into device-seconds, shares and dollars.

    Args:
        attribution: Every nanosecond of the wall time.
        device_count: Each second is paid once per device; 0 counts as 1.
        price: Of the whole machine.

    Returns:
        One line per cause, in the order of ``CAUSES``.
    """
    devices = max(1, device_count)
    total_ns = sum(attribution.ns.values())
    usd_per_device_s = None if price is None else price.usd_per_hour / _SECONDS_PER_HOUR / devices
    made: list[BillLine] = []
    for cause in CAUSES:
        seconds = attribution.ns[cause] * devices / _NS
        made.append(
            BillLine(
                cause=cause,
                seconds=seconds,
                fraction=attribution.ns[cause] / total_ns if total_ns else 0.0,
                usd=None if usd_per_device_s is None else seconds * usd_per_device_s,
            )
        )
    return tuple(made)
