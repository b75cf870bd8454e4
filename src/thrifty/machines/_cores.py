"""How many cores and how much memory this process may really use.

A container often sees the whole machine and is throttled to a part of it: the control
groups of the process and of all groups above it are asked as well (versions 1 and 2).
On systems without them only the machine and the affinity count.

Source: https://docs.kernel.org/admin-guide/cgroup-v2.html,
    https://docs.kernel.org/scheduler/sched-bwc.html, proc_pid_mountinfo(5) (read 2026-11).
"""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

__all__ = ["usable_cores", "usable_memory_bytes"]

_ROOT = Path("/")


def usable_cores(*, root: Path = _ROOT) -> float:
    """Count the cores that this process may use; a quota can make it a fraction.

    Args:
        root: Where ``proc`` and the mounted control groups are looked for.
    """
    counts = [float(os.cpu_count() or 1)]
    if hasattr(os, "sched_getaffinity"):  # Linux only
        counts.append(float(len(os.sched_getaffinity(0))))
    for folder in _own_groups(root, "cpu"):
        allowed = _quota_cores(folder)
        if allowed is not None:
            counts.append(allowed)
    return min(counts)


def usable_memory_bytes(*, root: Path = _ROOT) -> int:
    """Tell the memory that this process may use: the least of the machine's and its groups'.

    Args:
        root: Where ``proc`` and the mounted control groups are looked for.
    """
    amounts = [_machine_memory_bytes(root)]
    for folder in _own_groups(root, "memory"):
        for name in ("memory.max", "memory.limit_in_bytes"):
            limit = _read(folder / name)
            if limit.isdecimal():  # "max" is no limit
                amounts.append(int(limit))
    return min(amounts)


def _quota_cores(folder: Path) -> float | None:
    """Cores that a group's quota allows; None without one."""
    words = _read(folder / "cpu.max").split()
    if not words:
        words = [_read(folder / "cpu.cfs_quota_us"), _read(folder / "cpu.cfs_period_us")]
    try:
        quota, period = (int(word) for word in words)
    except ValueError:  # "max", or no such file
        return None
    return quota / period if quota > 0 and period > 0 else None


def _machine_memory_bytes(root: Path) -> int:
    found = re.search(r"^MemTotal:\s*(\d+) kB", _read(root / "proc/meminfo"), re.MULTILINE)
    if found:
        return int(found.group(1)) * 1024
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, kw_only=True, slots=True)
class _Mount:
    """A mounted hierarchy of control groups."""

    group: PurePosixPath
    """The group that is seen at the mount point."""

    point: PurePosixPath
    """Where it is mounted, absolute."""

    controllers: frozenset[str]
    """Of version 1; empty for version 2, which has them all in one tree."""


def _own_groups(root: Path, controller: str) -> Iterator[Path]:
    """Walk from this process's groups of one controller up to the top of what is mounted."""
    mounts = list(_mounts(root))
    for line in _read(root / "proc/self/cgroup").splitlines():
        _, names, group = (*line.split(":", 2), "", "")[:3]
        controllers = frozenset(names.split(",")) if names else frozenset[str]()
        if controllers and controller not in controllers:
            continue
        for mount in mounts:
            fits = controller in mount.controllers if controllers else not mount.controllers
            if fits:
                yield from _upwards(root, mount, PurePosixPath(group))


def _upwards(root: Path, mount: _Mount, group: PurePosixPath) -> Iterator[Path]:
    try:
        below = group.relative_to(mount.group)
    except ValueError:
        # A container without a namespace of its own: its group is the one it sees mounted.
        below = PurePosixPath()
    if ".." in below.parts:
        below = PurePosixPath()
    top = root / mount.point.relative_to("/")
    for part in (below, *below.parents):
        yield top / part


def _mounts(root: Path) -> Iterator[_Mount]:
    for line in _read(root / "proc/self/mountinfo").splitlines():
        before, separator, after = line.partition(" - ")
        fields, kinds = before.split(" "), after.split(" ")
        if not separator or len(fields) < 5 or len(kinds) < 3:  # noqa: PLR2004 - the fields read
            continue
        kind, options = kinds[0], kinds[2]
        if kind not in {"cgroup", "cgroup2"}:
            continue
        yield _Mount(
            group=PurePosixPath(_unescaped(fields[3])),
            point=PurePosixPath(_unescaped(fields[4])),
            controllers=frozenset(options.split(",")) if kind == "cgroup" else frozenset(),
        )


def _unescaped(path: str) -> str:
    r"""Undo the kernel's octal escapes, like ``\040`` for a space."""
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found.group(1), 8)), path)


def _read(path: Path) -> str:
    """Read a small file; empty when it is not there or not ours to read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
