"""Writing moments, and reading them while they are written."""

import errno
import mmap
import os
import subprocess
import sys
import threading
import time

import pytest

from thrifty.observe import RunReader
from thrifty.observe import _events as ev
from thrifty.observe._recorder import Recorder

PER_SEGMENT = ev.SEGMENT_BYTES // ev.RECORD_BYTES - 1


def read_all(folder, **options):
    reader = RunReader(folder, **options)
    found = []
    for shard in reader.discover():
        while moments := reader.shards[shard].read():
            found.extend(moments)
    reader.close()
    return found


def kinds(moments):
    return [moment[6] for moment in moments]


def test_what_is_marked_is_read_back_in_order(tmp_path):
    recorder = Recorder(str(tmp_path), eager=True)
    recorder.mark_cpu(ev.FETCH_START, 0, ev.FLAG_GRAD)
    recorder.mark(ev.STEP_END, 5)
    process, fetch, step = read_all(tmp_path)
    assert process[3] == os.getpid()
    assert (fetch[5], fetch[6]) == (ev.FLAG_GRAD, ev.FETCH_START)
    assert fetch[1] > 0
    assert (step[1], step[3], step[6]) == (-1, 5, ev.STEP_END)
    assert process[0] <= fetch[0] <= step[0]
    assert {moment[4] for moment in (process, fetch, step)} == {threading.get_native_id()}


def test_segments_follow_each_other_without_a_gap_and_go_when_read(tmp_path, monkeypatch):
    monkeypatch.setattr("thrifty.observe._reader._KEPT_SEGMENTS", 0)
    recorder = Recorder(str(tmp_path), eager=True)
    for number in range(2 * PER_SEGMENT):
        recorder.mark(ev.STEP_END, number)
    assert len(list(tmp_path.glob("*.seg"))) == 3
    values = [m[3] for m in read_all(tmp_path) if m[6] == ev.STEP_END]
    assert values == list(range(2 * PER_SEGMENT))
    assert len(list(tmp_path.glob("*.seg"))) == 1


def test_keeping_leaves_the_segments(tmp_path):
    recorder = Recorder(str(tmp_path), eager=True)
    for number in range(PER_SEGMENT + 5):
        recorder.mark(ev.STEP_END, number)
    first = read_all(tmp_path, keep=True)
    assert first == read_all(tmp_path, keep=True)


def test_reading_while_writing_gives_each_record_once(tmp_path):
    recorder = Recorder(str(tmp_path), eager=True)
    reader = RunReader(tmp_path)
    (shard,) = reader.discover()
    seen = []
    for number in range(3 * PER_SEGMENT):
        recorder.mark(ev.STEP_END, number)
        if number % 977 == 0:
            seen.extend(reader.shards[shard].read())
    while moments := reader.shards[shard].read():
        seen.extend(moments)
    assert [m[3] for m in seen if m[6] == ev.STEP_END] == list(range(3 * PER_SEGMENT))


def test_a_process_that_does_not_train_writes_no_file(tmp_path):
    recorder = Recorder(str(tmp_path), eager=False)
    for _ in range(3 * PER_SEGMENT):
        recorder.mark_cpu(ev.FETCH_START)
    assert list(tmp_path.iterdir()) == []


def test_what_came_before_the_first_step_is_kept_when_it_trains_after_all(tmp_path):
    recorder = Recorder(str(tmp_path), eager=False)
    recorder.mark(ev.FETCH_START)
    recorder.commit()
    recorder.mark(ev.STEP_END)
    assert kinds(read_all(tmp_path)) == [ev.PROCESS, ev.FETCH_START, ev.STEP_END]


def test_a_full_disk_ends_the_recording_with_a_last_word(tmp_path, monkeypatch):
    recorder = Recorder(str(tmp_path), eager=True)

    def full(*_args):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    for number in range(2 * PER_SEGMENT):
        recorder.mark_cpu(ev.STEP_END, number)
    assert not recorder.active
    moments = read_all(tmp_path)
    assert kinds(moments)[-1] == ev.LOST
    assert len(moments) == PER_SEGMENT + 1


