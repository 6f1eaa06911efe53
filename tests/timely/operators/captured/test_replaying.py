"""Replaying a captured stream: the same records at the same times, on any number of workers.

same_*   what was captured comes again
cut_*    each epoch that comes is whole, wherever the files end
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pytest
from captured_streams import ByEpoch, by_epoch, capture, replay
from hypothesis import given, settings
from hypothesis import strategies as st

import differential as dd
import timely
from timely.operators.captured.replaying import AtItsTimeVertex, ReplaysFrom, ReplayVertex
from timely.user_code.call_site import CallSite

Clusters = dict[int, timely.Cluster]


@pytest.fixture(scope="module")
def clusters() -> Iterator[Clusters]:
    """Embedded clusters by the number of their workers."""
    with (
        timely.connect(workers=1, embedded=True) as one,
        timely.connect(workers=2, embedded=True, threads=True) as two,
        timely.connect(workers=3, embedded=True) as three,
    ):
        yield {1: one, 2: two, 3: three}


def test_same_over_one_three_and_two_workers(clusters: Clusters, tmp_path: Path) -> None:
    values: list[list[object]] = [
        [1, "two", b"three", None, True],
        [],
        [("a", 1.5), {"b": Decimal("2.50")}, dt.date(2026, 1, 1)] * 20,
        [dt.datetime(2026, 1, 1, tzinfo=dt.UTC), ("nested", ("deep", ()))],
        list(range(1_000)),
    ]
    written = capture(clusters[1], tmp_path / "one", values)
    assert [len(written.get(epoch, [])) for epoch in range(5)] == [5, 0, 60, 2, 1_000]
    assert replay(clusters[3], tmp_path / "one", into=tmp_path / "three") == written
    assert sorted(each.name for each in (tmp_path / "three").iterdir()) == [
        f"worker-{worker}-of-3.capture" for worker in range(3)
    ]
    assert replay(clusters[2], tmp_path / "three") == written


PLAIN = (
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(max_size=5) | st.binary(max_size=5)
)
RECORD = PLAIN | st.tuples(PLAIN, PLAIN) | st.lists(PLAIN, max_size=3).map(tuple)
EPOCHS = st.lists(st.lists(RECORD, max_size=4), max_size=5)
WORKERS = st.integers(1, 3)


@settings(max_examples=25, deadline=None)
@given(EPOCHS, WORKERS, WORKERS, WORKERS)
def test_same_whatever_there_is(
    clusters: Clusters, epochs: list[list[object]], first: int, second: int, third: int
) -> None:
    with TemporaryDirectory() as name:
        folder = Path(name)
        written = capture(clusters[first], folder / "first", epochs)
        assert sum(map(len, written.values())) == sum(map(len, epochs))
        assert replay(clusters[second], folder / "first", into=folder / "second") == written
        assert replay(clusters[third], folder / "second") == written


class SeenVertex(timely.Vertex):
    """Notes what it sees."""

    def __init__(self, seen: list[object]) -> None:
        self.seen = seen

    def on_recv(self, edge: int, message: list[object], time: tuple[int, ...]) -> None:
        self.seen.extend((time[0], record) for record in message)
        self.notify_at(time)

    def on_notify(self, time: tuple[int, ...]) -> None:
        self.seen.append(f"over {time[0]}")


def test_same_progress_epoch_by_epoch(clusters: Clusters, tmp_path: Path) -> None:
    """On one worker an epoch is over before records of the next one come, as when it was captured; on others
    such records may be on their way, but none of an epoch that is over.
    """
    capture(clusters[3], tmp_path / "a", [[1, 2, 3], [], [4, 5], [6]])
    for workers, cluster in clusters.items():
        seen: list[object] = []

        def shown(dataflow: timely.Dataflow, seen: list[object] = seen) -> None:
            records = dataflow.replay(tmp_path / "a")
            one = timely.by(lambda record: 0)
            dataflow.output("out", records.stage("seen", lambda: SeenVertex(seen), exchange=one))

        flow = cluster.install(shown)
        flow.wait(1)
        flow.finish()
        records = [(0, 1), (0, 2), (0, 3), (2, 4), (2, 5), (3, 6)]
        assert sorted(each for each in seen if isinstance(each, tuple)) == records
        overs = [seen.index(f"over {epoch}") for epoch in (0, 2, 3)]
        assert overs == sorted(overs)
        if workers == 1:
            assert overs == [3, 6, 8]
        for over, count in zip(overs, (3, 5, 6), strict=True):
            assert set(records[:count]) <= set(seen[:over])


def test_same_tables(clusters: Clusters, tmp_path: Path) -> None:
    def captured(dataflow: timely.Dataflow) -> None:
        tables = dataflow.input("orders", tables=True)
        tables.exchange(timely.by("customer")).capture(tmp_path / "a")

    flow = clusters[3].install(captured)
    orders = pa.table({"customer": ["ada", "bob", None, "cy"], "cents": [1, 2, 3, 1 << 40]})
    for _ in range(2):
        flow.input("orders").insert(orders)
        flow.seal()
    flow.input("orders").close()
    flow.wait()

    def summed(dataflow: timely.Dataflow) -> None:
        tables = timely.tables(dataflow.replay(tmp_path / "a"))
        dataflow.output("out", tables.aggregate("customer", total=("cents", "sum")))

    again = clusters[2].install(summed)
    again.finish()
    rows = sorted(
        (epoch, str(row["customer"]), row["total"])
        for epoch, table in again.output("out").changes()
        for row in table.to_pylist()
    )
    each = [("None", 3), ("ada", 1), ("bob", 2), ("cy", 1 << 40)]
    assert rows == [(epoch, *pair) for epoch in range(2) for pair in each]


def count_down(dataflow: timely.Dataflow, folder: Path) -> None:
    with dataflow.loop("outer") as outer:
        entered = outer.enter(dataflow.input("n"))
        with outer.loop("inner") as inner:
            back = inner.feedback()
            numbers = inner.enter(entered).concat(back.stream)
            numbers.capture(folder)
            back.connect(numbers.map(lambda n: n - 1).filter(lambda n: n > 0))
            dataflow.output("out", outer.leave(inner.leave(timed(numbers))))


def timed(stream: timely.Stream) -> timely.Stream:
    def make(vertex: timely.Vertex) -> object:
        return lambda records, time: vertex.send_by(0, [(*time, each) for each in records], time)

    return stream.unary("timed", make)


def count_again(dataflow: timely.Dataflow, folder: Path) -> None:
    with dataflow.loop("outer") as outer, outer.loop("inner") as inner:
        dataflow.output("out", outer.leave(inner.leave(timed(inner.replay(folder)))))


def test_same_times_in_loops(clusters: Clusters, tmp_path: Path) -> None:
    flow = clusters[2].install(lambda dataflow: count_down(dataflow, tmp_path / "a"))
    for number in (3, 5):
        flow.input("n").insert([number, number + 1])
        flow.seal()
    flow.input("n").close()
    flow.wait()
    changes = by_epoch(flow.output("out").changes())
    assert sum(map(len, changes.values())) == 3 + 4 + 5 + 6
    for cluster in clusters.values():
        flow = cluster.install(lambda dataflow: count_again(dataflow, tmp_path / "a"))
        flow.finish()
        assert by_epoch(flow.output("out").changes()) == changes

    def outside(dataflow: timely.Dataflow) -> None:
        dataflow.output("out", dataflow.replay(tmp_path / "a"))

    with pytest.raises(
        timely.MisuseError, match=r"times have 3 numbers, and here .* 1. Write loop.replay\(.* 2 deep"
    ) as caught:
        clusters[1].install(outside)
    assert "test_replaying.py:" in str(caught.value)


def test_cut_at_every_byte_no_epoch_is_wrong(clusters: Clusters, tmp_path: Path) -> None:
    """One file of two ends anywhere: what comes is what was captured, up to the last epoch that was over by
    then in both.
    """
    epochs: list[list[object]] = [["ada", "bob"], ["cy", "dan", "eve"], [], ["fay", "gus"]]
    written = capture(clusters[2], tmp_path / "whole", epochs)
    files = {path.name: path.read_bytes() for path in (tmp_path / "whole").iterdir()}
    for number, (name, data) in enumerate(files.items()):
        folders = [tmp_path / f"{number} {size}" for size in range(len(data) + 1)]
        for size, folder in enumerate(folders):
            folder.mkdir()
            for other, whole in files.items():
                (folder / other).write_bytes(data[:size] if other == name else whole)

        def all_cuts(dataflow: timely.Dataflow, folders: list[Path] = folders) -> None:
            for folder in folders:
                dataflow.output(folder.name, dataflow.replay(folder))

        flow = clusters[2 + number].install(all_cuts)
        flow.finish()
        lasts = []
        for folder in folders:
            found = by_epoch(flow.output(folder.name).changes())
            lasts.append(max(found, default=-1))
            assert found == {epoch: each for epoch, each in written.items() if epoch <= lasts[-1]}, folder
        assert lasts == sorted(lasts) and set(lasts) == {-1, 0, 1, 3}


def test_damage_ends_the_dataflow_with_file_and_byte(clusters: Clusters, tmp_path: Path) -> None:
    capture(clusters[1], tmp_path / "a", [["ada"], ["bob"]])
    (path,) = (tmp_path / "a").iterdir()
    data = path.read_bytes()
    at = data.index(b"bob")
    path.write_bytes(data[:at] + b"B" + data[at + 1 :])
    with pytest.raises(timely.CaptureError) as caught:
        replay(clusters[2], tmp_path / "a")
    assert f"{path} is damaged at byte {at - 20 - 8 - 2}: the frame there is not as" in str(caught.value)
    assert "ran, built at" in str(caught.value)
    path.write_bytes(data[: at - 20] + data[at - 10 :])
    with pytest.raises(timely.CaptureError, match=r"worker-0-of-1.capture is damaged at byte \d+: the head"):
        replay(clusters[2], tmp_path / "a")


def test_records_from_before_a_dataflow_begins_are_refused(tmp_path: Path) -> None:
    """It begins late if it reads another one, whose early epochs nobody can tell apart any more."""

    def numbers(flow: timely.Dataflow) -> None:
        exported = dd.input(flow, "n", "n: int")
        exported.export("numbers")
        exported.output("all")

    with timely.connect(workers=2, embedded=True) as cluster:
        capture(cluster, tmp_path / "a", [["ada"]])
        other = cluster.install(numbers)
        for number in range(3):
            other.input("n").insert([(number,)])
            other.seal(wait=True)
        other.output("all").forget()

        def late(flow: timely.Dataflow) -> None:
            dd.imported(flow, other.index, "numbers", "n: int").output("all")
            flow.output("again", flow.replay(tmp_path / "a"))

        with pytest.raises(
            timely.MisuseError, match="has records at epoch 0, and this dataflow begins at ep"
        ):
            cluster.install(late).finish()


def test_same_changes_of_a_collection(clusters: Clusters, tmp_path: Path) -> None:
    def captured(flow: timely.Dataflow) -> None:
        dd.input(flow, "orders", "customer: string, cents: int").stream().capture(tmp_path / "a")

    def summed(flow: timely.Dataflow) -> None:
        orders = dd.collection(flow.replay(tmp_path / "a"), "customer: string, cents: int")
        orders.group_by("customer").agg(cents=dd.sum("cents")).output("sums")

    flow = clusters[3].install(captured)
    flow.input("orders").insert([("ada", 5), ("bob", 7), ("ada", 3)])
    flow.seal()
    flow.input("orders").remove([("bob", 7)])
    flow.seal(wait=True)
    flow.uninstall()
    again = clusters[2].install(summed)
    again.finish()
    rows = sorted(tuple(row.values()) for row in again.output("sums").changes().to_pylist())
    assert rows == [("ada", 8, 0, 1), ("bob", 7, 0, 1), ("bob", 7, 1, -1)]


def test_vertices_are_made_for_each_worker() -> None:
    made = ReplaysFrom("a", 1, CallSite("mine.py", 7))
    assert isinstance(made(), ReplayVertex) and made() is not made()
    assert AtItsTimeVertex.keeps == "nothing"
    nothing: ByEpoch = {}
    assert by_epoch([]) == nothing
