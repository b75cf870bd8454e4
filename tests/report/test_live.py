import contextlib
import dataclasses
import errno
import os
import select
import subprocess
import sys
import termios
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import pyte
import pytest
from report_samples import TRAINING

from thrifty.report import LiveLine, live_text
from thrifty.report import _live as module

ROW = live_text(TRAINING, width=79)


class Terminal:
    """A pseudo-terminal with an emulator behind it: what a person would see."""

    def __init__(self, columns: int = 80, rows: int = 24) -> None:
        self.master, self.fd = os.openpty()
        self.screen = pyte.HistoryScreen(columns, rows, history=10_000, ratio=0.5)
        self.stream = pyte.ByteStream(self.screen)
        self.raw = b""
        self.syncs = 0
        termios.tcsetwinsize(self.fd, (rows, columns))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for fd in (self.master, self.fd):
            with contextlib.suppress(OSError):
                os.close(fd)

    def script(self, text: str) -> None:
        """Write as the script does: to the terminal, knowing nothing of the line."""
        os.write(self.fd, text.encode())
        self.pump()

    def pump(self) -> None:
        """Show all that was written: up to a marker, since a terminal passes bytes on late."""
        self.syncs += 1
        marker = f"\x1b]777;{self.syncs}\x07".encode()
        os.write(self.fd, marker)
        data = b""
        while not data.endswith(marker):
            assert select.select([self.master], [], [], 10)[0], "the terminal lost its output"
            data += os.read(self.master, 65_536)
        data = data.removesuffix(marker)
        self.raw += data
        self.stream.feed(data)

    def resize(self, columns: int, rows: int) -> None:
        self.pump()
        termios.tcsetwinsize(self.fd, (rows, columns))
        self.screen.resize(rows, columns)
        self.screen.set_margins()  # as xterm and VTE do

    def rows(self) -> list[str]:
        self.pump()
        return [row.rstrip() for row in self.screen.display]

    def everything(self) -> list[str]:
        """Scrollback and screen."""
        self.pump()
        past = [
            "".join(line[x].data for x in range(self.screen.columns)).rstrip()
            for line in self.screen.history.top
        ]
        return past + [row.rstrip() for row in self.screen.display]


