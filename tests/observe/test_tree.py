"""Looking at processes from outside."""

import os
import subprocess
import sys
import time

import pytest

from thrifty.observe import ProcessTree

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="the samples come from /proc, which only Linux has"
)


@pytest.fixture
def start():
    children = []

    def go(code):
        child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
        children.append(child)
        assert child.stdout.readline() == b"ready\n"
        return child.pid

    yield go
    for child in children:
        child.kill()
        child.wait()
        child.stdout.close()


SLEEPS = "import time; print('ready', flush=True); time.sleep(60)"
SPINS = "print('ready', flush=True)\nwhile True: pass"
HELPER = """
import threading, time
def spin():
    while True: pass
threading.Thread(target=spin, daemon=True).start()
print('ready', flush=True)
time.sleep(60)
"""


def ticks(process_id, count=40):
    tree = ProcessTree(process_id)
    tree.watch(process_id, process_id)
    found = []
    for _ in range(count):
        time.sleep(0.005)
        found.append(tree.tick())
    tree.close()
    return found


def share(found, name):
    return sum(getattr(tick, name) for tick in found) / len(found)


def test_a_sleeping_process_is_seen_asleep(start):
    found = ticks(start(SLEEPS))
    assert share(found, "loop_active") < 0.1
    assert share(found, "others_active") < 0.1


def test_a_spinning_process_is_seen_active(start):
    assert share(ticks(start(SPINS)), "loop_active") > 0.9


def test_a_helper_at_work_while_the_loop_sleeps_is_seen(start):
    found = ticks(start(HELPER))
    assert share(found, "loop_active") < 0.1
    assert share(found, "others_active") > 0.9


def test_a_process_that_is_gone_gives_no_tick():
    tree = ProcessTree(2**22 + 1)
    tree.watch(2**22 + 1, 2**22 + 1)
    assert tree.tick() is None
    assert tree.sample().processes == 1
    tree.close()


def test_the_sample_counts_the_whole_tree(start):
    parent = start(
        "import subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        "while time.process_time() < 0.1: pass\n"
        "print('ready', flush=True)\n"
        "try: time.sleep(60)\n"
        "finally: child.kill()\n"
    )
    tree = ProcessTree(parent)
    sample = tree.sample()
    tree.close()
    assert sample.processes == 2
    assert sample.memory_bytes > 8_000_000
    assert sample.cpu_s > 0


def test_nothing_stays_open(start):
    before = len(os.listdir("/proc/self/fd"))
    ticks(start(SLEEPS), count=2)
    # The child's own pipe is still open.
    assert len(os.listdir("/proc/self/fd")) - before == 1
