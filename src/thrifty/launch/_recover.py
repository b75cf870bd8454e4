"""Close the books of a run whose launcher was killed, from what it left."""

import json
from dataclasses import replace
from pathlib import Path

from thrifty.analyze import Fold, attribute, lines, summarise
from thrifty.ledger import Ledger
from thrifty.observe import RunReader
from thrifty.records import Run

__all__ = ["recover"]

_NS = 1_000_000_000


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
    reader = RunReader(records, keep=True)
    best: Fold | None = None
    last_ns = start_ns
    for shard in reader.discover():
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
    price = run.price
    wall_s = wall_ns / _NS
    run = replace(
        run,
        status="incomplete",
        wall_s=wall_s,
        steps=totals.steps,
        samples=totals.samples,
        epochs=totals.epochs,
        cost_usd=None if price is None else price.usd_per_hour * wall_s / 3600,
        bill=lines(attribution, device_count=run.device_count, price=price),
        notes=(
            *run.notes,
            *attribution.notes,
            "the launcher was killed: the bill ends at the last moment that was recorded",
        ),
    )
    return replace(run, summary=summarise(run))
