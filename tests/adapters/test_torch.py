"""Real PyTorch loops of every shape, started as a user starts them."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

SHAPES = Path(__file__).parent / "shapes" / "shapes.py"
NAMES = [
    "plain",
    "uneven_batches",
    "gan",
    "lbfgs",
    "grad_scaler",
    "accumulation",
    "optimizer_in_backward",
    "no_optimizer",
    "no_loader",
    "generator",
    "endless",
    "two_trainings",
    "workers",
    "spawned_workers",
    "persistent_workers",
    "in_a_thread",
    "frozen_teacher",
    "validated",
    "saving",
    "odd_modules",
    "named_tuples",
    "opaque_batches",
    "zipped_batches",
    "nested_tensors",
    "single_samples",
    "gradients_without_backward",
    "frozen_batch_norm",
    "evaluated_average",
    "copied_optimizer",
    "never_back_to_training_mode",
    "pseudo_labels",
    "a_loader_within_a_data_set",
    "in_a_forked_child",
]


def run(folder, *words, script=SHAPES, check=True):
    """Run under observation; give the record and the finished process."""
    json_file = folder / "run.json"
    done = subprocess.run(
        [sys.executable, "-m", "thrifty", "run", "--json", json_file, script, *words],
        capture_output=True,
        text=True,
        check=check,
        env=os.environ | {"THRIFTY_HOME": str(folder / "home")},
    )
    return json.loads(json_file.read_text()), done


def seconds(record):
    return {line["cause"]: line["seconds"] for line in record["bill"]}


@pytest.mark.parametrize("name", NAMES)
def test_steps_and_causes_are_right_for(name, tmp_path):
    record, done = run(tmp_path, name)
    truth = json.loads(done.stdout.splitlines()[-1])
    assert record["status"] == "completed"
    assert record["framework"] == "torch"
    assert record["steps"] == truth["steps"]
    for key in ("samples", "epochs"):
        if key in truth:
            assert record[key] == truth[key]
    found = seconds(record)
    assert all(found[cause] > 0.01 for cause in truth.get("present", []))
    assert all(found[cause] == 0 for cause in truth.get("absent", []))
    assert ("note" in truth) == any("backward" in note for note in record["notes"])
    assert sum(found.values()) == pytest.approx(record["wall_s"], abs=1e-3)
    assert done.stderr == ""


@pytest.mark.parametrize("name", ["counted_lengths", "printing_modules"])
def test_the_users_own_methods_are_not_called_once_more_than_without_us(name, tmp_path):
    _, done = run(tmp_path, name)
    plain = subprocess.run(
        [sys.executable, SHAPES, name], capture_output=True, text=True, check=True
    )
    assert done.stdout == plain.stdout
    assert (done.stderr, plain.stderr) == ("", "")


def test_a_compiled_step_warns_of_nothing_that_it_did_not_warn_of_before(tmp_path):
    script = tmp_path / "step.py"
    script.write_text(
        "import torch\n"
        "net = torch.nn.Linear(2, 2)\n"
        "optimizer = torch.optim.SGD(net.parameters(), lr=0.1)\n"
        "net(torch.ones(1, 2)).sum().backward()\n"
        "@torch.compile(backend='eager')\n"
        "def step(): optimizer.step()\n"
        "step()\n"
        "print('done')\n"
    )
    command = [sys.executable, "-W", "error::UserWarning", script]
    plain = subprocess.run(command, capture_output=True, text=True, check=True)
    done = subprocess.run(
        [sys.executable, "-m", "thrifty", "run", "--", *command],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"THRIFTY_HOME": str(tmp_path / "home")},
    )
    assert (done.returncode, done.stdout) == (0, plain.stdout)
    times = re.compile(r"^W\d{4} \d\d:\d\d:\d\d\.\d+ \d+ ", re.MULTILINE)
    assert times.sub("", done.stderr) == times.sub("", plain.stderr)


def test_torch_compile_makes_the_same_graphs_with_and_without_us(tmp_path):
    record, done = run(tmp_path, "compiled")
    plain = subprocess.run(
        [sys.executable, SHAPES, "compiled"], capture_output=True, text=True, check=True
    )
    assert done.stdout == plain.stdout
    truth = json.loads(done.stdout)
    assert truth["graphs"] >= 3
    assert record["steps"] == truth["steps"]
    assert seconds(record)["compile"] > 0.1


RAISES = """
import torch, traceback, warnings
from torch.utils.data import DataLoader, Dataset
class Bad(Dataset):
    def __len__(self): return 9
    def __getitem__(self, i): raise RuntimeError(f"row {i}")
x = torch.ones(3, requires_grad=True)
class Fails(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x): return x * 2
    @staticmethod
    def backward(ctx, g): raise ValueError("no gradient")
def attempts():
    yield lambda: next(iter(DataLoader(Bad(), 2)))
    yield lambda: Fails.apply(x).sum().backward()
    yield lambda: torch.autograd.backward(x)
    yield lambda: torch.save({}, "/nowhere/x.pt")
    yield lambda: torch.nn.Linear(2, 2).train("no")
    yield lambda: torch.optim.SGD([], lr=0.1)
    yield lambda: torch.optim.SGD([x], lr=0.1).add_param_group(3)
    yield lambda: list(DataLoader([1, 2], sampler=5))
    yield lambda: next(iter(DataLoader([])))
for attempt in attempts():
    try: attempt()
    except BaseException: traceback.print_exc()
print(type(iter(DataLoader([1]))), torch.save.__module__, torch.save.__qualname__)
import pickle; print(pickle.loads(pickle.dumps(torch.save)) is torch.save)
next(iter(DataLoader(Bad(), 2)))
"""


def test_tracebacks_through_every_hook_are_the_scripts_own(tmp_path):
    script = tmp_path / "raises.py"
    script.write_text(RAISES)
    _, observed = run(tmp_path, script=script, check=False)
    plain = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert observed.returncode == plain.returncode == 1
    assert observed.stdout == plain.stdout
    assert observed.stderr == plain.stderr
    assert observed.stderr.count("Traceback") >= 9


SPINS = """
import time, torch
from torch.utils.data import DataLoader
net = torch.nn.Linear(4, 4); opt = torch.optim.SGD(net.parameters(), lr=.1)
for x in DataLoader(torch.randn(640, 4), 8):
    opt.zero_grad(); net(x).sum().backward(); opt.step()
    end = time.perf_counter() + 0.04
    while time.perf_counter() < end: pass
"""


def test_python_that_spins_in_a_step_is_host_not_compute(tmp_path):
    script = tmp_path / "spins.py"
    script.write_text(SPINS)
    record, _ = run(tmp_path, script=script)
    found = seconds(record)
    if any("py-spy" in note for note in record["notes"]):
        pytest.skip("this system forbids one process to look into another")
    loop_s = found["host"] + found["compute"] + found["cpu_wait"]
    assert loop_s > 3
    assert found["compute"] < 0.15 * loop_s
