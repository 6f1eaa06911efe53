"""Outputs of real workers as DataFrames: by Spark, and, where that adds nothing, as its processes do.

epoch_*      one fixed epoch, whatever happens meanwhile
rows_*       which rows, as often as they are there, in which types
kept_*       what is read is kept; what is gone is said to be
"""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from decimal import Decimal

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import differential as dd
import timely
from timely.client.pieces import OutputSlice, hold_everywhere
from timely.client.session import Flow
from timely.errors import ForgottenError, MisuseError, RequestError
from timely.operators.inputs.names import worker_of
from timely.spark.source.connecting import Whereabouts, workers_at
from timely.spark.source.options import SourceOptions
from timely.spark.source.reading import OutputPartition, OutputReader, partitions_of, plan_of, read_partition
from timely.wire.requests import Progress

TYPES = (
    "id: int, name: string?, at: timestamp, day: date?, price: decimal(9, 2), share: float, ok: bool, "
    "raw: bytes"
)


@pytest.fixture(scope="module")
def flow(cluster: timely.Cluster) -> Flow:
    def passed_on(dataflow: timely.Dataflow) -> None:
        dd.input(dataflow, "rows", "n: int, text: string").output("rows")
        dd.input(dataflow, "types", TYPES).output("types")

    return cluster.install(passed_on)


def options(flow: Flow, output: str = "rows", **more: object) -> dict[str, str]:
    named = {"cluster": flow._workers.addresses[0], "dataflow": flow.index, "output": output, **more}
    return {name: str(value) for name, value in named.items()}


def load(spark: SparkSession, flow: Flow, output: str = "rows", **more: object) -> DataFrame:
    return spark.read.format("naiad").options(**options(flow, output, **more)).load()


def rows(frame: DataFrame) -> list[tuple[object, ...]]:
    return sorted(map(tuple, frame.collect()))


def rows_by_hand(flow: Flow, **more: object) -> list[tuple[object, ...]]:
    """The same without Spark."""
    plan = plan_of(SourceOptions.of(options(flow, **more)))
    reader = OutputReader(plan, plan.form)
    return sorted(
        tuple(row.values())
        for partition in reader.partitions()
        for batch in reader.read(partition)
        for row in batch.to_pylist()
    )


def on_worker(worker: int) -> str:
    """A writer whose appends go there."""
    return next(name for name in map(str, range(99)) if worker_of(name, 0, 2) == worker)


def append(flow: Flow, worker: int, table: dict[str, list[object]]) -> None:
    flow.input("rows").append(pa.table(table), writer=on_worker(worker), sequence=0)


def test_epoch_of_a_frame_is_the_one_that_was_sealed_when_it_was_made(
    session: SparkSession, flow: Flow
) -> None:
    flow.input("rows").insert([(1, "a"), (2, "b")])
    first = flow.seal()
    frame = load(session, flow)
    assert rows(frame) == [(1, "a"), (2, "b")]
    flow.input("rows").remove([(1, "a")])
    flow.seal()
    flow.output("rows").forget(flow.epoch)
    assert rows(frame) == [(1, "a"), (2, "b")], "and what others forget is kept for it"
    assert rows(frame.crossJoin(frame.selectExpr("n AS m"))) == [
        (1, "a", 1), (1, "a", 2), (2, "b", 1), (2, "b", 2),
    ]  # fmt: skip
    assert rows_by_hand(flow) == [(2, "b")]
    assert rows_by_hand(flow, epoch=first) == [(1, "a"), (2, "b")]
    assert frame.rdd.getNumPartitions() == 2


@pytest.mark.parametrize("more", [{}, {"startingEpoch": 0}, {"startingEpoch": "earliest"}])
def test_epoch_of_a_cluster_that_was_started_anew_is_another_one(more: dict[str, object]) -> None:
    def passed_on(dataflow: timely.Dataflow) -> None:
        dd.input(dataflow, "rows", "n: int, text: string").output("rows")

    with timely.connect(workers=1) as before, timely.connect(workers=1) as now:
        plans = []
        for cluster in (before, now):
            flow = cluster.install(passed_on)
            flow.input("rows").insert([(len(plans), "")])
            flow.seal()
            plans.append(plan_of(SourceOptions.of(options(flow, **more))))
        assert len(OutputReader(plans[0], plans[0].form).partitions()) == 1
        exchanged = replace(plans[0], at=plans[1].at)
        with pytest.raises(MisuseError, match="output 'rows' of dataflow 0 was installed anew .* epoch 0"):
            OutputReader(exchanged, exchanged.form).partitions()


