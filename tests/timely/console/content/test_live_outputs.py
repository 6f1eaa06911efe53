"""Live tables follow their outputs, at any pace, and hold nothing back."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest
from dataflows import word_count
from pages import until

import differential as dd
import timely
from timely.console.content.live_outputs import LiveOutput, LiveOutputs
from timely.console.content.views import TableView
from timely.limits import LIVE_OUTPUTS_COUNT_MAX


def keyed(dataflow: timely.Dataflow) -> None:
    rows = dd.input(dataflow, "rows", "key: int, value: int")
    rows.output("rows")
    rows.group_by("key").agg(total=dd.sum("value")).output("totals")


@pytest.fixture(scope="module")
def cluster() -> Iterator[timely.Cluster]:
    with timely.connect(workers=2) as cluster:
        yield cluster


def told(output: LiveOutput, view: TableView = TableView()) -> dict[str, object]:  # noqa: B008  # it is frozen
    value: dict[str, object] = json.loads(output.view(view)[1])
    return value


def rows_of(output: LiveOutput) -> Counter[tuple[str | None, ...]]:
    shown = told(output)
    assert isinstance(shown["rows"], list)
    return Counter(map(tuple, shown["rows"]))


def test_a_live_table_has_the_rows_of_each_epoch_and_holds_nothing_back(cluster: timely.Cluster) -> None:
    flow = cluster.install(keyed)
    outputs = LiveOutputs(lambda: cluster)
    try:
        with (
            outputs.looked_at(flow.index, "totals") as totals,
            outputs.looked_at(flow.index, "totals") as same,
        ):
            assert totals is same, "read once, however many pages look"
            until(lambda: totals.version)
            assert (told(totals)["epoch"], told(totals)["rows"]) == (-1, [])
            flow.input("rows").insert([(1, 10), (2, 20)])
            flow.seal(wait=True)
            until(lambda: told(totals)["epoch"] == 0)
            assert rows_of(totals) == Counter([("1", "10"), ("2", "20")])
            flow.input("rows").insert([(1, 5)])
            flow.input("rows").remove([(2, 20)])
            flow.seal(wait=True)
            until(lambda: told(totals)["epoch"] == 1)
            assert rows_of(totals) == Counter([("1", "15")])
            outputs_told = cluster.stats()[0]["dataflows"][flow.index]["outputs"]  # type: ignore[index,call-overload]
            assert all(not each["readers"] for each in outputs_told)  # type: ignore[union-attr,index,call-overload]
            # Another client lets workers forget what this has read already, and what it has not.
            for epoch in range(2, 30):
                flow.input("rows").insert([(epoch, 1)])
                flow.seal(wait=True)
                flow.output("totals").changes()
                flow.output("totals").forget()
            until(lambda: told(totals)["epoch"] == 29)
            assert told(totals)["total"] == 29
    finally:
        flow.uninstall()
    with outputs.looked_at(flow.index, "totals") as totals:
        until(lambda: "was uninstalled" in str(told(totals)["error"]))


def test_a_hundred_thousand_changes_a_second_are_merged_in_few_steps(cluster: timely.Cluster) -> None:
    flow = cluster.install(keyed)
    output = LiveOutput(lambda: cluster, flow.index, "rows")
    try:
        until(lambda: output.version)
        keys = np.arange(20_000, dtype=np.int64)
        before = None
        for epoch in range(10):
            table = pa.table({"key": keys, "value": np.full(len(keys), epoch, np.int64)})
            flow.input("rows").insert(table)
            if before is not None:
                flow.input("rows").remove(before)
            before = table
            flow.seal(wait=True)
        until(lambda: told(output)["epoch"] == 9)
        shown = told(output, TableView("key", True))
        assert shown["total"] == 20_000 and len(shown["rows"]) == 200  # type: ignore[arg-type]
        assert shown["rows"][0] == ["19999", "9"]  # type: ignore[index]
        assert output.version < 40, "by the time, not by the changes"
        found = told(output, TableView(wanted="1999"))
        assert found["matching"] == 12  # 1999, 11999, and 19990 to 19999
        assert output.view(TableView("key"))[1] is output.view(TableView("key"))[1], (
            "packed once for all pages"
        )
    finally:
        output.close()
        flow.uninstall()


def test_an_output_that_is_too_large_is_said_to_be(
    cluster: timely.Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("timely.client.shown.first_rows.LIVE_ROWS_MAX", 5)
    flow = cluster.install(keyed)
    output = LiveOutput(lambda: cluster, flow.index, "rows")
    try:
        flow.input("rows").insert([(key, key) for key in range(4)])
        flow.seal(wait=True)
        until(lambda: told(output)["total"] == 4)
        flow.input("rows").insert([(key, key) for key in range(4, 9)])
        flow.seal(wait=True)
        until(lambda: "9 rows" in str(told(output)["error"]))
        assert told(output)["rows"] == []
        output.close()
        output = LiveOutput(lambda: cluster, flow.index, "rows")
        until(lambda: "9 rows" in str(told(output)["error"]))
    finally:
        output.close()
        flow.uninstall()


def test_records_come_as_they_do(cluster: timely.Cluster) -> None:
    flow = cluster.install(word_count)
    output = LiveOutput(lambda: cluster, flow.index, flow.outputs[0])
    try:
        flow.input("lines").insert(["a b a"])
        flow.seal(wait=True)
        until(lambda: told(output)["total"])
        assert all(row[0] == "0" for row in told(output)["rows"])  # type: ignore[union-attr,index,call-overload,attr-defined]
        flow.seal(through=1_000_000)
        flow.input("lines").insert(["c"])
        flow.seal(wait=True)
        until(lambda: told(output)["epoch"] == 1_000_001)
        shown = told(output)["rows"]
        assert "1000001" in [row[0] for row in shown]  # type: ignore[attr-defined]
        flow.finish()
        until(lambda: told(output)["epoch"] == 1_000_002 and told(output)["changes"] == 0)
        version = output.version
        time.sleep(0.6)
        assert told(output)["epoch"] == 1_000_002, "that was the last one"
        assert output.version == version, "and no page hears of that"
    finally:
        output.close()
        flow.uninstall()


def test_an_output_that_cannot_be_shown_is_asked_for_a_fifth_of_the_time(
    cluster: timely.Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[float] = []

    def slow() -> timely.Cluster:
        asked.append(time.monotonic())
        time.sleep(0.4)
        raise timely.MisuseError("it takes long to say no")

    output = LiveOutput(slow, 0, "x")
    try:
        until(lambda: len(asked) > 2)
    finally:
        output.close()
    assert asked[2] - asked[1] > 5 * 0.4 - 0.05


def values_of_any_type(dataflow: timely.Dataflow) -> None:
    dd.input(dataflow, "rows", "key: int, value: any?").output("rows")


def test_values_of_any_type_are_shown_and_change(cluster: timely.Cluster) -> None:
    flow = cluster.install(values_of_any_type)
    output = LiveOutput(lambda: cluster, flow.index, "rows")
    try:
        flow.input("rows").insert([(1, {"a": 1}), (2, [1, "x"])])
        flow.seal(wait=True)
        until(lambda: rows_of(output) == Counter([("1", "{'a': 1}"), ("2", "(1, 'x')")]))
        flow.input("rows").insert([(3, None), (4, 1.5)])
        flow.input("rows").remove([(1, {"a": 1})])
        flow.seal(wait=True)
        until(lambda: rows_of(output) == Counter([("2", "(1, 'x')"), ("3", None), ("4", "1.5")]))
        assert [column["type"] for column in told(output)["columns"]] == ["int64", "any?"]  # type: ignore[attr-defined]
        assert told(output, TableView("value"))["total"] == 3
    finally:
        output.close()
        flow.uninstall()


def test_only_what_pages_look_at_now_stays_packed(cluster: timely.Cluster) -> None:
    flow = cluster.install(keyed)
    output = LiveOutput(lambda: cluster, flow.index, "rows")
    try:
        until(lambda: output.version)
        first = output.view(TableView(wanted="1"))
        assert output.view(TableView(wanted="1")) is first
        flow.input("rows").insert([(1, 1)])
        flow.seal(wait=True)
        until(lambda: told(output)["epoch"] == 0)
        output.view(TableView(wanted="2"))
        assert TableView(wanted="1") not in output._views and TableView(wanted="2") in output._views
    finally:
        output.close()
        flow.uninstall()


def test_a_page_that_comes_again_finds_the_rows_and_nobody_reads_them_for_long(
    cluster: timely.Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("timely.console.content.live_outputs._LEFT_SECONDS", 0.5)
    flow = cluster.install(keyed)
    outputs = LiveOutputs(lambda: cluster)
    with outputs.looked_at(flow.index, "rows") as first:
        pass
    for _ in range(50):
        with outputs.looked_at(flow.index, "rows") as again:
            assert again is first, "as one that sorts by another column"
    time.sleep(0.3)
    with outputs.looked_at(flow.index, "rows") as again:
        time.sleep(0.5)
        assert again is first and first._thread.is_alive(), "somebody looks"
    until(lambda: not first._thread.is_alive())
    with outputs.looked_at(flow.index, "rows") as another:
        assert another is not first
    outputs.close()
    until(lambda: not another._thread.is_alive())
    with pytest.raises(timely.MisuseError), outputs.looked_at(flow.index, "rows"):
        pass
    flow.uninstall()


def test_what_a_live_table_has_freed_is_given_back_when_nobody_looks_any_more(
    cluster: timely.Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    given_back: list[int] = []
    monkeypatch.setattr(
        "timely.console.content.live_outputs.give_back_freed",
        lambda: given_back.append(pa.total_allocated_bytes()),
    )
    flow = cluster.install(keyed)
    flow.input("rows").insert(pa.table({"key": np.arange(500_000), "value": np.arange(500_000)}))
    flow.seal(wait=True)
    before = pa.total_allocated_bytes()
    output = LiveOutput(lambda: cluster, flow.index, "rows")
    until(lambda: told(output)["total"] == 500_000)
    assert pa.total_allocated_bytes() > before + (8 << 20) and not given_back
    output.close()
    until(lambda: not output._thread.is_alive())
    assert len(given_back) == 1 and given_back[0] < before + (1 << 20), "its rows are dropped by then"
    flow.uninstall()


def test_there_are_so_many_live_outputs_and_what_is_left_is_closed(cluster: timely.Cluster) -> None:
    outputs = LiveOutputs(lambda: cluster)
    looked = [outputs.looked_at(number, "x") for number in range(LIVE_OUTPUTS_COUNT_MAX)]
    for each in looked:
        each.__enter__()
    with pytest.raises(timely.MisuseError, match="close one of them"), outputs.looked_at(99, "x"):
        pass
    looked.pop().__exit__(None, None, None)
    with outputs.looked_at(99, "x"):
        pass
    for each in looked:
        each.__exit__(None, None, None)
