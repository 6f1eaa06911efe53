"""plan/grouping: what is chosen of a group, beside sums and alone, against what plain Python says.

values_*   lists of values
agrees_*   all aggregates that choose, with rows that come and go, on one and two workers
refused_*  what has no order
"""

from __future__ import annotations

from collections import Counter

import pytest
from aggregates_plainly import ASKED, SCHEMA, aggregated
from hypothesis import given
from hypothesis import strategies as st
from reference.collection import Collection, Row, concat, negate
from strategies_collections import examples

import differential as dd
import timely
from differential.errors import ExpressionError
from timely.building.dataflow import Dataflow

ROWS = st.tuples(
    st.integers(0, 2),
    st.one_of(st.none(), st.integers(-2, 2)),
    st.integers(0, 1),
    st.sampled_from(
        ["b", "a", "Zoë", None, "long enough to share a start 1", "long enough to share a start 2"]
    ),
)
MIXED = ("rows", "min_x", "max_s", "argmin", "argmax", "first", "last", "collect", "collect_set")
ALONE = ("min_s", "collect", "argmax", "rows")


def build(flow: timely.Dataflow) -> None:
    groups = dd.input(flow, "rows", SCHEMA).group_by("k")
    groups.agg(**{name: ASKED[name].aggregate for name in MIXED}).output("mixed")
    for name in ALONE:
        groups.agg(**{name: ASKED[name].aggregate}).output(name)


@examples(0.4)
@given(
    st.lists(st.tuples(st.lists(ROWS, max_size=6), st.lists(ROWS, max_size=3)), min_size=1, max_size=3),
    st.integers(1, 2),
    st.data(),
)
def test_agrees_with_plain_words(
    epochs: list[tuple[list[Row], list[Row]]], workers: int, data: st.DataObject
) -> None:
    """Rows may be removed before they come, so that multiplicities are below 0."""
    with timely.connect(workers=workers, embedded=True) as cluster:
        flow = cluster.install(build)
        there: Collection = Counter()
        for come, owed in epochs:
            gone = data.draw(st.lists(st.sampled_from(sorted(there, key=repr)), unique=True)) if there else []
            flow.input("rows").insert(come)
            flow.input("rows").remove([*gone, *owed])
            there = concat(there, Counter(come), negate(Counter([*gone, *owed])))
            flow.seal()
            assert _plain(flow, "mixed") == aggregated(there, MIXED)
            for name in ALONE:
                assert _plain(flow, name) == aggregated(there, [name])


def _plain(flow: timely.Flow, name: str) -> Collection:
    found: Collection = Counter()
    for row in flow.output(name).snapshot().to_pylist():
        found[tuple(tuple(part) if isinstance(part, list) else part for part in row.values())] += 1
    return found


def test_refused_what_has_no_order() -> None:
    rows = dd.input(Dataflow("queries"), "rows", "k: int, x: any")
    with pytest.raises(ExpressionError, match="no order"):
        rows.group_by("k").agg(least=dd.min("x"))
    with pytest.raises(ExpressionError, match=r"argmax\(x, by=.*column 'x' is any.*no order"):
        rows.group_by("k").agg(top=dd.argmax("x", by="x"))
    with pytest.raises(ExpressionError, match=r"first\(x, by=.*no order"):
        rows.group_by("k").agg(top=dd.first("x", by=["k", "x"]))
    with pytest.raises(ExpressionError, match="compares by one column"):
        dd.argmin("k", by=["x", "k"])  # type: ignore[arg-type]  # that is the point
