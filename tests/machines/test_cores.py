"""Cores and memory as control groups of both versions leave them."""

import os
from pathlib import Path

import pytest

from thrifty.machines import usable_cores, usable_memory_bytes

V1_CPU = "30 25 0:26 {root} /sys/fs/cgroup/cpu rw shared:9 - cgroup cgroup rw,cpu,cpuacct\n"
V1_MEMORY = "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
V2 = "38 31 0:38 {root} /sys/fs/cgroup rw,relatime - cgroup2 cgroup2 rw\n"
NOISE = "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\nnot a mount\n"


@pytest.fixture(autouse=True)
def eight_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 16)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def test_without_control_groups_affinity_counts(tmp_path: Path) -> None:
    assert usable_cores(root=tmp_path) == 8.0


def test_the_machine_counts_where_there_is_no_affinity(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "sched_getaffinity")
    assert usable_cores(root=tmp_path) == 16.0
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert usable_cores(root=tmp_path) == 1.0


@pytest.mark.parametrize(
    ("own", "parent", "expected"),
    [
        ("max 100000", "max 100000", 8.0),
        ("150000 100000", "max 100000", 1.5),
        ("400000 100000", "200000 100000", 2.0),
        ("max 100000", "50000 100000", 0.5),
        ("1600000 100000", "max 100000", 8.0),
        ("", "nonsense", 8.0),
        ("0 0", "-1 100000", 8.0),
    ],
)
def test_the_least_quota_of_a_v2_group_and_its_parents_counts(
    tmp_path: Path, own: str, parent: str, expected: float
) -> None:
    root = write(
        tmp_path,
        {
            "proc/self/cgroup": "0::/jobs/train\n",
            "proc/self/mountinfo": NOISE + V2.format(root="/"),
            "sys/fs/cgroup/jobs/train/cpu.max": own,
            "sys/fs/cgroup/jobs/cpu.max": parent,
        },
    )
    assert expected == usable_cores(root=root)


def test_a_groups_neighbour_does_not_count(tmp_path: Path) -> None:
    root = write(
        tmp_path,
        {
            "proc/self/cgroup": "0::/jobs/train\n",
            "proc/self/mountinfo": V2.format(root="/"),
            "sys/fs/cgroup/jobs/other/cpu.max": "1000 100000",
        },
    )
    assert usable_cores(root=root) == 8.0


def test_a_v1_quota_counts_also_of_a_parent(tmp_path: Path) -> None:
    folder = "sys/fs/cgroup/cpu/jobs"
    root = write(
        tmp_path,
        {
            "proc/self/cgroup": "9:memory:/elsewhere\n3:cpu,cpuacct:/jobs/train\n",
            "proc/self/mountinfo": NOISE + V1_CPU.format(root="/"),
            f"{folder}/train/cpu.cfs_quota_us": "-1",
            f"{folder}/train/cpu.cfs_period_us": "100000",
            f"{folder}/cpu.cfs_quota_us": "300000",
            f"{folder}/cpu.cfs_period_us": "100000",
        },
    )
    assert usable_cores(root=root) == 3.0


@pytest.mark.parametrize("group", ["/docker/abc", "/docker/abc/", "/../elsewhere", "/other"])
def test_a_container_sees_its_own_group_at_the_mount_point(tmp_path: Path, group: str) -> None:
    root = write(
        tmp_path,
        {
            "proc/self/cgroup": f"0::{group}\n",
            "proc/self/mountinfo": V2.format(root="/docker/abc"),
            "sys/fs/cgroup/cpu.max": "250000 100000",
        },
    )
    assert usable_cores(root=root) == 2.5


def test_the_least_memory_limit_counts(tmp_path: Path) -> None:
    files = {
        "proc/meminfo": "MemTotal:       16384 kB\nMemFree: 1 kB\n",
        "proc/self/cgroup": "4:memory:/jobs/train\n0::/unified\n",
        "proc/self/mountinfo": V1_MEMORY + V2.format(root="/").replace("cgroup rw", "unified rw"),
    }
    root = write(tmp_path, files)
    assert usable_memory_bytes(root=root) == 16384 * 1024
    write(root, {"sys/fs/cgroup/memory/jobs/memory.limit_in_bytes": "9223372036854771712"})
    assert usable_memory_bytes(root=root) == 16384 * 1024
    write(root, {"sys/fs/cgroup/memory/jobs/train/memory.limit_in_bytes": "8388608"})
    assert usable_memory_bytes(root=root) == 8388608
    write(root, {"sys/fs/cgroup/unified/memory.max": "4194304"})
    write(root, {"sys/fs/cgroup/memory.max": "max"})
    assert usable_memory_bytes(root=root) == 8388608


def test_a_mount_point_with_a_space_is_found(tmp_path: Path) -> None:
    root = write(
        tmp_path,
        {
            "proc/self/cgroup": "0::/\n",
            "proc/self/mountinfo": "38 31 0:38 / /my\\040groups rw - cgroup2 cgroup2 rw\n",
            "my groups/cpu.max": "100000 100000",
        },
    )
    assert usable_cores(root=root) == 1.0


def test_this_machine_has_some_of_both() -> None:
    assert 0 < usable_cores() <= 8
    assert usable_memory_bytes() > 0
