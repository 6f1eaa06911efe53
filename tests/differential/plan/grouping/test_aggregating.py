"""aggregating.py: which operators several aggregates become, and what they mean together."""

from __future__ import annotations

from collections import Counter

import pytest
from aggregates_plainly import ASKED, SCHEMA, aggregated, aggregated_all
from hypothesis import given
from hypothesis import strategies as st
from reference.dataflow import Change, check_at_times
from strategies_collections import examples, histories

import differential as dd
from differential import Collection, col
from differential.plan import nodes as n
from timely.building.dataflow import Dataflow


def _source() -> Collection:
    return dd.input(Dataflow("tested"), "rows", "k: int, v: int, w: int?")


def test_whatever_is_added_up_is_one_operator_of_the_rows() -> None:
    node = (
        _source().group_by("k").agg(n=dd.count(), s=dd.sum("v"), m=dd.avg("w"), a=dd.any_of(col.v > 1)).node
    )
    assert isinstance(node, n.Accumulate) and len(node.sources) == 1 and node.needed == 1


def test_one_that_is_chosen_is_its_own_operator() -> None:
    node = _source().group_by("k").agg(lo=dd.min("v")).node
    assert isinstance(node, n.Reduce) and isinstance(node.source, n.Input)


def test_those_that_are_chosen_are_taken_together_and_each_is_needed() -> None:
    node = _source().group_by("k").agg(lo=dd.min("v"), hi=dd.max("v")).node
    assert isinstance(node, n.Accumulate) and node.needed == 2
    assert [type(source) for source in node.sources] == [n.Reduce, n.Reduce]
    assert node.describe() == "group by k: lo, hi"


def test_different_values_are_a_source_that_need_not_be_there() -> None:
    node = (
        _source().group_by("k").agg(x=dd.count_distinct("w"), lo=dd.min("v"), y=dd.count_distinct("w")).node
    )
    assert isinstance(node, n.Accumulate) and node.needed == 2
    assert [type(source) for source in node.sources] == [n.Input, n.Reduce, n.Distinct]
    assert node.describe() == "group by k: x=count_distinct(w), lo, y=count_distinct(w)"


def test_what_is_computed_is_a_column_before_and_another_name_if_that_is_taken() -> None:
    source = dd.input(Dataflow("tested"), "rows", {"k": int, "v": int, "col.v + 1": int})
    node = source.group_by("k").agg(s=dd.sum(col.v + 1), t=dd.sum(col.v + 1)).node
    assert node.children[0].schema.names == ("k", "v", "col.v + 1", "col.v + 1'")


def test_equal_questions_are_equal_nodes() -> None:
    source = _source()
    one = source.group_by("k").agg(n=dd.count_distinct("w"), s=dd.sum(col.v * 2))
    other = source.group_by(col.k).agg(n=dd.count_distinct(col.w), s=dd.sum(col.v * 2))
    assert one.node is other.node
    source.plan.check_invariants()


ROWS = st.tuples(
    st.integers(0, 1),
    st.one_of(st.none(), st.integers(0, 2)),
    st.integers(-1, 1),
    st.sampled_from(["a", "b", None]),
)
NAMES = st.lists(st.sampled_from(sorted(ASKED)), min_size=1, max_size=4, unique=True)


@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("is_whole", [False, True], ids=["by key", "all rows"])
def test_a_row_is_there_while_each_aggregate_has_a_value(depth: int, is_whole: bool) -> None:
    """Whatever is asked for together, and whichever multiplicities are negative."""

    @examples(3)
    @given(histories(depth, ROWS, size_max=12), NAMES, st.integers(1, 2), st.integers(0, 2**20))
    def holds(changes: list[Change], names: list[str], workers: int, seed: int) -> None:
        asked = {name: ASKED[name].aggregate for name in names}
        check_at_times(
            lambda c: c.agg(**asked) if is_whole else c.group_by("k").agg(**asked),
            lambda rows: (aggregated_all if is_whole else aggregated)(rows, names),
            [changes], depth=depth, workers=workers, seed=seed, schemas=SCHEMA,
        )  # fmt: skip

    holds()


@examples(1)
@given(histories(1, ROWS, size_max=12), NAMES, st.integers(0, 2**20))
def test_several_aggregates_are_the_join_of_each(changes: list[Change], names: list[str], seed: int) -> None:
    asked = {name: ASKED[name].aggregate for name in names}

    def build(c: Collection) -> Collection:
        groups = c.group_by("k")
        joined = groups.agg(**{names[0]: asked[names[0]]})
        for name in names[1:]:
            joined = joined.join(groups.agg(**{name: asked[name]}), on="k")
        return joined.concat(groups.agg(**asked).negate())

    check_at_times(build, lambda rows: Counter(), [changes], depth=1, seed=seed, schemas=SCHEMA)
