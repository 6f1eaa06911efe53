"""What a worker writes into the log of its process.

record_*    each kind, as it stands in the log
symbol_*    values of symbols travel along, once in each segment
failed_*    a delivery that cannot be written
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Sequence
from contextlib import nullcontext
from typing import cast

import pytest
from simulated_store import SimulatedStore
from written_logs import WrittenLogs, another_process, symbols, texts_of

from differential.columns.update_batch import UpdateBatch
from timely.durable import journal as journal_module
from timely.durable.incarnations import announce, read_log, read_segment
from timely.durable.journal import (
    BY_EPOCH,
    IN_OPEN_EPOCH,
    InputJournal,
    Shape,
    append_batches,
    batches_in,
)
from timely.durable.records import Record
from timely.durable.store import Store
from timely.errors import InternalError, MisuseError
from timely.wire.batch import Batch, Frame, Large, Records, decode


def written(store: Store) -> list[Record]:
    """Return the records of the last incarnation, in the order of its logs."""
    begun = announce(store, 1)
    last = max(log.incarnation for log in begun.logs)
    return [record for log in begun.logs if log.incarnation == last for record in read_log(store, log)]


def heads(store: Store) -> list[list[object]]:
    return [record.head for record in written(store)]


@pytest.fixture
def store() -> SimulatedStore:
    return SimulatedStore()


def test_record_of_decisions_and_dataflows_names_no_worker(store: SimulatedStore) -> None:
    with WrittenLogs(store) as logs:
        (journal,) = logs.journals
        journal.flow(3, ["m:f", b"args", "key", (1, 2), 5, "print", ["a", "b"]])
        journal.order(3, b"payload", [("in", "query", "stream")])
        journal.sealed(3, 9, 8)
        journal.durable(3, 10)
        journal.gone([3, 4], "why", ["UninstalledError", "TimelyError"])
    assert heads(store) == [
        ["flow", 3, "m:f", b"args", "key", [1, 2], 5, "print", ["a", "b"]],
        ["order", 3, b"payload", [["in", "query", "stream"]]],
        ["sealed", 3, 9, 8],
        ["durable", 3, 10],
        ["gone", [3, 4], "why", ["UninstalledError", "TimelyError"]],
    ]


def test_record_of_rows_and_readers_names_the_worker_that_wrote_it(store: SimulatedStore) -> None:
    with WrittenLogs(store, workers=2, processes=1) as logs:
        for journal in logs.journals:
            journal.place(0, "out", "reader", 4, 2.5)
            handle = journal.input(6, "in")
            handle.few("w", 1, 2, -1, [("a", None), (b"b", 1.5)])
            handle.rows(IN_OPEN_EPOCH, "w", 2, [(3, [Records(["a"])])], calls=8)
            handle.part("w", 3, "attempt", 4, True, [Records(["b"])], 11)
    of_worker_0, of_worker_1 = (heads(store)[:4], heads(store)[4:])
    seconds = of_worker_0[0].pop(), of_worker_1[0].pop()
    assert all(abs(time.time() - cast(int, at)) < 600 for at in seconds), "when it was written"
    assert of_worker_0 == [
        ["place", 0, 0, "out", "reader", 4, 2.5],
        ["few", 0, 6, "in", "w", 1, 2, -1, [["a", None], [b"b", 1.5]]],
        ["rows", 0, 6, "in", "open", "w", 2, 8, [[3, [[1, 1]]]]],
        ["part", 0, 6, "in", "w", 3, "attempt", 4, True, 11, [[1, 1]]],
    ]
    assert of_worker_1 == [[kind, 1, *rest] for kind, _, *rest in of_worker_0]


def test_record_of_a_delivery_has_all_its_epochs_with_their_batches_in_order(store: SimulatedStore) -> None:
    with WrittenLogs(store) as logs:
        by_epoch = [(2, [Records([1]), Records([2, 3])]), (5, []), (2**40, [Records([4])])]
        logs.journals[0].input(0, "in").rows(BY_EPOCH, "", -1, by_epoch)
    (record,) = written(store)
    assert record.head[4:] == ["epochs", "", -1, 0, [[2, [[1, 1], [1, 1]]], [5, []], [2**40, [[1, 1]]]]]
    decoded = [cast("Records", decode(1, [frame], 0)).records for frame in record.frames]
    assert decoded == [[1], [2, 3], [4]]


class InPieces(Large):
    """Travels as several messages."""

    KIND = UpdateBatch.KIND
    rows = 3

    def messages(self) -> Sequence[Batch]:  # type: ignore[override]
        return [symbols(["piece", "first"]), symbols(["piece", "second"])]


def test_record_of_a_large_batch_has_its_messages(store: SimulatedStore) -> None:
    with WrittenLogs(store) as logs:
        logs.journals[0].input(0, "in").part("w", 0, "", 0, True, [cast("Batch", InPieces())], 3)
    (record,) = written(store)
    assert record.head[-1] == [[2, 3], [2, 3]]
    with another_process() as table:
        first, second = (decode(2, frames, 0) for frames in (record.frames[:3], record.frames[3:]))
        assert texts_of(first, table) == ["piece", "first"]
        assert texts_of(second, table) == ["piece", "second"]


def test_record_takes_names_that_are_no_valid_text(store: SimulatedStore) -> None:
    with WrittenLogs(store) as logs:
        logs.journals[0].gone([1], "a name \udc80", [])
        logs.journals[0].input(0, "in").few("\udcff", 0, 0, 1, [(1,)])
    assert [head[2] for head in heads(store)[:1]] == ["a name \udc80"]
    assert heads(store)[1][4] == "\udcff"


def journal_of(logs: WrittenLogs) -> InputJournal:
    return logs.journals[0].input(0, "in")


def test_symbol_travels_once_in_a_segment_even_with_several_batches_of_one_record(
    store: SimulatedStore,
) -> None:
    with WrittenLogs(store) as logs:
        batches = [symbols(["one", "two"]), symbols(["two", "three"]), symbols(["one"])]
        journal_of(logs).rows(BY_EPOCH, "w", 0, [(0, batches[:2]), (1, batches[2:])])
        journal_of(logs).part("w", 1, "", 0, True, [symbols(["three", "four"]), symbols(["four"])], 1)
    rows, part = written(store)
    assert rows.head[-1] == [[0, [[2, 3], [2, 3]]], [1, [[2, 2]]]]
    assert part.head[-1] == [[2, 3], [2, 2]]
    with another_process() as table:
        frames = iter([*rows.frames, *part.frames])
        counts = [3, 3, 2, 3, 2]
        read = [decode(2, [next(frames) for _ in range(count)], 0) for count in counts]
        assert [texts_of(batch, table) for batch in read] == [
            ["one", "two"], ["two", "three"], ["one"], ["three", "four"], ["four"]
        ]  # fmt: skip


def test_symbol_travels_again_in_the_next_segment(store: SimulatedStore) -> None:
    with WrittenLogs(store, segment_bytes=1) as logs:
        for number in range(2):
            journal_of(logs).rows(BY_EPOCH, "w", number, [(0, [symbols(["once more"])])])
            logs.logs[0].wait(logs.logs[0].position, 20.0)
    for record in written(store):
        with another_process() as table:
            assert texts_of(decode(2, record.frames, 0), table) == ["once more"]


def test_segment_that_another_thread_fills_meanwhile_gets_the_record_whose_symbols_it_has(
    store: SimulatedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Records without frames are added while another one is made."""
    with WrittenLogs(store, segment_bytes=600) as logs:

        def beside(peer: int, batches: Sequence[Batch], frames: list[Frame]) -> list[object]:
            monkeypatch.undo()
            shape = append_batches(peer, batches, frames)
            journal_of(logs).few("w", 0, 0, 1, [("x" * 1_000,)])
            return shape

        journal_of(logs).rows(BY_EPOCH, "w", 0, [(0, [symbols(["first said"])])])
        monkeypatch.setattr(journal_module, "append_batches", beside)
        journal_of(logs).rows(BY_EPOCH, "w", 1, [(0, [symbols(["first said"])]), (1, [symbols(["later"])])])
    (log,) = announce(store, 1).logs
    for path, end in log.segments:
        with another_process() as table:
            for record in read_segment(store, path, end):
                if record.head[0] == "rows":
                    frames = iter(record.frames)
                    for _, shape in cast("list[tuple[int, Shape]]", record.head[-1]):
                        assert texts_of(batches_in(shape, frames, is_mine=True)[0], table)[0]


