"""Functions of whole groups in columns: all groups that changed at once, without Python per row.

    answers of a group = function(its rows)        at every time at which the group may have changed

The output of a key is its answers less its earlier output. A key with changes at several times is worked on
in rounds, one time each, since the output at one time counts at later ones.

If little has changed, only the spans of time around the changes are swept, as if each were a group
(`kernels/sweeps/near.py`): a change of a large group costs what is around it. Pending times are those of a
whole key, which is swept as a whole then; they come up in loops only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from differential.columns.column_types import Bools, Int64s
from differential.kernels.history.groups import collect_groups
from differential.kernels.rows.memory import HEADER, LUB, describe_words
from differential.kernels.rows.sort import sort_consolidate
from differential.kernels.sweeps.near import NEAREST, SESSIONS, rows_near
from differential.kernels.sweeps.sweep import nearest_answers, session_answers
from differential.operators.reducing.frames import window_answers
from differential.operators.reducing.group_values import GroupAnswers
from differential.operators.reducing.window_parts import WindowFunctions

__all__ = ["Rule", "SweepFunction", "swept", "swept_near"]

Rule = Literal["sessions", "nearest"]

_KERNELS: Final[Mapping[Rule, Callable[[Int64s, Int64s, Int64s], Int64s]]] = {
    "sessions": session_answers,
    "nearest": nearest_answers,
}

_RULES: Final[Mapping[Rule, int]] = {"sessions": SESSIONS, "nearest": NEAREST}


@dataclass(frozen=True)
class SweepFunction:
    """A function from a group's rows, sorted, to answers of `words` words. See `kernels/sweeps/sweep.py`."""

    rule: Rule
    options: tuple[int, ...]
    words: int


def swept_near(
    ready: Int64s,
    tables: tuple[Int64s, Int64s],
    frontier: Int64s,
    function: SweepFunction,
    layout: tuple[int, int, int],
) -> tuple[Int64s, Int64s]:
    """Return corrections, and the pairs (key, time) that are pending from now on. Requires: none are pending.

    The arguments are those of `collect_groups`; layout: kw, vw, guards.
    """
    kw, vw, guards = layout
    forward = function.options[1] if function.rule == "nearest" else 0
    shape = np.array([kw, vw, guards, function.words, _RULES[function.rule], forward], np.int64)
    changed, rows, before = rows_near(ready, *tables, shape)
    one_more = np.array([kw + 1, vw, guards, function.words, -1], np.int64)
    nothing = np.empty((kw + 2, 0), np.int64)
    lines = _line_of(rows, guards), _line_of(before, guards)
    groups, members, history, pended = collect_groups(changed, nothing, *lines, frontier, one_more)
    swept_rows = swept(groups, members, history, function, (kw + 1, guards))
    corrections = sort_consolidate(np.delete(swept_rows, kw, axis=0))
    return corrections, np.ascontiguousarray(np.unique(np.delete(pended, kw, axis=0), axis=1))


def _line_of(words: Int64s, guards: int) -> Int64s:
    """Return a run table of these rows, which must outlive it."""
    line = np.zeros((1, HEADER + 3 * words.shape[0]), np.int64)
    describe_words(words, words.shape[1], line, 0)
    line[0, LUB] = ~guards & ((1 << 63) - 1)  # no time is later than this
    return line


def swept(
    groups: Int64s,
    rows: Int64s,
    history: Int64s,
    function: SweepFunction | WindowFunctions | GroupAnswers,
    layout: tuple[int, int],
) -> Int64s:
    """Return corrections, sorted and consolidated, for the groups of `collect_groups`; layout: kw, guards."""
    kw, guards = layout
    words = function.words
    if groups.shape[1] == 0:
        return np.empty((kw + words + 2, 0), np.int64)
    bounds = np.ascontiguousarray(groups[kw + 1 : kw + 3])
    if isinstance(function, WindowFunctions):
        answers = window_answers(rows, bounds, function)
    elif isinstance(function, GroupAnswers):
        answers = function.answers(rows, bounds)
    else:
        answers = _KERNELS[function.rule](rows, bounds, np.array(function.options, np.int64))
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
        change = _round(groups, answers, (pool, pool_key, at), kw, guards)
        out.append(change[1:])
        if turn < int(rounds.max()):
            pool = np.concatenate([pool, change[1 + kw :]], axis=1)
            pool_key = np.concatenate([pool_key, key_of[change[0]]])
    return sort_consolidate(np.ascontiguousarray(np.concatenate(out, axis=1)))


def _round(
    groups: Int64s, answers: Int64s, before: tuple[Int64s, Int64s, Int64s], kw: int, guards: int
) -> Int64s:
    """Return the corrections of the groups of one round: number of the group, key, answer, time and diff."""
    pool, pool_key, at = before
    words = answers.shape[0] - 2
    is_now = np.zeros(groups.shape[1], np.bool_)
    is_now[at[at >= 0]] = True
    new = answers[:, is_now[answers[-1]]]
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
    """Return, for each group, whether a new key begins with it, as with the first."""
    is_new = np.zeros(groups.shape[1], np.bool_)
    is_new[0] = True
    for column in range(kw):
        is_new[1:] |= groups[column, 1:] != groups[column, :-1]
    return is_new


def _ranges(starts: Int64s, sizes: Int64s) -> Int64s:
    """Return the whole numbers from each start on, as many as its size, one after another."""
    before: Int64s = np.cumsum(sizes, dtype=np.int64) - sizes
    numbers: Int64s = np.arange(int(sizes.sum()), dtype=np.int64) + (starts - before).repeat(sizes)
    return numbers
