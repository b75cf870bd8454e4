"""Run one script once in a fresh working folder, and keep all that it left.

Plain and observed runs use the same path, one after the other, so that a path in the
script's output never has to be explained away.
"""

import hashlib
import os
import resource
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Outcome", "execute", "files_left", "fresh_folder"]

_HASHED = {".pt", ".pth", ".png"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """What one run did, seen from outside."""

    exit_code: int | None
    """The process's own, minus the signal's number after a signal; None when it ran too long."""

    stdout: str
    """All of it, undecodable bytes escaped."""

    stderr: str
    """All of it, undecodable bytes escaped."""

    wall_s: float
    """From before the start to the end of the process, measured by the runner."""

    cpu_s: float
    """Of the process and of all its children that were waited for."""

    files: tuple[str, ...]
    """What the working folder contains afterwards, and what torch.compile generated."""


def fresh_folder(folder: Path) -> Path:
    """Empty a folder, or make it."""
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    return folder


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def execute(command: list[str], *, folder: Path, env: dict[str, str], limit_s: float) -> Outcome:
    """Run a command to its end, or to the limit.

    Args:
        command: Program and arguments.
        folder: Where it runs.
        env: Its whole environment.
        limit_s: After which its process group is interrupted, then killed.

    Returns:
        What it did; its files are still to be looked for.
    """
    cpu_before_s, begin_ns = _cpu_s(), time.perf_counter_ns()
    process = subprocess.Popen(
        command,
        cwd=folder,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    timed_out = False
    try:
        stdout, stderr = process.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        timed_out = True
        os.killpg(process.pid, signal.SIGINT)
        try:
            stdout, stderr = process.communicate(timeout=10)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            stdout, stderr = process.communicate()
    return Outcome(
        exit_code=None if timed_out else process.returncode,
        stdout=stdout.decode(errors="backslashreplace"),
        stderr=stderr.decode(errors="backslashreplace"),
        wall_s=(time.perf_counter_ns() - begin_ns) / 1e9,
        cpu_s=_cpu_s() - cpu_before_s,
        files=(),
    )


def files_left(root: Path, cache: Path, *, hashed: bool) -> tuple[str, ...]:
    """Name what a run left behind.

    Args:
        root: The fresh folder in which it ran.
        cache: Where torch.compile puts what it generates; its files are called by the hash
            of their content, so that equal names are equal graphs.
        hashed: Note the contents of saved weights and images, not their names only.

    Returns:
        Names relative to the two folders, sorted within each.
    """
    found: list[str] = []
    for path in sorted(root.rglob("*")):
        if not path.is_file() or "__pycache__" in path.parts:
            continue
        name = str(path.relative_to(root))
        if hashed and path.suffix in _HASHED:
            name = f"{name} sha256 {hashlib.sha256(path.read_bytes()).hexdigest()[:16]}"
        found.append(name)
    names = (path.name for path in cache.rglob("*") if path.suffix in {".py", ".cpp"})
    return (*found, *(f"compiled {name}" for name in sorted(names)))
