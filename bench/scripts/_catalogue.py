"""The public scripts and the recipe of each: what to copy, what to prepare, what to type.

None of their code is here. Sizes are small so that each run stays well below a minute on
two cores; the steps that follow from them are written beside each recipe.
"""

import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import _data

__all__ = ["SCRIPTS", "Script", "Site"]

Environment = Literal["main", "vision"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Site:
    """Where one script runs."""

    root: Path
    """The fresh copy of the checkout's parts."""

    data: Path
    """Data sets shared by all scripts, made once."""

    python: str
    """The interpreter of the script's environment."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Script:
    """One public script and how to run it here."""

    number: str
    """As the notes number it."""

    title: str
    """Project and shape, for the table."""

    checkout: str
    """Folder below ``--checkouts``."""

    parts: tuple[str, ...]
    """Files and folders of the checkout that it needs."""

    folder: str
    """Working folder, relative to the copy."""

    command: tuple[str, ...]
    """The script and its arguments, as typed after ``python``."""

    steps: int
    """Optimizer steps that the recipe makes, counted in the script's own source."""

    environment: Environment = "main"
    """``vision`` needs torchvision."""

    prepare: Callable[[Site], None] | None = None
    """Puts the data where the script looks."""

    env: tuple[tuple[str, str], ...] = ()
    """Environment variables beside the common ones; ``{root}`` and ``{data}`` are filled in."""

    normalisers: tuple[str, ...] = ()
    """Optional normalisers that its output needs."""

    weights_repeat: bool = True
    """Two plain runs save the same weights and images, to the last bit."""


def _digits(site: Site, link: str, target: str) -> None:
    if not (site.data / "MNIST").exists():
        _data.write_idx_digits(site.data)
    (site.root / link).symlink_to(site.data / target)


def _examples_data(site: Site) -> None:
    _digits(site, "data", ".")


def _vae_data(site: Site) -> None:
    _digits(site, "data", ".")
    (site.root / "vae" / "results").mkdir(exist_ok=True)


def _ignite_data(site: Site) -> None:
    _digits(site, "examples/mnist/MNIST", "MNIST")


def _characters(site: Site) -> None:
    folder = site.root / "data" / "shakespeare_char"
    made = site.data / "shakespeare_char"
    if not (made / "meta.pkl").exists():
        _data.write_text(folder / "input.txt")
        subprocess.run(
            [site.python, "prepare.py"], cwd=folder, check=True, stdout=subprocess.DEVNULL
        )
        shutil.copytree(folder, made, dirs_exist_ok=True)
    shutil.copytree(made, folder, dirs_exist_ok=True)


def _keras_digits(site: Site) -> None:
    home = site.data / "keras"
    if not (home / "datasets").exists():
        _data.write_keras_digits(home)
    path = site.root / "examples" / "demo_custom_torch_workflow.py"
    text = path.read_text(encoding="utf-8")
    # Its own data set is checked by hash and would be downloaded; the other one is not.
    path.write_text(text.replace("datasets.mnist", "datasets.fashion_mnist"), encoding="utf-8")


_NANOGPT_PARTS = ("train.py", "model.py", "configurator.py", "config", "data/shakespeare_char")
# The loop ends when iter_num > max_iters, so that it makes max_iters + 1 steps.
_NANOGPT = (
    *("train.py", "config/train_shakespeare_char.py", "--device=cpu", "--dtype=float32"),
    *("--eval_iters=3", "--log_interval=5", "--block_size=64", "--batch_size=4"),
    *("--n_head=2", "--n_embd=64", "--gradient_accumulation_steps=4"),
)

SCRIPTS = (
    Script(
        number="S01",
        title="pytorch/examples mnist: loader, test loop, scheduler",
        checkout="examples",
        parts=("mnist",),
        folder="mnist",
        command=("main.py", "--epochs", "2", "--no-accel"),
        steps=2 * 32,  # 2,000 images by 64
        environment="vision",
        prepare=_examples_data,
    ),
    Script(
        number="S03",
        title="pytorch/examples dcgan: two optimizers, three backwards",
        checkout="examples",
        parts=("dcgan",),
        folder="dcgan",
        command=(
            *("main.py", "--dataset", "fake", "--niter", "1", "--ngf", "8", "--ndf", "8"),
            *("--workers", "2", "--outf", "out", "--manualSeed", "1"),
        ),
        steps=16,  # FakeData's 1,000 images by 64
        environment="vision",
    ),
    Script(
        number="S05",
        title="pytorch/examples vae: own loss, images each epoch",
        checkout="examples",
        parts=("vae",),
        folder="vae",
        command=("main.py", "--epochs", "2", "--no-accel"),
        steps=2 * 16,  # 2,000 images by 128
        environment="vision",
        prepare=_vae_data,
    ),
    Script(
        number="S08",
        title="cleanrl ppo: rollouts, then 4 epochs of 4 minibatches",
        checkout="cleanrl",
        parts=("cleanrl/ppo.py",),
        folder=".",
        command=("cleanrl/ppo.py", "--total-timesteps", "10000", "--no-cuda"),
        steps=16 * 19,  # 10,000 // (4 environments x 128)
    ),
    Script(
        number="S09",
        title="nanoGPT: random crops, accumulation, exec() config",
        checkout="nanoGPT",
        parts=_NANOGPT_PARTS,
        folder=".",
        command=(
            *_NANOGPT,
            *("--compile=False", "--n_layer=2", "--eval_interval=20"),
            *("--max_iters=40", "--lr_decay_iters=40"),
        ),
        steps=41,
        prepare=_characters,
    ),
    Script(
        number="S11",
        title="makemore: endless sampler, SummaryWriter",
        checkout="makemore",
        parts=("makemore.py", "names.txt"),
        folder=".",
        command=("makemore.py", "--max-steps", "505", "--type", "mlp", "-n", "2", "-o", "out"),
        steps=505,
    ),
    Script(
        number="S13",
        title="minGPT adder: own Trainer, evaluation in a callback",
        checkout="minGPT",
        parts=("mingpt", "projects/adder"),
        folder="projects/adder",
        command=(
            "adder.py",
            "--trainer.max_iters=120",
            "--trainer.num_workers=2",
            "--data.ndigit=1",
        ),
        steps=120,
        env=(("PYTHONPATH", "{root}"),),
    ),
    Script(
        number="S15",
        title="Lightning bug report: one batch",
        checkout="pytorch-lightning",
        parts=("examples/pytorch/bug_report",),
        folder="examples/pytorch/bug_report",
        command=("bug_report_model.py",),
        steps=1,
        normalisers=("unseeded",),
        weights_repeat=False,
    ),
    Script(
        number="S16",
        title="Ignite mnist: evaluators inside handlers",
        checkout="ignite",
        parts=("examples/mnist/mnist.py",),
        folder="examples/mnist",
        command=("mnist.py", "--epochs", "1"),
        steps=32,  # 2,000 images by 64
        environment="vision",
        prepare=_ignite_data,
        normalisers=("unseeded",),
        weights_repeat=False,
    ),
    Script(
        number="S18",
        title="Keras model in a torch loop, twice",
        checkout="keras",
        parts=("examples/demo_custom_torch_workflow.py",),
        folder="examples",
        command=("demo_custom_torch_workflow.py",),
        steps=2 * 32,  # two trainings of 2,000 images by 64
        prepare=_keras_digits,
        env=(("KERAS_HOME", "{data}/keras"),),
        normalisers=("unseeded",),
        weights_repeat=False,
    ),
    Script(
        number="S20",
        title="Keras fit with its own train_step",
        checkout="keras",
        parts=("integration_tests/torch_custom_fit_test.py",),
        folder="integration_tests",
        command=("torch_custom_fit_test.py",),
        steps=2,  # 64 rows by 32
        env=(("KERAS_BACKEND", "torch"), ("KERAS_HOME", "{data}/keras")),
        normalisers=("unseeded",),
        weights_repeat=False,
    ),
    Script(
        number="S25",
        title="nanoGPT compiled",
        checkout="nanoGPT",
        parts=_NANOGPT_PARTS,
        folder=".",
        command=(
            *_NANOGPT,
            *("--compile=True", "--n_layer=1", "--eval_interval=20"),
            *("--max_iters=20", "--lr_decay_iters=20"),
        ),
        steps=21,
        prepare=_characters,
        weights_repeat=False,  # compiled reductions
    ),
)
"""In the order of the notes."""
