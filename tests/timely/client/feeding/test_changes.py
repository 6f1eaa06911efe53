"""changes.py: a feed means what its changes mean, one by one, in their order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies_collections import examples

import differential as dd
import timely
from timely.client.feeding.changes import ChangeKind
from timely.client.tables import InputForm
from timely.errors import MisuseError

Row = tuple[object, ...]


def keyed(flow: timely.Dataflow) -> None:
    dd.input(flow, "rows", "id: int, name: string, n: int?", key="id", mode="upsert").output("out")


def rows_only(flow: timely.Dataflow) -> None:
    dd.input(flow, "rows", "id: int, name: string, n: int?").output("out")


def held(flow: timely.Flow) -> Counter[Row]:
    flow.seal(wait=True)
    return Counter(tuple(row.values()) for row in flow.output("out").snapshot().to_pylist())


# Twins: one change after another, in plain Python.


def by_key(changes: Sequence[tuple[str, Row | None, Row | None]], values: dict[object, Row]) -> None:
    for op, before, after in changes:
        if op in ("d", "u") and before is not None:
            values.pop(before[0], None)
        if op in ("c", "u") and after is not None:
            values[after[0]] = after


names = st.sampled_from(["a", "b"])
row = st.tuples(st.integers(0, 3), names, st.one_of(st.none(), st.integers(0, 2)))
change = st.one_of(
    st.tuples(st.just("c"), st.none(), row),
    st.tuples(st.just("u"), st.one_of(st.none(), row), row),
    st.tuples(st.just("d"), row, st.none()),
)
COLUMNS = ("id", "name", "n")


def as_dict(values: Row | None) -> dict[str, object] | None:
    return None if values is None else dict(zip(COLUMNS, values, strict=True))


def envelope(op: str, before: Row | None, after: Row | None) -> dict[str, object]:
    return {"before": as_dict(before), "after": as_dict(after), "op": op, "ts_ms": 5}


STRUCT = pa.struct([("id", pa.int64()), ("name", pa.string()), ("n", pa.int64())])


def flat(op: str, before: Row | None, after: Row | None) -> list[dict[str, object]]:
    """As Flink writes it."""
    out = []
    if op in ("u", "d") and before is not None:
        out.append({**(as_dict(before) or {}), "op": "-D" if op == "d" else "-U"})
    if after is not None:
        out.append({**(as_dict(after) or {}), "op": "+I" if op == "c" else "+U"})
    return out


@pytest.mark.parametrize("workers", [1, 2])
def test_law_of_keys_a_feed_in_any_form_is_its_changes_one_by_one(workers: int) -> None:
    with timely.connect(workers=workers, embedded=True) as cluster:
        forms = ("envelopes", "payloads", "struct", "flat", "table", "frame")
        flows = {form: cluster.install(keyed) for form in forms}
        values: dict[object, Row] = {}

        @examples(1)
        @given(st.lists(change, max_size=8))
        def holds(changes: list[tuple[str, Row | None, Row | None]]) -> None:
            by_key(changes, values)
            envelopes = [envelope(*each) for each in changes]
            each_flat = [one for each in changes for one in flat(*each)]
            table = pa.Table.from_pylist(
                each_flat,
                schema=pa.schema(
                    [("id", pa.int64()), ("name", pa.string()), ("n", pa.int64()), ("op", pa.string())]
                ),
            )
            feeds: dict[str, object] = {
                "envelopes": [*envelopes, None],
                "payloads": [{"schema": {}, "payload": each} for each in envelopes],
                "struct": pa.table(
                    {
                        "before": pa.array([each["before"] for each in envelopes], STRUCT),
                        "after": pa.array([each["after"] for each in envelopes], STRUCT),
                        "op": pa.array([each["op"] for each in envelopes], pa.string()),
                    }
                ),
                "flat": each_flat,
                "table": table,
                "frame": table.to_pandas(types_mapper={pa.int64(): pd.Int64Dtype()}.get),
            }
            for form, flow in flows.items():
                flow.input("rows").apply(feeds[form])
                assert held(flow) == Counter(values.values()), form

        holds()


def test_of_rows_a_feed_adds_and_removes_them() -> None:
    feed = [
        {"before": None, "after": {"id": 1, "name": "a", "n": None}, "op": "r"},
        {"before": None, "after": {"id": 1, "name": "a", "n": None}, "op": "c"},
        {"before": {"id": 1, "name": "a", "n": None}, "after": {"id": 1, "name": "b", "n": 5}, "op": "u"},
        {"before": {"id": 7, "name": "x", "n": 1}, "after": None, "op": "d"},
        None,
    ]
    with timely.connect(workers=2, embedded=True) as cluster:
        flow = cluster.install(rows_only)
        flow.input("rows").apply(feed)
        flow.input("rows").insert([(7, "x", 1)])
        assert held(flow) == Counter([(1, "a", None), (1, "b", 5)])
        delta = pa.table(
            {
                "id": [1, 1, 9],
                "name": ["b", "c", "z"],
                "n": [5, 6, 7],
                "_change_type": ["update_preimage", "update_postimage", "insert"],
            }
        )
        flow.input("rows").apply(delta, op="_change_type")
        assert held(flow) == Counter([(1, "a", None), (1, "c", 6), (9, "z", 7)])


def test_of_keys_a_deletion_needs_its_key_only_and_ops_may_have_numbers() -> None:
    ops: Mapping[object, ChangeKind] = {1: "delete", 2: "insert", 3: "before", 4: "update"}
    with timely.connect(workers=2, embedded=False) as cluster:
        flow = cluster.install(keyed)
        rows = flow.input("rows")
        rows.apply([(1, "a", 5, 2), (2, "b", 6, 2), (1, "a", 5, 3), (1, "c", 7, 4)], op="operation", ops=ops)
        rows.apply([{"id": 2, "op": "d"}, {"id": 3, "name": "z", "n": None, "op": "i"}])
        assert held(flow) == Counter([(1, "c", 7), (3, "z", None)])


def test_named_a_feed_that_is_sent_again_counts_once() -> None:
    feed = [{"id": 1, "name": "a", "n": None, "op": "c"}]
    with timely.connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(rows_only)
        for _ in range(2):
            flow.input("rows").apply(feed, writer="kafka", sequence=0)
        assert held(flow) == Counter([(1, "a", None)])
        with pytest.raises(MisuseError, match="insert.*writer='kafka', sequence=0, which apply"):
            flow.input("rows").insert([(2, "b", None)], writer="kafka", sequence=0)


def snapshot_of_a_table() -> list[dict[str, object]]:
    return [envelope("r", None, (1, "a", None)), envelope("r", None, (2, "b", 5))]


FEEDS_OF_KEYS: list[tuple[list[dict[str, object]], list[Row]]] = [
    (snapshot_of_a_table(), [(1, "a", None), (2, "b", 5)]),  # no change has a row before it
    ([envelope("d", (1, "a", 5), None)], []),
    ([envelope("u", (1, "a", 5), (2, "b", None)), envelope("d", (2, "b", None), None)], []),
]


@pytest.mark.parametrize("of", [pa.Table.from_pylist, pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize("feed, expected", FEEDS_OF_KEYS)
def test_envelopes_as_arrow_pandas_and_polars_make_them(
    of: Callable[[object], object], feed: list[dict[str, object]], expected: list[Row]
) -> None:
    with timely.connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(keyed)
        flow.input("rows").apply(of(feed))
        assert held(flow) == Counter(expected)


ONE_SIDED: list[dict[str, object]] = [
    {"op": "c", "after": {"id": 1, "name": "a", "n": 1}},
    {"op": "d", "before": {"id": 1, "name": "a", "n": 1}},
    {"op": "c", "after": {"id": 2, "name": "b", "n": 2}},
]


@pytest.mark.parametrize("build", [keyed, rows_only])
@pytest.mark.parametrize("feed", [ONE_SIDED, [*ONE_SIDED, None], pa.Table.from_pylist(ONE_SIDED[::2])])
def test_envelopes_may_leave_out_the_side_that_is_null(
    build: Callable[[timely.Dataflow], None], feed: object
) -> None:
    with timely.connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(build)
        flow.input("rows").apply(feed)
        gone = set() if isinstance(feed, list) else {(1, "a", 1)}
        assert held(flow) == Counter({(2, "b", 2), *gone})


def test_an_envelope_says_op_beside_rows_with_a_column_op() -> None:
    row = {"id": 1, "op": "x"}
    with timely.connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(lambda flow: dd.input(flow, "rows", "id: int, op: string").output("out"))
        for feed in ([{"op": "c", "after": row}], pa.Table.from_pylist([{"op": "c", "after": row}])):
            flow.input("rows").apply(feed)
        assert held(flow) == Counter({(1, "x"): 2})


def test_columns_of_an_input_may_be_called_before_and_after() -> None:
    with timely.connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(lambda flow: dd.input(flow, "rows", "before: int, after: int").output("out"))
        for feed in (
            [{"op": "c", "before": 1, "after": 2}],
            pa.table({"op": ["c"], "before": [1], "after": [2]}),
        ):
            flow.input("rows").apply(feed)
        assert held(flow) == Counter({(1, 2): 2})


MOVED: list[dict[str, object]] = [
    {"op": "+I", "id": 1, "name": "a", "n": 1},
    {"op": "-U", "id": 1, "name": "a", "n": 1},
    {"op": "+U", "id": 1, "name": "b", "n": 1},
]


@pytest.mark.parametrize(
    "feed", [MOVED, [*MOVED, None], [MOVED[0], MOVED[2], MOVED[1]], pa.Table.from_pylist(MOVED)]
)
def test_of_rows_each_update_has_the_row_before_it_somewhere_in_the_feed(feed: object) -> None:
    with timely.connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(rows_only)
        flow.input("rows").apply(feed)
        assert held(flow) == Counter([(1, "b", 1)])


@pytest.mark.parametrize(
    "feed, said",
    [
        (
            [{"id": 1, "name": "a", "n": 1, "op": "c"}, {"id": 1, "name": "a", "n": 1, "op": "t"}],
            "change 1 .*'t', which is none of",
        ),
        ([{"id": 1, "name": "a", "n": 1}], "change 0 .*no 'op'"),
        ([{"id": 1, "name": "a", "n": 1, "op": ["c"]}], "change 0 .*none of"),
        ([{"before": None, "after": None, "op": "c"}], "change 0 .*its 'after' is None"),
        ([{"before": None, "after": None, "op": "d"}], "change 0 .*its 'before' is None"),
        ([{"before": None, "after": 5, "op": "c"}], "change 0 .*no dict"),
        ([{"before": None, "after": {"id": 1, "name": "b", "n": 1}, "op": "u"}], "change 0 .*mode='upsert'"),
        ([{"id": 1, "name": "a", "n": 1, "op": "u"}], "change 0 .*mode='upsert'"),
        (pa.table({"id": [1], "name": ["a"], "n": [1], "op": ["u"]}), "change 0 .*mode='upsert'"),
        ([*MOVED, MOVED[2]], "change 3 .*mode='upsert'"),
        ([*MOVED, MOVED[2], None], "change 3 .*mode='upsert'"),
        (pa.Table.from_pylist([*MOVED, MOVED[2]]), "change 3 .*mode='upsert'"),
        (pa.table({"id": [1], "name": ["a"], "n": [1], "op": ["x"]}), "change 0 .*none of"),
        (pa.table({"before": [1], "after": [1], "op": ["c"]}), "as a struct"),
        (pa.table({"before": [1], "after": [1]}), "no column 'op'"),
        ([{"id": "x", "name": "a", "n": 1, "op": "c"}], "'id'"),
        (pa.table({"id": [1], "name": ["a"], "op": ["c"]}), "missing 'n'"),
    ],
)
def test_refused_with_the_number_of_the_change_and_nothing_has_changed(feed: object, said: str) -> None:
    with timely.connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(rows_only)
        with pytest.raises(Exception, match=f"(?s)'rows'.*{said}") as error:
            flow.input("rows").apply(feed)
        assert isinstance(error.value, MisuseError | dd.SchemaError)
        assert not held(flow)


def test_refused_ops_and_names_that_mean_nothing() -> None:
    with timely.connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(rows_only)
        rows = flow.input("rows")
        with pytest.raises(MisuseError, match="ops says 'upsert' for 'c'"):
            rows.apply([], ops={"c": "upsert"})  # type: ignore[dict-item]
        flat = {"id": 1, "name": "c", "n": 1}
        for feed in ([flat], [flat, None], pa.Table.from_pylist([flat])):
            with pytest.raises(MisuseError, match="'name' is a column of its rows"):
                rows.apply(feed, op="name")
        records = cluster.install(lambda flow: flow.output("out", flow.input("rows")))
        with pytest.raises(MisuseError, match="a change feed has columns"):
            records.input("rows").apply([{"op": "c"}])
        assert InputForm("x", "records").is_records