@pytest.fixture(autouse=True)
def _term(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    with Terminal() as one:
        yield one


def test_the_line_stands_in_the_last_row_below_the_scripts_text(terminal: Terminal) -> None:
    with LiveLine(terminal.fd, "row") as live:
        terminal.script("epoch 1\n")
        live.update(TRAINING)
        terminal.script("epoch 2\n")
        rows = terminal.rows()
    assert rows[:3] == ["epoch 1", "epoch 2", ""]
    assert rows[-1] == ROW


@pytest.mark.parametrize("first", [0, 5, 22, 23, 24, 60])
def test_the_scrollback_is_intact_whenever_the_line_first_appears(
    terminal: Terminal, first: int
) -> None:
    printed = [f"step {n}" for n in range(200)]
    with LiveLine(terminal.fd, "row") as live:
        for n, line in enumerate(printed):
            if n >= first:
                live.update(TRAINING)
            terminal.script(f"{line}\n")
        live.update(TRAINING)
        assert terminal.rows()[-1] == ROW
        assert terminal.rows()[-3:-1] == ["step 199", ""]
    shown = [line for line in terminal.everything() if line]
    assert shown == printed


def test_after_close_no_trace_of_the_line_is_left_and_the_whole_screen_scrolls(
    terminal: Terminal,
) -> None:
    with LiveLine(terminal.fd, "row") as live:
        for n in range(40):
            terminal.script(f"step {n}\n")
            live.update(TRAINING)
    rows = terminal.rows()
    assert rows[-1] == ""
    assert rows[-3:-1] == ["step 39", ""]
    terminal.script("bill 1\nbill 2\nbill 3")
    assert terminal.rows()[-4:] == ["step 39", "bill 1", "bill 2", "bill 3"]


def test_a_progress_bar_that_returns_to_its_line_keeps_its_column(terminal: Terminal) -> None:
    with LiveLine(terminal.fd, "row") as live:
        terminal.script("start\n" * 30)
        for percent in range(0, 101, 10):
            terminal.script(f"\r{percent:3d}%|")
            live.update(TRAINING)  # in the middle of the script's line
            terminal.script("#" * (percent // 10))
        assert terminal.rows()[-2] == "100%|##########"
        assert terminal.rows()[-1] == ROW
    terminal.script("\ndone\n")
    shown = [line for line in terminal.everything() if line]
    assert shown == ["start"] * 30 + ["100%|##########", "done"]


def test_the_first_drawing_in_the_last_row_keeps_an_unfinished_line(terminal: Terminal) -> None:
    with LiveLine(terminal.fd, "row") as live:
        terminal.script("x\n" * 30 + "\r 40%|####")
        live.update(TRAINING)
        terminal.script("##|")
        assert terminal.rows()[-2:] == [" 40%|######|", ROW]


def test_long_lines_wrap_above_the_row_and_stay_whole(terminal: Terminal) -> None:
    text = "".join(chr(ord("a") + n % 26) for n in range(300))
    with LiveLine(terminal.fd, "row") as live:
        for _ in range(20):
            live.update(TRAINING)
            terminal.script(f"{text}\n")
        live.update(TRAINING)
        assert terminal.rows()[-1] == ROW
    joined = "".join(terminal.everything())
    assert joined == text * 20


def test_the_scripts_colour_is_not_lost_when_the_row_is_drawn(terminal: Terminal) -> None:
    with LiveLine(terminal.fd, "row") as live:
        terminal.script("\x1b[31mred ")
        live.update(TRAINING)
        terminal.script("still red\x1b[0m")
    assert {terminal.screen.buffer[0][x].fg for x in (0, 4, 12)} == {"red"}


def test_a_shorter_line_leaves_nothing_of_the_longer_one(terminal: Terminal) -> None:
    short = dataclasses.replace(TRAINING, steps=None, samples_per_s=None, usd=None)
    with LiveLine(terminal.fd, "row") as live:
        live.update(TRAINING)
        live.update(short)
        assert terminal.rows()[-1] == live_text(short, width=79)


def test_one_update_is_one_write(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[bytes] = []

    def write(_fd: int, data: bytes) -> int:
        written.append(data)
        return len(data)

    with LiveLine(terminal.fd, "row") as live:
        with monkeypatch.context() as patch:
            patch.setattr(module.os, "write", write)
            live.update(TRAINING)
            live.update(TRAINING)
        assert len(written) == 2


@pytest.mark.parametrize("size", [(80, 30), (80, 12), (120, 24), (50, 24), (50, 40)])
def test_after_a_resize_the_line_is_in_the_new_last_row(
    terminal: Terminal, size: tuple[int, int]
) -> None:
    with LiveLine(terminal.fd, "row") as live:
        terminal.script("".join(f"step {n}\n" for n in range(8)))
        live.update(TRAINING)
        terminal.resize(*size)
        live.resize()
        expected = live_text(TRAINING, width=size[0] - 1)
        assert terminal.rows()[-1] == expected
        terminal.script("".join(f"step {n}\n" for n in range(8, 100)))
        assert terminal.rows()[-1] == expected
        assert terminal.rows()[-3:-1] == ["step 99", ""]
        assert sum("thrifty" in row or "epoch" in row for row in terminal.rows()) == 1
    assert terminal.rows()[-1] == ""
    assert not [row for row in terminal.everything() if "epoch" in row]


def test_an_update_sees_a_resize_that_nobody_told(terminal: Terminal) -> None:
    with LiveLine(terminal.fd, "row") as live:
        live.update(TRAINING)
        terminal.resize(80, 30)
        live.update(TRAINING)
        assert terminal.rows()[29] == ROW


def test_a_window_of_fewer_than_five_rows_gets_no_line_until_it_grows(
    terminal: Terminal,
) -> None:
    terminal.resize(80, 4)
    with LiveLine(terminal.fd, "row") as live:
        live.update(TRAINING)
        assert terminal.raw == b""
        terminal.resize(80, 10)
        live.update(TRAINING)
        assert terminal.rows()[-1] == ROW
        terminal.resize(80, 3)
        live.update(TRAINING)
        terminal.script("a\nb\nc\nd")
        assert terminal.rows() == ["b", "c", "d"]


def test_clear_gives_the_screen_back_and_the_next_update_takes_it_again(
    terminal: Terminal,
) -> None:
    with LiveLine(terminal.fd, "row") as live:
        live.update(TRAINING)
        live.clear()
        assert terminal.rows()[-1] == ""
        terminal.script("shell\n" * 30)
        live.update(TRAINING)
        terminal.script("more\n")
        assert terminal.rows()[-3:] == ["more", "", ROW]


def test_the_title_is_set_and_taken_back(terminal: Terminal) -> None:
    with LiveLine(terminal.fd, "title") as live:
        live.update(TRAINING)
        live.update(TRAINING)
        assert set(terminal.rows()) == {""}
        assert terminal.screen.title == live_text(TRAINING, width=100)
    terminal.pump()
    assert terminal.screen.title == ""
    assert terminal.raw.count(b"\x1b[22;0t") == 1
    assert terminal.raw.endswith(b"\x1b[23;0t")


@pytest.mark.parametrize(
    ("term", "mode"), [("dumb", "row"), ("", "row"), ("dumb", "title"), ("linux", "title")]
)
def test_a_terminal_that_cannot_show_the_line_gets_nothing(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch, term: str, mode: module.LiveMode
) -> None:
    monkeypatch.setenv("TERM", term)
    with LiveLine(terminal.fd, mode) as live:
        live.update(TRAINING)
        live.resize()
    terminal.pump()
    assert terminal.raw == b""


def test_without_term_nothing_is_drawn(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TERM")
    with LiveLine(terminal.fd, "row") as live:
        live.update(TRAINING)
    terminal.pump()
    assert terminal.raw == b""


def test_off_draws_nothing(terminal: Terminal) -> None:
    with LiveLine(terminal.fd, "off") as live:
        live.update(TRAINING)
    terminal.pump()
    assert terminal.raw == b""


@pytest.mark.parametrize("mode", ["row", "title"])
def test_a_pipe_is_left_alone(mode: module.LiveMode) -> None:
    reader, writer = os.pipe()
    with LiveLine(writer, mode) as live:
        live.update(TRAINING)
    os.close(writer)
    assert os.read(reader, 100) == b""
    os.close(reader)


def test_a_closed_descriptor_is_survived() -> None:
    with LiveLine(-1, "row") as live:
        live.update(TRAINING)
        live.resize()


def test_a_terminal_that_hangs_up_is_survived(terminal: Terminal) -> None:
    with LiveLine(terminal.fd, "row") as live:
        live.update(TRAINING)
        os.close(terminal.master)
        live.update(TRAINING)
        live.resize()


@pytest.mark.parametrize("number", [errno.EIO, errno.EPIPE, errno.EBADF, errno.ENXIO])
def test_a_dead_terminal_is_written_to_once_and_never_again(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    tries: list[bytes] = []

    def write(_fd: int, data: bytes) -> int:
        tries.append(data)
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(module.os, "write", write)
    with LiveLine(terminal.fd, "row") as live:
        live.update(TRAINING)
        live.update(TRAINING)
    assert len(tries) == 1


def test_a_stopped_terminal_neither_blocks_nor_loses_the_set_up(terminal: Terminal) -> None:
    with LiveLine(terminal.fd, "row") as live:
        termios.tcflow(terminal.fd, termios.TCOOFF)  # what Ctrl-S does
        live.update(TRAINING)
        live.update(TRAINING)
        termios.tcflow(terminal.fd, termios.TCOON)
        assert terminal.rows()[-1] == ""
        live.update(TRAINING)
        terminal.script("a\n" * 30)
        assert terminal.rows()[-1] == ROW


def test_what_a_full_terminal_cuts_off_is_completed_before_anything_else(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.write
    with LiveLine(terminal.fd, "row") as live:
        live.update(TRAINING)
        with monkeypatch.context() as patch:
            patch.setattr(module.os, "write", lambda fd, data: write(fd, data[:9]))
            live.update(TRAINING)
        live.update(TRAINING)
        terminal.script("here")
        assert terminal.rows()[0] == "here"
        assert terminal.rows()[-1] == ROW


def test_the_scripts_descriptor_stays_blocking_and_the_terminals_mode_unchanged(
    terminal: Terminal,
) -> None:
    before = termios.tcgetattr(terminal.fd)
    with LiveLine(terminal.fd, "row") as live:
        live.update(TRAINING)
        assert os.get_blocking(terminal.fd)
        assert termios.tcgetattr(terminal.fd) == before
    assert os.get_blocking(terminal.fd)
    assert termios.tcgetattr(terminal.fd) == before


def test_closing_gives_the_descriptor_back(terminal: Terminal) -> None:
    before = sorted(Path("/dev/fd").iterdir())
    live = LiveLine(terminal.fd, "row")
    live.update(TRAINING)
    live.close()
    live.close()
    live.update(TRAINING)
    assert sorted(Path("/dev/fd").iterdir()) == before


def test_a_terminal_without_a_name_is_drawn_on_all_the_same(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ttyname(_fd: int) -> str:
        raise OSError(errno.ENODEV, "no name in this container")

    monkeypatch.setattr(module.os, "ttyname", ttyname)
    with LiveLine(terminal.fd, "row") as live:
        live.update(TRAINING)
        assert terminal.rows()[-1] == ROW
        assert os.get_blocking(terminal.fd)


def test_in_the_background_nothing_is_drawn(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module.os, "tcgetpgrp", lambda _fd: os.getpgrp() + 1)
    with LiveLine(terminal.fd, "row") as live:
        live.update(TRAINING)
    terminal.pump()
    assert terminal.raw == b""


def test_closing_in_the_background_is_not_stopped_by_tostop(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    with LiveLine(terminal.fd, "row") as live:
        live.update(TRAINING)
        terminal.pump()
        seen = terminal.raw
        modes = termios.tcgetattr(terminal.fd)
        modes[3] |= termios.TOSTOP
        termios.tcsetattr(terminal.fd, termios.TCSANOW, modes)
        monkeypatch.setattr(module.os, "tcgetpgrp", lambda _fd: os.getpgrp() + 1)
    terminal.pump()
    assert terminal.raw == seen


def test_a_real_job_that_goes_to_the_background_is_not_stopped() -> None:
    # The kernel's own job control, not a stand-in: the child leads a session.
    master, slave = os.openpty()
    termios.tcsetwinsize(slave, (24, 80))
    code = f"""
import os, signal, termios
os.setsid()
fd = os.open({os.ttyname(slave)!r}, os.O_RDWR)  # becomes the controlling terminal
from thrifty.report import LiveLine
from thrifty.records import Progress
progress = Progress(wall_s=1.0, phase="training", steps=None, epoch_fraction=None, epochs=None,
    epoch_eta_s=None, samples_per_s=None, input_wait_fraction=None, usd=None)
modes = termios.tcgetattr(fd)
modes[3] |= termios.TOSTOP
termios.tcsetattr(fd, termios.TCSANOW, modes)
live = LiveLine(fd, "row")
live.update(progress)
child = os.fork()
if child == 0:
    os.setpgid(0, 0)  # a background job of this session
    live.update(progress)
    live.close()
    os._exit(7)
_, status = os.waitpid(child, os.WUNTRACED)
if os.WIFSTOPPED(status):
    os.kill(child, signal.SIGKILL)
    os._exit(1)
os.write(fd, b"END")
drawn = b""
while not drawn.endswith(b"END"):
    drawn += os.read({master}, 65_536)
once = drawn.count(b"training") == 1  # by the foreground only
os._exit(os.WEXITSTATUS(status) if once else 2)
"""
    child = subprocess.run([sys.executable, "-c", code], check=False, pass_fds=[master])
    os.close(master)
    os.close(slave)
    assert child.returncode == 7
