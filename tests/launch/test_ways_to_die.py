"""A script under ``thrifty run`` dies exactly as it would have died alone."""

import importlib.util
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"die_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


plain = load(Path(__file__).parent / "die" / "plain.py")
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may do this")

ENDED_WITHOUT_TRAINING = "no_training"
READY = "import os, pathlib; pathlib.Path('pid').write_text(str(os.getpid()))\n"


@pytest.fixture
def place(tmp_path: Path) -> Any:
    return plain.Place(tmp_path)


def assert_same(alone: Any, watched: Any) -> None:
    assert watched.returncode == alone.returncode
    assert watched.stdout == alone.stdout
    assert plain.unlike(watched.stderr) == plain.unlike(alone.stderr)


def assert_lines_more(alone: Any, watched: Any, *, most: int = 1) -> str:
    assert watched.returncode == alone.returncode
    assert watched.stdout == alone.stdout
    assert watched.stderr.startswith(alone.stderr)
    ours = watched.stderr[len(alone.stderr) :].decode()
    assert ours.endswith("\n")
    assert 1 <= ours.count("\n") <= most
    assert "Traceback" not in ours
    return ours


def test_the_table_holds_at_least_sixty_ways() -> None:
    names = [way["name"] for way in plain.WAYS]
    assert len(set(names)) == len(names)
    assert len(names) >= 60


@pytest.mark.parametrize("way", plain.WAYS, ids=[way["name"] for way in plain.WAYS])
def test_the_outcome_is_the_same_with_and_without_us(place: Any, way: dict[str, Any]) -> None:
    if way.get("root") and os.geteuid() != 0:
        pytest.skip("only root may do this")
    alone = place.run(way, watched=False)
    watched = place.run(way, watched=True)
    if way.get("ours") == "lines":
        assert_lines_more(alone, watched, most=2)
    else:
        assert_same(alone, watched)
    if not way.get("record", True):
        return
    record = place.record()
    plain.check_books(record)
    assert record["status"] == way.get("status", ENDED_WITHOUT_TRAINING)
    if "shell" not in way or "exec" in way["shell"]:
        assert record["exit_code"] == alone.returncode
    assert not record["steps"]


# ---- signals from outside ----------------------------------------------------------------


def count_signals(name: str) -> str:
    return (
        READY
        + f"""
import signal, sys, time
seen = 0
def count(number, frame):
    global seen
    seen += 1
signal.signal(signal.{name}, count)
print("ready", flush=True)
end = time.perf_counter() + 1.5
while time.perf_counter() < end:
    time.sleep(0.01)
print("seen", seen)
sys.exit(seen)
"""
    )


WAITS = READY + "import time\nprint('ready', flush=True)\ntime.sleep(30)\n"
IGNORES = (
    READY
    + """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print('ready', flush=True)
time.sleep(1)
print('over')
"""
)
CLEANS_UP = (
    READY
    + """
import time
print('ready', flush=True)
try:
    time.sleep(30)
finally:
    print('cleaned up')
"""
)
CATCHES = (
    READY
    + """
import time
print('ready', flush=True)
try:
    time.sleep(30)
except KeyboardInterrupt:
    print('caught')
time.sleep(1)
"""
)


