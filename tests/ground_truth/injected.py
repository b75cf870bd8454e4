"""A raw PyTorch training that loses a known amount of time, and writes down how much.

A sleep of 20 ms becomes 27 ms on a busy machine, so each loss is timed where it happens, and so
is the time that it waited for a core (that part of it is ``cpu_wait``, unless a phase covers it).
What cannot be timed here (the interpreter's end) follows from the process's age at the last line.
"""

import argparse
import io
import json
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

KINDS = (
    "none",
    "getitem_sleep",
    "getitem_cpu",
    "workers_sleep",
    "step_sleep",
    "step_cpu",
    "forward_sleep",
    "between_sleep",
    "startup_sleep",
    "tail_sleep",
    "checkpoint",
    "validation",
    "validation_without_eval",
    "teacher",
)
FEATURES, CLASSES = 128, 10


def age_s() -> float:
    """Give the age of this process; its start is known to 10 ms."""
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    started_s = int(fields[19]) / 100  # USER_HZ, since boot
    return time.clock_gettime(time.CLOCK_BOOTTIME) - started_s


def waited_ns() -> int:
    """Give how long this thread was runnable without a core so far."""
    with open("/proc/thread-self/schedstat", "rb") as file:  # noqa: PTH123 - cheaper, in the loop
        return int(file.read().split()[1])


class Stopwatch:
    """Sums what was lost, and how much of it was a wait for a core."""

    def __init__(self) -> None:
        self.spent_ns = 0
        self.waited_ns = 0
        self.count = 0

    @contextmanager
    def running(self) -> Iterator[None]:
        waited, begun = waited_ns(), time.perf_counter_ns()
        try:
            yield
        finally:
            self.add(time.perf_counter_ns() - begun, waited_ns() - waited)

    def add(self, spent_ns: int, waited: int) -> None:
        self.spent_ns += spent_ns
        self.waited_ns += waited
        self.count += 1

    def told(self) -> dict[str, float]:
        return {
            "spent_s": self.spent_ns / 1e9,
            "waited_s": self.waited_ns / 1e9,
            "count": self.count,
        }


def sleep(seconds: float) -> None:
    if seconds > 0:
        time.sleep(seconds)


def spin(seconds: float) -> None:
    """Burn CPU time: not wall time, which a busy machine would shorten."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


class Rows(Dataset[tuple[torch.Tensor, int]]):
    """Random rows; each costs what it is told to."""

    def __init__(self, rows: int, loss_s: float, how: str, watch: Stopwatch) -> None:
        self.x = torch.randn(rows, FEATURES)
        self.y = torch.randint(0, CLASSES, (rows,)).tolist()
        self.loss_s, self.how, self.watch = loss_s, how, watch

    def __len__(self) -> int:
        return len(self.y)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        if self.loss_s > 0:
            with self.watch.running():
                (spin if self.how == "cpu" else sleep)(self.loss_s)
        return self.x[index], self.y[index]


class SlowFile(io.FileIO):
    """A disk that takes its time."""

    def __init__(self, path: str, loss_s: float) -> None:
        super().__init__(path, "w")
        self.loss_s = loss_s

    def write(self, data: object) -> int:  # type: ignore[override]
        sleep(self.loss_s)
        self.loss_s = 0
        return super().write(data)  # type: ignore[arg-type]


def model(width: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(FEATURES, width),
        nn.ReLU(),
        nn.Linear(width, width),
        nn.ReLU(),
        nn.Linear(width, CLASSES),
    )


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--kind", choices=KINDS, default="none")
    parser.add_argument("--loss", type=float, default=0.0, help="seconds to lose in the whole run")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--width", type=int, default=1024)
    parser.add_argument("--every", type=int, default=25, help="steps from checkpoint to checkpoint")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--ready", type=Path, help="file to make when the loop begins")
    parser.add_argument("--truth", type=Path, required=True)
    return parser.parse_args()


def main() -> None:  # noqa: C901, PLR0912, PLR0915 - as people write them
    args = parse()
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    lost, fetch = Stopwatch(), Stopwatch()
    per_step_s = args.loss / args.steps
    occasions = max(1, args.steps // args.every)
    per_occasion_s = args.loss / occasions

    of_rows = args.kind in {"getitem_sleep", "getitem_cpu", "workers_sleep"}
    train = Rows(
        args.batch * min(args.steps, 50),
        per_step_s / args.batch if of_rows else 0,
        "cpu" if args.kind == "getitem_cpu" else "sleep",
        lost,
    )
    workers = 2 if args.kind == "workers_sleep" else 0
    loader = DataLoader(train, batch_size=args.batch, shuffle=True, num_workers=workers)
    valid = DataLoader(
        Rows(args.batch * 8, per_occasion_s / (args.batch * 8), "sleep", Stopwatch()),
        batch_size=args.batch,
    )
    net = model(args.width)
    teacher = model(args.width * 2) if args.kind == "teacher" else None
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    loss_of = nn.CrossEntropyLoss()

    if args.kind == "startup_sleep":
        with lost.running():
            sleep(args.loss)
    if args.ready:
        args.ready.touch()

    def validate() -> None:
        with lost.running():
            if args.kind == "validation":
                net.eval()
            with torch.no_grad():
                right = sum(int((net(x).argmax(1) == y).sum()) for x, y in valid)
            assert right >= 0
            if args.kind == "validation":
                net.train()

    step = 0
    loop_age_s = age_s()
    begun_ns = over_ns = time.perf_counter_ns()
    over_waited = waited_ns()
    loop_waited = over_waited
    while step < args.steps:
        for x, y in loader:
            fetch.add(time.perf_counter_ns() - over_ns, waited_ns() - over_waited)
            if args.kind == "forward_sleep":
                with lost.running():
                    sleep(per_step_s)
            optimizer.zero_grad()
            out = net(x)
            loss = loss_of(out, y)
            if teacher is not None:
                teacher.eval()
                with lost.running(), torch.no_grad():
                    guess = teacher(x)
                loss = loss + (out - guess).square().mean()
            loss.backward()
            if args.kind == "step_sleep":
                with lost.running():
                    sleep(per_step_s)
            if args.kind == "step_cpu":
                with lost.running():
                    spin(per_step_s)
            optimizer.step()
            step += 1
            if args.kind == "between_sleep":
                with lost.running():
                    sleep(per_step_s)
            if step % args.every == 0:
                if args.kind == "checkpoint":
                    with lost.running(), SlowFile("checkpoint.pt", per_occasion_s) as file:
                        torch.save({"net": net.state_dict(), "step": step}, file)
                if args.kind.startswith("validation"):
                    validate()
            over_ns, over_waited = time.perf_counter_ns(), waited_ns()
            if step >= args.steps:
                break

    loop_s = (time.perf_counter_ns() - begun_ns) / 1e9
    loop_waited_s = (waited_ns() - loop_waited) / 1e9
    loop_end_age_s = age_s()
    if args.kind == "tail_sleep":
        with lost.running():
            sleep(args.loss)
    args.truth.write_text(
        json.dumps(
            {
                "kind": args.kind,
                "lost": lost.told(),
                "fetch": fetch.told(),
                "steps": step,
                "samples": step * args.batch,
                "loop_s": loop_s,
                "loop_waited_s": loop_waited_s,
                "loop_age_s": loop_age_s,
                "loop_end_age_s": loop_end_age_s,
                "end_age_s": age_s(),
                "threads": threading.active_count(),
            }
        )
    )
    sys.stdout.write(f"{args.kind}: {step} steps\n")


if __name__ == "__main__":
    main()
