"""What the README and the docs say to type works."""

import argparse
import importlib
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from thrifty.cli import COMMANDS

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def typed() -> list[str]:
    """Find every ``thrifty ...`` line of the code blocks and of inline code."""
    lines = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for _, body in BLOCK.findall(text):
            lines += [line.strip() for line in body.splitlines()]
        lines += re.findall(r"`(thrifty [^`]+)`", BLOCK.sub("", text))
    return sorted(
        {line.partition(" #")[0].strip() for line in lines if line.startswith("thrifty ")}
    )


def test_there_are_commands_to_check() -> None:
    assert len(typed()) > 10


@pytest.mark.parametrize("line", typed())
def test_a_line_that_the_docs_say_to_type_is_understood(line: str) -> None:
    _, name, *words = shlex.split(line.replace("[", "").replace("]", "").replace("...", "x"))
    assert name in COMMANDS
    command = importlib.import_module(f"thrifty.cli._{name}")
    parser = argparse.ArgumentParser(prog=line, exit_on_error=False)
    command.configure(parser)
    if name == "run":
        words, rest = command.split(words)
        assert rest or line.endswith("--help")
    parser.parse_args([word for word in words if word != "--help"])


def test_the_python_page_runs(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("print('trained')")
    blocks = [b for kind, b in BLOCK.findall((ROOT / "docs/python.md").read_text()) if kind]
    assert blocks
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(blocks)],
        cwd=tmp_path,
        env={"THRIFTY_HOME": str(tmp_path / "home"), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "no_training" in done.stdout
    assert "startup" in done.stdout


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_page_that_is_linked_is_there(page: Path) -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text(encoding="utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []
