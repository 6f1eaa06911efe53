"""counting.py: what there is of keys and buckets is what has come in."""

from __future__ import annotations

import pytest
from reference.dataflow import Cluster

import differential as dd
import timely
from differential.errors import SchemaError
from timely.building.dataflow import Dataflow


def _build(flow: Dataflow) -> None:
    a, b = dd.input(flow, "a", "k: int?, v: int"), dd.input(flow, "b", "w: int, key: int")
    routed = dd.Routed(dd.Balance("D-JB", units=4), dd.announcements(flow))
    pairs = a.join(b, on={"k": "key"}, balance=routed).select("w")
    dd.key_counts(pairs, at_least=3).output("keys")
    dd.bucket_counts(pairs).output("buckets")


def _hash(key: int) -> int:
    return dd.key_hash([key], "k: int")


def test_keys_with_enough_rows_of_both_sides_are_counted_and_buckets_always() -> None:
    cluster = Cluster(_build, 2)
    cluster.change("a", [((1, 0), 1), ((1, 1), 1), ((2, 0), 1), ((None, 0), 1)])
    cluster.change("b", [((0, 1), 2), ((0, 3), 1)])
    cluster.seal()
    cluster.run()
    assert cluster.snapshot("keys") == {(_hash(1), 2, 2): 1}
    counts = {(0, 1): 2, (0, 2): 1, (1, 1): 2, (1, 3): 1}
    assert cluster.snapshot("buckets") == {(side, _hash(key) % 1_024): n for (side, key), n in counts.items()}
    cluster.change("a", [((1, 0), -1), ((1, 1), -1)])
    cluster.seal()
    cluster.run()
    assert not cluster.snapshot("keys"), "two rows are not enough"


def test_pairs_are_taken_off_where_that_is_found_and_what_is_kept_stays_a_table() -> None:
    def build(flow: Dataflow) -> None:
        a, b = dd.input(flow, "a", "k: int, v: int"), dd.input(flow, "b", "k: int, w: int")
        routed = dd.Routed(dd.Balance("D-JB", units=4), dd.announcements(flow))
        loads = dd.loads(a.join(b, on="k", balance=routed))
        loads.output("loads")
        loads.filter(dd.col.what == 0).output("kept")

    with timely.connect(workers=2, embedded=True) as cluster:
        flow = cluster.install(build)
        flow.input("a").insert([(1, 0)])
        flow.seal()
        flow.input("b").insert([(1, 0)])
        flow.seal()
        flow.input("a").remove([(1, 0)])
        flow.seal()
        changes = flow.output("loads").changes().to_pylist()
        pairs = [(row["side"], row["epoch"], row["diff"]) for row in changes if row["what"] == 2]
        assert sorted(pairs) == [(0, 1, 1), (1, 2, -1)], "by the side where the other row was found"
        assert [row["side"] for row in flow.output("kept").snapshot().to_pylist()] == [1]
        with pytest.raises(timely.MisuseError, match=r"is no table: read changes\(\)"):
            flow.output("loads").snapshot()


def test_what_is_no_routed_join_is_refused() -> None:
    flow = Dataflow("tested")
    a = dd.input(flow, "a", "k: int, v: int")
    for asked in (dd.loads, dd.bucket_counts, lambda c: dd.key_counts(c, 3)):
        with pytest.raises(SchemaError, match="is no join with balance=dd.Routed"):
            asked(a)
    with pytest.raises(SchemaError, match="at_least is 1 or more, not 0"):
        dd.key_counts(a, 0)
