"""Functions of whole groups in columns: all groups that changed at once, without Python per row.

    answers of a group = function(its rows)        at every time at which the group may have changed

What is put out is the answers less what was put out for the key before. A key with changes at several
times is looked at in rounds, one time each, for what is put out at one counts at later ones. Work per
change is that of its group: its rows and answers are read, gone through once in machine code, and sorted;
some 0.1 to 0.3 µs a row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from differential.columns.column_types import Bools, Int64s
from differential.kernels.history.sweep import nearest_answers, session_answers
from differential.kernels.rows.sort import sort_consolidate

__all__ = ["Rule", "SweepFunction", "swept"]

Rule = Literal["sessions", "nearest"]

_KERNELS: Final[Mapping[Rule, Callable[[Int64s, Int64s, Int64s], Int64s]]] = {
    "sessions": session_answers,
    "nearest": nearest_answers,
}


@dataclass(frozen=True)
class SweepFunction:
    """What a group's rows, sorted, become: `words` words each. See `kernels/history/sweep.py`."""

    rule: Rule
    options: tuple[int, ...]
    words: int


def swept(
    groups: Int64s, rows: Int64s, history: Int64s, function: SweepFunction, layout: tuple[int, int]
) -> Int64s:
    """Corrections, sorted and consolidated, for what `collect_groups` has found; layout: kw, guards."""
    kw, guards = layout
    words = function.words
    if groups.shape[1] == 0:
        return np.empty((kw + words + 2, 0), np.int64)
    options = np.array(function.options, np.int64)
    made = _KERNELS[function.rule](rows, np.ascontiguousarray(groups[kw + 1 : kw + 3]), options)
    # A key's groups are neighbours, times ascending; they have one history.
    firsts = np.flatnonzero(_new_key(groups, kw))
    number = np.zeros(groups.shape[1], np.int64)
    number[firsts] = 1
    key_of = number.cumsum() - 1
    rounds = np.arange(groups.shape[1]) - firsts[key_of]
    sizes = groups[kw + 4, firsts] - groups[kw + 3, firsts]
    pool, pool_key = history[:, _ranges(groups[kw + 3, firsts], sizes)], np.arange(firsts.size).repeat(sizes)
    out: list[Int64s] = []
    for turn in range(int(rounds.max()) + 1):
        now = np.flatnonzero(rounds == turn)
        at = np.full(firsts.size, -1, np.int64)
        at[key_of[now]] = now
        change = _round(groups, made, (pool, pool_key, at), kw, guards)
        out.append(change[1:])
        if turn < int(rounds.max()):
            pool = np.concatenate([pool, change[1 + kw :]], axis=1)
            pool_key = np.concatenate([pool_key, key_of[change[0]]])
    return sort_consolidate(np.ascontiguousarray(np.concatenate(out, axis=1)))


def _round(
    groups: Int64s, made: Int64s, before: tuple[Int64s, Int64s, Int64s], kw: int, guards: int
) -> Int64s:
    """Number of the group, key, answer, time and diff of what makes the groups of one round right."""
    pool, pool_key, at = before
    words = made.shape[0] - 2
    is_now = np.zeros(groups.shape[1], np.bool_)
    is_now[at[at >= 0]] = True
    new = made[:, is_now[made[-1]]]
    group = at[pool_key]
    counts: Bools = group >= 0
    counts &= ((groups[kw, group] | guards) - pool[-2]) & guards == guards
    old, group = pool[:, counts], group[counts]
    change = np.empty((1 + words + 2, new.shape[1] + old.shape[1]), np.int64)
    change[0] = np.concatenate([new[-1], group])
    change[1:-2] = np.concatenate([new[:words], old[:words]], axis=1)
    change[-2] = 0
    change[-1] = np.concatenate([new[-2], -old[-1]])
    change = sort_consolidate(change)
    full: Int64s = np.empty((1 + kw + words + 2, change.shape[1]), np.int64)
    full[0] = change[0]
    full[1 : 1 + kw] = groups[:kw, change[0]]
    full[1 + kw : -2] = change[1:-2]
    full[-2] = groups[kw, change[0]]
    full[-1] = change[-1]
    return full


def _new_key(groups: Int64s, kw: int) -> Bools:
    """Where another key begins; the first is one."""
    is_new = np.zeros(groups.shape[1], np.bool_)
    is_new[0] = True
    for column in range(kw):
        is_new[1:] |= groups[column, 1:] != groups[column, :-1]
    return is_new


def _ranges(starts: Int64s, sizes: Int64s) -> Int64s:
    """The whole numbers from each start on, as many as its size, one after another."""
    before: Int64s = np.cumsum(sizes, dtype=np.int64) - sizes
    found: Int64s = np.arange(int(sizes.sum()), dtype=np.int64) + (starts - before).repeat(sizes)
    return found
