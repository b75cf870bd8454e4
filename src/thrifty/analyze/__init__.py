"""Pure functions from records to records: attribute, diagnose, predict, advise."""

from thrifty.analyze._bill import Attribution, attribute, lines
from thrifty.analyze._fold import Fold, Totals
from thrifty.analyze._summary import conclude

__all__ = ["Attribution", "Fold", "Totals", "attribute", "conclude", "lines"]
