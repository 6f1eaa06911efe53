"""A dataflow whose cluster grows and shrinks, and its twin in plain Python."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import differential as dd
import timely

__all__ = ["Twin", "sold"]


@timely.builder
def sold(dataflow: timely.Dataflow) -> None:
    """Rows as they come, values by key, totals, what both are together, and the keys that key 0 reaches."""
    rows = dd.input(dataflow, "rows", "k: int, n: int")
    values = dd.input(dataflow, "values", "k: int, v: int", key="k", mode="upsert")
    rows.output("rows")
    totals = rows.group_by("k").agg(count=dd.count(), n=dd.sum("n"))
    totals.output("totals")
    totals.join(values, on="k").output("both")
    edges = rows.select("k", to=dd.col.n % 50)
    start = rows.select("k").distinct().filter(dd.col.k == 0)
    start.iterate(
        lambda reached: reached.join(edges, on="k").select(k=dd.col.to).concat(start).distinct()
    ).output("reached")


class Twin:
    """What the outputs should have after each epoch."""

    def __init__(self) -> None:
        self.rows: Counter[tuple[int, int]] = Counter()
        self.values: dict[int, int] = {}
        self.changed: list[Counter[tuple[int, int]]] = []
        """The changes of `rows`, by epoch."""
        self.both: list[set[tuple[int, ...]]] = []
        """The rows of `both`, by epoch."""
        self.reached: list[set[int]] = []
        """The rows of `reached`, by epoch."""
        self._changes: Counter[tuple[int, int]] = Counter()

    def add(self, rows: Iterable[tuple[int, int]], diff: int = 1) -> None:
        """Add rows, or remove them."""
        for row in rows:
            self._changes[row] += diff

    def seal(self) -> None:
        """End an epoch."""
        changes = Counter({row: diff for row, diff in self._changes.items() if diff})
        self._changes = Counter()
        self.rows.update(changes)
        self.changed.append(changes)
        counts: Counter[int] = Counter()
        sums: Counter[int] = Counter()
        for (key, number), count in self.rows.items():
            counts[key] += count
            sums[key] += count * number
        self.both.append(
            {(key, counts[key], sums[key], self.values[key]) for key in self.values if counts[key]}
        )
        self.reached.append(self._reached())

    def _reached(self) -> set[int]:
        targets: dict[int, set[int]] = {}
        for (key, number), count in self.rows.items():
            if count:
                targets.setdefault(key, set()).add(number % 50)
        reached = {0} & targets.keys()
        new = set(reached)
        while new:
            new = {target for key in new for target in targets.get(key, ())} - reached
            reached |= new
        return reached