def deliver(place: Any, script: str, number: int, target: str, *, watched: bool) -> Any:
    """Send one signal when the script is ready; ``target``: group, parent or script."""
    way = {"script": script}
    place.arrange(way)
    with subprocess.Popen(
        place.command(way, watched=watched, options=[]),
        cwd=place.folder,
        env=place.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        time.sleep(0.2)  # until it waits: its traceback names the line
        if target == "group":
            os.killpg(process.pid, number)
        elif target == "parent":
            process.send_signal(number)
        else:
            os.kill(int((place.folder / "pid").read_text()), number)
        stdout, stderr = process.communicate(timeout=60)
        return plain.Outcome(process.returncode, stdout, stderr)


SENT = [
    ("Ctrl-C, default", WAITS, signal.SIGINT, "group", "interrupted"),
    ("SIGINT to us alone", WAITS, signal.SIGINT, "parent", "interrupted"),
    ("SIGINT to the script alone", WAITS, signal.SIGINT, "script", "interrupted"),
    ("Ctrl-C, cleans up", CLEANS_UP, signal.SIGINT, "group", "interrupted"),
    ("Ctrl-C, caught", CATCHES, signal.SIGINT, "group", None),
    ("Ctrl-C, counted", count_signals("SIGINT"), signal.SIGINT, "group", None),
    ("SIGINT to us, counted", count_signals("SIGINT"), signal.SIGINT, "parent", None),
    ("SIGTERM to us", WAITS, signal.SIGTERM, "parent", "killed"),
    ("SIGTERM to all", WAITS, signal.SIGTERM, "group", "killed"),
    ("SIGTERM to the script", WAITS, signal.SIGTERM, "script", "killed"),
    ("SIGTERM to us, counted", count_signals("SIGTERM"), signal.SIGTERM, "parent", None),
    ("SIGTERM to all, counted", count_signals("SIGTERM"), signal.SIGTERM, "group", None),
    ("SIGTERM ignored", IGNORES, signal.SIGTERM, "parent", "no_training"),
    ("SIGTERM to all, ignored", IGNORES, signal.SIGTERM, "group", "no_training"),
    ("SIGHUP to us", WAITS, signal.SIGHUP, "parent", "killed"),
    ("SIGHUP to all", WAITS, signal.SIGHUP, "group", "killed"),
    ("SIGQUIT to us", WAITS, signal.SIGQUIT, "parent", "killed"),
    ("SIGQUIT to all", WAITS, signal.SIGQUIT, "group", "killed"),
    ("SIGUSR1 to us, counted", count_signals("SIGUSR1"), signal.SIGUSR1, "parent", None),
    ("SIGUSR2 to us, default", WAITS, signal.SIGUSR2, "parent", "killed"),
    ("SIGUSR1 to all, counted", count_signals("SIGUSR1"), signal.SIGUSR1, "group", None),
    ("SIGKILL to the script", WAITS, signal.SIGKILL, "script", "killed"),
    ("SIGSEGV to the script", WAITS, signal.SIGSEGV, "script", "killed"),
]


@pytest.mark.parametrize(
    ("script", "number", "target", "status"),
    [case[1:] for case in SENT],
    ids=[case[0] for case in SENT],
)
def test_a_signal_does_what_it_does_without_us(
    place: Any, script: str, number: int, target: str, status: str | None
) -> None:
    alone = deliver(place, script, number, target, watched=False)
    watched = deliver(place, script, number, target, watched=True)
    assert_same(alone, watched)
    record = place.record()
    plain.check_books(record)
    assert record["exit_code"] == alone.returncode
    if status is not None:
        assert record["status"] == status


def wait_for(holds: Callable[[], bool], limit_s: float = 20) -> None:
    end = time.perf_counter() + limit_s
    while not holds():
        assert time.perf_counter() < end, "waited in vain"
        time.sleep(0.02)


def test_the_script_goes_on_when_we_are_killed_and_the_bill_says_incomplete(place: Any) -> None:
    way = {
        "script": READY
        + "import time\nprint('ready', flush=True)\ntime.sleep(3)\n"
        + "open('over', 'w').close()\nprint('over', flush=True)\n"
    }
    place.arrange(way)
    with subprocess.Popen(
        place.command(way, watched=True, options=[]),
        cwd=place.folder,
        env=place.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        wait_for(lambda: any(place.home.glob("runs/*/start.json")))
        process.kill()
        process.wait()
        wait_for((place.folder / "over").exists)
        assert process.stdout.read() == b"over\n"
    pid = int((place.folder / "pid").read_text())
    wait_for(lambda: not Path(f"/proc/{pid}/status").exists())
    told = subprocess.run(
        [plain.THRIFTY, "bill"], env=place.environment, capture_output=True, text=True, check=False
    )
    assert told.returncode == 0, told.stderr
    assert "incomplete" in told.stdout


# ---- a ledger that cannot be written -----------------------------------------------------

SPEAKS = {"script": "import sys\nprint('out')\nsys.stderr.write('err\\n')\nsys.exit(3)\n"}


def assert_goes_on_without_a_ledger(place: Any, home: Path) -> None:
    place.environment["THRIFTY_HOME"] = str(home)
    alone = place.run(SPEAKS, watched=False)
    watched = place.run(SPEAKS, watched=True)
    ours = assert_lines_more(alone, watched)
    assert str(home) in ours
    record = place.record()
    plain.check_books(record)
    assert record["status"] == "failed"
    assert record["exit_code"] == 3


def test_a_home_that_is_a_file_costs_one_line(place: Any, tmp_path: Path) -> None:
    home = tmp_path / "file"
    home.write_text("precious")
    assert_goes_on_without_a_ledger(place, home)
    assert home.read_text() == "precious"


def test_a_home_that_nobody_may_write_costs_one_line(place: Any) -> None:
    assert_goes_on_without_a_ledger(place, Path("/proc/thrifty"))


def test_a_home_under_a_device_costs_one_line(place: Any) -> None:
    assert_goes_on_without_a_ledger(place, Path("/dev/null/home"))


def test_a_home_of_others_costs_one_line(place: Any, tmp_path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("nothing is closed to root")
    home = tmp_path / "closed"
    home.mkdir(mode=0o500)
    assert_goes_on_without_a_ledger(place, home)


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(disk)],
        capture_output=True,
        check=False,
    )
    if mounted.returncode:
        pytest.skip(f"cannot mount a small disk here: {mounted.stderr.decode().strip()}")
    try:
        yield disk
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)


