"""Looks at the script's stacks."""

import subprocess
import sys
import time

import pytest

from thrifty.launch._stacks import StackWatch


def window_of(watch, process_id, limit_s=15):
    end = time.perf_counter() + limit_s
    assert watch.start(process_id, 0.0)
    while time.perf_counter() < end:
        window = watch.poll(0.0)
        if window is not None or watch.problem or not watch.looking:
            return window
        time.sleep(0.05)
    pytest.fail("the window never closed")


@pytest.fixture
def spinning():
    code = "print('ready', flush=True)\nwhile True: pass"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as child:
        assert child.stdout.readline() == b"ready\n"
        yield child.pid
        child.kill()


def test_python_that_spins_is_met_by_most_looks(tmp_path, spinning):
    watch = StackWatch(tmp_path)
    window = window_of(watch, spinning)
    if window is None:
        pytest.skip("this system forbids one process to look into another")
    assert window.looks == 200
    assert window.python_looks > 120
    assert list(tmp_path.iterdir()) == []


def test_windows_keep_a_pause_between_them(tmp_path, spinning, monkeypatch):
    monkeypatch.setattr("thrifty.launch._stacks._WINDOWS", ((1, 100, 1.0),))
    watch = StackWatch(tmp_path)
    window_of(watch, spinning)
    assert not watch.start(spinning, 0.5)
    assert watch.start(spinning, 1.5)
    watch.close()
    assert not watch.looking


def test_a_process_that_cannot_be_looked_into_is_given_up_with_a_reason(tmp_path):
    watch = StackWatch(tmp_path)
    for now_s in (0.0, 10.0):
        assert watch.start(2**22 + 1, now_s)
        while watch.looking:
            watch.poll(now_s)
            time.sleep(0.02)
    assert "py-spy could not look" in watch.problem
    assert "inside compute" in watch.problem
    assert not watch.start(1, 100.0)


def test_without_py_spy_we_go_without_and_say_so(tmp_path, monkeypatch):
    monkeypatch.setattr("thrifty.launch._stacks.which", lambda *_args, **_kwargs: None)
    watch = StackWatch(tmp_path)
    assert "not installed" in watch.problem
    assert not watch.start(1, 0.0)


def test_without_a_folder_nothing_is_started():
    assert not StackWatch(None).start(1, 0.0)
