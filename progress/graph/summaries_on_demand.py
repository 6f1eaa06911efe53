"""What are the minimal summaries to one location of a graph that is too large for a table of all pairs?"""

from __future__ import annotations

import numpy as np

from progress.compiled.kernel import Int64s, kernel
from progress.graph.summary_table import (
    TOO_FAR,
    TOO_NARROW,
    WIDTH_FIRST,
    WIDTH_MAX,
    delays_too_long,
    insert_summary,
    ways_too_many,
)
from progress.graph.word_steps import WordSteps


class SummariesOnDemand:
    """The minimal summaries of `SummaryTable`, computed for one target at a time.

    It remembers those to its last target. Cost: O(steps) for another one, in memory, too. Several threads may
    ask at the same time.

    Raises `GraphError` if delays along a path sum up to half of what a counter can hold.
    """

    def __init__(self, steps: WordSteps) -> None:
        self.word_steps = steps
        self.guards: Int64s = steps.scopes[0]
        self.valid: Int64s = steps.scopes[1]
        by_target = np.lexsort((steps.sources, steps.steps[:, 0]))
        self._steps: Int64s = steps.steps[by_target].copy()
        self._starts = np.searchsorted(self._steps[:, 0], np.arange(steps.count + 1)).astype(np.int64)
        self._steps[:, 0] = steps.sources[by_target]
        self._width = WIDTH_FIRST
        self._last: tuple[int, Int64s, Int64s] = -1, self._starts, self._steps
        """A target, and for each node the number of summaries to it, and these."""
        if _delays_may_be_too_long(steps):
            for target in range(steps.count):
                self._reach(target)
        assert self._steps.shape == steps.steps.shape

    def between(self, source: int, target: int) -> tuple[tuple[int, int], ...]:
        """Return the minimal summaries from `source` to `target` as (keep, add); () if no path."""
        assert 0 <= source < self.word_steps.location_count, source
        assert 0 <= target < self.word_steps.count, target
        last = self._last
        if last[0] != target:
            last = self._last = self._reach(target)
        _, counts, summaries = last
        rows: list[list[int]] = summaries[source, : counts[source]].tolist()
        return tuple((keep, add) for keep, add in rows)

    def _reach(self, target: int) -> tuple[int, Int64s, Int64s]:
        """Compute the summaries to `target`; call the kernel again with more room while it asks for that."""
        steps = self.word_steps
        width = self._width
        counts = np.zeros(steps.count, dtype=np.int64)
        while True:
            summaries = np.zeros((steps.count, width, 2), dtype=np.int64)
            code = reach_to(target, self._starts, self._steps, steps.order, steps.scopes, summaries, counts)
            if code == 0:
                break
            if code == TOO_FAR:
                raise delays_too_long()
            assert code == TOO_NARROW, f"the kernel returned {code}"
            width *= 2
            if width > WIDTH_MAX:
                raise ways_too_many()
        self._width = width
        assert counts[target] > 0, "the empty path leads from everywhere to itself"
        return target, counts, summaries


def _delays_may_be_too_long(steps: WordSteps) -> bool:
    """Return True if all delays of a graph together take half of a counter. Mostly they do not, and then
    those along a path do not either.
    """
    added, counts = np.unique(steps.steps[:, 2], return_counts=True)
    delays = list(zip(added.tolist(), counts.tolist(), strict=True))
    assert all(add >= 0 for add, _ in delays), "no step leads back in time"
    return any(
        2 * sum((add >> shift & (1 << bits) - 1) * count for add, count in delays) >= 1 << bits
        for shift, bits in steps.fields
    )


@kernel
def reach_to(
    target: int,
    starts: Int64s,
    steps: Int64s,
    order: Int64s,
    scopes: Int64s,
    summaries: Int64s,
    counts: Int64s,
) -> int:
    """Write to `summaries[l, :counts[l]]` the minimal summaries from every node l to `target`.

    As `reach_from`, but backward: the steps to node l are the rows starts[l] … starts[l+1]-1 of `steps`, each
    the node where it starts, keep and add.
    """
    count = order.shape[0]
    changed = np.zeros(count, dtype=np.bool_)
    new = np.empty(2, dtype=np.int64)
    counts[:] = 0
    counts[target] = 1
    summaries[target, 0, 0] = scopes[1, target]
    summaries[target, 0, 1] = 0
    changed[target] = True
    again = True
    while again:
        again = False
        for position in range(count - 1, -1, -1):
            here = order[position]
            if not changed[here]:
                continue
            changed[here] = False
            for step in range(starts[here], starts[here + 1]):
                before = steps[step, 0]
                for index in range(counts[here]):
                    if counts[before] == summaries.shape[1]:
                        return TOO_NARROW
                    keep = summaries[here, index, 0]
                    new[0] = steps[step, 1] & keep
                    new[1] = (steps[step, 2] & keep) + summaries[here, index, 1]
                    if new[1] & scopes[2, target] != 0:
                        return TOO_FAR
                    inserted = insert_summary(
                        summaries[before], counts[before], new, scopes[2, before], scopes[0, target]
                    )
                    if inserted >= 0:
                        counts[before] = inserted
                        changed[before] = True
                        again = True
    return 0