def fill(disk: Path, left_bytes: int) -> None:
    (disk / "room").write_bytes(bytes(left_bytes))
    with (disk / "filler").open("wb", buffering=0) as filler:
        try:
            while filler.write(bytes(4096)):
                pass
        except OSError:
            pass
    (disk / "room").unlink()


@pytest.mark.parametrize("left_bytes", [0, 20_000, 100_000])
def test_a_full_disk_costs_one_line_or_nothing(
    place: Any, full_disk: Path, left_bytes: int
) -> None:
    fill(full_disk, left_bytes)
    home = full_disk / "home"
    place.environment["THRIFTY_HOME"] = str(home)
    alone = place.run(SPEAKS, watched=False)
    watched = place.run(SPEAKS, watched=True)
    if left_bytes == 0 or watched.stderr != alone.stderr:
        assert str(full_disk) in assert_lines_more(alone, watched)
        return
    assert_same(alone, watched)
    told = subprocess.run(
        [plain.THRIFTY, "bill"], env=place.environment, capture_output=True, check=False
    )
    assert told.returncode == 0, told.stderr


def test_a_disk_that_fills_while_the_script_trains_leaves_its_outcome_alone(
    place: Any, full_disk: Path
) -> None:
    place.environment["THRIFTY_HOME"] = str(full_disk / "home")
    way = {
        "script": f"""
import torch
layer = torch.nn.Linear(2, 2)
optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
for step in range(3000):
    if step == 10:
        try:
            with open({str(full_disk / "filler")!r}, "wb", buffering=0) as file:
                while file.write(bytes(4096)):
                    pass
        except OSError as error:
            print(error.strerror)
    optimizer.zero_grad()
    layer(torch.ones(2, 2)).sum().backward()
    optimizer.step()
print("over", step)
raise SystemExit(3)
"""
    }
    watched = place.run(way, watched=True)
    assert watched.returncode == 3
    assert watched.stdout == b"No space left on device\nover 2999\n"
    assert watched.stderr.count(b"\n") <= 1
    assert b"Traceback" not in watched.stderr


# ---- training that dies ------------------------------------------------------------------

TRAINS = """
import torch
layer = torch.nn.Linear(2, 2)
optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
for step in range(5):
    optimizer.zero_grad()
    layer(torch.ones(4, 2)).sum().backward()
    optimizer.step()
print("trained", flush=True)
"""


@pytest.mark.parametrize(
    ("end", "status"),
    [
        ("", "completed"),
        ("raise ValueError('loss is nan')", "failed"),
        ("import os; os._exit(4)", "failed"),
        ("import os; os.kill(os.getpid(), 9)", "killed"),
        ("raise KeyboardInterrupt", "interrupted"),
    ],
    ids=["ends", "raises", "leaves at once", "is killed", "is interrupted"],
)
def test_training_that_ended_anyhow_keeps_its_steps(place: Any, end: str, status: str) -> None:
    way = {"script": TRAINS + end + "\n"}
    alone = place.run(way, watched=False)
    watched = place.run(way, watched=True)
    assert_same(alone, watched)
    record = place.record()
    plain.check_books(record)
    assert record["status"] == status
    assert record["steps"] == 5
    assert record["framework"] == "torch"


