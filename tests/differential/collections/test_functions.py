"""functions.py: operators by Python functions.

meaning_*   at times of depth 1 to 3
refused_*   what a user may do wrong, and what he is told
"""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference.dataflow import Change, check_at_times
from strategies_collections import UNARY, examples, histories

import differential as dd
import timely
from differential.errors import SchemaError
from timely.building.dataflow import Dataflow


@pytest.mark.parametrize("name", ["explode", "explode outer", "map batches"])
@pytest.mark.parametrize("depth", [1, 3])
def test_meaning_at_every_time(name: str, depth: int) -> None:
    @examples(0.4)
    @given(histories(depth), st.integers(1, 3), st.integers(0, 2**20))
    def holds(changes: list[Change], workers: int, seed: int) -> None:
        operator = UNARY[name]
        check_at_times(operator.build, operator.plain, [changes], depth=depth, workers=workers, seed=seed)

    holds()


def test_meaning_exploded_lists_go_to_workers_of_their_own() -> None:
    """What explodes is a function that travels, with the plain values that it has closed over."""

    def build(flow: timely.Dataflow) -> None:
        posts = dd.input(flow, "posts", "post: int, tags: any?")
        posts.explode("tags", "string?", position="at").output("tags")

    with timely.connect(workers=1) as cluster:
        flow = cluster.install(build)
        flow.input("posts").insert([(1, ["a", "b"]), (2, []), (3, None)])
        flow.seal()
        rows = flow.output("tags").snapshot().to_pylist()
    assert rows == [{"post": 1, "tags": "a", "at": 0}, {"post": 1, "tags": "b", "at": 1}]


def test_refused_lists_that_are_none() -> None:
    posts = dd.input(Dataflow("queries"), "posts", "post: int, tags: any")
    with pytest.raises(SchemaError, match="'post' is int. There is a row for each element"):
        posts.explode("post")
    with pytest.raises(SchemaError, match="a column 'post' already"):
        posts.explode("tags", position="post")


def test_meaning_typed_arrays_and_maps_explode_without_a_cast() -> None:
    def build(flow: timely.Dataflow) -> None:
        rows = dd.input(flow, "rows", "k: int, xs: array<int>, m: map<string, float>?")
        rows.explode("xs").output("xs")
        rows.explode("m", outer=True, position="at").output("m")
        rows.group_by("k").agg(all=dd.collect("xs"), once=dd.collect_set("k")).output("lists")
        assert str(rows.explode("xs").schema) == "k: int, xs: int, m: map<string, float>?"
        assert str(rows.explode("xs", "int?").schema) == "k: int, xs: int?, m: map<string, float>?"
        with pytest.raises(SchemaError, match="the elements of 'xs' are int, not string"):
            rows.explode("xs", "string")
        with pytest.raises(SchemaError, match="'k' is int. There is a row for each element"):
            rows.explode("k")

    with timely.connect(workers=2, threads=True) as cluster:
        flow = cluster.install(build)
        flow.input("rows").insert([(1, [3, 3], {"a": 0.5, "b": 1}), (1, [], None), (2, [9], {})])
        flow.seal()
        flow.input("rows").remove([{"k": 2, "xs": [9], "m": {}}])
        flow.seal()
        table = flow.output("xs").snapshot()
        assert table.schema.field("xs").type == pa.int64() and table.column("xs").to_pylist() == [3, 3]
        exploded = flow.output("m").snapshot().select(["key", "value", "at"]).to_pylist()
        assert sorted(map(str, exploded)) == sorted(map(str, [
            {"key": "a", "value": 0.5, "at": 0}, {"key": "b", "value": 1.0, "at": 1},
            {"key": None, "value": None, "at": None},
        ]))  # fmt: skip
        lists = flow.output("lists").snapshot()
        assert lists.schema.field("all").type.value_type.value_type == pa.int64()
        assert lists.to_pylist() == [{"k": 1, "all": [[], [3, 3]], "once": [1]}]
