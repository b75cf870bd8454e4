"""The live line, drawn on a terminal that belongs to the script.

Two ways, neither of which puts a pseudo-terminal in between. ``row`` takes the bottom row out of
the scrolling region, as apt does for its progress bar, and writes only there; ``title`` writes to
the window's title. The terminal's modes are never touched, nor is the flag that makes the
script's own descriptor block: this file opens the terminal a second time for itself.

What it cannot do: a full-screen program that sets its own scrolling region, or a script that is
in the middle of an escape sequence when the row is drawn, may lose a few characters of display.
Such a run wants ``title`` or ``off``.

Source: https://invisible-island.net/xterm/ctlseqs/ctlseqs.html (DECSC, DECSTBM, IND, OSC 2,
XTWINOPS 22 and 23), read 2026-11-30.
"""

import contextlib
import errno
import os
import select
import termios
from types import TracebackType
from typing import Literal, Self

from thrifty.records import Progress
from thrifty.report._progress import live_text

__all__ = ["LiveLine", "LiveMode"]

LiveMode = Literal["row", "title", "off"]

_MIN_ROWS = 5
_TITLE_WIDTH = 100
_CLOSE_WAIT_MS = 100
_NO_ROOM_NOW = (errno.EAGAIN, errno.EINTR)
_NO_TERMINAL = ("", "dumb")
_NO_TITLE = (*_NO_TERMINAL, "linux")  # the console without a window prints what it is sent

# The escapes, by the names that terminal manuals give them.
_SAVE = "\x1b7"  # DECSC: cursor, attributes, wrap
_RESTORE = "\x1b8"  # DECRC
_DOWN_OR_SCROLL = "\x1bD"  # IND: keeps the column, unlike a newline
_UP = "\x1b[A"
_DOWN = "\x1b[B"
_PLAIN = "\x1b[0m"
_DIM = "\x1b[0;2m"
_WHOLE_SCREEN_SCROLLS = "\x1b[r"  # DECSTBM; moves the cursor
_ERASE_BELOW = "\x1b[J"
_ERASE_TO_END = "\x1b[K"
_ERASE_ROW = "\x1b[2K"
_PUSH_TITLE = "\x1b[22;0t"
_POP_TITLE = "\x1b[23;0t"