class Unsendable(Records):
    """Cannot become frames."""

    KIND = Records.KIND

    def to_frames(self, peer: int) -> list[Frame]:
        raise MisuseError("not to be sent")


Unsendable.__qualname__ = Records.__qualname__


def test_failed_delivery_leaves_no_record_and_its_symbols_travel_again(store: SimulatedStore) -> None:
    with WrittenLogs(store) as logs:
        bad = [symbols(["shared"]), cast("Batch", Unsendable([1]))]
        with pytest.raises(MisuseError):
            journal_of(logs).rows(BY_EPOCH, "w", 0, [(0, bad)])
        with pytest.raises(MisuseError):
            journal_of(logs).part("w", 0, "", 0, True, bad, 2)
        journal_of(logs).rows(BY_EPOCH, "w", 1, [(0, [symbols(["shared"])])])
    (record,) = written(store)
    with another_process() as table:
        assert texts_of(decode(2, record.frames, 0), table) == ["shared"]


def test_failed_record_leaves_its_symbols_unknown(
    store: SimulatedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*args: object) -> int:
        raise InternalError("no room")

    with WrittenLogs(store) as logs:
        for kind in ("rows", "part"):
            for is_refused in (True, False):
                monkeypatch.setattr(logs.logs[0], "add", refuse) if is_refused else monkeypatch.undo()
                with pytest.raises(InternalError, match="no room") if is_refused else nullcontext():
                    if kind == "rows":
                        journal_of(logs).rows(BY_EPOCH, "w", 0, [(0, [symbols(["again"])])])
                    else:
                        journal_of(logs).part("w", 0, "", 0, True, [symbols(["again"])], 1)
    first, second = written(store)
    assert len(first.frames) == 3, "the symbol has come with the first record that was written"
    assert len(second.frames) == 3, "a refused one was written as if the log had the symbol: that is gone"


