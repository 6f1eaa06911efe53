"""tables/table_stream.py: operators on streams of tables, on one worker and on several.

operators_*  what each gives, beside the same on records
meeting_*    rows of tables and records with equal keys are on one worker
refused_*    what is no table, no mask, no column; and names that streams of tables have not
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import differential as dd
import timely
from progress.times.timestamp import Timestamp
from timely.building.other_spellings import OF_STREAMS
from timely.building.stream import Stream
from timely.building.tables.table_stream import TableStream

ORDERS = pa.table({"customer": ["a", "b", "a", "c"], "cents": [5, 50, 500, 7]})
MORE = pa.table({"customer": ["b", "a"], "cents": [1, 2]})

Build = Callable[[TableStream], "Stream | tuple[Stream, ...] | list[TableStream]"]


@pytest.fixture(scope="module", params=[1, 2])
def cluster(request: pytest.FixtureRequest) -> Iterator[timely.Cluster]:
    with timely.connect(workers=request.param, embedded=True) as cluster:
        yield cluster


def run(cluster: timely.Cluster, build: Build, *epochs: pa.Table) -> list[Counter[tuple[object, ...]]]:
    """What each output has: the epoch and the values of each row, or the epoch and the record."""

    def built(dataflow: timely.Dataflow) -> None:
        made = build(dataflow.input("tables", tables=True))
        for number, stream in enumerate([made] if isinstance(made, Stream) else made):
            dataflow.output(f"out {number}", stream)

    flow = cluster.install(built)
    try:
        for table in epochs or (ORDERS, MORE):
            flow.input("tables").insert(table)
            flow.seal()
        return [Counter(rows(flow.output(name).changes())) for name in flow.outputs]
    finally:
        flow.uninstall()


def rows(changes: object) -> Iterator[tuple[object, ...]]:
    assert isinstance(changes, list)
    for epoch, record in changes:
        if isinstance(record, pa.Table):
            yield from ((epoch, *row.values()) for row in record.to_pylist())
        else:
            yield epoch, record


def every(*epochs: pa.Table) -> Counter[tuple[object, ...]]:
    return Counter((epoch, *row.values()) for epoch, table in enumerate(epochs) for row in table.to_pylist())


def test_operators_one_by_one(cluster: timely.Cluster) -> None:
    large = [(0, "b", 50), (0, "a", 500)]
    small = [(0, "a", 5), (0, "c", 7), (1, "b", 1), (1, "a", 2)]
    masks: list[Callable[[pa.Table], object]] = [
        lambda table: pc.greater(table["cents"], 9),
        lambda table: pc.greater(table["cents"], 9).combine_chunks(),
        lambda table: table["cents"].to_numpy() > 9,
        lambda table: pc.if_else(pc.greater(table["cents"], 9), True, None),
    ]
    for mask in masks:
        assert run(cluster, lambda s, mask=mask: s.filter(mask)) == [Counter(large)]  # type: ignore[misc]
        assert run(cluster, lambda s, mask=mask: s.branch(mask)) == [Counter(large), Counter(small)]  # type: ignore[misc]
    assert run(cluster, lambda s: s.filter(lambda table: table.slice(0, 1))) == [
        Counter([(0, "a", 5), (1, "b", 1)])
    ]
    (mapped,) = run(cluster, lambda s: s.map(lambda table: table.select(["cents"]).to_batches()[0]))
    assert mapped == Counter({(0, 5): 1, (0, 50): 1, (0, 500): 1, (0, 7): 1, (1, 1): 1, (1, 2): 1})
    parts = run(cluster, lambda s: s.partition(3, lambda table: pc.bit_wise_and(table["cents"], 1)))
    assert parts[0] == Counter({(0, "b", 50): 1, (0, "a", 500): 1, (1, "a", 2): 1}) and not parts[2]
    assert parts[0] + parts[1] == every(ORDERS, MORE)
    assert run(cluster, lambda s: s.partition(1, lambda table: np.zeros(len(table), np.int8))) == [
        every(ORDERS, MORE)
    ]
    (later,) = run(cluster, lambda s: s.delay(lambda table, time: (time[0] + len(table) // 4,)), ORDERS, MORE)
    assert later == Counter((1, *row.values()) for row in [*ORDERS.to_pylist(), *MORE.to_pylist()])


def test_operators_that_show_and_those_that_divide_rows(cluster: timely.Cluster) -> None:
    seen: list[int] = []
    (shown,) = run(cluster, lambda s: s.inspect(lambda table: seen.append(len(table))))
    assert shown == every(ORDERS, MORE) and sum(seen) == 6
    for exchange in (timely.by("customer"), timely.by(0), timely.by("customer", "cents"), timely.by(), hash):
        assert run(cluster, lambda s, key=exchange: s.exchange(key)) == [every(ORDERS, MORE)]  # type: ignore[misc]
    workers = len(cluster._workers._workers)  # type: ignore[union-attr]
    (wide,) = run(cluster, lambda s: s.broadcast())
    assert wide == Counter({row: workers * count for row, count in every(ORDERS, MORE).items()})
    (twice,) = run(cluster, lambda s: s.concat(s, s.filter(lambda table: table.slice(0, 0))))
    assert twice == every(ORDERS, MORE) + every(ORDERS, MORE)
    assert run(cluster, lambda s: s.count()) == [Counter({(0, 4): 1, (1, 2): 1})]


def test_operators_that_aggregate_each_time(cluster: timely.Cluster) -> None:
    (sums,) = run(
        cluster, lambda s: s.aggregate("customer", total=("cents", "sum"), n="count", most=("cents", "max"))
    )
    assert sums == Counter(
        {
            (0, "a", 505, 2, 500): 1,
            (0, "b", 50, 1, 50): 1,
            (0, "c", 7, 1, 7): 1,
            (1, "a", 2, 1, 2): 1,
            (1, "b", 1, 1, 1): 1,
        }
    )
    assert run(cluster, lambda s: s.aggregate(total=("cents", "sum"))) == [Counter({(0, 562): 1, (1, 3): 1})]
    assert run(cluster, lambda s: s.aggregate(n="count", again="count")) == [
        Counter({(0, 4, 4): 1, (1, 2, 2): 1})
    ]
    (both,) = run(cluster, lambda s: s.aggregate(["cents", "customer"], cents_sum=("cents", "sum")))
    assert both == Counter((e, r[1], r[0], r[1]) for e, *r in every(ORDERS, MORE))


class Places(timely.Vertex):
    """Says on which worker each key is, of records and of tables."""

    def on_recv(self, edge: int, message: object, time: Timestamp) -> None:  # type: ignore[override]
        if isinstance(message, pa.Table):
            message = [tuple(row.values()) for row in message.to_pylist()]
        assert isinstance(message, list)
        self.send_by(0, [(record[0], self.worker) for record in message], time)


def test_meeting_rows_of_tables_go_where_records_with_the_same_keys_go() -> None:
    keys = [*range(50), *(f"é{n}" for n in range(50)), 0.5, None, True]

    def query(flow: timely.Dataflow) -> None:
        for name, stream in (
            ("records", flow.input("records")),
            ("tables", flow.input("tables", tables=True)),
        ):
            flow.output(name, stream.stage("places", Places, exchange=timely.by(0)))

    with timely.connect(workers=3, embedded=True) as cluster:
        flow = cluster.install(query)
        flow.input("records").insert([(key, 1) for key in keys])
        for kind in (int, str, float, bool, type(None)):
            some = [key for key in keys if type(key) is kind]
            flow.input("tables").insert(pa.table({"key": some, "one": [1] * len(some)}))
        flow.seal()
        records, tables = (Counter(flow.output(name).changes()) for name in ("records", "tables"))
    assert records == tables and len({worker for _, (_, worker) in records}) == 3


def test_operators_in_loops_and_before_collections() -> None:
    def query(flow: timely.Dataflow) -> None:
        numbers = flow.input("numbers", tables=True)
        with flow.loop("halves") as loop:
            back = loop.feedback()
            entered = timely.tables(loop.enter(numbers)).concat(back.stream)
            halves = entered.map(lambda table: table.set_column(0, "n", pc.divide(table["n"], 2)))
            back.connect(halves.filter(lambda table: pc.greater(table["n"], 0)))
            left = timely.tables(loop.leave(halves))
        changes = left.map(lambda table: table.append_column("diff", pa.array([1] * len(table))))
        dd.collection(changes, "n: int").group_by("n").agg(rows=dd.count()).output("counts")

    with timely.connect(workers=2, embedded=True) as cluster:
        flow = cluster.install(query)
        flow.input("numbers").insert({"n": [5, 8]})
        flow.seal()
        counts = {row["n"]: row["rows"] for row in flow.output("counts").snapshot().to_pylist()}
        assert counts == {2: 2, 1: 2, 0: 2, 4: 1}


REFUSED: dict[str, tuple[Build, str]] = {
    "map": (lambda s: s.map(lambda table: 7), "map returned 7 for a table; it returns a table"),
    "filter": (
        lambda s: s.filter(lambda table: [True]),
        r"filter returned \[True\] for a table of 4 rows; .*or a table",
    ),
    "short": (
        lambda s: s.filter(lambda table: np.ones(3, bool)),
        r"an array of the shape \(3,\) and type bool",
    ),
    "branch": (
        lambda s: s.branch(lambda table: table["cents"])[0],
        "branch returned an array of 4 values of type int64",
    ),
    "partition": (
        lambda s: s.partition(2, lambda table: table["cents"])[0],
        "number of a part for each row, 0 to 1",
    ),
    "nulls": (
        lambda s: s.partition(2, lambda table: pa.array([None, 0, 1, 1]))[0],
        "an array of 4 values of type int64, 1 of them null",
    ),
    "delay": (
        lambda s: s.delay(lambda table, time: (-1,)),
        r"delay returned \(-1,\) for a table at \(0,\)",
    ),
    "no column": (lambda s: s.aggregate("name", n="count"), "has no column 'name'"),
    "no function": (
        lambda s: s.aggregate("customer", n=("cents", "summe")),
        "cannot aggregate its tables: .*summe",
    ),
    "no key": (
        lambda s: s.exchange(timely.by("name")),
        r"by\('name'\): a table with the columns customer, cents has no",
    ),
    "a function": (
        lambda s: s.stage("places", Places, exchange=timely.by(lambda row: row[0])),
        "takes records, and got a table with the columns customer, cents. Name the columns",
    ),
    "records": (
        lambda s: Stream(s.dataflow, s.stage_index, 0, s.scope).map(len),
        "takes Python records, and got a table of 4 rows. Write timely.tables",
    ),
    "no tables": (
        lambda s: timely.tables(s.stage("list", Places)).map(lambda table: table),
        r"takes tables, and got a list of records, such as \('a', 0\). Send a table",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_results_say_what_a_function_returns(name: str) -> None:
    build, message = REFUSED[name]
    with (
        timely.connect(workers=2, embedded=True) as cluster,
        pytest.raises(timely.TimelyError, match=message),
    ):
        run(cluster, build)


def test_refused_names_say_what_to_write() -> None:
    tables = timely.Dataflow("tested").input("tables", tables=True)
    for name, write in {
        "flat_map": r"a stream of tables has no 'flat_map'. Write instead: map\(function\)",
        "state_machine": r"stage\(name, Vertex, exchange=timely.by\('column'\)\)",
        "group_by": r"aggregate\(\['column'\], total=\('cents', 'sum'\)\)",
        "select": r"map\(function\), whose function gets a table",
        "where": r"filter\(function\)",
        "fliter": "filter",
    }.items():
        assert not hasattr(tables, name)
        with pytest.raises(AttributeError, match=write):
            getattr(tables, name)
    offered = dir(tables)
    assert "map" in offered and "aggregate" in offered and "ok_err" not in offered


def test_refused_names_of_streams_are_answered_by_what_tables_have() -> None:
    stream = timely.Dataflow().input("rows", tables=True)
    for name, said in {
        "Select": r"map\(…\)",
        "SelectMany": r"map\(function\), whose function gets a table",
        "map_ok": r"stage\(name, Vertex",
        "accumulate": r"aggregate\(\['column'\], total=",
        "inspect_time": r"inspect\(function\)",
        "unary_notify": r"unary\(name, make\)",
        "BranchWhen": r"unary\(name, make\)",
        "probe": r"dataflow\.probe\(name, stream\)",
    }.items():
        with pytest.raises(AttributeError, match=f"no '{name}'. Write instead: {said}"):
            getattr(stream, name)
    for name in OF_STREAMS.names:
        with pytest.raises(AttributeError, match="Write instead") as caught:
            getattr(stream, name)
        assert not re.search(r"instead: (flat_map|ok_err|inspect_batch|state_machine)\(", str(caught.value))


def test_refused_calls_say_how_they_are_written() -> None:
    tables = timely.Dataflow("tested").input("tables", tables=True)
    with pytest.raises(
        timely.MisuseError, match=r"exchange\(by\(.*lambda.*Write exchange\(timely.by\('column'\)\)"
    ):
        tables.exchange(timely.by(lambda row: row[0]))
    with pytest.raises(timely.MisuseError, match="not by a function of a record"):
        tables.exchange(len)
    with pytest.raises(timely.MisuseError, match=r"map\(function\): `function` is a function, not 7"):
        tables.map(7)  # type: ignore[arg-type]
    with pytest.raises(timely.MisuseError, match="`parts` is a number from 1 on, not 0"):
        tables.partition(0, len)
    with pytest.raises(timely.MisuseError, match=r"write n=\('column', 'sum'\), or n='count'"):
        tables.aggregate("a", n=7)  # type: ignore[arg-type]
    for by, wanted in ((["a"], {}), ([1], {"n": "count"}), ("a", {"a": "count"})):
        with pytest.raises(
            timely.MisuseError, match="takes names of columns, and what to compute under other names"
        ):
            tables.aggregate(by, **wanted)  # type: ignore[arg-type]
    with pytest.raises(timely.MisuseError, match=r"timely.tables\(stream\) .* takes a stream"):
        timely.tables(ORDERS)
