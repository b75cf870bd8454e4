"""Measure steps, stalls and transfers of a running script."""

from thrifty.observe._reader import Moment, RunReader, ShardReader
from thrifty.observe._tree import ProcessTree, Tick

__all__ = ["Moment", "ProcessTree", "RunReader", "ShardReader", "Tick"]