def test_epoch_of_a_frame_is_kept_from_when_it_is_made_and_the_earliest_is_the_first_that_is(
    cluster: timely.Cluster,
) -> None:
    """Also before the first query over it has been planned."""

    def passed_on(dataflow: timely.Dataflow) -> None:
        dd.input(dataflow, "rows", "n: int, text: string").output("rows")

    flow = cluster.install(passed_on)
    for n in range(5):
        flow.input("rows").insert([(n, "")])
        flow.wait(flow.seal())
    rows = flow.output("rows")
    rows.forget(2)
    plans = [
        plan_of(SourceOptions.of(options(flow, **more)))
        for more in ({"epoch": 2}, {"startingEpoch": "earliest"})
    ]
    rows.forget(5)
    collection, changes = (OutputReader(plan, plan.form) for plan in plans)
    found = [
        sorted(batch.column("n").to_pylist() for part in reader.partitions() for batch in reader.read(part))
        for reader in (collection, changes)
    ]
    assert [sorted(sum(numbers, [])) for numbers in found] == [[0, 1, 2], [3, 4]]
    with pytest.raises(ForgottenError):
        plan_of(SourceOptions.of(options(flow, epoch=1)))


@pytest.mark.parametrize("more", [{}, {"startingEpoch": 0}])
def test_epoch_of_another_dataflow_is_not_kept_there_and_not_called_forgotten(
    more: dict[str, object],
) -> None:
    def passed_on(dataflow: timely.Dataflow) -> None:
        dd.input(dataflow, "rows", "n: int, text: string").output("rows")

    with timely.connect(workers=1) as before, timely.connect(workers=1) as now:
        flows = [cluster.install(passed_on) for cluster in (before, now)]
        for flow in flows:
            for n in range(3):
                flow.input("rows").insert([(n, "")])
                flow.wait(flow.seal())
        plan = plan_of(SourceOptions.of(options(flows[0], epoch=0, **more)))
        assert len(OutputReader(plan, plan.form).partitions()) == 1
        exchanged = replace(plan, at=Whereabouts(tuple(flows[1]._workers.addresses)))
        for _ in range(2):  # before and after it is forgotten there, by who thinks that nobody needs it
            with pytest.raises(MisuseError, match="output 'rows' of dataflow 0 was installed anew"):
                OutputReader(exchanged, exchanged.form).partitions()
            flows[1].output("rows").forget(3)
            with pytest.raises(ForgottenError):
                flows[1].output("rows").changes(1, 3)


def test_rows_of_a_frame_that_is_filtered_twice_are_those_of_each_filter(
    session: SparkSession, flow: Flow
) -> None:
    """PySpark 4.3 keeps what a source makes of the filters of one use of a frame for all of its uses, so that
    a source that takes filters loses rows.
    """
    flow.input("rows").insert([(n, "twice") for n in range(2_000, 2_010)])
    flow.seal()
    handing_down = "spark.sql.python.filterPushdown.enabled"
    before = session.conf.get(handing_down)
    session.conf.set(handing_down, "true")
    try:
        frame = load(session, flow)
        few, many = frame.where("n >= 2008"), frame.where("n >= 2000 AND n < 2007")
        found = few.unionAll(many).unionAll(frame)
        assert found.where("text = 'twice'").count() == 2 + 7 + 10
    finally:
        session.conf.set(handing_down, str(before))


def test_rows_that_one_worker_has_and_another_takes_away_are_no_rows(flow: Flow) -> None:
    """Each worker alone would have a collection that there cannot be."""
    before = rows_by_hand(flow)
    numbers = list(range(100, 200))
    append(flow, 0, {"n": numbers, "text": ["x"] * 100, "diff": [2] * 100})
    append(flow, 1, {"n": numbers[:50], "text": ["x"] * 50, "diff": [-1] * 25 + [-2] * 25})
    flow.seal()
    wanted = [(n, "x") for n in range(100, 125)] + [(n, "x") for n in range(150, 200) for _ in range(2)]
    assert rows_by_hand(flow) == sorted(before + wanted)
    assert rows_by_hand(flow, columns="text") == sorted((text,) for _, text in before + wanted)


def test_rows_of_changes_have_their_epoch_and_diff(session: SparkSession, flow: Flow) -> None:
    start = flow.epoch
    flow.input("rows").insert([(7, "new")])
    flow.seal()
    flow.input("rows").remove([(7, "new")])
    flow.seal()
    frame = load(session, flow, startingEpoch=start)
    assert frame.columns == ["n", "text", "epoch", "diff"]
    assert rows(frame) == [(7, "new", start, 1), (7, "new", start + 1, -1)]
    assert rows_by_hand(flow, startingEpoch=start, epoch=start) == [(7, "new", start, 1)]
    assert rows_by_hand(flow, startingEpoch=start + 2) == []


