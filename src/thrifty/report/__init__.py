"""Records in, text, HTML or terminal screen out."""

from thrifty.report._bill import render_bill
from thrifty.report._format import (
    format_bytes,
    format_count,
    format_duration,
    format_usd,
)
from thrifty.report._live import LiveLine, LiveMode
from thrifty.report._plain import can_print_blocks
from thrifty.report._progress import live_text
from thrifty.report._runs import render_runs

__all__ = [
    "LiveLine",
    "LiveMode",
    "can_print_blocks",
    "format_bytes",
    "format_count",
    "format_duration",
    "format_usd",
    "live_text",
    "render_bill",
    "render_runs",
]
