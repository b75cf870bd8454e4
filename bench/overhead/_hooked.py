"""The cost of our hooks inside one process that they are attached to; ``hooks.py`` starts it.

    (started with the environment that ``thrifty run`` gives a script)

Two looks at it. *Alone*: the hooks of one step over functions that do nothing, less those
functions by themselves. *In the loop*: the tiny model, with the hooks taken out and put back
block by block. There they cost more, for each runs after other code that has emptied the
processor's caches of it: a short system call most of all. The arms of a round follow each other
within milliseconds, so a machine that changes its pace slows all.
"""

import argparse
import contextlib
import functools
import json
import random
import time
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any

import _tiny_model
import torch
import torch.optim.optimizer as optimizers
from torch.utils.data import dataloader

Switch = Callable[[Collection[str]], None]
PLACES = ("fetch", "backward", "optimizer step")


def original(hooked: Any) -> Any:
    """Give the function under a hook, and insist that there is one.

    Raises:
        SystemExit: The hooks are not attached to this process.
    """
    found = getattr(hooked, "__wrapped__", None)
    if found is None:
        message = f"{hooked!r} has no hook: start hooks.py, which attaches them"
        raise SystemExit(message)
    return found


@contextlib.contextmanager
def emptied(hooked: Any, nothing: Any) -> Iterator[None]:
    """Let a hook call a function that does nothing instead of its own."""
    under = original(hooked)
    (cell,) = [cell for cell in hooked.__closure__ if cell.cell_contents is under]
    cell.cell_contents = nothing
    try:
        yield
    finally:
        cell.cell_contents = under


def ns_per_call(function: Callable[[], object], repeats: int) -> float:
    """Give this thread's CPU time per call."""
    each = [None] * repeats
    began = time.thread_time_ns()
    for _ in each:
        function()
    return (time.thread_time_ns() - began) / repeats


def alone(rounds: int, repeats: int) -> dict[str, dict[str, list[float]]]:
    """Time the hooks over functions that do nothing, by the place that they stand at."""
    model, optimizer = _tiny_model.parts()
    batch = [torch.randn(32, 32), torch.zeros(32)]
    pre, post = optimizers._global_optimizer_pre_hooks, optimizers._global_optimizer_post_hooks  # noqa: SLF001
    empty = ({}, {})
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    # The first of each tells the hooks what kind of loop this is.
    optimizer.step()
    rows = torch.utils.data.TensorDataset(torch.zeros(64, 32), torch.zeros(64))
    iterator = iter(dataloader.DataLoader(rows, 32))

    def fetched(_iterator: object) -> object:
        return batch

    def nothing(*_args: object, **_kwargs: object) -> None:
        return None

    def step(hooks: Any) -> None:
        for hook in hooks[0].values():
            hook(optimizer, (), {})
        for hook in hooks[1].values():
            hook(optimizer, (), {})

    fetch = dataloader._BaseDataLoaderIter.__next__  # noqa: SLF001
    backward = torch.autograd.backward
    arms: dict[str, tuple[Callable[[], object], Callable[[], object]]] = {
        "fetch": (functools.partial(fetch, iterator), functools.partial(fetched, iterator)),
        "backward": (functools.partial(backward, None), functools.partial(nothing, None)),
        "optimizer step": (
            functools.partial(step, (pre, post)),
            functools.partial(step, empty),
        ),
    }
    found: dict[str, dict[str, list[float]]] = {
        name: {"bare": [], "again": [], "hooked": []} for name in arms
    }
    order = ["bare", "again", "hooked"]
    draw = random.Random(1)  # noqa: S311 (an order, nothing secret)
    with emptied(fetch, fetched), emptied(backward, nothing):
        for name, (hooked, bare) in arms.items():
            for _ in range(rounds):
                draw.shuffle(order)
                for arm in order:
                    function = hooked if arm == "hooked" else bare
                    found[name][arm].append(ns_per_call(function, repeats) / 1e3)
    return found


def switches() -> Switch:
    """Give a function that leaves the hooks of some places in and takes the others out."""
    iterator = dataloader._BaseDataLoaderIter  # noqa: SLF001
    fetch, backward = iterator.__next__, torch.autograd.backward
    both = (
        optimizers._global_optimizer_pre_hooks,  # noqa: SLF001
        optimizers._global_optimizer_post_hooks,  # noqa: SLF001
    )
    kept = [dict(hooks) for hooks in both]
    if not any(kept):
        message = "no optimizer hooks are registered: start hooks.py, which attaches them"
        raise SystemExit(message)

    def switch(places: Collection[str]) -> None:
        iterator.__next__ = fetch if "fetch" in places else original(fetch)
        torch.autograd.backward = backward if "backward" in places else original(backward)
        for hooks, ours in zip(both, kept, strict=True):
            hooks.clear()
            if "optimizer step" in places:
                hooks.update(ours)

    return switch


def in_the_loop(rounds: int, steps: int) -> dict[str, list[float]]:
    """Train the tiny model without hooks, again without, with some, with all.

    Args:
        rounds: How often each; in another order each time.
        steps: In a block, which is what is timed.

    Returns:
        By arm: microseconds per step of each block.
    """
    switch = switches()
    places: dict[str, Collection[str]] = {
        "bare": (),
        "again": (),
        "hooked": PLACES,
        **{place: (place,) for place in PLACES},
    }
    found: dict[str, list[float]] = {arm: [] for arm in places}
    order = list(found)
    draw = random.Random(2)  # noqa: S311 (an order, nothing secret)
    run = _tiny_model.Blocks(steps)
    for _ in range(5):
        run.block()
    for _ in range(rounds):
        draw.shuffle(order)
        for arm in order:
            switch(places[arm])
            found[arm].append(run.block() / steps / 1e3)
    return found


def main() -> None:
    """Measure, and write what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, required=True)
    parser.add_argument("--repeats", type=int, required=True)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    torch.set_num_threads(1)
    found = {
        "alone": alone(args.rounds, args.repeats),
        "loop": in_the_loop(args.rounds, args.steps),
    }
    args.out.write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    main()
