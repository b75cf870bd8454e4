"""Start a script under observation, follow its children, close its books."""

import importlib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from thrifty.launch._recover import recover
    from thrifty.launch._session import run_target
    from thrifty.launch._signals import die_by
    from thrifty.launch._start import RunOptions
    from thrifty.launch._target import Target, parse_target

__all__ = ["RunOptions", "Target", "die_by", "parse_target", "recover", "run_target"]

_HOMES = {
    "RunOptions": "_start",
    "Target": "_target",
    "die_by": "_signals",
    "parse_target": "_target",
    "recover": "_recover",
    "run_target": "_session",
}


def __getattr__(name: str) -> object:
    """Import a public name when it is first asked for: a script waits for our imports."""
    if name not in _HOMES:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
