"""What notebooks show of a cluster, a dataflow, an output and a collection: also when that has ended."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator

import pytest
import stuck_flows

import differential as dd
import timely
from timely.client.reading import FlowOutput
from timely.limits import PICTURE_ROWS_MAX


def rows(flow: timely.Dataflow) -> None:
    dd.input(flow, "rows", "k: int, v: string?").output("out")


def halves(flow: timely.Dataflow) -> None:
    rows = dd.input(flow, "rows", "k: int")
    rows.select(half=dd.lit(10) // dd.col.k).output("out", strict=True)


def plain(thing: object) -> str:
    """The text of a picture, without tags."""
    page = thing._repr_html_()  # type: ignore[attr-defined]
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page))


@pytest.fixture(params=[{"embedded": True}, {"workers": 2, "threads": True}], ids=str)
def cluster(request: pytest.FixtureRequest) -> Iterator[timely.Cluster]:
    with timely.connect(**request.param) as made:
        yield made


def test_an_output_shows_its_columns_and_first_rows(cluster: timely.Cluster) -> None:
    flow = cluster.install(rows)
    output = flow.output("out")
    assert plain(output).endswith("k int64 v string? no epoch is complete yet ")
    flow.input("rows").insert([(n, "<i>") for n in range(30)] + [(0, None)] * 2)
    flow.seal()
    assert "0 &lt;i&gt; 0 null 0 null 1 &lt;i&gt;" in plain(output)
    assert plain(output).endswith(" 32 rows, 12 not shown, as of epoch 0 ")
    flow.finish()
    assert plain(output).endswith(" 32 rows, 12 not shown, as of epoch 0 "), "also when all is complete"


def test_a_large_output_shows_its_columns_alone(cluster: timely.Cluster) -> None:
    flow = cluster.install(rows)
    flow.input("rows").insert([(n, "") for n in range(PICTURE_ROWS_MAX + 1)])
    flow.seal(wait=True)
    assert re.search(r"v string\? about \d+,\d+ rows: show\(\) reads them", plain(flow.output("out")))


def test_repeated_rows_are_not_written_out_and_negative_ones_are_told(cluster: timely.Cluster) -> None:
    import pyarrow as pa

    flow = cluster.install(rows)
    table = pa.table({"k": [1, 2], "v": ["a", "b"], "diff": [10**12, -5]})
    flow.input("rows").append(table)
    flow.seal(wait=True)
    shown = plain(flow.output("out"))
    assert shown.count("1 a") == 20 and "1,000,000,000,000 rows, 999,999,999,980 not shown" in shown
    assert "some rows are there a negative number of times" in shown


def test_what_has_ended_says_so(cluster: timely.Cluster) -> None:
    failing, flow = cluster.install(halves), cluster.install(rows)
    failing.input("rows").insert([(0,)])
    failing.seal()
    with pytest.raises(timely.TimelyError):
        failing.wait()
    assert "has ended" in plain(failing.output("out"))
    flow.uninstall()
    assert "has ended (UninstalledError)" in plain(flow) and "k: int, v: string?" in plain(flow)
    other = cluster.install(rows)
    cluster.close()
    assert "closed" in plain(cluster)
    assert "of a cluster that is closed" in plain(other) and "of a cluster that is closed" in plain(
        other.output("out")
    )


def test_a_cluster_lists_its_dataflows(cluster: timely.Cluster) -> None:
    assert plain(cluster).endswith("no dataflow is installed ")
    for _ in range(22):
        cluster.install(rows).seal()
    assert "number dataflow open epoch 0 rows 1 1 rows 1" in plain(cluster)
    assert plain(cluster).endswith("2 more dataflows ")


def test_a_picture_takes_no_refusal_from_the_next_call() -> None:
    with timely.connect(workers=2) as cluster:
        flow, other = cluster.install(rows), cluster.flow(0)
        other.input("rows").close()
        flow.input("rows").insert([(1, "a")])  # posted, and refused
        shown = plain(flow.output("out"))
        assert "k int64 v string?" in shown
        with pytest.raises(timely.InputClosedError):
            flow.seal()


def test_a_picture_does_not_wait_for_long_calls() -> None:
    with timely.connect(embedded=True) as cluster:
        flow = cluster.install(stuck_flows.sleeps)
        flow.input("records").insert([40])
        flow.seal()
        works = threading.Thread(target=flow.wait)
        works.start()
        try:
            while flow.why().reasons[0].kind != "call":
                assert works.is_alive()
            began = time.monotonic()
            assert "sleeps" in plain(cluster)
            assert isinstance(flow.output(flow.outputs[0]), FlowOutput)
            assert "records" in plain(flow.output(flow.outputs[0]))
            assert time.monotonic() - began < 10.0
        finally:
            works.join()


def test_a_collection_shows_its_columns_and_explanations_their_lines() -> None:
    collection = dd.input(timely.Dataflow("shown"), "rows", "k: int, v: string?")
    assert "k int v string? not computed yet" in plain(collection)
    assert collection.explain()._repr_html_().startswith("<pre>== as written ==\ninput rows")  # type: ignore[attr-defined]


def test_an_answer_of_sql_is_a_table() -> None:
    with timely.connect(embedded=True) as cluster:
        assert (
            plain(cluster.sql("select 1 as a, '<b>' as b")) == " SELECT a int64 b string 1 &lt;b&gt; 1 row "
        )
        assert "CREATE TABLE" in plain(cluster.sql("create table t (id int primary key)"))
        flow = cluster.flow("t")
        assert str(flow.explain()) == flow.explain() and "<pre>" in flow.explain()._repr_html_()  # type: ignore[attr-defined]
