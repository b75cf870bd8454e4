"""The lease under which a run may call itself ``running``.

A launcher that dies cannot say so. Its lease names the process that would have to be alive;
on the machine where it ran, the kernel answers at once. From elsewhere (a home shared by
several machines, a container's own process numbers) only the time of the last renewal speaks.
"""

import json
import os
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

from thrifty.ledger._files import read_plain, write_whole

__all__ = [
    "LEASE_S",
    "Lease",
    "is_alive",
    "lease_of_this_process",
    "read_lease",
    "renew_lease",
    "write_lease",
]

LEASE_S = 120.0
"""A lease seen from another machine holds this long after its renewal; launchers renew
about every ten seconds, so a dozen may be lost to a slow network disk."""

_LIMIT_BYTES = 4096
_STAMP = "%Y-%m-%dT%H:%M:%S.%f+00:00"
"""Of one width for every time, so that a renewal overwrites the file in place."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Lease:
    """Who keeps a run alive, and when it last said so."""

    host: str
    """Name of the machine."""

    boot_id: str | None
    """Of the kernel's present life; None where there is none to ask (macOS)."""

    pid_namespace: str | None
    """Where ``pid`` has its meaning: containers count processes on their own."""

    pid: int
    """The launcher's."""

    pid_started: int | None
    """Clock ticks from boot to the process's start: a later process with the same ``pid``
    has another."""

    renewed_at: str
    """UTC, ISO 8601."""


def lease_of_this_process() -> Lease:
    """Take a lease for the process that calls."""
    pid = os.getpid()
    return Lease(
        host=os.uname().nodename,
        boot_id=_boot_id(),
        pid_namespace=_pid_namespace(),
        pid=pid,
        pid_started=_pid_started(pid),
        renewed_at=datetime.now(UTC).strftime(_STAMP),
    )


def write_lease(path: Path, lease: Lease) -> None:
    """Write a new lease file.

    Raises:
        OSError: It could not be written.
    """
    write_whole(path, _text(lease))


def renew_lease(path: Path, lease: Lease) -> None:
    """Overwrite the file in place: a few microseconds, and it needs no space on a full disk.

    Raises:
        OSError: The file is gone or cannot be written.
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.pwrite(descriptor, _text(lease), 0)
    finally:
        os.close(descriptor)


def _text(lease: Lease) -> bytes:
    return json.dumps(asdict(lease)).encode("ascii") + b"\n"


def read_lease(path: Path) -> Lease | None:
    """Read a lease; None when there is none, or none that can be understood."""
    try:
        data = json.loads(read_plain(path, limit_bytes=_LIMIT_BYTES))
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(data, dict):
        return None
    met = cast("dict[str, Any]", data)
    types: dict[str, Any] = {f.name: f.type for f in fields(Lease)}
    if not all(isinstance(met.get(name), kind) for name, kind in types.items()):
        return None
    return Lease(**{name: met[name] for name in types})


def is_alive(lease: Lease, *, now: datetime) -> bool:
    """Tell whether the run's launcher still lives.

    Args:
        lease: As ``read_lease`` gave it.
        now: Present time, UTC; only a lease of another machine is held against it.
    """
    here = lease_of_this_process()
    if (
        lease.pid_started is not None
        and lease.boot_id is not None
        and lease.pid_namespace is not None
        and (lease.host, lease.boot_id, lease.pid_namespace)
        == (here.host, here.boot_id, here.pid_namespace)
    ):
        return _pid_started(lease.pid) == lease.pid_started
    try:
        age_s = (now - datetime.fromisoformat(lease.renewed_at)).total_seconds()
    except (ValueError, TypeError, OverflowError):  # no date; no zone; out of range
        return False
    return abs(age_s) <= LEASE_S  # the other machine's clock may be a little ahead


def _boot_id() -> str | None:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return None


def _pid_namespace() -> str | None:
    try:
        return str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        return None


def _pid_started(pid: int) -> int | None:
    """Give a living process's start in clock ticks since boot; None when it has ended.

    Source: proc_pid_stat(5), fields 3 (state) and 22 (starttime), read 2026-10.
    """
    try:
        text = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return None
    fields = text[text.rfind(b")") + 1 :].split()  # the name before may hold anything
    if fields[0] in {b"Z", b"X"}:  # ended, only not yet collected by its parent
        return None
    return int(fields[19])
