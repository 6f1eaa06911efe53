"""Streams that dataflows export, and that others read which are installed later."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import differential as dd
import timely
from progress.times.time_words import TimeCode, TimeLayout
from progress.times.timestamp import TimeShape
from timely import Dataflow, Flow, MisuseError, UninstalledError, connect
from timely.operators.outputs.exported_streams import StreamExportVertex, StreamImport
from timely.wire.batch import Records


def owner(dataflow: Dataflow) -> None:
    numbers = dataflow.input("numbers").exchange(timely.by())
    for name, keep in (("open", 0), ("two", 2), ("all", None)):
        numbers.export(name, keep=keep)
    dataflow.output("out", numbers)


def reader_of(name: str) -> object:
    def reader(dataflow: Dataflow) -> None:
        stream = dataflow.imported("owner", name)
        dataflow.output("out", stream)
        dataflow.output("counts", stream.count())

    return reader


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("seed", range(3))
def test_readers_see_what_is_kept_and_then_all_at_their_epochs(workers: int, seed: int) -> None:
    """Readers come at any moment; each sees what the owner's output has from its first epoch on."""
    chance = random.Random(seed)
    with connect(workers=workers, embedded=True) as cluster:
        flow = cluster.install(owner)
        sent: list[tuple[int, int]] = []
        readers: list[tuple[int, Flow]] = []
        for epoch in range(8):
            for name, keep in (("open", 0), ("two", 2), ("all", 99)):
                if chance.random() < 0.4:
                    first = max(0, epoch - keep)
                    readers.append((first, cluster.install(reader_of(name))))  # type: ignore[arg-type]
                if chance.random() < 0.6:
                    numbers = [chance.randint(0, 99) for _ in range(chance.randint(1, 4))]
                    flow.input("numbers").insert(numbers)
                    sent += [(epoch, number) for number in numbers]
            flow.seal()
            if chance.random() < 0.5:
                flow.wait()
        flow.finish()
        assert len(readers) > 4
        for first, reader in readers:
            reader.finish()
            wanted = sorted(row for row in sent if row[0] >= first)
            assert sorted(reader.output("out").changes()) == wanted
            counts = {epoch: sum(row[0] == epoch for row in wanted) for epoch, _ in wanted}
            assert dict(reader.output("counts").changes()) == counts


def test_an_export_forgets_what_nobody_can_begin_with() -> None:
    with connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(owner)
        for epoch in range(5):
            flow.input("numbers").insert([epoch])
            flow.seal()
        flow.wait()
        stages = cluster.stats()[0]["dataflows"][0]["stages"]  # type: ignore[index,call-overload]
        kept = {each["name"]: each["epochs"] for each in stages if each["name"].startswith("export")}  # type: ignore[index,call-overload,union-attr]
        assert kept == {"export open": 0, "export two": 2, "export all": 5}


def test_a_reader_ends_with_the_owner_and_an_owner_that_is_read_says_so() -> None:
    with connect(workers=2, embedded=True) as cluster:
        flow = cluster.install(owner)
        reader = cluster.install(reader_of("all"))  # type: ignore[arg-type]
        with pytest.raises(MisuseError):
            flow.uninstall()
        flow.uninstall(cascade=True)
        with pytest.raises(UninstalledError, match="reads 'all' of dataflow 0"):
            reader.output("out").changes()


def test_refusing_what_is_no_stream_or_is_not_there() -> None:
    def collection(dataflow: Dataflow) -> None:
        dd.input(dataflow, "rows", "a: int").export("rows", by="a")

    def of_collection(dataflow: Dataflow) -> None:
        dataflow.output("out", dataflow.imported("collection", "rows"))

    def as_collection(dataflow: Dataflow) -> None:
        dd.imported(dataflow, "owner", "all", "a: int").output("out")

    with connect(workers=1, embedded=True) as cluster:
        cluster.install(owner)
        cluster.install(collection)
        with pytest.raises(
            MisuseError, match=r"does not export 'none': it exports 'all', 'open', 'two'.*stream.exp"
        ):
            cluster.install(reader_of("none"))  # type: ignore[arg-type]
        with pytest.raises(MisuseError, match=r"is a collection, .* write dd.imported\(flow"):
            cluster.install(of_collection)
        with pytest.raises(MisuseError, match="'all' of dataflow 0 .* is no collection"):
            cluster.install(as_collection)
    for keep in (-1, True, "all"):
        with pytest.raises(
            MisuseError, match=r"export\('x', keep=.*\): `keep` is a number of complete epochs"
        ):
            Dataflow().input("numbers").export("x", keep=keep)  # type: ignore[arg-type]


def test_a_stream_of_tables_is_read_as_tables_and_one_of_rows_becomes_a_collection_again() -> None:
    def tables(dataflow: Dataflow) -> None:
        dataflow.input("tables", tables=True).export("tables", keep=None)
        dd.input(dataflow, "rows", "a: int").stream().export("rows", keep=None)

    def reads(dataflow: Dataflow) -> None:
        dataflow.output(
            "tables", timely.tables(dataflow.imported("tables", "tables")).map(lambda table: table)
        )
        dd.collection(dataflow.imported("tables", "rows"), "a: int").output("rows")

    with connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(tables)
        flow.input("tables").insert({"a": [1, 2]})
        flow.input("rows").insert([(3,)])
        flow.seal()
        flow.finish()
        reader = cluster.install(reads)
        reader.finish()
        assert [table.to_pydict() for _, table in reader.output("tables").changes()] == [{"a": [1, 2]}]
        assert reader.output("rows").snapshot().to_pylist() == [{"a": 3}]


def test_refusing_to_read_in_a_durable_cluster(tmp_path: Path) -> None:
    with connect(workers=1, embedded=True, durable=tmp_path) as cluster:
        cluster.install(owner)
        with pytest.raises(
            MisuseError, match="imports the stream 'all', and this cluster is durable: after a"
        ):
            cluster.install(reader_of("all"))  # type: ignore[arg-type]


def test_records_of_an_epoch_that_is_far_come_though_the_owner_is_beyond_it() -> None:
    far = 1 << 50
    with connect(workers=1, embedded=True, check_progress=True) as cluster:
        flow = cluster.install(owner)
        reader = cluster.install(reader_of("all"))  # type: ignore[arg-type]
        flow.input("numbers").advance_to(far)
        flow.input("numbers").insert([7])
        flow.input("numbers").seal()
        reader.wait(far, timeout=20)
        assert reader.output("out").changes() == [(far, 7)]


def test_the_first_epoch_that_is_kept_never_comes_earlier() -> None:
    class EndedVertex(StreamExportVertex):
        upper = None

    vertex = EndedVertex(1)
    vertex.__dict__["_kept"] = {3: [Records([1])], 5: [Records([2])]}
    for _ in range(2):
        assert vertex.since == 5
        vertex.forget()
    vertex.__dict__["_kept"].clear()
    assert vertex.since == 5


def test_what_a_reader_may_begin_with_stays_until_it_has_begun() -> None:
    class MovesVertex(StreamExportVertex):
        upper = 3

    vertex = MovesVertex(0)
    vertex.__dict__["_kept"] = {3: [Records([1])]}
    reader = StreamImport(vertex)
    vertex.upper = 5  # before all workers have agreed on where it begins
    vertex.forget()
    reader.begin(TimeCode(TimeLayout.default(1), TimeShape.ROOT), 3, lambda: None)
    assert vertex.counters()["rows"] == 0
    assert [epoch for epoch, _ in reader.take(9).batches] == [3]