def test_a_disk_that_is_full_from_the_start_records_nothing(tmp_path, monkeypatch):
    def full(*_args):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    recorder = Recorder(str(tmp_path), eager=True)
    recorder.mark(ev.STEP_END)
    recorder.mark_cpu(ev.STEP_END)
    assert not recorder.active


FORKS = """
import os, sys
from thrifty.observe import _events as ev
from thrifty.observe._recorder import Recorder
recorder = Recorder(sys.argv[1], eager=True)
os.register_at_fork(after_in_child=recorder.restart_after_fork)
recorder.mark(ev.STEP_END, 1)
for trains in (False, True):
    child = os.fork()
    if not child:
        recorder.mark_cpu(ev.FETCH_START, 7)
        if trains:
            recorder.commit()
            recorder.mark(ev.STEP_END, 2)
        os._exit(0)
    os.waitpid(child, 0)
recorder.mark(ev.STEP_END, 3)
"""


def test_a_forked_child_never_writes_into_its_parents_records(tmp_path):
    subprocess.run([sys.executable, "-c", FORKS, tmp_path], check=True)
    reader = RunReader(tmp_path)
    by_process = {}
    for shard in reader.discover():
        moments = reader.shards[shard].read()
        by_process[moments[0][3]] = [m[3] for m in moments if m[6] == ev.STEP_END]
    reader.close()
    assert sorted(by_process.values()) == [[1, 3], [2]]


def test_a_record_that_is_not_whole_yet_is_left_for_later(tmp_path):
    recorder = Recorder(str(tmp_path), eager=True)
    recorder.mark(ev.STEP_END, 1)
    (path,) = tmp_path.glob("*.seg")
    with path.open("r+b") as stream, mmap.mmap(stream.fileno(), 0) as torn:
        place = 2 * ev.RECORD_BYTES
        torn[place : place + 8] = b"\x01" * 8  # the time is there, the kind is not
        reader = RunReader(tmp_path)
        (shard,) = reader.discover()
        assert len(reader.shards[shard].read()) == 2
        ev.RECORD.pack_into(torn, place, 9, -1, -1, 4, 1, 0, ev.STEP_END)
        assert [m[3] for m in reader.shards[shard].read()] == [4]
        reader.close()


def test_a_script_that_closes_every_file_loses_only_the_run_queue(tmp_path):
    code = (
        "import os, sys\n"
        "from thrifty.observe import _events as ev\n"
        "from thrifty.observe._recorder import Recorder\n"
        "recorder = Recorder(sys.argv[1], eager=True)\n"
        "os.closerange(3, 4096)\n"
        "recorder.mark_cpu(ev.STEP_END, 1)\n"
        "recorder.mark_cpu(ev.STEP_END, 2)\n"
    )
    subprocess.run([sys.executable, "-c", code, tmp_path], check=True)
    last = read_all(tmp_path)[-1]
    assert (last[2], last[3]) == (-1, 2)
    assert last[1] > 0


def test_our_open_file_does_not_take_a_low_number(tmp_path):
    code = (
        "import os, sys\n"
        "from thrifty.observe._recorder import Recorder\n"
        "before = os.open('/dev/null', 0); os.close(before)\n"
        "recorder = Recorder(sys.argv[1], eager=True)\n"
        "print(os.open('/dev/null', 0) == before)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path], check=True, capture_output=True, text=True
    )
    assert done.stdout == "True\n"


def test_hundreds_of_threads_are_told_apart_without_a_file_for_each(tmp_path):
    recorder = Recorder(str(tmp_path), eager=True)
    before = len(os.listdir("/proc/self/fd"))
    threads = [
        threading.Thread(target=recorder.mark_cpu, args=(ev.STEP_END, n)) for n in range(300)
    ]
    for thread in threads:
        thread.start()
        thread.join()
    assert len(os.listdir("/proc/self/fd")) - before <= 4
    steps = [m for m in read_all(tmp_path) if m[6] == ev.STEP_END]
    assert len(steps) == 300
    assert threading.get_native_id() not in {m[4] for m in steps}


def test_notes_reach_the_launcher_once(tmp_path):
    recorder = Recorder(str(tmp_path), eager=True)
    recorder.note("hook failed\nbadly")
    recorder.note("hook failed\nbadly")
    assert RunReader(tmp_path).notes() == ["hook failed badly"]


@pytest.mark.parametrize("content", [b"", b"\x00" * 100, b"\xff" * 39, os.urandom(4096)])
def test_damaged_segments_are_read_without_an_error(tmp_path, content):
    (tmp_path / "1-a.00000000.seg").write_bytes(content)
    read_all(tmp_path)


CLOSED = """
import os, sys
os.closerange(0, 3)
from thrifty.observe import _events as ev
from thrifty.observe._recorder import Recorder
recorder = Recorder(sys.argv[1], eager=True)
for number in range(30_000):
    recorder.mark_cpu(ev.STEP_END, number)
low = [fd for fd in range(3, 100) if os.path.exists(f"/proc/self/fd/{fd}")]
first = [os.open("/dev/null", os.O_RDONLY) for _ in range(6)]
os._exit(0 if first == [0, 1, 2, 3, 4, 5] and not low else 1)
"""


def test_no_low_file_number_is_ever_ours_even_with_closed_standard_streams(tmp_path):
    done = subprocess.run([sys.executable, "-c", CLOSED, tmp_path], check=False)
    assert done.returncode == 0


def test_few_file_numbers_are_enough(tmp_path):
    code = (
        "import resource, sys\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (16, 16))\n"
        "from thrifty.observe import _events as ev\n"
        "from thrifty.observe._recorder import Recorder\n"
        "recorder = Recorder(sys.argv[1], eager=True)\n"
        "for number in range(30_000): recorder.mark_cpu(ev.STEP_END, number)\n"
        "print(recorder.active, open('/dev/null').fileno())\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, tmp_path],
        check=True,
        capture_output=True,
        text=True,
    )
    assert done.stdout == "True 3\n"


def test_threads_that_record_at_once_lose_nothing_to_a_read_that_lets_others_run(tmp_path):
    recorder = Recorder(str(tmp_path), eager=True)

    def record(thread):
        for number in range(2000):
            recorder.mark_cpu(ev.STEP_END, thread * 2000 + number)

    threads = [threading.Thread(target=record, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    values = [m[3] for m in read_all(tmp_path) if m[6] == ev.STEP_END]
    # A switch between two bytecodes of the write itself is left to chance: one in a thousand.
    assert len(set(values)) > 0.999 * 8000


def test_cpu_time_is_read_once_in_a_millisecond_while_fetches_are_short(tmp_path):
    recorder = Recorder(str(tmp_path), eager=True)
    for _ in range(400):
        recorder.mark_fetch_start(ev.FLAG_GRAD)
        recorder.mark_fetch_end(32, ev.FLAG_GRAD)
        recorder.mark_step(0)
    moments = read_all(tmp_path)
    assert len(moments) == 1201
    assert sum(moment[1] >= 0 for moment in moments) < 100


def test_both_ends_of_a_long_fetch_are_read(tmp_path):
    recorder = Recorder(str(tmp_path), eager=True)
    for _ in range(5):
        recorder.mark_fetch_start(ev.FLAG_GRAD)
        time.sleep(0.001)
        recorder.mark_fetch_end(32, ev.FLAG_GRAD)
    fetches = [m for m in read_all(tmp_path) if m[6] in (ev.FETCH_START, ev.FETCH_END)]
    assert all(moment[1] >= 0 for moment in fetches)
