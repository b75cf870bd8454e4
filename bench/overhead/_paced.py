"""A training loop at a set pace, for those who look at it from outside.

    python bench/overhead/_paced.py --ready FILE [--rate 200] [--seconds 20] [--steps N]

Real fetches, backward passes and optimizer steps on one parameter. Writes its process id to
FILE once it trains, and from then on sleeps away what is left of each step's time. A rate of
0 never trains: it only sleeps.
"""

import argparse
import os
import time
from pathlib import Path

import torch
from torch.utils.data import DataLoader

WARM = 20


def main() -> None:
    """Train at the pace that was asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ready", type=Path, required=True)
    parser.add_argument("--rate", type=float, default=200, help="steps per second")
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--steps", type=int, help="as fast as it goes, so many, and no pace")
    parser.add_argument("--workers", type=int, default=0)
    args = parser.parse_args()
    part = args.ready.with_suffix(".part")
    part.write_text(str(os.getpid()), encoding="utf-8")
    if args.rate == 0:
        part.replace(args.ready)
        time.sleep(args.seconds)
        return
    total = args.steps or WARM + int(args.seconds * args.rate)
    weight = torch.nn.Parameter(torch.ones(4))
    optimizer = torch.optim.SGD([weight], lr=1e-6)
    row = torch.ones(4)
    loader = DataLoader([row] * total, batch_size=None, num_workers=args.workers)  # type: ignore[arg-type]
    due = 0.0
    for number, batch in enumerate(loader):
        optimizer.zero_grad()
        (weight * batch).sum().backward()
        optimizer.step()
        if number == WARM:
            part.replace(args.ready)
            due = time.perf_counter()
        if number > WARM and args.steps is None:
            due += 1 / args.rate
            ahead_s = due - time.perf_counter()
            if ahead_s > 0:
                time.sleep(ahead_s)


if __name__ == "__main__":
    main()
