"""Dataflows with inputs that keep the last value, which tests install by name in worker processes."""

from __future__ import annotations

import timely
from differential import checked_input, count, input

__all__ = ["values"]


@timely.builder
def values(dataflow: timely.Dataflow, exports: bool = False) -> None:
    """Values by two keys, with a string among them; what stands behind them; a checked input."""
    current = input(
        dataflow,
        "values",
        "name: string, part: int, amount: int, note: string?",
        key=("part", "name"),
        mode="upsert",
    )
    current.output("current")
    current.group_by("part").agg(n=count()).output("counts")
    rows, refused = checked_input(dataflow, "rows", "name: string")
    rows.output("rows")
    refused.output("refused")
    if exports:
        current.export("values", by="amount")
        rows.export("rows")
