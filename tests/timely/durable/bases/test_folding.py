"""Folds of stores that real clusters have written: nothing is lost, and nothing counts twice.

named_*      deliveries that are repeated after a fold
stayed_*     what else a base must not lose: closed inputs, far epochs, the order of calls, places
held_*       what holds back the epoch up to which rows are summed
by_hand_*    stages that were written by hand
changes_*    the changes that outputs keep, from the store
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from folded_flows import folded

import differential as dd
import timely
from differential import col
from timely.durable.bases import folding
from timely.durable.bases.cuts import cut_logs
from timely.durable.bases.folding import fold
from timely.durable.bases.manifest import base_numbers
from timely.durable.bases.names import TakenNames
from timely.durable.bases.pruning import prune
from timely.durable.folder_store import FolderStore
from timely.errors import ForgottenError
from timely.operators.capture import RecordLog
from timely.worker.durability.folds.cuts import epochs_to_fold


def counts(flow: timely.Dataflow) -> None:
    rows = dd.input(flow, "rows", "word: string")
    rows.group_by("word").agg(n=dd.count()).output("counts")


def cluster(folder: Path, workers: int = 1) -> timely.Cluster:
    return timely.connect(workers=workers, embedded=True, durable=folder, sync="system")


def words(flow: timely.Flow) -> dict[str, int]:
    return {row["word"]: row["n"] for row in flow.output("counts").snapshot().to_pylist()}


def restarted(
    folder: Path,
    query: Callable[[timely.Dataflow], None],
    use: Callable[[timely.Flow], None],
    workers: int = 2,
) -> None:
    with cluster(folder, workers) as started:
        use(started.install(query))


# named_


def test_named_insertions_count_once_after_a_fold(tmp_path: Path) -> None:
    def use(flow: timely.Flow) -> None:
        for number in (0, 1, 2, 5, 7, 3):
            flow.input("rows").insert([("a",)], writer="w", sequence=number)
        flow.input("rows").append(
            pa.table({"word": ["b"], "diff": [1]}), epoch=flow.epoch, writer="e", sequence=4
        )
        flow.seal()

    def again(flow: timely.Flow) -> None:
        for number in (7, 0, 6, 1, 2, 3, 5):
            flow.input("rows").insert([("a",)], writer="w", sequence=number)
        flow.seal()
        assert words(flow) == {"a": 7, "b": 1}

    restarted(tmp_path, counts, use, workers=1)
    for workers in (3, 1, 2):
        folded(tmp_path, forgets=True)
        restarted(tmp_path, counts, again, workers)


def test_named_appends_to_open_epochs_count_once_after_a_fold(tmp_path: Path) -> None:
    table = pa.table({"word": ["a", "b"], "diff": [1, 1], "epoch": [3, 5]})

    def use(flow: timely.Flow) -> None:
        assert flow.input("rows").append(table, epoch="epoch", writer="w", sequence=0)
        flow.seal(through=1)

    def again(flow: timely.Flow) -> None:
        assert not flow.input("rows").append(table, epoch="epoch", writer="w", sequence=0)
        flow.seal(through=4)
        assert not flow.input("rows").append(table, epoch="epoch", writer="w", sequence=0)
        flow.seal(through=6)
        assert words(flow) == {"a": 1, "b": 1}

    restarted(tmp_path, counts, use)
    folded(tmp_path, forgets=True)
    restarted(tmp_path, counts, again, workers=3)


def test_named_appends_to_the_last_sealed_epoch_are_repetitions_after_a_fold(tmp_path: Path) -> None:
    """A task that runs again just after a seal hears so, and not that it comes too late."""
    table = pa.table({"word": ["a"], "diff": [1]})

    def use(flow: timely.Flow, is_new: bool = False) -> None:
        assert flow.input("rows").append(table, epoch=0, writer="w", sequence=0) == is_new

    restarted(tmp_path, counts, lambda flow: [use(flow, is_new=True), flow.seal()])
    folded(tmp_path, forgets=True)
    restarted(tmp_path, counts, use, workers=3)


def test_mutant_names_lost_by_a_fold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TakenNames, "plain", lambda self: [])
    with pytest.raises(AssertionError):
        test_named_insertions_count_once_after_a_fold(tmp_path)


# stayed_


def test_stayed_closed(tmp_path: Path) -> None:
    def query(flow: timely.Dataflow) -> None:
        rows = dd.input(flow, "rows", "word: string")
        other = dd.input(flow, "other", "word: string")
        rows.concat(other).group_by("word").agg(n=dd.count()).output("counts")

    def use(flow: timely.Flow) -> None:
        flow.input("rows").insert([("a",)])
        flow.input("other").insert([("a",)])
        flow.input("rows").append(pa.table({"word": ["later"], "diff": [1]}), epoch=4)
        flow.seal()
        flow.input("rows").close()

    def later(flow: timely.Flow) -> None:
        with pytest.raises(timely.InputClosedError):
            flow.input("rows").insert([("b",)])
        flow.input("other").insert([("c",)])
        flow.seal(through=4)
        assert words(flow) == {"a": 2, "c": 1, "later": 1}

    restarted(tmp_path, query, use)
    folded(tmp_path, forgets=True)
    folded(tmp_path, forgets=False)
    restarted(tmp_path, query, later)


def test_stayed_finished(tmp_path: Path) -> None:
    def use(flow: timely.Flow) -> None:
        flow.input("rows").insert([("a",)])
        flow.finish()

    restarted(tmp_path, counts, use)
    folded(tmp_path, forgets=True)

    def later(flow: timely.Flow) -> None:
        assert words(flow) == {"a": 1}

    restarted(tmp_path, counts, later)


def test_stayed_at_far_epochs(tmp_path: Path) -> None:
    far = 1 << 40

    def use(flow: timely.Flow) -> None:
        flow.input("rows").insert([("a",)])
        flow.seal(through=far)
        flow.input("rows").insert([("b",)])
        flow.input("rows").append(pa.table({"word": ["c"], "diff": [1]}), epoch=2 * far)
        flow.seal()

    def later(flow: timely.Flow) -> None:
        assert flow.epoch == far + 2
        assert words(flow) == {"a": 1, "b": 1}
        flow.seal(through=2 * far)
        assert words(flow) == {"a": 1, "b": 1, "c": 1}

    restarted(tmp_path, counts, use)
    assert folded(tmp_path, forgets=True).flows[0].summed == far + 1
    restarted(tmp_path, counts, later, workers=3)
    assert folded(tmp_path, forgets=True).flows[0].summed == 2 * far


def test_stayed_in_the_order_of_calls(tmp_path: Path) -> None:
    def query(flow: timely.Dataflow) -> None:
        dd.input(flow, "values", "k: int, v: int", key="k", mode="upsert").output("out")

    def use(flow: timely.Flow) -> None:
        for value in range(5):
            flow.input("values").upsert([(1, value)])
        flow.seal()
        for value in range(5, 9):
            flow.input("values").upsert([(2, value)])  # in an epoch that stays open

    def later(flow: timely.Flow) -> None:
        flow.input("values").upsert([(2, 100)])
        flow.seal()
        rows = flow.output("out").snapshot().to_pylist()
        assert rows == [{"k": 1, "v": 4}, {"k": 2, "v": 100}]

    restarted(tmp_path, query, use)
    assert folded(tmp_path, forgets=True).flows[0].inputs["values"].calls == 9
    restarted(tmp_path, query, later, workers=3)


def test_stayed_where_readers_were(tmp_path: Path) -> None:
    def use(flow: timely.Flow) -> None:
        for word in "abc":
            flow.input("rows").insert([(word,)])
            flow.seal()
        flow.output("counts").changes(stop=2)

    restarted(tmp_path, counts, use)
    places = folded(tmp_path, forgets=False).flows[0].places
    assert [(output, epoch) for output, _, epoch, *_ in places] == [("counts", 0)]
    assert folded(tmp_path, forgets=False).flows[0].places == places


def test_stayed_ended(tmp_path: Path) -> None:
    def use(flow: timely.Flow) -> None:
        flow.input("rows").insert([("a",)])
        flow.seal()
        flow.uninstall()

    restarted(tmp_path, counts, use)
    base = folded(tmp_path, forgets=False)
    assert not base.flows and list(base.gone) == [0] and base.next_number == 1
    with cluster(tmp_path) as started:
        flow = started.install(counts)
        assert flow.index == 1 and flow.epoch == 0


# held_


def exporting(flow: timely.Dataflow) -> None:
    rows = dd.input(flow, "rows", "word: string")
    rows.export("rows", by="word")
    rows.group_by("word").agg(n=dd.count()).output("counts")


def importing(flow: timely.Dataflow) -> None:
    own = dd.input(flow, "own", "word: string")
    rows = dd.imported(flow, "exporting", "rows", "word: string")
    own.join(rows, on="word").group_by("word").agg(n=dd.count()).delay(2).output("counts")


def test_held_by_an_importer(tmp_path: Path) -> None:
    with cluster(tmp_path, 2) as started:
        owner, importer = started.install(exporting), started.install(importing)
        for number in range(8):
            owner.input("rows").insert([("abc"[number % 3],)])
            owner.seal()
            if number < 5:
                importer.input("own").insert([("a",)])
                importer.seal()
        expected = words(owner), words(importer)
    base = folded(tmp_path, forgets=True)
    # The importer has sealed 4, and looks back 2 epochs; at a restart it begins with its owner's rows at 2.
    assert (base.flows[1].summed, base.flows[1].right_from) == (2, 4)
    assert (base.flows[0].summed, base.flows[0].right_from) == (2, 2)
    with cluster(tmp_path, 3) as started:
        owner, importer = started.install(exporting), started.install(importing)
        assert (words(owner), words(importer)) == expected
        with pytest.raises(ForgottenError):
            importer.output("counts").changes(4)


def test_held_by_an_output_that_nobody_forgets(tmp_path: Path) -> None:
    def use(flow: timely.Flow) -> None:
        for word in "abc":
            flow.input("rows").insert([(word,)])
            flow.seal()

    restarted(tmp_path, counts, use)
    base = folded(tmp_path, forgets=False)
    assert base.flows[0].summed == -1 and base.flows[0].inputs["rows"].rows == 3

    def all_changes(flow: timely.Flow) -> None:
        assert flow.output("counts").changes(0).column("epoch").to_pylist() == [0, 1, 2]

    restarted(tmp_path, counts, all_changes)


def test_held_up_to_what_is_sealed(tmp_path: Path) -> None:
    def use(flow: timely.Flow) -> None:
        flow.input("rows").insert([("a",)])
        flow.seal()
        flow.input("rows").insert([("a",)])

    restarted(tmp_path, counts, use)
    assert folded(tmp_path, forgets=True).flows[0].summed == 0

    def later(flow: timely.Flow) -> None:
        assert words(flow) == {"a": 1}
        flow.seal()
        assert words(flow) == {"a": 2}

    restarted(tmp_path, counts, later)


def tenths(flow: timely.Dataflow) -> None:
    dd.input(flow, "rows", "a: int").select("a", b=10 // col.a).output("out")


def feed_zero(flow: timely.Flow) -> None:
    for row in (1, 2, 0):
        flow.input("rows").insert([(row,), (row + 10,)])
        flow.seal()
    assert flow.output("out").changes(0, 2).num_rows == 4


@pytest.mark.parametrize("workers", [1, 3])
def test_held_by_an_epoch_without_an_answer(workers: int, tmp_path: Path) -> None:
    """The next epoch has the difference to the last one that was shown."""
    with cluster(tmp_path, 2) as started:
        flow = started.install(tenths)
        feed_zero(flow)
        flow.wait()
        both = started._workers._durable._all  # type: ignore[union-attr]
        assert [epochs_to_fold(one._worker, one.epochs) for one in both] == [{0: 1}, {0: 1}]
        cut(started, 0, 1)
    assert folded(tmp_path, forgets=False).flows[0].right_from == 1

    def use(flow: timely.Flow) -> None:
        flow.input("rows").remove([(0,)])
        flow.seal()
        assert flow.output("out").changes(3).to_pylist() == [{"a": 10, "b": 1, "epoch": 3, "diff": 1}]

    restarted(tmp_path, tenths, use, workers)


@pytest.mark.parametrize("workers", [1, 3])
def test_held_by_nothing_if_all_is_to_be_forgotten_also_the_changes_behind_no_answer(
    workers: int, tmp_path: Path
) -> None:
    restarted(tmp_path, tenths, feed_zero)
    assert folded(tmp_path, forgets=True).flows[0].right_from == 2

    def use(flow: timely.Flow) -> None:
        flow.input("rows").remove([(0,)])
        flow.seal()
        output = flow.output("out")
        with pytest.raises(ForgottenError, match=r"Read changes\(4\)"):
            output.changes(3)
        assert sorted(row["a"] for row in output.snapshot().to_pylist()) == [1, 2, 10, 11, 12]
        flow.input("rows").insert([(5,)])
        flow.seal()
        assert output.changes(4).to_pylist() == [{"a": 5, "b": 2, "epoch": 4, "diff": 1}]

    restarted(tmp_path, tenths, use, workers)


def test_mutant_fold_past_an_importer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def without_importers(history: folding.History, forgets: bool = False) -> dict[int, int]:
        return {number: flow.sealed - flow.fold_facts.lookback for number, flow in history.past.flows.items()}

    monkeypatch.setattr(folding, "summed_epochs", without_importers)
    with pytest.raises(AssertionError):
        test_held_by_an_importer(tmp_path)


# by_hand_


class Doubles(timely.Vertex):
    """Sends each record twice."""

    def on_recv(self, edge: int, message: list[object], time: tuple[int, ...]) -> None:
        self.send_by(0, [*message, *message], time)


class DoublesAlone(Doubles):
    """The same, with a promise."""

    keeps = "nothing"


def records_through(vertex: type[Doubles]) -> Callable[[timely.Dataflow], None]:
    def by_hand(flow: timely.Dataflow) -> None:
        (doubled,) = flow.stage("doubles", vertex, [flow.input("records").feed()])
        flow.output("out", doubled)

    return by_hand


def feed_records(flow: timely.Flow) -> None:
    for number in range(flow.epoch, flow.epoch + 3):
        flow.input("records").insert([(number, "text"), number])
        flow.seal()


@pytest.mark.parametrize("workers", [1, 3])
def test_by_hand_without_a_promise_all_epochs_come_back(workers: int, tmp_path: Path) -> None:
    restarted(tmp_path, records_through(Doubles), feed_records)
    assert folded(tmp_path, forgets=True).flows[0].summed == -1
    restarted(tmp_path, records_through(Doubles), feed_records)
    for _ in range(10):
        base = folded(tmp_path, forgets=True)
    assert base.flows[0].inputs["records"].rows == 12
    (reason,) = base.flows[0].facts[-1][1][0][-2:-1]  # type: ignore[index]
    assert "'doubles'" in str(reason) and 'write keeps = "nothing"' in str(reason)

    def use(flow: timely.Flow) -> None:
        by_epoch = flow.output("out").changes(0)
        assert len(by_epoch) == 24 and [epoch for epoch, _ in by_epoch] == sorted(4 * list(range(6)))

    restarted(tmp_path, records_through(Doubles), use, workers)


def test_by_hand_with_a_promise_old_rows_go(tmp_path: Path) -> None:
    restarted(tmp_path, records_through(DoublesAlone), feed_records)

    def open_rows(flow: timely.Flow) -> None:
        flow.input("records").insert(["open"])

    restarted(tmp_path, records_through(DoublesAlone), open_rows)
    base = folded(tmp_path, forgets=True)
    assert base.flows[0].summed == 2 and base.flows[0].inputs["records"].rows == 1

    def use(flow: timely.Flow) -> None:
        with pytest.raises(ForgottenError):
            flow.output("out").changes(2)
        flow.seal()
        assert flow.output("out").changes(3) == [(3, "open"), (3, "open")]

    restarted(tmp_path, records_through(DoublesAlone), use)


@pytest.mark.parametrize("forgotten", [0, 2, 4])
@pytest.mark.parametrize("workers", [1, 3])
def test_by_hand_beside_a_collection_that_is_summed_comes_out_as_before(
    workers: int, forgotten: int, tmp_path: Path
) -> None:
    def both(flow: timely.Dataflow) -> None:
        records_through(Doubles)(flow)
        dd.input(flow, "rows", "a: int").output("rows")

    def use(flow: timely.Flow) -> None:
        for number in range(flow.epoch, flow.epoch + 4):
            flow.input("rows").insert([(number,)])
            flow.input("records").insert([f"record {number}"])
            flow.seal()
        assert len(flow.output("out").changes(number - 3)) == 8
        flow.output("out").forget(forgotten)
        flow.output("rows").forget(forgotten)

    restarted(tmp_path, both, use, 2)
    assert folded(tmp_path, forgets=forgotten > 0).flows[0].summed == (3 if forgotten else -1)
    restarted(tmp_path, both, use, workers)
    folded(tmp_path, forgets=True)
    restarted(tmp_path, both, use, 2)


# changes_


@pytest.fixture
def written_by_workers(tmp_path: Path) -> Path:
    """A store with six epochs, in which the workers have written the changes of four."""
    with cluster(tmp_path, 2) as started:
        flow = started.install(counts)
        for number in range(6):
            flow.input("rows").insert([("ab"[number % 2],), ("c",)])
            flow.seal()
            if number == 3:
                flow.wait(3)
                cut(started, 0, 3)
        flow.wait(5)
    return tmp_path


def cut(started: timely.Cluster, dataflow: int, epoch: int) -> str:
    """Let all workers write what a fold needs up to an epoch."""
    from timely.wire.handshake import CutLog

    embedded = started._workers._durable  # type: ignore[union-attr]
    assert embedded is not None
    started._workers.work_off()  # type: ignore[union-attr]
    for durability in reversed(embedded._all):
        durability.cuts.order(CutLog("now", (dataflow,), (epoch,)))
        while durability.cuts.is_cutting:
            assert durability.cuts.step()
    embedded.settle()
    return "now"


def changes_of(flow: timely.Flow, start: int) -> list[tuple[object, ...]]:
    rows = flow.output("counts").changes(start).to_pylist()
    return sorted(tuple(row.values()) for row in rows)


EXPECTED = [
    ("a", 1, 0, 1), ("a", 1, 2, -1), ("a", 2, 2, 1), ("a", 2, 4, -1), ("a", 3, 4, 1),
    ("b", 1, 1, 1), ("b", 1, 3, -1), ("b", 2, 3, 1), ("b", 2, 5, -1), ("b", 3, 5, 1),
    *(("c", number, epoch, diff) for number in range(1, 7) for epoch, diff in ((number - 1, 1), (number, -1))
      if epoch < 6),
]  # fmt: skip


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_changes_come_from_the_store(workers: int, written_by_workers: Path) -> None:
    base = folded(written_by_workers, forgets=False)
    assert (base.flows[0].summed, base.flows[0].outputs["counts"].kept_before) == (3, 4)
    with cluster(written_by_workers, workers) as started:
        flow = started.install(counts)
        assert changes_of(flow, 5) == sorted(each for each in EXPECTED if each[2] >= 5)
        assert changes_of(flow, 0) == sorted(EXPECTED)
        for epoch in range(6):
            rows = flow.output("counts").snapshot(as_of=epoch).to_pylist()
            assert {row["word"]: row["n"] for row in rows}["c"] == epoch + 1
        assert changes_of(flow, 2) == sorted(each for each in EXPECTED if each[2] >= 2)


def test_changes_come_from_a_base_that_has_followed(written_by_workers: Path) -> None:
    folded(written_by_workers, forgets=False)
    with cluster(written_by_workers, 2) as started:
        flow = started.install(counts)
        flow.input("rows").insert([("d",)])
        flow.seal()
        flow.wait(6)
        for count in range(3):  # live folds, after which the first base is gone
            cut(started, 0, 6)
            embedded = started._workers._durable  # type: ignore[union-attr]
            store = FolderStore(written_by_workers)
            incarnation = embedded.first._incarnation
            base = fold(cut_logs(store, incarnation, "now"), live=incarnation.number)
            assert base is not None and base.number == 2 + count
            prune(store, incarnation.number)
        assert base_numbers(store) == [3, 4]
        assert changes_of(flow, 0)[: len(EXPECTED)] == sorted(EXPECTED)
    with cluster(written_by_workers, 3) as started:
        assert changes_of(started.install(counts), 0)[: len(EXPECTED)] == sorted(EXPECTED)


def test_changes_that_clients_forget_leave_the_store(written_by_workers: Path) -> None:
    folded(written_by_workers, forgets=False)
    with cluster(written_by_workers, 2) as started:
        flow = started.install(counts)
        flow.wait(5)  # what is not made again yet cannot be forgotten
        flow.output("counts").forget(3)
        cut(started, 0, 5)
    base = folded(written_by_workers, forgets=False)
    output = base.flows[0].outputs["counts"]
    assert (output.kept_from, output.kept_before) == (3, 6)
    assert {file.epochs for file in output.files} == {(3, 5)}
    with cluster(written_by_workers, 3) as started:
        flow = started.install(counts)
        assert changes_of(flow, 3) == sorted(each for each in EXPECTED if each[2] >= 3)
        with pytest.raises(ForgottenError):
            flow.output("counts").changes(2)


def test_changes_of_a_report_that_is_not_whole_do_not_count(tmp_path: Path) -> None:
    """One worker has written its changes, and the other one has died before it did."""
    with cluster(tmp_path, 2) as started:
        flow = started.install(counts)
        for number in range(4):
            flow.input("rows").insert([("ab"[number % 2],), ("c",)])
            flow.seal()
        flow.wait(3)
        from timely.wire.handshake import CutLog

        embedded = started._workers._durable  # type: ignore[union-attr]
        second = embedded._all[1]
        second.cuts.order(CutLog("now", (0,), (3,)))
        while second.cuts.is_cutting:
            second.cuts.step()
    base = folded(tmp_path, forgets=False)
    assert base.flows[0].summed == -1 and not base.flows[0].outputs["counts"].files
    with cluster(tmp_path, 3) as started:
        flow = started.install(counts)
        cut(started, 0, 3)
        expected = changes_of(flow, 0)
    assert folded(tmp_path, forgets=False).flows[0].summed == 3
    with cluster(tmp_path, 1) as started:
        assert changes_of(started.install(counts), 0) == expected


def test_changes_of_records_come_from_the_store(tmp_path: Path) -> None:
    with cluster(tmp_path, 2) as started:
        flow = started.install(records_through(DoublesAlone))
        feed_records(flow)
        expected = sorted(map(str, flow.output("out").changes(0)))
        cut(started, 0, 2)
    assert folded(tmp_path, forgets=False).flows[0].summed == 2
    with cluster(tmp_path, 3) as started:
        flow = started.install(records_through(DoublesAlone))
        assert sorted(map(str, flow.output("out").changes(0))) == expected
        assert isinstance(started._workers._workers[0].instances[0].output("out").log, RecordLog)


# crashed_
