"""Run a callback when a module has been imported, and leave nothing else behind.

The callback sees the finished module; the module, its spec and its loader stay what they
would have been. An import that fails does so with its own traceback.

This file runs inside the user's script: standard library only.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

__all__ = ["ImportHook"]


class ImportHook:
    """A finder that finds nothing itself but learns when watched modules were executed.

    Args:
        callbacks: By full module name. Each is called once, after the module's own code.
        failed: Told the module's name and the error when a callback raises.
    """

    def __init__(
        self,
        callbacks: Mapping[str, Callable[[Any], None]],
        failed: Callable[[str, Exception], None],
    ) -> None:
        self._callbacks = dict(callbacks)
        self._failed = failed

    def install(self) -> None:
        """Stand in front of the other finders."""
        sys.meta_path.insert(0, self)

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Ask the other finders, and watch the loader that they give."""
        callback = self._callbacks.get(name)
        if callback is None:
            return None
        del self._callbacks[name]
        spec = None
        for finder in sys.meta_path:
            if finder is self:
                continue
            find_spec = getattr(finder, "find_spec", None)
            spec = None if find_spec is None else find_spec(name, path, target)
            if spec is not None:
                break
        if spec is None:
            self._callbacks[name] = callback  # not found now; it may be after a sys.path change
            return None
        self._watch(spec.loader, name, callback)
        return spec

    def _watch(self, loader: Any, name: str, callback: Callable[[Any], None]) -> None:
        execute = getattr(loader, "exec_module", None)
        if execute is None:
            return

        def exec_module(module: ModuleType) -> None:
            try:
                execute(module)
            except BaseException as error:
                self._callbacks[name] = callback
                if error.__traceback__ is not None:
                    error.__traceback__ = error.__traceback__.tb_next  # our frame is not theirs
                raise
            finally:
                loader.__dict__.pop("exec_module", None)
            try:
                callback(module)
            except Exception as error:  # noqa: BLE001 (a failed hook must not fail the script)
                self._failed(name, error)

        try:
            loader.exec_module = exec_module
        except AttributeError:
            return  # a loader with slots: this module stays unobserved
