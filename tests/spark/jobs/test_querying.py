"""From queries to dataflows: what fits the DataFrames, and errors with the user's line."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from pyspark.sql import DataFrame, SparkSession
from query_forms import FORMS, OUTPUTS, ROWS

import differential as dd
import timely
from differential import Collection, col
from timely.errors import MisuseError, PeerError
from timely.spark.errors import ClusterLostError, InputFormatError, SparkLostError
from timely.spark.jobs import querying
from timely.spark.jobs.querying import Hosted, Query, Workplace, installed, query_of
from timely.spark.scheduled.starting import ScheduledCluster


@timely.builder
def totals(dataflow: timely.Dataflow) -> None:
    """Declares its input, with a column less than the DataFrame has."""
    orders = dd.input(dataflow, "orders", "customer: string, cents: int")
    orders.group_by("customer").agg(cents=dd.sum("cents")).output("totals")


@pytest.fixture(scope="module")
def orders(spark: SparkSession) -> DataFrame:
    return spark.sql("SELECT 'ada' AS customer, 5 AS cents, 'x' AS note, 1 AS day")


def test_a_function_takes_over_the_columns_and_says_what_comes_out(orders: DataFrame) -> None:
    def kept(orders: Collection) -> dict[str, Collection]:
        return {"large": orders.filter(col.cents > 3), "all": orders}

    query = query_of(kept, {"orders": orders}, ["day"])
    assert (query.name, query.fields["orders"].names) == ("kept", ["customer", "cents", "note"])
    assert {name: schema.names for name, schema in query.outputs.items()} == {
        "large": ["customer", "cents", "note"],
        "all": ["customer", "cents", "note"],
    }
    assert query.identity == query_of(kept, {"orders": orders}, ["day"]).identity


@pytest.mark.parametrize("form", ["builder", "collections"])
def test_a_builder_and_collections_declare_their_inputs(orders: DataFrame, form: str) -> None:
    def written() -> dict[str, Collection]:
        dataflow = timely.Dataflow("written")
        rows = dd.input(dataflow, "orders", "customer: string, cents: int")
        return {"totals": rows.group_by("customer").agg(cents=dd.sum("cents"))}

    asked: object = totals if form == "builder" else written()
    query = query_of(asked, {"orders": orders}, ["day"])
    assert query.fields["orders"].names == ["customer", "cents"]
    assert not query.fields["orders"]["cents"].nullable
    assert list(query.outputs) == ["totals"]
    with pytest.raises(MisuseError, match="takes orders; there is no input lines"):
        query_of(asked, {"orders": orders, "lines": orders}, [])
    with pytest.raises(MisuseError, match="takes orders; there is no DataFrame for orders"):
        query_of(asked, {"lines": orders}, [])
    with pytest.raises(InputFormatError, match="has no cents, but customer, note, day"):
        query_of(asked, {"orders": orders.drop("cents")}, [])


@pytest.mark.parametrize("form", FORMS)
def test_the_forms_are_those_of_install(spark: SparkSession, form: str) -> None:
    edges = spark.createDataFrame(ROWS, "src: bigint NOT NULL, dst: bigint NOT NULL")
    query = query_of(FORMS[form](), {"edges": edges}, [])
    assert sorted(query.outputs) == sorted(OUTPUTS[form])


def test_a_function_of_a_dataflow_is_known_by_its_parameter(orders: DataFrame) -> None:
    def declares(flow) -> None:  # type: ignore[no-untyped-def]
        totals(flow)

    assert list(query_of(declares, {"orders": orders}, []).outputs) == ["totals"]

    def annotated(written: timely.Dataflow) -> None:
        totals(written)

    assert list(query_of(annotated, {"orders": orders}, []).outputs) == ["totals"]


def test_a_collection_may_be_called_as_a_dataflow_is(orders: DataFrame) -> None:
    def query(flow: Collection) -> Collection:
        return flow.distinct()

    assert list(query_of(query, {"flow": orders}, []).outputs) == ["result"]


def test_errors_of_a_query_name_its_line_in_one_line(orders: DataFrame) -> None:
    def missing(orders: Collection) -> Collection:
        return orders.select(x=col.nowhere)

    def failing(orders: Collection) -> Collection:
        return orders.filter(col.cents > int("many"))

    with pytest.raises(timely.TimelyError, match=r"no column 'nowhere' \(.*test_querying.py:\d+\)"):
        query_of(missing, {"orders": orders}, [])
    with pytest.raises(MisuseError, match=r"failing failed at .*test_querying.py:\d+: ValueError: ") as told:
        query_of(failing, {"orders": orders}, [])
    assert "\n" not in str(told.value)
    with pytest.raises(MisuseError, match=r"^the query failed at .*: a collection has no 'sample'"):
        query_of(lambda orders: orders.sample("day"), {"orders": orders}, [])
    with pytest.raises(MisuseError, match="query <lambda>.* does not fit the inputs orders"):
        query_of(lambda lines: lines, {"orders": orders}, [])


def test_a_builder_without_outputs_is_refused(orders: DataFrame) -> None:
    @timely.builder
    def silent(dataflow: timely.Dataflow) -> None:
        dd.input(dataflow, "orders", "customer: string")

    with pytest.raises(MisuseError, match=r"silent puts nothing out: end it with collection.output"):
        query_of(silent, {"orders": orders}, [])


class Lost(ScheduledCluster):
    """A cluster in Spark whose task is lost while a query runs."""

    def __init__(self) -> None:
        pass

    def install(self, build: object, **arguments: object) -> timely.Flow:
        return cast("timely.Flow", SimpleNamespace(index=0, uninstall=self.check))

    @property
    def is_durable(self) -> bool:
        return False

    def check(self) -> None:
        raise ClusterLostError("worker 0 was killed by SIGKILL")


def test_a_lost_cluster_is_told_of_and_not_what_an_executor_knows_of_it(orders: DataFrame) -> None:
    query = query_of(lambda orders: orders.filter(col.cents > 3), {"orders": orders}, ["day"])
    with pytest.raises(ClusterLostError, match="was killed by SIGKILL"), installed(query, Workplace(Lost())):
        raise PeerError("worker 0 at tcp://127.0.0.1:1 is lost before it has answered")
    with pytest.raises(KeyError), installed(query, Workplace(Lost())):
        raise KeyError("the user's own")


def test_a_column_that_says_when_rows_come_and_is_missed_in_the_query_is_told_as_that(
    orders: DataFrame,
) -> None:
    with pytest.raises(timely.TimelyError, match="no column 'day'") as told:
        query_of(lambda orders: orders.group_by("day").agg(n=dd.count()), {"orders": orders}, ["day"])
    assert any("'day' says when rows come" in note for note in told.value.__notes__)
    assert any("df.withColumn('day_', df['day'])" in note for note in told.value.__notes__)
    with pytest.raises(timely.TimelyError, match="no column 'days'") as told:
        query_of(lambda orders: orders.select("days"), {"orders": orders}, ["day"])
    assert not any("says when" in note for note in getattr(told.value, "__notes__", []))


class Restarting:
    """A cluster that a call finds lost, and that is back when it is asked, so many times."""

    def __init__(self, losses: int, is_durable: bool = True, comes_back: bool = True) -> None:
        self.losses = losses
        self.is_durable = is_durable
        self._comes_back = comes_back
        claimed = SimpleNamespace(form=SimpleNamespace(schema=None))
        self.flow = SimpleNamespace(
            index=7, incarnation=1, epoch=0, inputs=["orders"], input=lambda name: claimed
        )

    def install(self, build: object) -> object:
        return self.flow

    def stats(self) -> list[dict[str, object]]:
        return []

    def append_target(self, dataflow: int) -> str:
        return f"target {dataflow} {self.flow.incarnation}"

    def flows(self) -> dict[int, str]:
        self.flow.incarnation += self._comes_back
        return {}

    def send(self, target: object) -> object:
        """Raise what a task says that has lost a worker."""
        self.losses -= 1
        if self.losses >= 0:
            raise PeerError("worker 0 is lost")
        return target


def hosted_by(cluster: Restarting) -> Hosted:
    query = cast("Query", SimpleNamespace(build=None))
    return Hosted(cast("timely.Cluster", cluster), query, stays=True)


def test_rows_are_sent_again_as_often_as_a_durable_cluster_comes_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(querying, "_NOTICED_SECONDS", 0.01)
    monkeypatch.setattr(querying, "_LOOK_SECONDS", 0.001)
    cluster = Restarting(3)
    hosted = hosted_by(cluster)
    before = cluster.flow.incarnation
    assert hosted.feed(cluster.send) == f"target 7 {before + 3}"
    for cluster in (Restarting(1, is_durable=False), Restarting(1, comes_back=False), Restarting(99)):
        with pytest.raises(PeerError, match="worker 0 is lost"):
            hosted_by(cluster).feed(cluster.send)

    def lost(target: object) -> None:
        raise SparkLostError("the Java process of Spark was killed")

    with pytest.raises(SparkLostError):
        hosted_by(Restarting(0)).feed(lost)


class Unnoticed(Restarting):
    """The other workers answer for a while, before they end, too."""

    def __init__(self, losses: int, answers: int) -> None:
        super().__init__(losses)
        self.answers = answers

    def flows(self) -> dict[int, str]:
        self.answers -= 1
        return super().flows() if self.answers < 0 else {}


def test_rows_are_sent_again_though_the_other_workers_have_not_noticed_the_loss(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(querying, "_LOOK_SECONDS", 0.001)
    cluster = Unnoticed(1, answers=5)
    assert hosted_by(cluster).feed(cluster.send) == "target 7 2"
    cluster = Unnoticed(1, answers=5)

    def fails(target: object) -> None:
        raise PeerError("Spark could not send the rows: the column is missing") from KeyError("column")

    with pytest.raises(PeerError, match="the column is missing"):
        hosted_by(cluster).feed(fails)
    assert cluster.answers == 4, "an error of Spark tells of no loss"


def _hosted_totals(cluster: timely.Cluster) -> Hosted:
    return Hosted(cluster, cast("Query", SimpleNamespace(build=totals, name="totals")), stays=True)


def test_two_jobs_of_a_query_in_a_durable_cluster_do_not_feed_the_same_dataflow(tmp_path: Path) -> None:
    """Their rows have the same names, so of those of the second some would count as repetitions."""
    with timely.connect(workers=2, embedded=True, durable=tmp_path / "store") as cluster:
        first, second = _hosted_totals(cluster), _hosted_totals(cluster)
        with pytest.raises(timely.UninstalledError):
            first.flow.input("orders").insert([("ada", 1)])
        second.flow.input("orders").insert([("bea", 2)])
        for _ in range(2):
            third = _hosted_totals(cluster)
            assert not third.is_new and third.flow.index == second.flow.index
            with pytest.raises(MisuseError, match="with rows that no job with these outputs has fed"):
                third.begin_anew(None)
            second.flow.seal()
        assert second.flow.output("totals").to_pylist() == [{"customer": "bea", "cents": 2}]


def test_a_job_that_has_fed_nothing_is_begun_again(tmp_path: Path) -> None:
    for _ in range(3):
        with timely.connect(workers=1, embedded=True, durable=tmp_path / "store") as cluster:
            assert _hosted_totals(cluster).is_new
    with timely.connect(workers=1, embedded=True, durable=tmp_path / "store") as cluster:
        hosted = _hosted_totals(cluster)
        hosted.flow.input("orders").insert([("ada", 1)])
        hosted.flow.seal()
    with timely.connect(workers=1, embedded=True, durable=tmp_path / "store") as cluster:
        assert not _hosted_totals(cluster).is_new


def test_a_job_whose_dataflow_another_one_claims_twice_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with timely.connect(workers=1, embedded=True, durable=tmp_path / "store") as cluster:
        monkeypatch.setattr(Hosted, "_has_claimed", lambda hosted: False)
        with pytest.raises(MisuseError, match="another job begins with the query totals"):
            _hosted_totals(cluster)
