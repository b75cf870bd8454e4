"""Run one script once in a fresh working folder, and keep all that it left.

Plain and observed runs use the same path, one after the other, so that a path in the
script's output never has to be explained away.
"""

import os
import resource
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Outcome", "execute", "fresh_folder"]


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
    """What the working folder contains afterwards, sorted."""


def fresh_folder(folder: Path) -> Path:
    """Empty a folder, or make it."""
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    return folder


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def execute(
    command: list[str], *, root: Path, folder: Path, env: dict[str, str], limit_s: float
) -> Outcome:
    """Run a command to its end, or to the limit.

    Args:
        command: Program and arguments.
        root: The fresh folder whose files are listed afterwards.
        folder: Where it runs, inside ``root``.
        env: Its whole environment.
        limit_s: After which its process group is interrupted, then killed.

    Returns:
        What it did.
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
        files=_files(root),
    )


def _files(root: Path) -> tuple[str, ...]:
    return tuple(
        sorted(
            str(path.relative_to(root))
            for path in root.rglob("*")
            if path.is_file() and "__pycache__" not in path.parts
        )
    )
