"""Steps without any training: what the hooks of a loop write, by the recorder itself.

    thrifty run bench/overhead/_synthetic.py --ready FILE --steps N [--pace STEPS_PER_S]

Starts in milliseconds and takes a few microseconds per step, so that ten million are quick.
"""

import argparse
import os
import time
from pathlib import Path

from thrifty.observe import _events as ev
from thrifty.observe._recorder import Recorder

BURSTS_PER_S = 100


def steps(recorder: Recorder, count: int) -> None:
    """Write what one ordinary loop writes for so many steps."""
    mark, mark_cpu, grad = recorder.mark, recorder.mark_cpu, ev.FLAG_GRAD
    for _ in range(count):
        mark_cpu(ev.FETCH_START, 0, grad)
        mark_cpu(ev.FETCH_END, 32, grad)
        mark(ev.BACKWARD_START)
        mark(ev.STEP_END, 0)


def main() -> None:
    """Write the steps in bursts, as evenly as sleeping allows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ready", type=Path, required=True)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--pace", type=int, default=0, help="steps per second; 0 for no limit")
    args = parser.parse_args()
    part = args.ready.with_suffix(".part")
    part.write_text(str(os.getpid()), encoding="utf-8")
    part.replace(args.ready)
    folder = os.environ["THRIFTY_ATTACH"].rpartition("|")[0]
    recorder = Recorder(folder, eager=True)
    burst = args.pace // BURSTS_PER_S or args.steps
    due = time.perf_counter()
    for first in range(0, args.steps, burst):
        steps(recorder, min(burst, args.steps - first))
        due += 1 / BURSTS_PER_S
        ahead_s = due - time.perf_counter()
        if args.pace and ahead_s > 0:
            time.sleep(ahead_s)
    time.sleep(0.2)  # whoever watches this process must have found it


if __name__ == "__main__":
    main()
