"""What stateless operators behind an input say about its rows, and what a base has by that.

late_*     rows go to epochs in which they are judged as before
let_go_*   rows that nobody reads any more are not in the base
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pytest

import differential as dd
import timely
from differential import col
from differential.columns.schema import Schema
from differential.operators.edge.table_in import TableIn
from differential.plan.building import Plan
from differential.plan.durable.rules import plan_facts
from differential.plan.durable.summing import SummedRows, summed_rows
from differential.plan.durable.views import Views
from timely.durable.bases.facts import InputFacts
from timely.durable.bases.rows_form import BUCKETS, BucketRange

WHOLE = BucketRange(0, BUCKETS)
SCHEMA = Schema.of("a: int, b: int")
Query = Callable[[dd.Collection], None]
Update = tuple[int, tuple[int, int], int]


def facts_of(query: Query) -> InputFacts:
    flow = timely.Dataflow("query")
    query(dd.input(flow, "in", str(SCHEMA)))
    flow.freeze()
    (facts,) = plan_facts(Plan.of(flow)).inputs
    return facts


def base_of(rows: SummedRows, updates: Sequence[Update], summed: int, first: int = 0) -> list[Update]:
    codec = TableIn(SCHEMA, "in")
    for epoch, row, diff in updates:
        table = pa.Table.from_pylist([dict(zip("ab", row, strict=True))], schema=SCHEMA.to_arrow())
        rows.take(epoch, [codec.encode(table, np.array([diff], np.int64), 0)])
    return [
        (row["epoch"], (row["a"], row["b"]), row["diff"])
        for each in rows.folded([WHOLE], summed, first)
        for row in each.table.to_pylist()
    ]


def some_updates(number: int, first: int = 0) -> list[Update]:
    rng = random.Random(number)
    return [
        (
            rng.randrange(first, first + 10),
            (rng.randrange(4), rng.randrange(first, first + 12)),
            rng.choice([1, 1, -1]),
        )
        for _ in range(150)
    ]


def judged(updates: Sequence[Update], deadlines: Sequence[Callable[[int, int], int]]) -> Counter[object]:
    """Each row, and by which deadlines its update is on time, with the sum of its diffs."""
    sums: Counter[object] = Counter()
    for epoch, row, diff in updates:
        sums[row, tuple(epoch <= deadline(*row) for deadline in deadlines)] += diff
    return Counter({key: diff for key, diff in sums.items() if diff})


def late_once(rows: dd.Collection) -> None:
    on_time, _ = rows.split_late("b", 2, clock=dd.clock(0, every=1))
    on_time.output("out")


def late_twice(rows: dd.Collection) -> None:
    on_time, late = rows.split_late("b", 2, clock=dd.clock(0, every=1))
    other, _ = rows.with_columns(c=col.b - col.a).split_late("c", 0, clock=dd.clock(0, every=1))
    on_time.output("out")
    late.concat(other.select("a", "b")).output("late")


@pytest.mark.parametrize("first", [0, 3])
@pytest.mark.parametrize("number", range(4))
@pytest.mark.parametrize(
    ("query", "deadlines"),
    [
        (late_once, [lambda a, b: b + 2]),
        (late_twice, [lambda a, b: b + 2, lambda a, b: b - a]),
    ],
)
def test_late_updates_are_judged_as_before(
    query: Query, deadlines: list[Callable[[int, int], int]], number: int, first: int
) -> None:
    facts = facts_of(query)
    updates = some_updates(number, first)
    summed = first + 6
    base = base_of(summed_rows(facts.details, WHOLE), updates, summed, first)
    assert judged(base, deadlines) == judged(updates, deadlines)
    assert all(first <= epoch for epoch, _, _ in base)
    again = base_of(summed_rows(facts.details, WHOLE), base, first + 9, first)
    assert judged(again, deadlines) == judged(updates, deadlines)
    if query is late_once:  # whatever is on time can come first, and what is late comes last
        assert len({epoch for epoch, _, _ in again}) <= 2


def test_late_null_is_never_late() -> None:
    facts = facts_of(
        lambda rows: (
            rows.with_columns(c=dd.when(col.a <= 1).then(col.b))
            .split_late("c", 2, clock=dd.clock(0, every=1))[1]
            .output("out")
        )
    )
    base = base_of(summed_rows(facts.details, WHOLE), [(5, (0, 0), 1), (5, (2, 0), 1)], 7)
    assert sorted(base) == [(7, (0, 0), 1), (7, (2, 0), 1)]
    base = base_of(summed_rows(facts.details, WHOLE), [(1, (0, 0), 1), (1, (2, 0), 1)], 7)
    assert sorted(base) == [(0, (0, 0), 1), (7, (2, 0), 1)]


def test_late_rows_that_fail_on_the_way_are_kept() -> None:
    facts = facts_of(
        lambda rows: (
            rows.with_columns(c=col.b // col.a)
            .split_late("c", 2, clock=dd.clock(0, every=1))[0]
            .output("out")
        )
    )
    base = base_of(summed_rows(facts.details, WHOLE), [(1, (0, 5), 1), (1, (1, 0), 1)], 7)
    assert sorted(base) == [(0, (1, 0), 1), (7, (0, 5), 1)]


def test_let_go_rows_are_not_in_the_base() -> None:
    facts = facts_of(lambda rows: rows.during(col.a, col.b).output("out"))
    assert facts.expires
    updates = [(0, (0, 3), 1), (0, (0, 5), 1), (1, (9, 20), 2), (8, (0, 3), 1)]
    base = base_of(summed_rows(facts.details, WHOLE), updates, 4)
    assert sorted(base) == [(4, (0, 5), 1), (4, (9, 20), 2), (8, (0, 3), 1)]


def test_let_go_only_if_nobody_else_reads_the_row() -> None:
    def during_and(rows: dd.Collection, other: dd.Collection) -> None:
        rows.during(col.a, col.b).output("out")
        other.output("other")

    assert not facts_of(lambda rows: during_and(rows, rows)).expires
    facts = facts_of(lambda rows: during_and(rows, rows.filter(col.a == 1)))
    assert facts.expires
    updates = [(0, (0, 3), 1), (0, (1, 3), 1), (0, (1, 9), 1)]
    assert sorted(base_of(summed_rows(facts.details, WHOLE), updates, 4)) == [
        (4, (1, 3), 1),
        (4, (1, 9), 1),
    ]


def test_let_go_rows_that_fail_stay() -> None:
    facts = facts_of(lambda rows: rows.during(0, col.b // col.a).output("out"))
    base = base_of(summed_rows(facts.details, WHOLE), [(0, (0, 3), 1), (0, (1, 3), 1)], 4)
    assert base == [(4, (0, 3), 1)]


def test_let_go_rows_of_a_window_behind_a_clock() -> None:
    facts = facts_of(lambda rows: rows.last("b", 4, clock=dd.clock(0, every=1)).output("out"))
    updates = [(0, (0, time), 1) for time in range(12)]
    base = base_of(summed_rows(facts.details, WHOLE), updates, 7)
    assert sorted(row[1] for _, row, _ in base) == list(range(4, 12))


def test_views_know_their_input_alone() -> None:
    flow = timely.Dataflow("query")
    left, right = (dd.input(flow, name, str(SCHEMA)) for name in ("left", "right"))
    left.concat(right.filter(col.a > 0)).during(col.a, col.b).output("out")
    flow.freeze()
    words = np.array([[0, 2], [9, 9], [0, 0], [1, 1]], np.int64)
    needed = {}
    for facts in plan_facts(Plan.of(flow)).inputs:
        name, _, _, packed, kinds, may_drop = facts.details
        assert isinstance(packed, bytes) and isinstance(kinds, list)
        needed[name] = Views(str(name), packed, kinds, bool(may_drop)).needed(words, 3).tolist()
    assert needed == {"left": [True, True], "right": [False, True]}


def test_let_go_rows_that_a_filter_says_are_never_null_though_another_has_come_between() -> None:
    """Rules put filters together, or further down, and leave in its place what one says about nulls."""
    columns = Schema.of("a: int?, b: int?, c: string?")

    def query(flow: timely.Dataflow) -> None:
        rows = dd.input(flow, "in", str(columns))
        there = rows.filter(col.a.is_not_null() & col.b.is_not_null()).dropna()
        there.select("a", "b").filter(col.a > 1).during("a", "b").output("out")

    flow = timely.Dataflow("query")
    query(flow)
    flow.freeze()
    (facts,) = plan_facts(Plan.of(flow)).inputs
    rows = summed_rows(facts.details, WHOLE)
    table = pa.Table.from_pylist(
        [
            {"a": 2, "b": 5, "c": "over"},
            {"a": 2, "b": 9, "c": "there"},
            {"a": None, "b": 9, "c": "none"},
            {"a": 2, "b": 9, "c": None},
        ],
        schema=columns.to_arrow(),
    )
    rows.take(0, [TableIn(columns, "in").encode(table, np.ones(4, np.int64), 0)])
    left = [row["c"] for each in rows.folded([WHOLE], 6, 0) for row in each.table.to_pylist()]
    assert left == ["there"]