# ---- our own options ---------------------------------------------------------------------


def ours(place: Any, *words: str) -> Any:
    done = subprocess.run(
        [plain.THRIFTY, "run", *words],
        cwd=place.folder,
        env=place.environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
        check=False,
    )
    return plain.Outcome(done.returncode, done.stdout, done.stderr)


def assert_refused(outcome: Any, *named: str) -> None:
    assert outcome.returncode == 2
    assert outcome.stdout == b""
    text = outcome.stderr.decode()
    assert "Traceback" not in text
    assert re.search(r"^  fix: ", text, re.MULTILINE), text
    for word in named:
        assert word in text


def test_a_record_that_would_overwrite_a_script_is_refused(place: Any) -> None:
    place.arrange({"script": "open('ran', 'w')"})
    before = (place.folder / "script.py").read_bytes()
    assert_refused(ours(place, "--json", "script.py", "script.py"), "script.py", ".json")
    assert (place.folder / "script.py").read_bytes() == before
    assert not (place.folder / "ran").exists()


def test_a_record_into_a_missing_folder_is_refused_before_the_script_starts(place: Any) -> None:
    place.arrange({"script": "open('ran', 'w')"})
    assert_refused(ours(place, "--json", "no/such/folder/r.json", "script.py"), "no/such/folder")
    assert not (place.folder / "ran").exists()


@pytest.mark.parametrize("price", ["cheap", "-1", "nan", "inf", ""])
def test_a_price_that_is_none_is_refused(place: Any, price: str) -> None:
    place.arrange({"script": "open('ran', 'w')"})
    assert_refused(ours(place, "--price", price, "script.py"))
    assert not (place.folder / "ran").exists()


@pytest.mark.parametrize("words", [[], ["--quiet"], ["-m"], ["--"], ["--no-such-option", "x.py"]])
def test_nothing_to_run_is_a_usage_error(place: Any, words: list[str]) -> None:
    place.arrange({})
    outcome = ours(place, *words)
    assert outcome.returncode == 2
    assert outcome.stdout == b""
    assert outcome.stderr
    assert b"Traceback" not in outcome.stderr


def test_a_record_that_cannot_be_written_at_the_end_leaves_the_outcome_alone(place: Any) -> None:
    way = SPEAKS | {"script": "import os, shutil; shutil.rmtree('out')\n" + SPEAKS["script"]}
    place.arrange(way)
    (place.folder / "out").mkdir()
    outcome = ours(place, "--json", "out/record.json", "script.py")
    assert outcome.returncode == 3
    assert outcome.stdout == b"out\n"
    text = outcome.stderr.decode()
    assert text.startswith("err\n")
    assert text.count("\n") == 2
    assert "out/record.json" in text


def test_a_relative_home_is_where_we_were_started(place: Any) -> None:
    place.environment["THRIFTY_HOME"] = "books"
    way = {"script": "import os; os.mkdir('sub'); os.chdir('sub'); print('ok')"}
    outcome = place.run(way, watched=True)
    assert (outcome.returncode, outcome.stdout, outcome.stderr) == (0, b"ok\n", b"")
    assert (place.folder / "books").is_dir()
    assert not (place.folder / "sub" / "books").exists()


@needs_root
def test_another_user_may_be_given_the_script(place: Any, tmp_path: Path) -> None:
    way = {"command": ["setpriv", "--reuid", "65534", "--clear-groups", "--regid", "65534", "id"]}
    tmp_path.chmod(0o755)
    assert_same(place.run(way, watched=False), place.run(way, watched=True))


def test_thousands_of_short_lived_children_cost_nothing(place: Any) -> None:
    way = {
        "script": """
import os
for _ in range(3000):
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
print("all gone")
"""
    }
    assert_same(place.run(way, watched=False), place.run(way, watched=True))
    plain.check_books(place.record())