def test_every_segment_says_all_its_symbols_though_several_threads_write() -> None:
    """Worker threads of one program share a log, and a segment may end at any record."""
    store = SimulatedStore()
    count, each_has = 3, 60
    with WrittenLogs(store, workers=count, processes=1, segment_bytes=400) as logs:
        logs.flow(0)

        def write(worker: int) -> None:
            journal = logs.journals[worker].input(0, "in")
            for number in range(each_has):
                texts = symbols([f"text {(number + place) % 9}" for place in range(3)])
                journal.rows(BY_EPOCH, f"w{worker}", number, [(0, [texts])])
                journal.few(f"few{worker}", number, 0, 1, [(number,)])

        threads = [threading.Thread(target=write, args=(worker,)) for worker in range(count)]
        seconds = sys.getswitchinterval()
        sys.setswitchinterval(1e-6)
        try:
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        finally:
            sys.setswitchinterval(seconds)
    (log,) = announce(store, 1).logs
    seen = 0
    for path, end in log.segments:
        with another_process() as table:  # it has no other segment
            for record in read_segment(store, path, end):
                match record.head:
                    case ("rows", *_, int(sequence), int(), [[0, shape]]):
                        (batch,) = batches_in(shape, iter(record.frames), is_mine=True)
                        assert texts_of(batch, table) == [
                            f"text {(sequence + place) % 9}" for place in range(3)
                        ]
                        seen += 1
    assert seen == count * each_has and len(log.segments) > 10
