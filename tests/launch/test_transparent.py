"""On a real terminal a script under ``thrifty run`` cannot tell, and the bill comes after it."""

import contextlib
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

THRIFTY = str(Path(sys.executable).with_name("thrifty"))
ESCAPES = re.compile(rb"\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b\[[0-?]*[ -/]*[@-~]|\x1b[ -/]*[0-~]")
SCROLL_REGION = re.compile(rb"\x1b\[(\d*)(?:;(\d*))?r")
TITLE = re.compile(rb"\x1b\][012];([^\x07\x1b]*)")


@dataclass(frozen=True)
class Seen:
    """What a person in front of the terminal, and a pipe beside it, got."""

    returncode: int
    screen: bytes
    stdout: bytes

    @property
    def text(self) -> str:
        """The screen without colours, titles and cursor movements."""
        return ESCAPES.sub(b"", self.screen).replace(b"\r\n", b"\n").decode()


class Terminal:
    """A pseudo-terminal of a given size, and what is typed into it."""

    def __init__(self, folder: Path, *, columns: int = 80, rows: int = 24) -> None:
        self.folder = folder
        self.main, self.side = pty.openpty()
        self.resize(columns, rows)
        self.before = termios.tcgetattr(self.side)
        self.screen = b""
        self.environment = {
            k: v
            for k, v in os.environ.items()
            if not k.startswith(("PYTHON", "THRIFTY")) and k not in {"COLUMNS", "LINES", "NO_COLOR"}
        } | {"THRIFTY_HOME": str(folder / "home"), "TERM": "xterm-256color"}

    def resize(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self.main, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def start(self, *words: str, pipe_stdout: bool = False) -> None:
        """Start a command whose controlling terminal is this one."""
        name = os.ttyname(self.side)
        streams = f"<{name} 2>{name}" + ("" if pipe_stdout else f" >{name}")
        self.process = subprocess.Popen(
            ["sh", "-c", f'exec "$@" {streams}', "sh", *words],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE if pipe_stdout else subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def read(self, wait_s: float = 0.05) -> None:
        while select.select([self.main], [], [], wait_s)[0]:
            try:
                self.screen += os.read(self.main, 65536)
            except OSError:
                return

    def until(self, text: bytes, limit_s: float = 30) -> None:
        end = time.perf_counter() + limit_s
        while text not in self.screen:
            assert time.perf_counter() < end, self.screen
            self.read()

    def type(self, text: bytes) -> None:
        os.write(self.main, text)

    def finish(self, limit_s: float = 60) -> Seen:
        end = time.perf_counter() + limit_s
        stdout = b""
        if self.process.stdout is not None:
            os.set_blocking(self.process.stdout.fileno(), False)
        while self.process.poll() is None:
            assert time.perf_counter() < end, self.screen
            self.read()
            if self.process.stdout is not None:
                stdout += self.process.stdout.read() or b""
        self.read()
        if self.process.stdout is not None:
            stdout += self.process.stdout.read() or b""
            self.process.stdout.close()
        return Seen(self.process.returncode, self.screen, stdout)

    def close(self) -> None:
        if hasattr(self, "process") and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.main)
        os.close(self.side)


@contextlib.contextmanager
def terminal(folder: Path, *, columns: int = 80, rows: int = 24) -> Iterator[Terminal]:
    opened = Terminal(folder, columns=columns, rows=rows)
    try:
        yield opened
    finally:
        opened.close()


def watch(
    folder: Path, script: str, *options: str, pipe_stdout: bool = False, columns: int = 80
) -> Seen:
    """Run a script under us on a terminal until it ends."""
    (folder / "script.py").write_text(script)
    with terminal(folder, columns=columns) as opened:
        opened.start(THRIFTY, "run", *options, "script.py", pipe_stdout=pipe_stdout)
        seen = opened.finish()
        assert termios.tcgetattr(opened.side) == opened.before
        return seen


def alone(folder: Path, script: str, *, pipe_stdout: bool = False) -> Seen:
    """Run a script plainly on a terminal until it ends."""
    (folder / "script.py").write_text(script)
    with terminal(folder) as opened:
        opened.start(sys.executable, "script.py", pipe_stdout=pipe_stdout)
        return opened.finish()


def widest(text: str) -> int:
    return max(len(line.split("\r")[-1]) for line in text.splitlines())


def assert_screen_given_back(screen: bytes) -> None:
    """The whole screen scrolls again, and the cursor is shown."""
    regions = SCROLL_REGION.findall(screen)
    if regions:
        top, bottom = regions[-1]
        assert (top or b"1", bottom) in {(b"1", b""), (b"1", b"24")}
    if b"\x1b[?25l" in screen:
        assert screen.rindex(b"\x1b[?25h") > screen.rindex(b"\x1b[?25l")
    assert screen.count(b"\x1b[?1049h") == screen.count(b"\x1b[?1049l")


SPEAKS = """
import sys, time
for i in range(25):
    print("line", i, flush=True)
    time.sleep(0.1)
print("last words", file=sys.stderr)
"""
TRAINS = """
import sys, time
import torch
layer = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
data = torch.utils.data.TensorDataset(torch.ones(64, 4), torch.ones(64, 1))
loader = torch.utils.data.DataLoader(data, batch_size=8)
for epoch in range(12):
    for x, y in loader:
        optimizer.zero_grad()
        (layer(x) - y).square().mean().backward()
        optimizer.step()
        time.sleep(0.02)
    print("epoch", epoch, flush=True)
print("last words", file=sys.stderr)
"""


@pytest.mark.parametrize("live", ["row", "title", "off"])
def test_nothing_of_ours_is_in_the_stdout_of_the_script(tmp_path: Path, live: str) -> None:
    seen = watch(tmp_path, SPEAKS, "--live", live, pipe_stdout=True)
    assert seen.returncode == 0
    assert seen.stdout == alone(tmp_path, SPEAKS, pipe_stdout=True).stdout
    assert_screen_given_back(seen.screen)


def test_the_bill_of_a_training_comes_after_its_last_words_within_80_columns(
    tmp_path: Path,
) -> None:
    seen = watch(tmp_path, TRAINS, "--live", "off", "--price", "2.10", pipe_stdout=True)
    assert seen.returncode == 0
    assert seen.stdout == b"".join(b"epoch %d\n" % i for i in range(12))
    before, _, bill = seen.text.partition("last words\n")
    assert before == ""
    for word in ("startup", "host", "compute", "unattributed", "$"):
        assert word in bill
    assert "96" in bill  # steps
    assert widest(bill) <= 80


def test_a_wide_terminal_is_used_but_not_exceeded(tmp_path: Path) -> None:
    seen = watch(tmp_path, SPEAKS, "--live", "off", pipe_stdout=True, columns=200)
    assert 0 < widest(seen.text.partition("last words\n")[2]) <= 200


def test_a_narrow_terminal_gets_no_broken_lines(tmp_path: Path) -> None:
    seen = watch(tmp_path, SPEAKS, "--live", "off", pipe_stdout=True, columns=40)
    assert widest(seen.text.partition("last words\n")[2]) <= 40


def test_a_script_without_training_is_told_so(tmp_path: Path) -> None:
    seen = watch(tmp_path, "print('hello')", pipe_stdout=True)
    assert "no training" in seen.text.lower()


def test_the_live_row_is_drawn_while_the_script_trains_and_taken_away(tmp_path: Path) -> None:
    seen = watch(tmp_path, TRAINS, "--live", "row", pipe_stdout=True)
    assert seen.stdout == b"".join(b"epoch %d\n" % i for i in range(12))
    during = seen.screen.partition(b"last words")[0]
    assert SCROLL_REGION.search(during) is not None
    assert b"step" in ESCAPES.sub(b"", during)
    assert_screen_given_back(seen.screen)


def test_the_title_is_set_while_the_script_trains_and_no_row_is_taken(tmp_path: Path) -> None:
    seen = watch(tmp_path, TRAINS, "--live", "title", pipe_stdout=True)
    during = seen.screen.partition(b"last words")[0]
    assert TITLE.search(during) is not None
    assert SCROLL_REGION.search(seen.screen) is None
    assert ESCAPES.sub(b"", during) == b""


def test_live_off_draws_nothing_before_the_end(tmp_path: Path) -> None:
    seen = watch(tmp_path, SPEAKS, "--live", "off")
    during, _, bill = seen.screen.partition(b"last words")
    assert b"\x1b" not in during
    assert bill.strip()


def test_a_script_that_draws_itself_keeps_its_screen(tmp_path: Path) -> None:
    script = SPEAKS + "print('\\x1b[31mred\\x1b[0m \\x1b]0;mine\\x07')\n"
    seen = watch(tmp_path, script, "--live", "off", "--quiet")
    assert seen.screen == alone(tmp_path, script).screen


def test_quiet_is_silent(tmp_path: Path) -> None:
    seen = watch(tmp_path, SPEAKS, "--quiet")
    assert seen.screen == alone(tmp_path, SPEAKS).screen


@pytest.mark.parametrize("end", ["sys.exit(3)", "raise ValueError('x')", "os.kill(os.getpid(), 9)"])
def test_a_script_that_fails_gets_its_bill_too(tmp_path: Path, end: str) -> None:
    script = f"import os, sys, time\nprint('begun', flush=True)\ntime.sleep(1.5)\n{end}\n"
    plainly = alone(tmp_path, script)
    seen = watch(tmp_path, script, "--live", "row")
    assert seen.returncode == plainly.returncode
    assert len(seen.text) > len(plainly.text)
    assert_screen_given_back(seen.screen)


COUNTS = """
import signal, sys, time
seen = []
def count(number, frame):
    seen.append(number)
for number in (signal.{name},):
    signal.signal(number, count)
print("ready", flush=True)
end = time.perf_counter() + 1.5
while time.perf_counter() < end:
    time.sleep(0.01)
print("seen", len(seen), flush=True)
"""


@pytest.mark.parametrize(("name", "key"), [("SIGINT", b"\x03"), ("SIGQUIT", b"\x1c")])
def test_a_signal_typed_on_the_keyboard_reaches_the_script_once(
    tmp_path: Path, name: str, key: bytes
) -> None:
    (tmp_path / "script.py").write_text(COUNTS.format(name=name))
    with terminal(tmp_path) as opened:
        opened.start(THRIFTY, "run", "script.py")
        opened.until(b"ready")
        opened.type(key)
        seen = opened.finish()
    assert seen.returncode == 0
    assert "seen 1\n" in seen.text


def test_a_window_that_changes_tells_the_script_once(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(COUNTS.format(name="SIGWINCH"))
    with terminal(tmp_path) as opened:
        opened.start(THRIFTY, "run", "--live", "row", "script.py")
        opened.until(b"ready")
        opened.resize(100, 30)
        seen = opened.finish()
    assert "seen 1\n" in seen.text


def test_ctrl_c_gives_the_traceback_and_then_the_bill(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text("import time\nprint('ready', flush=True)\ntime.sleep(30)\n")
    with terminal(tmp_path) as opened:
        opened.start(THRIFTY, "run", "script.py")
        opened.until(b"ready")
        opened.type(b"\x03")
        seen = opened.finish()
    assert seen.returncode == -2
    assert seen.text.count("KeyboardInterrupt") == 1
    assert seen.text.partition("KeyboardInterrupt\n")[2].strip()
    assert seen.text.count("Traceback") == 1
    assert_screen_given_back(seen.screen)


def test_the_script_reads_what_is_typed(tmp_path: Path) -> None:
    script = (
        "name = input('name? ')\nimport getpass\nprint('hello', name, getpass.getpass('key? '))\n"
    )
    (tmp_path / "script.py").write_text(script)
    with terminal(tmp_path) as opened:
        opened.start(THRIFTY, "run", "--live", "row", "script.py")
        opened.until(b"name? ")
        opened.type(b"Ada\n")
        opened.until(b"key? ")
        time.sleep(0.2)
        opened.type(b"secret\n")
        seen = opened.finish()
        assert termios.tcgetattr(opened.side) == opened.before
    assert "hello Ada secret\n" in seen.text
    assert seen.text.count("secret") == 1


def test_the_terminal_the_script_sees_is_the_one_it_was_given(tmp_path: Path) -> None:
    script = """
import os, signal, sys
print([os.isatty(fd) for fd in range(3)], os.get_terminal_size(), os.ttyname(0) == os.ttyname(2))
print(os.tcgetpgrp(0) == os.getpgrp(), signal.getsignal(signal.SIGTTOU), sys.stdout.line_buffering)
"""
    assert watch(tmp_path, script, "--quiet").text == alone(tmp_path, script).text


@pytest.mark.parametrize("on_terminal", range(8), ids=lambda bits: f"{bits:03b}")
def test_each_stream_is_a_terminal_or_not_as_before(tmp_path: Path, on_terminal: int) -> None:
    (tmp_path / "script.py").write_text(
        "import os\nopen('seen', 'w').write(str([os.isatty(fd) for fd in range(3)]))\n"
    )
    main, side = pty.openpty()
    try:
        streams = [side if on_terminal >> fd & 1 else subprocess.DEVNULL for fd in range(3)]
        subprocess.run(
            [THRIFTY, "run", "--quiet", "script.py"],
            cwd=tmp_path,
            env=os.environ | {"THRIFTY_HOME": str(tmp_path / "home")},
            stdin=streams[0],
            stdout=streams[1],
            stderr=streams[2],
            check=True,
            timeout=60,
        )
    finally:
        os.close(main)
        os.close(side)
    expected = [bool(on_terminal >> fd & 1) for fd in range(3)]
    assert (tmp_path / "seen").read_text() == str(expected)


def test_a_pipe_for_stderr_gets_nothing(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SPEAKS)
    done = subprocess.run(
        [THRIFTY, "run", "--live", "row", "script.py"],
        cwd=tmp_path,
        env=os.environ | {"THRIFTY_HOME": str(tmp_path / "home")},
        capture_output=True,
        check=True,
        timeout=60,
    )
    assert done.stderr == b"last words\n"


def test_a_dumb_terminal_gets_no_escapes(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SPEAKS)
    with terminal(tmp_path) as opened:
        opened.environment["TERM"] = "dumb"
        opened.start(THRIFTY, "run", "script.py")
        seen = opened.finish()
    assert b"\x1b" not in seen.screen
    assert seen.text.partition("last words\n")[2].strip()
