"""The house rules that a linter cannot see."""

import ast
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import thrifty
from thrifty.cli import COMMANDS, main
from thrifty.records import ThriftyError

HEAVY = (
    *("torch", "keras", "jax", "tensorflow", "lightning", "ignite", "transformers"),
    *("numpy", "pandas", "optuna", "rich", "pynvml", "py_spy"),
)
ROOT = Path(__file__).parent.parent
SOURCE = Path(thrifty.__file__).parent
ATTACHED = sorted(
    path
    for pattern in ("adapters/_*.py", "observe/_events.py", "observe/_[ri][em][cp]*.py")
    for path in SOURCE.glob(pattern)
    if path.name != "__init__.py"
)


def heavy_modules_after(statement: str) -> str:
    code = f"{statement}; import sys; print(*[m for m in {HEAVY} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.mark.parametrize(
    "statement",
    [
        "import thrifty",
        "import thrifty; [getattr(thrifty, name) for name in thrifty.__all__]",
        "import thrifty.cli, thrifty.cli._run, thrifty.cli._bill, thrifty.cli._runs",
        "import thrifty.launch._watch, thrifty.report, thrifty.adapters._attach",
    ],
)
def test_importing_us_imports_nothing_heavy(statement: str) -> None:
    assert heavy_modules_after(statement) == ""


def test_the_heavy_import_test_can_fail() -> None:
    assert heavy_modules_after("import sys; sys.modules['torch'] = sys") == "torch"


def imported_names(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            found.add(node.module or "")
    return found


@pytest.mark.parametrize("path", ATTACHED, ids=lambda path: path.name)
def test_what_runs_inside_the_script_is_standard_library_and_itself(path: Path) -> None:
    ours = {f"thrifty.{p.parent.name}.{p.stem}" for p in ATTACHED} | {"thrifty.adapters"}
    foreign = {
        name
        for name in imported_names(path)
        if name not in ours and name.partition(".")[0] not in sys.stdlib_module_names
    }
    assert foreign == set()


def test_the_test_of_what_runs_inside_the_script_can_fail(tmp_path: Path) -> None:
    path = tmp_path / "bad.py"
    path.write_text("import rich\nfrom thrifty.records import Run")
    assert imported_names(path) == {"rich", "thrifty.records"}


def test_public_names_are_sorted_documented_and_few() -> None:
    names = list(thrifty.__all__)
    assert names == sorted(names)
    assert all(inspect.getdoc(getattr(thrifty, name)) for name in names)
    assert len(names) <= 32


def test_an_unknown_public_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="nothing_like_it"):
        _ = thrifty.nothing_like_it


@pytest.mark.parametrize(
    "package", sorted(p.parent for p in SOURCE.glob("*/__init__.py")), ids=lambda p: p.name
)
def test_every_package_says_what_it_is_and_what_it_offers(package: Path) -> None:
    tree = ast.parse((package / "__init__.py").read_text())
    assert ast.get_docstring(tree)
    assert "__all__" in {
        target.id
        for node in tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name)
    }


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_examples_in_eighty_columns(
    command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit) as ended:
        main([command, "--help"])
    assert ended.value.code == 0
    text = capsys.readouterr().out
    assert f"  thrifty {command}" in text
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_appears_in_the_readme(command: str) -> None:
    assert f"thrifty {command}" in (ROOT / "README.md").read_text()


@pytest.mark.parametrize("name", thrifty.__all__)
def test_every_public_name_appears_in_the_docs(name: str) -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    assert any(f"`thrifty.{name}" in page.read_text() for page in pages)


def error_classes() -> list[str]:
    from thrifty.records import _errors

    return [name for name in _errors.__all__ if name != "ThriftyError"]


@pytest.mark.parametrize("name", error_classes())
def test_every_error_appears_in_the_docs(name: str) -> None:
    assert f"`{name}`" in (ROOT / "docs" / "errors.md").read_text()


def test_without_a_command_the_overview_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    text = capsys.readouterr().out
    assert all(command in text for command in COMMANDS)


def test_an_error_is_one_problem_and_one_fix(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("THRIFTY_HOME", str(tmp_path))
    assert main(["bill", "999"]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2
    assert lines[0].startswith("LedgerError: ")
    assert lines[1].startswith("  fix: thrifty ")


def test_an_error_without_a_remedy_cannot_be_raised() -> None:
    with pytest.raises(TypeError, match="fix"):
        ThriftyError("it broke")  # pyright: ignore[reportCallIssue]


def test_no_file_grows_past_six_hundred_lines() -> None:
    long = {p.name: n for p in SOURCE.rglob("*.py") if (n := p.read_text().count("\n")) > 600}
    assert long == {}


def test_no_package_has_a_name_that_says_nothing() -> None:
    names = {p.name for p in SOURCE.rglob("*") if p.is_dir()}
    assert names.isdisjoint({"utils", "core", "common", "helpers", "misc"})
