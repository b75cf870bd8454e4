"""The layout of one observation, shared by the script's side (writer) and ours (reader).

Fixed-size records in segment files: a record is whole or absent, so what a script killed
with SIGKILL leaves behind reads as well as what a finished one leaves. The kind is the last
field that is written; a reader takes a kind of zero for "not there yet".

This file runs inside the user's script: standard library only.
"""

import struct

__all__ = [
    "BACKWARD_START",
    "COMPILE_END",
    "COMPILE_START",
    "DEVICE_FETCH",
    "DEVICE_LOOP",
    "EVAL",
    "EXIT",
    "FETCH_END",
    "FETCH_START",
    "FLAG_GRAD",
    "FLAG_LAST",
    "FRAMEWORKS",
    "IMPORTED",
    "LOADER",
    "LOG_END",
    "LOG_START",
    "LOST",
    "NOTE",
    "PROCESS",
    "RECORD",
    "RECORD_BYTES",
    "SAVE_END",
    "SAVE_START",
    "SEGMENT_BYTES",
    "STEP_END",
    "TRAIN",
    "segment_name",
]

RECORD = struct.Struct("<qqqqIHH")
"""(t_ns, cpu_ns, queue_ns, value, thread_id, flags, kind).

``t_ns`` is ``perf_counter_ns`` (one clock for all processes of a machine); ``cpu_ns`` the CPU
time of the recording thread and ``queue_ns`` its time in the run queue without a core, -1
where they were not read.
"""

RECORD_BYTES = RECORD.size

SEGMENT_BYTES = 1 << 20
"""Disk space is reserved one segment ahead: a full disk under a mapped file is a SIGBUS."""

PROCESS = 1  # value: pid
IMPORTED = 2  # value: index into FRAMEWORKS
LOADER = 3  # a pass over a data loader begins; value: its length in batches, -1 unknown
FETCH_START = 4
FETCH_END = 5  # value: rows, -1 unknown
BACKWARD_START = 6
STEP_END = 9  # value: which optimizer
SAVE_START = 10
SAVE_END = 11
EVAL = 12  # a trained module goes to evaluation mode
TRAIN = 13  # a trained module goes back to training mode
COMPILE_START = 14
COMPILE_END = 15
LOG_START = 16
LOG_END = 17
NOTE = 18  # value: index of a line in the notes file
DEVICE_LOOP = 20  # the device's own time between two boundaries; value: ns
DEVICE_FETCH = 21  # ... of which the first began a fetch
EXIT = 22  # the script has ended, the interpreter has not
LOST = 19  # recording ends here; value: errno

FLAG_GRAD = 1
"""Gradients were enabled at the start of a fetch."""
FLAG_LAST = 2
"""The loader had no more data (StopIteration)."""

FRAMEWORKS = ("torch",)


def segment_name(shard: str, index: int) -> str:
    """Name a segment file.

    Example:
        >>> segment_name("812-5f3a", 3)
        '812-5f3a.00000003.seg'
    """
    return f"{shard}.{index:08d}.seg"
