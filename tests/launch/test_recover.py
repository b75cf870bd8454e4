"""Closing the books of a launcher that was killed."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest


def start(tmp_path, seconds):
    script = tmp_path / "trains.py"
    script.write_text("import time\nprint('ready', flush=True)\ntime.sleep(60)\n")
    child = subprocess.Popen(
        [sys.executable, "-m", "thrifty", "run", script],
        stdout=subprocess.PIPE,
        env=os.environ | {"THRIFTY_HOME": str(tmp_path)},
        start_new_session=True,
    )
    with child:
        assert child.stdout.readline() == b"ready\n"
        while not list(tmp_path.glob("runs/*/start.json")):
            time.sleep(0.02)
        time.sleep(seconds)
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
    return child


def bill(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "thrifty", "bill", "--json"],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"THRIFTY_HOME": str(tmp_path)},
    )
    return json.loads(done.stdout)


@pytest.mark.parametrize("seconds", [0.3, 1.6, 3.2])
def test_a_bill_reaches_to_the_last_moment_that_the_launcher_saw(tmp_path, seconds):
    start(tmp_path, seconds)
    record = bill(tmp_path)
    assert record["status"] == "incomplete"
    assert seconds - 1.2 < record["wall_s"] < seconds + 5
    assert sum(line["seconds"] for line in record["bill"]) == pytest.approx(record["wall_s"])
    assert any("launcher was killed" in note for note in record["notes"])
    assert bill(tmp_path) == record