class LiveLine:
    """One line about a run, kept up to date on its terminal.

    It never raises, never waits for the terminal while the run goes on and never gets the
    process stopped: a terminal that has no room now misses a line, and one that is gone is
    not written to again.

    Args:
        fd: Where to draw, usually standard error; anything but a terminal makes it inert, and
            so do ``TERM=dumb``, no ``TERM`` and fewer than five rows.
        mode: ``row`` for the bottom row, ``title`` for the window's title, or ``off``.
    """

    def __init__(self, fd: int, mode: LiveMode) -> None:
        self._mode: LiveMode = mode
        self._fd = -1
        self._size = (0, 0)  # columns, rows of the screen that was set up
        self._drawn = False
        self._cut_off = b""
        self._last: Progress | None = None
        term = os.environ.get("TERM", "")
        if mode == "off" or term in (_NO_TITLE if mode == "title" else _NO_TERMINAL):
            self._mode = "off"
            return
        try:
            self._fd = _open_again(fd)
        except OSError:
            self._mode = "off"

    def update(self, progress: Progress) -> None:
        """Draw the line anew; the first call sets the screen up."""
        self._last = progress
        if self._mode == "off" or not _in_foreground(self._fd):
            return
        if self._mode == "row":
            self._update_row(progress)
        else:
            # live_text is printable ASCII: nothing in it can end the sequence early.
            title = f"\x1b]2;{live_text(progress, width=_TITLE_WIDTH)}\x07"
            if self._send(title if self._drawn else _PUSH_TITLE + title):
                self._drawn = True

    def resize(self) -> None:
        """Take the bottom row again after the window has changed its size.

        ``update`` sees a new size by itself; calling this on SIGWINCH is only quicker.
        """
        if self._mode == "row" and self._last is not None:
            self.update(self._last)

    def clear(self) -> None:
        """Give the row or the title back; a later ``update`` takes it again.

        To be called before the process stops itself (SIGTSTP), so that the shell has its
        whole screen.
        """
        if self._drawn and not _would_be_stopped(self._fd):
            self._send(self._undo(), wait_ms=_CLOSE_WAIT_MS)
        self._drawn = False
        self._size = (0, 0)

    def close(self) -> None:
        """Give the row or the title back and draw no more; waits 0.1 s at the most."""
        self.clear()
        self._mode = "off"
        if self._fd >= 0:
            with contextlib.suppress(OSError):
                os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _update_row(self, progress: Progress) -> None:
        try:
            size = os.get_terminal_size(self._fd)
        except OSError:
            self._mode = "off"
            return
        if size.lines < _MIN_ROWS:
            if self._drawn:
                self._send(f"{_SAVE}{_WHOLE_SCREEN_SCROLLS}{_RESTORE}")
            self._drawn = False
            self._size = (0, 0)
            return
        setup = "" if self._size == size else _reserve_row(size.lines, again=self._drawn)
        # The last column stays empty: a character there leaves some terminals about to wrap.
        text = live_text(progress, width=size.columns - 1)
        row = f"{_SAVE}\x1b[{size.lines};1H{_DIM}{text}{_PLAIN}{_ERASE_TO_END}{_RESTORE}"
        if self._send(setup + row):
            self._drawn = True
            self._size = size

    def _undo(self) -> str:
        if self._mode == "title":
            # Emptied first: a terminal that cannot pop then shows its default, not our line.
            return f"\x1b]2;\x07{_POP_TITLE}"
        _, rows = self._size
        return f"{_SAVE}{_PLAIN}{_WHOLE_SCREEN_SCROLLS}\x1b[{rows};1H{_ERASE_ROW}{_RESTORE}"

    def _send(self, text: str, *, wait_ms: int = 0) -> bool:
        """Write in one call or not at all; what a terminal cuts off goes first next time.

        Returns:
            Whether the text is, or will be, on the terminal.
        """
        if self._mode == "off":
            return False
        data = self._cut_off + text.encode("ascii")
        try:
            if not _has_room(self._fd, wait_ms):
                return False
            written = os.write(self._fd, data)
        except OSError as error:
            if error.errno not in _NO_ROOM_NOW:
                self._mode = "off"
            return False
        accepted = written > len(self._cut_off)
        self._cut_off = data[written:] if accepted else self._cut_off[written:]
        return accepted


def _reserve_row(rows: int, *, again: bool) -> str:
    """Take the bottom row out of the scrolling region; the cursor stays where it is.

    Going down a row and up again scrolls when the cursor is in the bottom row, so that it ends
    above it, and changes nothing elsewhere. After a resize the old row may be anywhere below
    the cursor, where the script has nothing of its own.
    """
    release = f"{_SAVE}{_WHOLE_SCREEN_SCROLLS}{_RESTORE}" if again else ""
    erase = f"{_PLAIN}{_DOWN}\r{_ERASE_BELOW}" if again else ""
    # Up before saving: some terminals restore a cursor only inside the region.
    return f"{release}{_DOWN_OR_SCROLL}{_UP}{_SAVE}{erase}\x1b[1;{rows - 1}r{_RESTORE}"


def _open_again(fd: int) -> int:
    """Open the terminal of a descriptor a second time, without blocking.

    The flag belongs to what was opened, not to the number: set on ``fd`` itself it would also
    make the script's own prints fail.

    Raises:
        OSError: It is no terminal.
    """
    if not os.isatty(fd):
        raise OSError(errno.ENOTTY, os.strerror(errno.ENOTTY))
    try:
        return os.open(os.ttyname(fd), os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY)
    except OSError:
        # Without a name here (a terminal passed into a container): the same opened file,
        # which is asked for room before every write.
        return os.dup(fd)


def _has_room(fd: int, wait_ms: int) -> bool:
    poll = select.poll()
    poll.register(fd, select.POLLOUT)
    return bool(poll.poll(wait_ms))


def _in_foreground(fd: int) -> bool:
    try:
        return os.tcgetpgrp(fd) == os.getpgrp()
    except OSError:
        return True  # not our controlling terminal: it knows no jobs of ours


def _would_be_stopped(fd: int) -> bool:
    """Tell whether the kernel would stop us for writing (``stty tostop``, in the background)."""
    try:
        local_flags = termios.tcgetattr(fd)[3]
    except termios.error:
        return False
    return bool(local_flags & termios.TOSTOP) and not _in_foreground(fd)
