"""Learning that a module was imported, without a trace."""

import subprocess
import sys
import textwrap

import pytest

PRELUDE = """
import sys
from thrifty.observe._import_hook import ImportHook
seen, failed = [], []
def hook(**callbacks):
    ImportHook(callbacks, lambda name, error: failed.append((name, str(error)))).install()
"""


def outcome(tmp_path, code, **modules):
    for name, text in modules.items():
        (tmp_path / f"{name}.py").write_text(textwrap.dedent(text))
    return subprocess.run(
        [sys.executable, "-c", PRELUDE + textwrap.dedent(code)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )


def test_the_callback_sees_the_finished_module_once(tmp_path):
    done = outcome(
        tmp_path,
        """
        hook(target=lambda module: seen.append(module.value))
        import target, importlib
        importlib.reload(target)
        print(seen)
        """,
        target="value = 3",
    )
    assert done.stdout == "[3]\n", done.stderr


def test_module_spec_and_loader_are_left_as_they_were(tmp_path):
    done = outcome(
        tmp_path,
        """
        hook(target=lambda module: None)
        import target
        print(vars(target.__loader__).keys(), target.__spec__.loader is target.__loader__)
        import inspect; print(inspect.getsource(target))
        """,
        target="value = 3",
    )
    assert done.stdout == "dict_keys(['name', 'path']) True\nvalue = 3\n\n", done.stderr


@pytest.mark.parametrize(
    "text", ["1/0", "import nowhere_at_all", "def broken(", "raise SystemExit(4)"]
)
def test_an_import_that_fails_fails_as_it_would_have(tmp_path, text):
    (tmp_path / "target.py").write_text(text)
    observed = outcome(tmp_path, "hook(target=print)\nimport target")
    plain = outcome(tmp_path, "\nimport target")
    assert observed.returncode == plain.returncode != 0
    assert observed.stderr == plain.stderr


def test_an_import_that_fails_first_and_works_later_is_seen(tmp_path):
    done = outcome(
        tmp_path,
        """
        hook(target=lambda module: seen.append(1))
        try: import target
        except ZeroDivisionError: pass
        open("target.py", "w").write("pass # mended")
        import importlib; importlib.invalidate_caches()
        import target
        print(seen)
        """,
        target="1/0",
    )
    assert done.stdout == "[1]\n", done.stderr


def test_a_callback_that_fails_does_not_fail_the_import(tmp_path):
    done = outcome(
        tmp_path,
        """
        hook(target=lambda module: module.nothing)
        import target
        print(target.value, failed[0][0])
        """,
        target="value = 3",
    )
    assert done.stdout == "3 target\n", done.stderr


def test_a_module_that_is_not_there_is_not_found_as_usual(tmp_path):
    done = outcome(tmp_path, "hook(target=print)\nimport target")
    assert "ModuleNotFoundError: No module named 'target'" in done.stderr
