"""The commands as functions."""

import os
import signal
import subprocess
import sys
import time

import pytest

import thrifty


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("THRIFTY_HOME", str(tmp_path / "home"))


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "script.py"
    path.write_text("import sys\nopen(sys.argv[1], 'w').write(repr(sys.argv[2:]))\nsys.exit(3)\n")
    return path


def test_a_run_gives_its_record_and_is_in_the_ledger(script, tmp_path):
    run = thrifty.run(script, [tmp_path / "out", "--lr", 0.1], price=36)
    assert (tmp_path / "out").read_text() == "['--lr', '0.1']"
    assert (run.status, run.exit_code) == ("failed", 3)
    assert run.cost_usd == pytest.approx(run.wall_s * 0.01)
    assert thrifty.bill() == thrifty.runs()[0] == thrifty.bill(run.run_id) == run


def test_arguments_in_one_text_are_refused_before_anything_starts(script):
    with pytest.raises(thrifty.ThriftyError, match=r"shlex\.split"):
        thrifty.run(script, "--lr 0.1")
    assert thrifty.runs() == []


def test_signals_work_as_before_after_a_run(script, tmp_path):
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    thrifty.run(script, [tmp_path / "out"])
    assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == before


def test_a_bad_price_starts_nothing(script):
    with pytest.raises(thrifty.ThriftyError, match="price"):
        thrifty.run(script, price=-1)
    assert thrifty.runs() == []


GROUP = """
import os, signal, sys, time
seen = []
for number in (signal.SIGTERM, signal.SIGUSR1):
    signal.signal(number, lambda n, f: seen.append(n))
print("ready", flush=True)
end = time.monotonic() + 1.5
while time.monotonic() < end: time.sleep(0.05)
print(len(seen))
"""


@pytest.mark.parametrize("to_group", [True, False])
def test_a_signal_reaches_the_script_once_whether_sent_to_all_or_to_us(tmp_path, to_group):
    script = tmp_path / "counts.py"
    script.write_text(GROUP)
    with subprocess.Popen(
        [sys.executable, "-m", "thrifty", "run", script],
        stdout=subprocess.PIPE,
        start_new_session=True,
    ) as child:
        assert child.stdout.readline() == b"ready\n"
        for number in (signal.SIGTERM, signal.SIGUSR1):
            (os.killpg if to_group else os.kill)(child.pid, number)
        assert child.stdout.read() == b"2\n"
    assert child.returncode == 0


def group_lives(group):
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def test_the_witness_of_group_signals_ends_with_the_launcher(tmp_path):
    script = tmp_path / "sleeps.py"
    script.write_text("print('ready', flush=True); import time; time.sleep(1)")
    with subprocess.Popen(
        [sys.executable, "-m", "thrifty", "run", script],
        stdout=subprocess.PIPE,
        start_new_session=True,
    ) as child:
        assert child.stdout.readline() == b"ready\n"
        os.kill(child.pid, signal.SIGKILL)
        # The pipe closes when nobody holds it: the script after a second, the witness never did.
        assert child.stdout.read() == b""
    for _ in range(100):
        if not group_lives(child.pid):
            return
        time.sleep(0.05)
    pytest.fail("a process of the group lives on")


def test_an_interpreter_told_to_stay_interactive_is_the_scripts_not_ours(tmp_path):
    script = tmp_path / "ok.py"
    script.write_text("print('ok')")
    environment = os.environ | {"PYTHONINSPECT": "1"}
    outcomes = [
        subprocess.run(
            [sys.executable, *words, script],
            env=environment,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            check=False,
        )
        for words in ((), ("-m", "thrifty", "run"))
    ]
    assert outcomes[0].stdout == outcomes[1].stdout
    assert outcomes[0].stderr == outcomes[1].stderr
    assert outcomes[0].returncode == outcomes[1].returncode
