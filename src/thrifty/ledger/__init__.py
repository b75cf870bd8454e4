"""Every run ever made, and the refusal to repeat one."""

from thrifty.ledger._folders import RunFolder
from thrifty.ledger._ledger import Ledger

__all__ = ["Ledger", "RunFolder"]
