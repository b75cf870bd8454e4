"""Start a script under observation, follow its children, close its books."""

from thrifty.launch._session import RunOptions, recover, run_target
from thrifty.launch._signals import die_by
from thrifty.launch._target import Target, parse_target

__all__ = ["RunOptions", "Target", "die_by", "parse_target", "recover", "run_target"]
