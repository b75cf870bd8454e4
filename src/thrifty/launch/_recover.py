"""Close the books of a run whose launcher was killed, from what it left."""

import json
from dataclasses import replace
from pathlib import Path

from thrifty.analyze import Attribution, Fold, attribute, conclude, lines
from thrifty.ledger import Ledger
from thrifty.observe import RunReader
from thrifty.observe._events import segment_name
from thrifty.records import Cause, Run

__all__ = ["recover"]

_NS = 1_000_000_000
_SAME_S = 0.05


def recover(folder: Path) -> Run | None:
    """Close the books of a run whose launcher was killed, from what it left.

    Args:
        folder: The run's folder in the ledger.

    Returns:
        The record, incomplete, up to the last moment that was recorded; None when the folder
        holds too little.
    """
    ledger = Ledger(folder.parent.parent)
    run = ledger.find(folder.name)
    try:
        start = json.loads((folder / "start.json").read_text(encoding="utf-8"))
        start_ns, records = int(start["start_ns"]), Path(start["records"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    lived_ns = _last_sample_ns(folder)
    found = _folded(run, records, start_ns, lived_ns)
    if found is None and run.bill:
        found = _extended(run, lived_ns)
    return None if found is None or _same(found, run) else found


def _same(found: Run, known: Run) -> bool:
    """Tell whether looking again found nothing new."""
    return bool(known.bill) and found.wall_s - known.wall_s < _SAME_S


def _extended(run: Run, lived_ns: int) -> Run | None:
    """Add to a bill that was kept while the run went on what came after it, as unattributed."""
    later_s = max(0.0, lived_ns / _NS - run.wall_s)
    ns: dict[Cause, int] = {
        line.cause: round(line.seconds / max(1, run.device_count) * _NS) for line in run.bill
    }
    ns["unattributed"] += round(later_s * _NS)
    notes = (
        f"the launcher was killed: the last {later_s:.1f} s that it saw were not booked",
        *run.notes,
    )
    return _with_bill(run, Attribution(ns=ns, notes=notes), wall_s=run.wall_s + later_s)


def _folded(run: Run, records: Path, start_ns: int, lived_ns: int) -> Run | None:
    """Make a bill from the records, which begin with the run's start unless it was very long.

    The script may have lived on: what it recorded after its launcher's death counts.
    """
    reader = RunReader(records, keep=True)
    best: Fold | None = None
    last_ns = start_ns + lived_ns
    for shard in reader.discover():
        if not (records / segment_name(shard, 0)).exists():
            return None
        fold = Fold(start_ns)
        while moments := reader.shards[shard].read():
            fold.feed(moments)
            last_ns = max(last_ns, moments[-1][0])
        if best is None or fold.steps.total() > best.steps.total():
            best = fold
    reader.close()
    if best is None:
        return None
    totals = best.totals(last_ns, cut_short=True)
    wall_ns = last_ns - start_ns
    attribution = attribute(totals, wall_ns=wall_ns, has_devices=run.device_count > 0)
    why = "the launcher was killed: the bill ends at the last moment that was recorded"
    notes = tuple(dict.fromkeys((*run.notes, *attribution.notes, why)))
    run = replace(run, steps=totals.steps, samples=totals.samples, epochs=totals.epochs)
    return _with_bill(run, replace(attribution, notes=notes), wall_s=wall_ns / _NS)


def _with_bill(run: Run, attribution: Attribution, *, wall_s: float) -> Run:
    price = run.price
    run = replace(
        run,
        status="incomplete",
        wall_s=wall_s,
        cost_usd=None if price is None else price.usd_per_hour * wall_s / 3600,
        bill=lines(attribution, device_count=run.device_count, price=price),
        notes=attribution.notes,
    )
    return conclude(run)


def _last_sample_ns(folder: Path) -> int:
    """Tell until when the launcher lived, from its last system sample."""
    try:
        lines = (folder / "samples.jsonl").read_text(encoding="utf-8").splitlines()
        return int(json.loads(lines[-1])["t_s"] * _NS)
    except (OSError, ValueError, KeyError, IndexError, TypeError):
        return 0
