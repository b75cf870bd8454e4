"""A training loop so small that a few microseconds per step show: an MLP 32-64-10, batch 32.

    python bench/overhead/_tiny_model.py --out FILE.json [--with ARM] [--blocks 8] [--steps 400]

Writes the main thread's CPU time of each block of steps. ``--with`` names what observes it,
where that needs code in the script: torch_profiler, traceml, lightning, lightning_simple.
Under ``thrifty run`` it needs none.
"""

import argparse
import importlib
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch.utils.data import DataLoader

ARMS = ("nothing", "torch_profiler", "traceml", "lightning", "lightning_simple")


def parts() -> tuple[torch.nn.Module, torch.optim.Optimizer]:
    """Make the model and its optimizer."""
    model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))
    return model, torch.optim.SGD(model.parameters(), lr=0.01)


def batches(count: int) -> DataLoader[Any]:
    """Make a loader over batches that are ready, so that fetching them costs little."""
    made = [(torch.randn(32, 32), torch.randint(0, 10, (32,))) for _ in range(16)]
    return DataLoader([made[i % 16] for i in range(count)], batch_size=None)  # type: ignore[arg-type]


class Blocks:
    """The training, block by block.

    Args:
        steps: In each block.
        traced: Makes the context manager that each step runs in; None for a plain script,
            which has none.
    """

    def __init__(self, steps: int, traced: Callable[[Any], Any] | None = None) -> None:
        self._model, self._optimizer = parts()
        self._loader = batches(steps)
        self._traced = traced

    def block(self) -> int:
        """Train for one block; give the CPU time of this thread, in ns."""
        model, optimizer, traced = self._model, self._optimizer, self._traced
        loss_of = torch.nn.functional.cross_entropy
        began = time.thread_time_ns()
        if traced is None:
            for x, y in self._loader:
                optimizer.zero_grad()
                loss_of(model(x), y).backward()
                optimizer.step()
        else:
            for x, y in self._loader:
                with traced(model):
                    optimizer.zero_grad()
                    loss_of(model(x), y).backward()
                    optimizer.step()
        return time.thread_time_ns() - began

    def several(self, blocks: int) -> list[int]:
        """Train for a block to warm up, then for some more; give those."""
        return [self.block() for _ in range(blocks + 1)][1:]


def profiled(blocks: int, steps: int) -> tuple[list[int], int]:
    """Train under torch.profiler; give also the CPU time of stopping it, in ns."""
    profiler = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU])
    profiler.start()
    spent = Blocks(steps).several(blocks)
    began = time.process_time_ns()
    profiler.stop()
    return spent, time.process_time_ns() - began


def lightning(blocks: int, steps: int, profiler: str | None) -> list[int]:
    """Train the same with Lightning, with or without its simple profiler."""
    library = importlib.import_module("lightning")
    model, optimizer = parts()
    spent: list[int] = []

    class Module(library.LightningModule):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.model = model
            self.began = 0

        def training_step(self, batch: Any, index: int) -> Any:
            if index % steps == 0:
                now = time.thread_time_ns()
                spent.append(now - self.began)
                self.began = now
            x, y = batch
            return torch.nn.functional.cross_entropy(self.model(x), y)

        def configure_optimizers(self) -> Any:
            return optimizer

    trainer = library.Trainer(
        max_epochs=1,
        accelerator="cpu",
        profiler=profiler,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(Module(), batches((blocks + 1) * steps + 1))
    return spent[2:]  # before the first step, and the block that warms up


def main() -> None:
    """Train, and write what it took."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--with", dest="arm", choices=ARMS, default="nothing")
    parser.add_argument("--blocks", type=int, default=8)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    stop_ns = 0
    if args.arm == "torch_profiler":
        spent, stop_ns = profiled(args.blocks, args.steps)
    elif args.arm == "traceml":
        library = importlib.import_module("traceml_ai")
        library.init(mode="auto")
        spent = Blocks(args.steps, library.trace_step).several(args.blocks)
    elif args.arm.startswith("lightning"):
        spent = lightning(
            args.blocks, args.steps, "simple" if args.arm == "lightning_simple" else None
        )
    else:
        spent = Blocks(args.steps).several(args.blocks)
    result = {
        "block_us_per_step": [ns / args.steps / 1e3 for ns in spent],
        "stop_us_per_step": stop_ns / args.steps / (args.blocks + 1) / 1e3,
        "torch": torch.__version__,
    }
    args.out.write_text(json.dumps(result), encoding="utf-8")


if __name__ == "__main__":
    main()