def test_rows_of_every_type_are_what_they_were(session: SparkSession, flow: Flow) -> None:
    at, day = dt.datetime(2026, 11, 22, 8, 30, tzinfo=dt.UTC), dt.date(2026, 11, 22)
    flow.input("types").insert(
        [
            (1, "é", at, day, Decimal("1.50"), 0.5, True, b"\0"),
            (2, None, at, None, Decimal("-7.00"), -1.0, False, b""),
        ]
    )
    flow.seal()
    frame = load(session, flow, "types")
    assert [f"{field.name} {field.dataType.simpleString()} {field.nullable}" for field in frame.schema] == [
        "id bigint False", "name string True", "at timestamp False", "day date True",
        "price decimal(9,2) False", "share double False", "ok boolean False", "raw binary False",
    ]  # fmt: skip
    found = sorted(
        frame.selectExpr("*", "unix_micros(at) AS micros").toArrow().to_pylist(), key=lambda r: r["id"]
    )
    assert [row["micros"] for row in found] == [round(at.timestamp() * 1e6)] * 2
    assert [
        (row["name"], row["day"], row["price"], row["share"], row["ok"], row["raw"]) for row in found
    ] == [
        ("é", day, Decimal("1.50"), 0.5, True, b"\0"),
        (None, None, Decimal("-7.00"), -1.0, False, b""),
    ]


def test_rows_of_a_view_are_asked_for_in_sql(session: SparkSession, flow: Flow) -> None:
    flow.input("rows").insert([(1_000, "sql"), (1_000, "sql"), (1_001, "sql")])
    flow.seal()
    session.sql(
        "CREATE OR REPLACE TEMPORARY VIEW of_naiad USING naiad OPTIONS (cluster "
        f"'{flow._workers.addresses[0]}', dataflow '{flow.index}', output 'rows')"
    )
    found = session.sql("SELECT n, count(*) FROM of_naiad WHERE text = 'sql' GROUP BY n")
    assert rows(found) == [(1_000, 2), (1_001, 1)]


def test_rows_of_a_share_come_from_all_workers(flow: Flow) -> None:
    plan = plan_of(SourceOptions.of(options(flow)))
    wanted = OutputSlice(flow.index, "rows", plan.reader, -1, plan.epoch + 1, ("n", "text", "diff"))
    with workers_at(plan.at) as workers:
        whole = [
            row
            for partition in partitions_of(workers, plan.at, wanted)
            if isinstance(partition, OutputPartition)
            for batch in read_partition(partition, plan.form)
            for row in batch.to_pylist()
        ]
    shares = [
        row
        for part in range(3)
        for batch in read_partition(
            OutputPartition(
                plan.at,
                OutputSlice(
                    flow.index, "rows", plan.reader, -1, wanted.stop, wanted.columns, part=part, parts=3
                ),
                has_sums=True,
            ),
            plan.form,
        )
        for row in batch.to_pylist()
    ]
    assert sorted(map(str, shares)) == sorted(map(str, whole))


def test_rows_of_a_cluster_that_was_exchanged_under_running_tasks_are_refused(flow: Flow) -> None:
    plan = plan_of(SourceOptions.of(options(flow)))
    wanted = OutputSlice(flow.index, "rows", plan.reader, -1, plan.epoch + 1, ("n", "text", "diff"))
    with workers_at(plan.at) as workers:
        there = hold_everywhere(workers, Progress(flow.index, "rows", keep_from=0, extent=True))
        assert len(set(there.origins)) == workers.count > 1
        ours = partitions_of(workers, plan.at, replace(wanted, origins=there.origins))
        turned = partitions_of(workers, plan.at, wanted)
    planned = [
        part for part in OutputReader(plan, plan.form).partitions() if isinstance(part, OutputPartition)
    ]
    told = [dict(zip(part.at.addresses, part.output_slice.origins, strict=True)) for part in planned]
    asked = dict(zip(plan.at.addresses, there.origins, strict=True))
    assert {address for part in told for address in part} == asked.keys()
    assert all(part.items() <= asked.items() for part in told), "of each worker that a partition asks"
    for partition in ours:
        assert isinstance(partition, OutputPartition)
        list(read_partition(partition, plan.form))
    for partition in turned:
        assert isinstance(partition, OutputPartition)
        origins = tuple(f"{origin}0" for origin in there.origins)
        other = OutputPartition(partition.at, replace(partition.output_slice, origins=origins))
        with pytest.raises(RequestError, match="is not the one that is being read"):
            list(read_partition(other, plan.form))
