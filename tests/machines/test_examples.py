"""The examples in the docstrings."""

import doctest
import importlib
import inspect
import pkgutil

import thrifty.machines


def test_every_example_in_a_docstring_is_true() -> None:
    names = [
        f"thrifty.machines.{info.name}" for info in pkgutil.iter_modules(thrifty.machines.__path__)
    ]
    results = [doctest.testmod(importlib.import_module(name)) for name in names]
    assert sum(result.failed for result in results) == 0
    assert sum(result.attempted for result in results) >= 4


def test_public_names_are_sorted_and_documented() -> None:
    names = thrifty.machines.__all__
    assert names == sorted(names)
    values = {name: getattr(thrifty.machines, name) for name in names}
    code = {n: v for n, v in values.items() if inspect.isroutine(v) or inspect.isclass(v)}
    assert len(code) >= 10
    assert [name for name, value in code.items() if not value.__doc__] == []
