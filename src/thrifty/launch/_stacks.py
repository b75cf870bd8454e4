"""Look at which Python code holds the interpreter, now and then, from outside.

py-spy reads the script's memory without stopping it. A look at which a thread holds the
interpreter's lock while it runs the user's own lines, outside the framework's files and the
data loader, is Python keeping the loop: ``host``. Windows of a few seconds with long pauses
between them keep the cost near 0.2 % of a core; where the system forbids it, we go without
and say so.
"""

import os
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path
from shutil import which

__all__ = ["StackWatch", "Window"]

_WINDOWS = (
    *((1, 200, 0.0), (1, 200, 0.0), (2, 200, 0.0), (3, 100, 1.0), (3, 100, 2.0)),
    *((3, 100, 4.0), (3, 100, 8.0), (3, 50, 15.0)),
)
"""(seconds, looks per second, pause before the next); the last one repeats. A short run needs
many looks soon; a long one has time."""

_FRAMEWORKS = ("torch/", "torchvision/", "lightning/", "pytorch_lightning/", "ignite/", "keras/")
_OURS = "thrifty/"
_LOADER = "torch/utils/data/"
_CLOSING_S = 0.1
_FAILURES = 2


@dataclass(frozen=True, kw_only=True, slots=True)
class Window:
    """What a few seconds of looks saw."""

    looks: int
    """In all, whatever they saw."""

    python_looks: int
    """At which the user's own Python held the interpreter, outside the data loader."""


class StackWatch:
    """Run py-spy in windows over one process.

    Args:
        folder: Where it may write; None switches it off.
    """

    def __init__(self, folder: Path | None) -> None:
        self.problem: str | None = None
        self._file = None if folder is None else folder / "looks.txt"
        self._program = _find()
        self._child: subprocess.Popen[bytes] | None = None
        self._count = 0
        self._failures = 0
        self._next_s = 0.0
        if self._program is None:
            self._give_up("py-spy is not installed (pip install py-spy)")

    @property
    def looking(self) -> bool:
        """A window is open."""
        return self._child is not None

    def start(self, process_id: int, now_s: float) -> bool:
        """Open the next window when its time has come.

        Args:
            process_id: The process that trains.
            now_s: Any clock that goes on.

        Returns:
            True when a window was opened.
        """
        if self._file is None or self._child is not None or now_s < self._next_s:
            return False
        seconds, rate, _ = _WINDOWS[min(self._count, len(_WINDOWS) - 1)]
        command = [
            str(self._program),
            "record",
            *("--pid", str(process_id), "--gil", "--nonblocking", "--format", "raw"),
            *("--rate", str(rate), "--duration", str(seconds), "--output", str(self._file)),
        ]
        try:
            self._child = subprocess.Popen(  # noqa: S603 (the program that was installed with us)
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                start_new_session=True,  # the terminal's signals are not for it
            )
        except OSError as error:
            self._give_up(f"py-spy cannot be started ({error.strerror})")
            return False
        return True

    def poll(self, now_s: float) -> Window | None:
        """Give a window's looks when it has closed."""
        child = self._child
        if child is None or child.poll() is None or self._file is None:
            return None
        self._child = None
        seconds, rate, pause_s = _WINDOWS[min(self._count, len(_WINDOWS) - 1)]
        self._count += 1
        self._next_s = now_s + pause_s
        said = child.stderr.read().decode(errors="replace") if child.stderr else ""
        if child.stderr is not None:
            child.stderr.close()
        try:
            text = self._file.read_text(encoding="utf-8", errors="replace")
            self._file.unlink()
        except OSError:
            text = None
        if child.returncode != 0 or text is None:
            self._failures += 1
            if self._failures >= _FAILURES:
                lines = said.strip().splitlines()
                self._give_up(f"py-spy could not look ({lines[0][:120] if lines else 'no reason'})")
            return None
        return Window(looks=seconds * rate, python_looks=_count_python(text))

    def close(self) -> None:
        """End an open window; what it saw is not used, for its length is not known."""
        child = self._child
        if child is None:
            return
        self._child = None
        child.kill()
        try:
            child.wait(_CLOSING_S)
        except subprocess.TimeoutExpired:
            return  # it is being ended; nobody waits for it
        finally:
            if child.stderr is not None:
                child.stderr.close()

    def _give_up(self, why: str) -> None:
        self._file = None
        self.problem = (
            f"{why}: Python's own time in the loop is inside compute, not under host; where "
            "ptrace is restricted: sysctl kernel.yama.ptrace_scope=0"
        )


def _find() -> str | None:
    """Find the program that was installed with us, else any."""
    places = (sysconfig.get_path("scripts"), os.path.dirname(sys.executable))  # noqa: PTH120
    return which("py-spy", path=os.pathsep.join(places)) or which("py-spy")


def _count_python(text: str) -> int:
    """Count looks whose innermost frame is the user's own, outside the loader.

    Example:
        >>> _count_python("main (train.py:3);draw (train.py:9) 5")
        5
        >>> _count_python("main (train.py:3);relu (torch/nn/functional.py:1) 2")
        0
        >>> _count_python(" 52")
        0
    """
    found = 0
    for line in text.splitlines():
        stack, _, count = line.rpartition(" ")
        frames = stack.split(";")
        files = [frame.rpartition(" (")[2] for frame in frames]
        # An interpreter that is being torn down holds its lock without a frame.
        if not count.isdigit() or not files[-1]:
            continue
        if any(file.startswith((_LOADER, _OURS)) for file in files):
            continue
        if not files[-1].startswith(_FRAMEWORKS):
            found += int(count)
    return found
