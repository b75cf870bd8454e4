"""Attach to the process that we are in: one recorder, one import hook, nothing else.

This file runs inside the user's script, before its first line: standard library only, and
every module that it needs is imported here, because our package is taken out of
``sys.modules`` again afterwards.
"""

import atexit
import os
import sys

from thrifty.adapters import _torch
from thrifty.observe._events import EXIT
from thrifty.observe._import_hook import ImportHook
from thrifty.observe._recorder import Recorder

__all__ = ["attach"]

_HELPERS = ("multiprocessing.resource_tracker", "multiprocessing.forkserver")


def attach(where: str) -> None:
    """Arm the hooks.

    Args:
        where: ``folder|pid``: where records go, and the launcher's process. The launcher's
            own child records from its start; any other process only once it trains.
    """
    folder, _, launcher = where.rpartition("|")
    if any(helper in argument for argument in sys.orig_argv for helper in _HELPERS):
        return
    recorder = Recorder(folder, eager=str(os.getppid()) == launcher)
    hook = ImportHook(
        _torch.callbacks(recorder),
        lambda name, error: recorder.note(
            f"hook on {name} failed ({type(error).__name__}: {error}): what it would have "
            "seen is unattributed"
        ),
    )
    hook.install()
    os.register_at_fork(after_in_child=recorder.restart_after_fork)
    atexit.register(recorder.mark_cpu, EXIT)  # the first to be registered is the last to run
