"""What a plain install brings."""

import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    source.mkdir()
    for name in ("src", "pyproject.toml", "README.md", "LICENSE"):
        subprocess.run(["cp", "-r", ROOT / name, source], check=True)
    command = [sys.executable, "-m", "pip", "wheel", "--no-build-isolation", "--no-deps"]
    subprocess.run([*command, "-q", "-w", folder, source], check=True)
    (found,) = folder.glob("*.whl")
    return found


def test_the_wheel_carries_its_data_its_types_and_its_bootstrap(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {
        "thrifty/py.typed",
        "thrifty/machines/instances.csv",
        "thrifty/machines/accelerators.csv",
        "thrifty/records/run.schema.json",
        "thrifty/launch/bootstrap/sitecustomize.py",
    } <= names
    assert not [name for name in names if name.startswith(("tests", "bench", "examples"))]


def test_an_install_without_any_dependency_still_prints_a_bill(wheel: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", with_pip=False)
    python = tmp_path / "venv" / "bin" / "python"
    command = [sys.executable, "-m", "pip", "--python", python, "install", "-q", "--no-deps"]
    subprocess.run([*command, wheel], check=True)
    script = tmp_path / "script.py"
    script.write_text("print('hello')")
    thrifty = python.with_name("thrifty")
    environment = {"PATH": os.environ["PATH"], "THRIFTY_HOME": str(tmp_path / "home")}
    done = subprocess.run(
        [thrifty, "run", script], env=environment, capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == ("hello\n", "")
    shown = subprocess.run(
        [thrifty, "bill"], env=environment, capture_output=True, text=True, check=True
    )
    assert "no training step was seen" in shown.stdout
    assert "startup" in shown.stdout
