"""What the times of updates are, whichever operator made them: laws of differences, on running dataflows.

injective_*  D1: what accumulates to the same at every time is the same updates. So there is one right
             output, update by update, and it is that of the definition (`reference/collection.py`)
coverage_*   D2: a key's output changes only at least upper bounds of times at which its input does
bounded_*    D8: the same of whole dataflows: support is in the closure of the inputs' support, operator
             after operator
"""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import collection as plainly
from reference.collection import History, accumulated_at, closure, history
from reference.dataflow import Change, run_at_times
from strategies_collections import UNARY, Composition, compositions, examples, histories

from differential import Collection, col

LIFTED = ["distinct", "sum", "min", "max", "consolidate", "negate"]
BY_KEY = ["distinct", "sum", "min", "max"]


def some_changes(choice: random.Random, depth: int) -> list[Change]:
    return [
        (
            (choice.randint(0, 2), choice.randint(0, 2)),
            tuple(choice.randint(0, 2) for _ in range(depth)),
            choice.choice([1, 1, -1]),
        )
        for _ in range(8)
    ]


def by_key(one: History) -> dict[object, set[tuple[int, ...]]]:
    """The times at which rows of each key change."""
    times: dict[object, set[tuple[int, ...]]] = {}
    for time, rows in one.items():
        for row in rows:
            times.setdefault(row[0], set()).add(time)
    return times


@given(histories(2), histories(2), st.booleans())
def test_injective_histories_that_differ_accumulate_to_something_else_somewhere(
    one: list[Change], other: list[Change], begins_alike: bool
) -> None:
    f = history(one)
    g = history([*one, *other] if begins_alike else other)
    times = closure({*f, *g})
    assert (f == g) == all(accumulated_at(f, time) == accumulated_at(g, time) for time in times)


@pytest.mark.parametrize("name", LIFTED)
@pytest.mark.parametrize(("depth", "workers"), [(2, 1), (3, 2)])
def test_injective_each_operator_sends_the_updates_of_its_definition_and_no_others(
    name: str, depth: int, workers: int, seed: int, effort: int
) -> None:
    operator = UNARY[name]
    for case in range(2 * effort):
        changes = some_changes(random.Random(seed + case), depth)
        found = run_at_times(operator.build, [changes], depth=depth, workers=workers, seed=seed + case)
        assert found == plainly.difference(operator.plain)(history(changes))


@pytest.mark.parametrize("name", BY_KEY)
def test_coverage_a_key_changes_only_where_its_input_does(name: str, seed: int, effort: int) -> None:
    for case in range(3 * effort):
        changes = some_changes(random.Random(seed + case), 3)
        found = run_at_times(UNARY[name].build, [changes], depth=3, seed=seed + case)
        may = by_key(history(changes))
        for key, times in by_key(found).items():
            assert times <= set(closure(may[key])), f"{key} changes at {times}, its rows at {may[key]}"


def test_coverage_a_join_changes_only_where_both_sides_meet(seed: int, effort: int) -> None:
    def build(a: Collection, b: Collection) -> Collection:
        return a.join(b.select(k=col.k, w=col.v), on="k").select(k=col.k, v=10 * col.v + col.w)

    for case in range(3 * effort):
        choice = random.Random(seed + case)
        inputs = [some_changes(choice, 3), some_changes(choice, 3)]
        found = run_at_times(build, inputs, depth=3, seed=seed + case)
        left, right = (by_key(history(changes)) for changes in inputs)
        for key, times in by_key(found).items():
            assert times <= {plainly.product_lub(s, t) for s in left[key] for t in right[key]}


@examples(0.2)
@given(compositions(), st.lists(histories(2, size_max=6), min_size=2, max_size=2))
def test_bounded_whatever_is_composed_changes_only_in_the_closure_of_its_inputs(
    composition: Composition, inputs: list[list[Change]]
) -> None:
    found = run_at_times(composition.build, inputs, depth=2)
    times = closure({time for changes in inputs for _, time, _ in changes} | {(0, 0)})
    assert found.keys() <= set(times)
    assert sum(map(len, found.values())) <= len(times) * len({row for rows in found.values() for row in rows})
