"""Makes samples.py importable as ``report_samples``: tests are not a package."""

import importlib.util
import sys
from pathlib import Path

_spec = importlib.util.spec_from_file_location(
    "report_samples", Path(__file__).with_name("samples.py")
)
assert _spec is not None
assert _spec.loader is not None
_module = importlib.util.module_from_spec(_spec)
sys.modules["report_samples"] = _module
_spec.loader.exec_module(_module)
