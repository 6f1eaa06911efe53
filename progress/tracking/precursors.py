"""Kernels for few pointstamps: which of them hold back which others, pair by pair.

The kernels behind `Tracker` (which defines the words). They work on two tables:

    active   int64[6, room]    a column for each active pointstamp, with the rows LOCATION … IN_FRONTIER. The
                               row TOUCHED is not one of its properties, but a list beside them.
    edges    int64[P+1, 2+F]   a row for each port: COLUMN, its column in the table of summaries; SIZE of
                               its frontier; from EDGE on the words of it. The last row is scratch space.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from progress.compiled.kernel import Int32s, Int64s, kernel
from progress.times.word_antichain import insert_word
from progress.times.word_order import word_carried, word_less_equal

LOCATION: Final = 0
WORD: Final = 1
OCCURRENCES: Final = 2
PRECURSORS: Final = 3
IN_FRONTIER: Final = 4
TOUCHED: Final = 5

COLUMN: Final = 0
SIZE: Final = 1
EDGE: Final = 2

BAD_LOCATION: Final = -1
BAD_WORD: Final = -2


@kernel
def results_in(set_number: int, earlier: int, later: int, sets: Int64s, guards: int) -> bool:
    """Return True if time `earlier` could result in `later` by one of the summaries of a set.

    An image beyond the last counter is no time: sending there is refused. But if it is in a chain behind
    another counter, it comes before all times at which that one is larger: see `word_carried`. (In a
    prioritised loop the counter runs over into the priority, which is where the next time is.)
    """
    for index in range(sets[set_number, 0]):
        image = (earlier & sets[set_number, 1 + 2 * index]) + sets[set_number, 2 + 2 * index]
        if image & guards == 0 and word_less_equal(image, later, guards):
            return True
    return False


# The three kernels below are called once per `apply` and loop inside, instead of calling one another for each
# pointstamp or port: every array argument of a kernel costs two atomic operations (numba counts references),
# which for a port of two pointstamps was 80 ns of 90.


@kernel
def change_counts(
    changes: Int64s, total: int, active: Int64s, set_of: Int32s, sets: Int64s, scopes: Int64s, result: Int64s
) -> int:
    """Add changes to occurrences; add and remove pointstamps, and update the precursor counts of all others.

    Return how many removed ones were in the frontier of the dataflow; row TOUCHED lists their locations.
    """
    count = result[0]
    touched = 0
    for number in range(total):
        here, word, delta = changes[number, 0], changes[number, 1], changes[number, 2]
        if delta == 0:
            continue
        position = 0
        while position < count and (active[WORD, position] != word or active[LOCATION, position] != here):
            position += 1
        comes = position == count
        if comes:
            active[LOCATION, position] = here
            active[WORD, position] = word
            active[OCCURRENCES, position] = 0
            active[IN_FRONTIER, position] = 0
            count += 1
        active[OCCURRENCES, position] += delta
        goes = active[OCCURRENCES, position] == 0
        if not comes and not goes:
            continue
        precursors = 0
        for other in range(count):
            if other == position:
                continue
            there, time = active[LOCATION, other], active[WORD, other]
            onward, hither = set_of[here, there], set_of[there, here]
            if onward != 0 and results_in(onward, word, time, sets, scopes[0, there]):
                active[PRECURSORS, other] += 1 if comes else -1
            if hither != 0 and results_in(hither, time, word, sets, scopes[0, here]):
                precursors += 1
        active[PRECURSORS, position] = precursors
        if goes:
            if active[IN_FRONTIER, position] != 0:
                active[TOUCHED, touched] = here
                touched += 1
            count -= 1
            for row in range(TOUCHED):
                active[row, position] = active[row, count]
    result[0] = count
    return touched


@kernel
def mark_frontier(count: int, touched: int, active: Int64s) -> int:
    """Update which pointstamps are in the frontier of the dataflow; append the locations of those that have
    entered or left it.

    `active[TOUCHED, :touched]` is the list before the call; return its new length.
    """
    for position in range(count):
        now = 1 if active[PRECURSORS, position] == 0 else 0
        if now != active[IN_FRONTIER, position]:
            active[IN_FRONTIER, position] = now
            active[TOUCHED, touched] = active[LOCATION, position]
            touched += 1
    return touched


@kernel
def recompute_edges(
    touched: int, active: Int64s, set_of: Int32s, sets: Int64s, scopes: Int64s, edges: Int64s, result: Int64s
) -> int:
    """Recompute the frontier of each port that a touched location leads to; return how many changed."""
    count = result[0]
    edge = edges[edges.shape[0] - 1]
    moved = 0
    for port in range(edges.shape[0] - 1):
        column = edges[port, COLUMN]
        first = 0
        while first < touched and set_of[active[TOUCHED, first], column] == 0:
            first += 1
        if first == touched:
            continue
        guards, valid = scopes[0, column], scopes[1, column]
        size = 0
        for position in range(count):
            if active[IN_FRONTIER, position] == 0:
                continue
            number = set_of[active[LOCATION, position], column]
            word = active[WORD, position]
            for index in range(sets[number, 0]):
                image = (word & sets[number, 1 + 2 * index]) + sets[number, 2 + 2 * index]
                if image & ~valid != 0:
                    image = word_carried(image, guards, valid)
                    if image < 0:
                        continue
                if size == 0:
                    edge[0] = image
                    size = 1
                elif not word_less_equal(edge[0], image, guards):
                    size = insert_word(edge, size, image, guards)
        differs = edges[port, SIZE] != size
        for index in range(size):
            differs |= edges[port, EDGE + index] != edge[index]
            edges[port, EDGE + index] = edge[index]
        edges[port, SIZE] = size
        if differs:
            moved += 1
            result[moved] = port
    return moved


@kernel
def apply_changes(
    changes: Int64s,
    total: int,
    active: Int64s,
    set_of: Int32s,
    sets: Int64s,
    scopes: Int64s,
    edges: Int64s,
    result: Int64s,
) -> int:
    """Add changes to the counts, update precursors, recompute the frontiers that can have changed.

        changes   int64[≥ total, 3]   location, word, delta
        active    int64[6, room]      the number of columns in use is in result[0]
        set_of, sets, scopes          see `SummaryTable`; scopes = guards and value bits
        edges     int64[P+1, 2+F]     see above
        result    int64[2+P]          the number of active pointstamps, then the ports that changed

    Return how many ports changed, or a negative code with the number of the bad change in result[1].
    Requires: room for `total` more pointstamps.
    """
    for number in range(total):
        if not 0 <= changes[number, 0] < set_of.shape[0]:
            result[1] = number
            return BAD_LOCATION
        if changes[number, 1] & ~scopes[1, changes[number, 0]] != 0:
            result[1] = number
            return BAD_WORD
    touched = change_counts(changes, total, active, set_of, sets, scopes, result)
    touched = mark_frontier(result[0], touched, active)
    if touched == 0:
        return 0
    return recompute_edges(touched, active, set_of, sets, scopes, edges, result)


@kernel
def count_precursors(counts: Int64s, set_of: Int32s, sets: Int64s, scopes: Int64s) -> Int64s:
    """Return for each pointstamp how many of the others could result in it.

    counts   int64[n, ≥ 2]   location and word of all active pointstamps, none twice. Cost: O(n²).
    """
    precursors = np.zeros(counts.shape[0], np.int64)
    for position in range(counts.shape[0]):
        here, word = counts[position, 0], counts[position, 1]
        for other in range(counts.shape[0]):
            hither = set_of[counts[other, 0], here]
            if other == position or hither == 0:
                continue
            if results_in(hither, counts[other, 1], word, sets, scopes[0, here]):
                precursors[position] += 1
    return precursors


@kernel
def first_not_led_to(
    points: Int64s,
    total: int,
    weakly: int,
    count: int,
    active: Int64s,
    set_of: Int32s,
    sets: Int64s,
    scopes: Int64s,
) -> int:
    """Return the number of the first of some points to which no positive count leads, or `total`.

    points   int64[≥ total, ≥ 2]   location and word. With `weakly` a positive count at a point leads to it,
                                   too; otherwise only those of others do.
    """
    for number in range(total):
        here, word = points[number, 0], points[number, 1]
        is_led_to = False
        for position in range(count):
            if active[OCCURRENCES, position] <= 0:
                continue
            there, time = active[LOCATION, position], active[WORD, position]
            if there == here and time == word:
                is_led_to = weakly != 0
            else:
                hither = set_of[there, here]
                is_led_to = hither != 0 and results_in(hither, time, word, sets, scopes[0, here])
            if is_led_to:
                break
        if not is_led_to:
            return number
    return total
