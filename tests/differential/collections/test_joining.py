"""joining.py: joins of every kind.

meaning_*   against plain definitions, at every time: nulls, conditions, keys of different nullability
judged_*    against pandas
kept_*      what they keep: each side once, and the keys that decide
"""

from __future__ import annotations

import random

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from operators_of_sets_and_joins import BINARY as OPERATORS
from reference.dataflow import Change, Cluster, check_at_times, compact_traces, traces
from strategies_collections import BINARY, examples, histories

import differential as dd
from differential import Collection, col
from timely.building.dataflow import Dataflow

HOWS = ("inner", "left", "right", "outer", "semi", "anti")

# meaning_


@pytest.mark.parametrize("name", [name for name, _, _ in OPERATORS if " join " in name])
def test_meaning_at_every_time(name: str) -> None:
    @examples(0.5)
    @given(st.sampled_from([1, 2, 3]).flatmap(_two_histories), st.integers(1, 3), st.integers(0, 2**20))
    def holds(given: tuple[int, list[Change], list[Change]], workers: int, seed: int) -> None:
        depth, left, right = given
        operator = BINARY[name]
        check_at_times(operator.build, operator.plain, [left, right], depth=depth, workers=workers, seed=seed)

    holds()


def _two_histories(depth: int) -> st.SearchStrategy[tuple[int, list[Change], list[Change]]]:
    return st.tuples(st.just(depth), histories(depth), histories(depth))


def test_meaning_a_condition_that_can_raise_is_asked_of_pairs_only() -> None:
    def build(flow: Dataflow) -> None:
        left, right = dd.input(flow, "left", "k: int, v: int"), dd.input(flow, "right", "k: int, w: int")
        left.join(right, "k", "left", where=6 // col.v > 1).output("found")

    cluster = Cluster(build)
    cluster.change("left", [((1, 0), 1), ((2, 3), 1), ((2, 6), 1)])
    cluster.change("right", [((2, 5), 1)])
    cluster.seal()
    cluster.run()
    assert cluster.snapshot("found") == {(1, 0, None): 1, (2, 3, 5): 1, (2, 6, None): 1}


# judged_


@pytest.mark.parametrize("how", HOWS)
def test_judged_by_pandas_with_nulls_strings_and_retractions(how: str) -> None:
    """pandas joins null with null; so rows with null keys are made to differ there."""
    rng = random.Random(how)
    schema = "name: string?, n: int?"

    def build(flow: Dataflow) -> None:
        left, right = dd.input(flow, "left", schema), dd.input(flow, "right", schema)
        left.join(right, on=["name"], how=how, suffix="_r").output("found")

    cluster = Cluster(build, workers=2, seed=rng.randint(0, 99))
    sides: dict[str, list[tuple[object, ...]]] = {"left": [], "right": []}
    for _ in range(4):
        for name, rows in sides.items():
            gone = [rows.pop(rng.randrange(len(rows))) for _ in range(len(rows) // 2)]
            new = [(rng.choice([None, "a", "b", "c", "d"]), rng.choice([None, 1, 2])) for _ in range(6)]
            rows.extend(new)
            cluster.change(name, [(row, -1) for row in gone] + [(row, 1) for row in new])
        cluster.seal()
        cluster.run()
        assert cluster.snapshot("found") == _pandas(sides["left"], sides["right"], how)


def _pandas(left: list[tuple[object, ...]], right: list[tuple[object, ...]], how: str) -> dict[object, int]:
    frames = []
    for rows, mark in ((left, "left"), (right, "right")):
        keys = [name if name is not None else f"null {mark} {place}" for place, (name, _) in enumerate(rows)]
        frames.append(pd.DataFrame({"name": keys, "n": [n for _, n in rows]}, dtype=object))
    if how in ("semi", "anti"):
        is_met = frames[0]["name"].isin(set(frames[1]["name"]))
        found = frames[0][is_met if how == "semi" else ~is_met]
    else:
        found = frames[0].merge(frames[1], on="name", how=how, suffixes=("", "_r"))
    counts: dict[object, int] = {}
    for name, *rest in found.itertuples(index=False):
        values = [None if pd.isna(value) else value for value in rest]
        row = (None if str(name).startswith("null ") else name, *values)
        counts[row] = counts.get(row, 0) + 1
    return counts


# kept_


def _kept(how: str, **options: object) -> dict[str, int]:
    """Rows that each stage keeps of 40 rows on the left, of 10 keys, and 60 on the right, of 20 keys."""

    def build(flow: Dataflow) -> None:
        left, right = dd.input(flow, "left", "k: int, v: int"), dd.input(flow, "right", "k: int, w: int")
        left.join(right, "k", how, **options).output("found")  # type: ignore[arg-type]  # options of join

    cluster = Cluster(build)
    cluster.change("left", [((n % 10, n), 1) for n in range(40)])
    cluster.change("right", [((n % 20, n), 1) for n in range(60)])
    cluster.seal()
    cluster.run()
    compact_traces(cluster)
    return {name: sum(trace.rows for trace in held) for name, held in traces(cluster.instances[0]).items()}


def test_kept_each_side_once_and_the_keys_that_decide() -> None:
    sides = 40 + 60
    assert sum(_kept("inner").values()) == sides
    assert sum(_kept("left").values()) == sides + 20, "the keys of the right"
    assert sum(_kept("right").values()) == sides + 10, "the keys of the left"
    assert sum(_kept("outer").values()) == sides + 10 + 20


def test_kept_of_semi_and_anti_joins_the_left_and_keys_of_the_right() -> None:
    """The keys twice: with how many rows there are of each, and as answers."""
    for how in ("semi", "anti"):
        assert sum(_kept(how).values()) == 40 + 20 + 20


def test_kept_with_a_condition_over_both_sides_the_left_again_and_its_rows_that_are_met() -> None:
    met = len([n for n in range(40) if any(m % 20 == n % 10 and n < m for m in range(60))])
    assert sum(_kept("left", where=col.v < col.w).values()) == 40 + 60 + 40 + 2 * met


def test_kept_with_conditions_of_single_sides_what_they_leave() -> None:
    assert sum(_kept("semi", where=col.w < 10).values()) == 40 + 10 + 10


def test_kept_nothing_of_null_keys_that_come_to_a_join_alone() -> None:
    def build(flow: Dataflow) -> None:
        left, right = dd.input(flow, "left", "k: int?, v: int"), dd.input(flow, "right", "k: int?, w: int")
        left.join(right, "k").output("found")

    cluster = Cluster(build)
    cluster.change("left", [((None, n), 1) for n in range(9)] + [((1, 1), 1)])
    cluster.change("right", [((None, n), 1) for n in range(9)])
    cluster.seal()
    cluster.run()
    compact_traces(cluster)
    assert sum(trace.rows for held in traces(cluster.instances[0]).values() for trace in held) == 1


def test_kept_nothing_more_where_the_right_is_a_group_by_the_keys() -> None:
    def build(flow: Dataflow) -> Collection:
        left, right = dd.input(flow, "left", "k: int, v: int"), dd.input(flow, "right", "k: int, w: int")
        return left.join(right.group_by("k").agg(n=dd.count()), "k", "left")

    text = build(Dataflow("queries")).explain()
    assert "keys k" in text.split("== after the rules")[0]
    assert "keys k" not in text.split("== after the rules")[1]
