"""What are the minimal summaries between all locations, in a form that a kernel can use?

The compiled twin of `could_result_in.py`: summaries as pairs (keep, add), all pairs of locations at once.

Limits: the table has an entry of 4 bytes for every pair of locations and is computed source by source. With
as many stages as connectors, in one chain or one loop, that took

    2,000 locations   16 MB   0.1 to 0.2 s
    4,000 locations   64 MB   0.6 s
   10,000 locations  400 MB   3.5 s

so it grows with the square, and trackers have tables of small graphs only (`TABLE_NODES_MAX`). Of larger
ones `summaries_on_demand.py` computes what somebody asks for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from progress.compiled.kernel import Int32s, Int64s, kernel
from progress.errors import GraphError
from progress.graph.graph import Graph
from progress.graph.word_steps import WordSteps
from progress.times.word_order import word_less_equal

WIDTH_FIRST: Final = 4
WIDTH_MAX: Final = 256
_SETS_FIRST: Final = 64

TOO_NARROW: Final = -1
_TOO_MANY: Final = -2
TOO_FAR: Final = -3


class SummaryTable:
    """The minimal summaries between all locations of a graph, on words.

        set_of      int32[N, M]      number of the set of summaries from (row) to (column); 0: no path
        sets        int64[S, 1+2W]   for each set: number of summaries, then keep, add, keep, add, …
        guards      int64[M]         guards of the scope at each location
        valid       int64[M]         value bits of the scope at each location

    N is the number of locations, M counts *groups* as well: a group of locations of one scope is one more
    target, reached as soon as one of its locations is. `column_of_group` has the column of each group.

    Different pairs share sets: levels have the same place in all scopes, so even a large dataflow has few
    different ones.

    Raises `GraphError` if delays along a path sum up to half of what a counter can hold.
    """

    def __init__(
        self, graph: Graph, groups: Sequence[Sequence[int]] = (), steps: WordSteps | None = None
    ) -> None:
        """`steps`: those of the graph and the groups, if the caller has them."""
        self.word_steps = WordSteps(graph, groups) if steps is None else steps
        self.column_of_group = self.word_steps.column_of_group
        count = self.word_steps.count
        self.guards: Int64s = self.word_steps.scopes[0]
        self.valid: Int64s = self.word_steps.scopes[1]
        self.set_of: Int32s = np.zeros((graph.location_count, count), dtype=np.int32)
        self.sets: Int64s = self._closed(self.word_steps)
        assert bool(np.diagonal(self.set_of).all()), "the empty path leads from everywhere to itself"

    def between(self, source: int, target: int) -> tuple[tuple[int, int], ...]:
        """Return the minimal summaries from `source` to `target` as (keep, add); () if no path."""
        assert 0 <= source < self.set_of.shape[0], source
        assert 0 <= target < self.set_of.shape[1], target
        row = self.sets[self.set_of[source, target]].tolist()
        assert row[0] <= (self.sets.shape[1] - 1) // 2, "a set fits its row"
        return tuple((row[1 + 2 * index], row[2 + 2 * index]) for index in range(row[0]))

    def _closed(self, steps: WordSteps) -> Int64s:
        """Fill `set_of` and return `sets`; call the kernel again with larger tables while its code asks for
        them.
        """
        width, sets_max = WIDTH_FIRST, _SETS_FIRST
        while width <= WIDTH_MAX:
            sets = np.zeros((sets_max, 1 + 2 * width), dtype=np.int64)
            used = close_summaries(steps.starts, steps.steps, steps.order, steps.scopes, self.set_of, sets)
            if used > 0:
                assert int(self.set_of.max(initial=0)) == used - 1, "every set leads somewhere"
                assert not sets[0].any(), "set 0 is the empty one"
                return sets[:used].copy()
            if used == TOO_FAR:
                raise delays_too_long()
            assert used in (TOO_NARROW, _TOO_MANY), f"the kernel returned {used}"
            width, sets_max = (2 * width, sets_max) if used == TOO_NARROW else (width, 4 * sets_max)
        raise ways_too_many()


def delays_too_long() -> GraphError:
    """Return the error for delays that no counter can hold."""
    return GraphError("the delays along some path sum up to half of what a counter can hold, or more")


def ways_too_many() -> GraphError:
    """Return the error for pairs of locations with more summaries than any dataflow has."""
    return GraphError(f"more than {WIDTH_MAX} incomparable ways lead from one stage to another")


@kernel
def summary_less_equal(a: Int64s, b: Int64s, probe: int, guards: int) -> bool:
    """Return True if path summary a = (keep, add) leads to a time ≤ that of b, whatever the start.

    Both are of the form of `path_summary.py`. For that form it suffices to compare them at two starts: the
    earliest time, and one that is later than all constants (`probe`).
    """
    if not word_less_equal(a[1], b[1], guards):
        return False
    return word_less_equal((probe & a[0]) + a[1], (probe & b[0]) + b[1], guards)


@kernel
def insert_summary(summaries: Int64s, count: int, new: Int64s, probe: int, guards: int) -> int:
    """Insert `new` into the antichain `summaries[:count]`; return the new count, or -1 if nothing changed.

    Rows are (keep, add). Requires: room for one more row.
    """
    for index in range(count):
        if summary_less_equal(summaries[index], new, probe, guards):
            return -1
    remaining = 0
    for index in range(count):
        if not summary_less_equal(new, summaries[index], probe, guards):
            summaries[remaining, 0] = summaries[index, 0]
            summaries[remaining, 1] = summaries[index, 1]
            remaining += 1
    # Sorted, so that equal antichains are equal rows whatever the order of insertion.
    position = remaining
    while position > 0 and (
        summaries[position - 1, 0] < new[0]
        or (summaries[position - 1, 0] == new[0] and summaries[position - 1, 1] > new[1])
    ):
        summaries[position, 0] = summaries[position - 1, 0]
        summaries[position, 1] = summaries[position - 1, 1]
        position -= 1
    summaries[position, 0] = new[0]
    summaries[position, 1] = new[1]
    return remaining + 1


@kernel
def number_of_set(summaries: Int64s, count: int, sets: Int64s, used: int, guess: int) -> int:
    """Return the number of the set that equals the antichain `summaries[:count]`; `used` if there is none
    yet.
    """
    for attempt in range(used):
        number = guess if attempt == 0 else attempt
        if sets[number, 0] != count:
            continue
        equal = True
        for index in range(count):
            if (
                sets[number, 1 + 2 * index] != summaries[index, 0]
                or sets[number, 2 + 2 * index] != summaries[index, 1]
            ):
                equal = False
                break
        if equal:
            return number
    return used


@kernel
def reach_from(
    source: int,
    starts: Int64s,
    steps: Int64s,
    order: Int64s,
    scopes: Int64s,
    summaries: Int64s,
    counts: Int64s,
) -> int:
    """Write to `summaries[l, :counts[l]]` the minimal summaries from `source` to every location l.

    Sweeps over the locations in `order` until nothing changes; steps that lead backward require one more
    sweep. Returns 0, or a negative code if there is not enough room or an `add` has become too large.
    """
    count = order.shape[0]
    changed = np.zeros(count, dtype=np.bool_)
    new = np.empty(2, dtype=np.int64)
    counts[:] = 0
    counts[source] = 1
    summaries[source, 0, 0] = scopes[1, source]
    summaries[source, 0, 1] = 0
    changed[source] = True
    again = True
    while again:
        again = False
        for position in range(count):
            here = order[position]
            if not changed[here]:
                continue
            changed[here] = False
            for step in range(starts[here], starts[here + 1]):
                there = steps[step, 0]
                for index in range(counts[here]):
                    if counts[there] == summaries.shape[1]:
                        return TOO_NARROW
                    new[0] = summaries[here, index, 0] & steps[step, 1]
                    new[1] = (summaries[here, index, 1] & steps[step, 1]) + steps[step, 2]
                    if new[1] & scopes[2, there] != 0:
                        return TOO_FAR
                    inserted = insert_summary(
                        summaries[there], counts[there], new, scopes[2, source], scopes[0, there]
                    )
                    if inserted >= 0:
                        counts[there] = inserted
                        changed[there] = True
                        again = True
    return 0


@kernel
def close_summaries(
    starts: Int64s, steps: Int64s, order: Int64s, scopes: Int64s, set_of: Int32s, sets: Int64s
) -> int:
    """Fill `set_of` and `sets` (see `SummaryTable`); return the number of sets, or a negative code.

        starts   int64[M+1]   the steps from location l are the rows starts[l] … starts[l+1]-1 of `steps`
        steps    int64[E, 3]  next location, keep, add
        order    int64[M]     the locations, in the order of `_visiting_order`
        scopes   int64[3, M]  guards, value bits and a high probe of the scope at each location

    Requires: steps fit their fields by half; `sets` is zero. Cost: about O(N · E).
    """
    count = order.shape[0]
    width = (sets.shape[1] - 1) // 2
    summaries = np.empty((count, width, 2), dtype=np.int64)
    counts = np.empty(count, dtype=np.int64)
    used = 1
    guess = 0
    for source in range(set_of.shape[0]):
        code = reach_from(source, starts, steps, order, scopes, summaries, counts)
        if code < 0:
            return code
        for target in range(count):
            if counts[target] == 0:
                set_of[source, target] = 0
                continue
            guess = number_of_set(summaries[target], counts[target], sets, used, guess)
            if guess == used:
                if used == sets.shape[0]:
                    return _TOO_MANY
                sets[used, 0] = counts[target]
                for index in range(counts[target]):
                    sets[used, 1 + 2 * index] = summaries[target, index, 0]
                    sets[used, 2 + 2 * index] = summaries[target, index, 1]
                used += 1
            set_of[source, target] = guess
    return used
