"""What are the minimal summaries between all locations, in a form that a kernel can use?

The compiled twin of `could_result_in.py`: summaries as pairs (keep, add), all pairs of locations at once.

Limits: the table has an entry of 4 bytes for every pair of locations and is computed source by source. With
as many stages as connectors, in one chain or one loop, that took

    2,000 locations   16 MB   0.1 to 0.2 s
    4,000 locations   64 MB   0.6 s
   10,000 locations  400 MB   3.5 s

so it grows with the square, and `LOCATIONS_MAX` bounds the number of locations. Larger dataflows would need a
table without the rows of locations that are never active (connectors within one worker).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from progress.compiled.kernel import Int32s, Int64s, kernel
from progress.errors import GraphError
from progress.graph.graph import Graph
from progress.times.path_summary import PathSummary
from progress.times.word_order import word_less_equal

LOCATIONS_MAX: Final = 12_000
"""More would need more than 576 MB for the table of pairs."""

_WIDTH_FIRST: Final = 4
_WIDTH_MAX: Final = 256
_SETS_FIRST: Final = 64

_TOO_NARROW: Final = -1
_TOO_MANY: Final = -2
_TOO_FAR: Final = -3


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

    Raises `GraphError` above `LOCATIONS_MAX` locations, and if delays along a path sum up to half of what a
    counter can hold.
    """

    def __init__(self, graph: Graph, groups: Sequence[Sequence[int]] = ()) -> None:
        self.location_count = graph.location_count
        self.column_of_group: list[int] = []
        steps = [
            (here, there, *_as_words(graph, here, there, summary)) for here, there, summary in graph.steps
        ]
        codes = [graph.code_of(location) for location in range(graph.location_count)]
        for group in groups:
            assert group, "a group of no locations has no scope"
            assert all(0 <= location < self.location_count for location in group), group
            if len({graph.shape_of(location) for location in group}) > 1:
                raise GraphError(f"locations {list(group)} are of different scopes")
            if len(group) == 1:
                self.column_of_group.append(group[0])
                continue
            column = len(codes)
            self.column_of_group.append(column)
            codes.append(graph.code_of(group[0]))
            steps += [(location, column, codes[column].valid, 0) for location in group]
        if len(codes) > LOCATIONS_MAX:
            raise GraphError(
                f"the dataflow has {len(codes)} stages, connectors and watched groups, "
                f"more than the {LOCATIONS_MAX} that are supported"
            )
        self.guards: Int64s = np.array([code.guards for code in codes], dtype=np.int64)
        self.valid: Int64s = np.array([code.valid for code in codes], dtype=np.int64)
        probes = np.array([code.probe_high for code in codes], dtype=np.int64)
        self.set_of: Int32s = np.zeros((graph.location_count, len(codes)), dtype=np.int32)
        self.sets: Int64s = self._closed(steps, np.stack([self.guards, self.valid, probes]))
        assert len(self.column_of_group) == len(groups)
        assert bool(np.diagonal(self.set_of).all()), "the empty path leads from everywhere to itself"

    def between(self, source: int, target: int) -> tuple[tuple[int, int], ...]:
        """Return the minimal summaries from `source` to `target` as (keep, add); () if no path."""
        assert 0 <= source < self.set_of.shape[0], source
        assert 0 <= target < self.set_of.shape[1], target
        row = self.sets[self.set_of[source, target]].tolist()
        assert row[0] <= (self.sets.shape[1] - 1) // 2, "a set fits its row"
        return tuple((row[1 + 2 * index], row[2 + 2 * index]) for index in range(row[0]))

    def _closed(self, steps: list[tuple[int, int, int, int]], scopes: Int64s) -> Int64s:
        """Fill `set_of` and return `sets`; call the kernel again with larger tables while its code asks for
        them.
        """
        count = scopes.shape[1]
        assert scopes.shape == (3, self.set_of.shape[1]), scopes.shape
        order = _visiting_order(count, steps)
        steps = sorted(steps)
        table = np.array([step[1:] for step in steps], dtype=np.int64).reshape(len(steps), 3)
        starts = np.searchsorted(np.array([step[0] for step in steps], dtype=np.int64), np.arange(count + 1))
        assert starts.shape == (count + 1,), starts.shape
        assert int(starts[-1]) == len(steps), "every step starts somewhere"
        width, sets_max = _WIDTH_FIRST, _SETS_FIRST
        while width <= _WIDTH_MAX:
            sets = np.zeros((sets_max, 1 + 2 * width), dtype=np.int64)
            used = close_summaries(starts.astype(np.int64), table, order, scopes, self.set_of, sets)
            if used > 0:
                assert int(self.set_of.max(initial=0)) == used - 1, "every set leads somewhere"
                assert not sets[0].any(), "set 0 is the empty one"
                return sets[:used].copy()
            if used == _TOO_FAR:
                raise GraphError(
                    "the delays along some path sum up to half of what a counter can hold, or more"
                )
            assert used in (_TOO_NARROW, _TOO_MANY), f"the kernel returned {used}"
            width, sets_max = (2 * width, sets_max) if used == _TOO_NARROW else (width, 4 * sets_max)
        raise GraphError(f"more than {_WIDTH_MAX} incomparable ways lead from one stage to another")


def _as_words(graph: Graph, here: int, there: int, summary: PathSummary) -> tuple[int, int]:
    return summary.to_words(graph.code_of(here), graph.code_of(there))


def _visiting_order(count: int, steps: list[tuple[int, int, int, int]]) -> Int64s:
    """Return an order in which all steps lead forward but those that close a cycle (reverse postorder)."""
    following: list[list[int]] = [[] for _ in range(count)]
    for here, there, _, _ in steps:
        following[here].append(there)
    seen = [False] * count
    done: list[int] = []
    for root in range(count):
        if seen[root]:
            continue
        seen[root] = True
        path = [(root, 0)]
        while path:
            here, position = path.pop()
            if position == len(following[here]):
                done.append(here)
                continue
            path.append((here, position + 1))
            there = following[here][position]
            if not seen[there]:
                seen[there] = True
                path.append((there, 0))
    assert len(done) == count, "every location is visited"
    assert all(seen), "and only once"
    return np.array(done[::-1], dtype=np.int64)


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
                        return _TOO_NARROW
                    new[0] = summaries[here, index, 0] & steps[step, 1]
                    new[1] = (summaries[here, index, 1] & steps[step, 1]) + steps[step, 2]
                    if new[1] & scopes[2, there] != 0:
                        return _TOO_FAR
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
