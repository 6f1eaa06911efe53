"""What a base has to know of logs apart from rows: staged parts, and the reports of workers about outputs.

part_*     staged parts: they count with their decision, on whichever side of a cut each of them is
names_*    names of deliveries, readers and logs: which stay, and for how long
report_*   changes of outputs count once all workers of an incarnation have written them
version_*  new versions that have not taken the place of old ones
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from simulated_store import SimulatedStore

from timely.durable import past
from timely.durable.bases import history, positions
from timely.durable.bases.coverage import Logs, logs_of
from timely.durable.bases.cuts import cut_logs
from timely.durable.bases.facts import FoldFacts, InputFacts, OutputFacts
from timely.durable.bases.folding import fold, summed_epochs
from timely.durable.bases.history import InputHistory, read_history
from timely.durable.bases.manifest import (
    Base,
    InputBase,
    OutputBase,
    QueryBase,
    SegmentName,
    manifest_path,
    read_base,
)
from timely.durable.bases.pruning import prune
from timely.durable.incarnations import Incarnation, announce, hello_of
from timely.durable.journal import Journal
from timely.durable.log import Log
from timely.durable.past import PastInput, read_orders, read_rows
from timely.durable.versions import PastSwitch
from timely.wire.batch import Records
from timely.wire.handshake import Decided, Entering, encode_control
from timely.wire.requests import ONE_ATTEMPT, WRITES_ONCE

SECONDS = 20.0
MODULE = "timely.operators.inputs.codecs"
FACTS = FoldFacts(0, (InputFacts("in", "", [MODULE]),), (OutputFacts("out", "", [MODULE]),))


@pytest.fixture
def store() -> SimulatedStore:
    return SimulatedStore()


class Process:
    """A process of an incarnation, which logs what a test wants."""

    def __init__(self, store: SimulatedStore, begun: Incarnation, number: int = 0) -> None:
        self.log = Log(store, begun.cluster, begun.number, number)
        self.journal = Journal(self.log, number)
        self.log.add(hello_of(begun, number))

    def begin_flow(self) -> None:
        self.journal.flow(0, ["", b"", "query", [], 0, "fingerprint", [], FACTS.plain()])

    def part(self, record: object, number: int = 0, sequence: int = 0, is_first: bool = True) -> None:
        self.journal.input(0, "in").part("w", sequence, ONE_ATTEMPT, number, is_first, [Records([record])], 1)

    def attempt(self, record: object, attempt: str, query: str = "q", batch: int = 0) -> None:
        self.journal.input(0, "in").part(query, batch, attempt, 0, True, [Records([record])], 1)

    def enter(self, epoch: int = 0, writer: str = "w", sequence: int = 0) -> None:
        entering = Entering("in", writer, sequence, epoch, 0, None)
        self.journal.order(0, encode_control(Decided(0, -1, (entering,))))

    def commit(self, attempts: tuple[str, ...], query: str = "q", batch: int = 0) -> None:
        entering = Entering("in", query, batch, 0, 0, attempts)
        self.journal.order(0, encode_control(Decided(0, -1, (entering,))), [("in", query, "stream")])

    def report(self, forgotten: int, stop: int, changes: Sequence[int] = ()) -> None:
        by_epoch = [(epoch, [Records([epoch])]) for epoch in changes]
        self.journal.changes(0, "out", (forgotten, 0, stop), by_epoch)

    def done(self) -> None:
        self.log.wait(self.log.position, SECONDS)


def rows_behind(store: SimulatedStore, incarnation: Incarnation) -> PastInput:
    """What an incarnation finds in the logs, beside the base."""
    logs = logs_of(store, incarnation)
    flows = list(read_orders(logs).flows.values())
    return read_rows(logs, flows, lambda worker: True)[0].get("in", PastInput())


def parts_of(past: PastInput) -> list[object]:
    return [
        record
        for entering in past.entered.values()
        for part in entering.parts.values()
        for batch in part.batches
        if isinstance(batch, Records)
        for record in batch.records
    ]


def folded_live(store: SimulatedStore, begun: Incarnation, name: str) -> Base:
    base = fold(cut_logs(store, begun, name), live=begun.number)
    assert base is not None
    prune(store, begun.number, count=1)
    return base


def test_part_in_front_of_a_cut_and_its_decision_behind(store: SimulatedStore) -> None:
    begun = announce(store, 1)
    process = Process(store, begun)
    process.begin_flow()
    process.part("one")
    process.journal.cut("first")
    process.done()
    base = folded_live(store, begun, "first")
    assert list(base.pinned) == [SegmentName(begun.number, 0, 0)]
    assert store.exists("log/000001/p0-000000.log")
    process.journal.cut("second")
    process.done()
    assert list(folded_live(store, begun, "second").pinned) == [SegmentName(begun.number, 0, 0)]
    process.enter()
    process.done()
    past = rows_behind(store, announce(store, 1))
    assert parts_of(past) == ["one"]


def test_part_and_decision_in_front_of_a_cut_are_in_the_base(store: SimulatedStore) -> None:
    begun = announce(store, 1)
    process = Process(store, begun)
    process.begin_flow()
    process.part("one")
    process.journal.cut("first")
    process.done()
    folded_live(store, begun, "first")
    process.enter()
    process.part("two", sequence=1)
    process.enter(sequence=1)
    process.journal.cut("second")
    process.part("one")  # a repetition after the decision counts nowhere
    process.done()
    base = folded_live(store, begun, "second")
    assert not base.pinned and base.flows[0].inputs["in"].rows == 2
    assert base.flows[0].inputs["in"].names == [["w", 0, [[0, 1]]]]
    next_begun = announce(store, 1)
    assert parts_of(rows_behind(store, next_begun)) == []
    assert not store.exists("log/000001/p0-000000.log")


def test_part_without_a_decision_is_void_when_its_incarnation_is(store: SimulatedStore) -> None:
    begun = announce(store, 1)
    process = Process(store, begun)
    process.begin_flow()
    process.part("one")
    process.journal.cut("first")
    process.done()
    folded_live(store, begun, "first")
    begun = announce(store, 1)
    base = fold(logs_of(store, begun))
    assert base is not None and not base.pinned and base.flows[0].inputs["in"].rows == 0
    prune(store, begun.number, count=1)
    assert not store.list("log/000001")


def test_part_that_was_sent_again_counts_once(store: SimulatedStore) -> None:
    begun = announce(store, 1)
    process = Process(store, begun)
    process.begin_flow()
    for record in ("first", "again"):
        process.part(record, is_first=record == "first")
    process.part("lost", number=1, sequence=7)
    process.part("anew", number=0, sequence=7)  # the others were dropped before
    process.enter()
    process.enter(sequence=7)
    process.journal.cut("cut")
    process.done()
    base = folded_live(store, begun, "cut")
    assert base.flows[0].inputs["in"].rows == 2


def test_part_of_an_attempt_that_is_not_named_does_not_count(store: SimulatedStore) -> None:
    begun = announce(store, 1)
    process = Process(store, begun)
    process.begin_flow()
    for attempt in ("a", "b", "c"):
        process.attempt(attempt, attempt)
    process.commit(("c", "a"))
    process.attempt("later", "d", batch=1)
    process.journal.cut("cut")
    process.done()
    base = folded_live(store, begun, "cut")
    kept = base.flows[0].inputs["in"]
    assert kept.rows == 2 and kept.queries == [("q", 0, 2, "stream")]
    assert list(base.pinned) == [SegmentName(begun.number, 0, 0)]  # for the batch that may yet be committed


def test_part_needs_the_symbols_of_the_segment_before(store: SimulatedStore) -> None:
    begun = announce(store, 1)
    process = Process(store, begun)
    process.begin_flow()
    process.done()
    store.disk.failing["sync"] = 5  # what follows goes to a segment that continues the first one
    process.part("one")
    with pytest.raises(Exception, match="cannot be written"):
        process.done()
    store.disk.failing.clear()
    process.done()
    process.journal.cut("cut")
    process.done()
    base = folded_live(store, begun, "cut")
    assert len(base.pinned) >= 2
    assert min(base.pinned).number == 0


def test_part_of_a_new_version_is_kept_until_that_has_failed(store: SimulatedStore) -> None:
    begun = announce(store, 1)
    process = Process(store, begun)
    process.begin_flow()
    process.journal.version(1, ["", b"", "query", [], 0, "fingerprint", [], FACTS.plain()])
    process.journal.cut("zero")
    process.done()
    assert list(folded_live(store, begun, "zero").pinned) == [SegmentName(begun.number, 0, 0)]
    process.journal.input(1, "in").few("w", 0, 0, 1, [["row"]])
    process.journal.cut("first")
    process.done()
    pinned = folded_live(store, begun, "first").pinned
    assert sorted(pinned) == [SegmentName(begun.number, 0, segment) for segment in range(2)]
    process.journal.gone([1], "it fails", ["VertexError"])
    process.journal.cut("second")
    process.done()
    base = folded_live(store, begun, "second")
    assert not base.pinned and base.gone[1] == ("it fails", ["VertexError"])
    assert not store.exists("log/000001/p0-000000.log")


def test_part_beside_a_new_version_that_has_failed_does_not_bring_that_back(store: SimulatedStore) -> None:
    """The segment is read once more, for the part; the end of the version is not, as the base has it."""
    begun = announce(store, 1)
    process = Process(store, begun)
    process.begin_flow()
    process.journal.version(1, ["", b"", "query", [], 0, "fingerprint", [], FACTS.plain()])
    process.part("one")
    process.journal.cut("first")
    process.journal.gone([1], "it fails", ["VertexError"])
    process.journal.cut("second")
    process.done()
    assert folded_live(store, begun, "first").pinned and folded_live(store, begun, "second").pinned
    process.journal.input(0, "in").dropped("w", 0, ONE_ATTEMPT)
    process.journal.cut("third")
    process.done()
    assert not folded_live(store, begun, "third").pinned


def test_ended_dataflows_are_told_of_up_to_a_number(
    store: SimulatedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("timely.durable.bases.folding.ENDED_DATAFLOWS_MAX", 2)
    begun = announce(store, 1)
    process = Process(store, begun)
    process.begin_flow()
    for number in range(1, 6):
        process.journal.flow(number, ["", b"", f"query {number}", [], 0, "", [], FACTS.plain()])
        process.journal.input(number, "in").few("w", 0, 0, 1, [["row"]])
        if number != 3:
            process.journal.gone([number], "it has ended", [])
    process.journal.cut("first")
    process.journal.input(1, "in").few("late", 0, 0, 1, [["row"]])
    process.journal.cut("second")
    process.done()
    for cut in ("first", "second"):
        base = folded_live(store, begun, cut)
        assert (sorted(base.flows), sorted(base.gone), base.ended_before) == ([0, 3], [4, 5], 3)
        assert not base.pinned, "nobody needs rows of dataflows that have ended"
    process.journal.version(6, ["", b"", "query", [], 0, "", [], FACTS.plain()])
    for number in range(7, 10):
        process.journal.flow(number, ["", b"", f"query {number}", [], 0, "", [], FACTS.plain()])
        process.journal.gone([number], "it has ended", [])
    process.journal.cut("third")
    process.done()
    base = folded_live(store, begun, "third")
    assert (sorted(base.gone), base.ended_before) == ([7, 8, 9], 6), "6 may yet take a place"
    assert [name.number for name in base.pinned] == [2]
    assert past.past_of(base).ended_before == 6 and past.past_of(base).next_number == 10
    assert read_base(store, base.number) == base


def test_part_counts_as_a_call_and_each_attempt_of_a_batch(store: SimulatedStore) -> None:
    """Else a call behind a restart would come before these in its epoch."""
    begun = announce(store, 1)
    process = Process(store, begun)
    process.begin_flow()
    process.part("one")
    process.attempt("two", "a")
    process.attempt("three", "b")
    for entering in Entering("in", "w", 0, 0, 7, None), Entering("in", "q", 0, 0, 8, ("a", "b")):
        process.journal.order(0, encode_control(Decided(0, -1, (entering,))))
        process.journal.cut(str(entering.order))
        process.done()
        base = fold(cut_logs(store, begun, str(entering.order)), live=begun.number)
        assert base is not None
        assert base.flows[0].inputs["in"].calls == 7 + 2 * (entering.writer == "q")


def test_names_that_inputs_forget_leave_the_base(
    store: SimulatedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "WRITERS_MAX", 3)
    monkeypatch.setattr(positions, "READERS_MAX", 2)
    begun = announce(store, 1)
    process = Process(store, begun)
    process.begin_flow()
    for writer in "abcdb":
        process.journal.input(0, "in").few(writer, 0 if writer != "b" else 1, 0, 1, [["row"]])
    for query in (*(f"{WRITES_ONCE}{number}" for number in range(5)), "stream"):
        process.attempt("row", "attempt", query)
        process.commit(("attempt",), query)
    for reader, output in ("1", "out"), ("2", "out"), ("3", "out"), ("4", "other"), ("1", "out"):
        process.journal.place(0, output, reader, 7, 1.0)
    process.done()
    base = fold(logs_of(store, announce(store, 1)))
    assert base is not None
    kept = base.flows[0].inputs["in"]
    assert [name[0] for name in kept.names] == ["c", "d", "b"]
    assert [each.query for each in kept.queries] == [*(f"{WRITES_ONCE}{n}" for n in (2, 3, 4)), "stream"]
    assert [place[:2] for place in base.flows[0].places] == [("out", "3"), ("other", "4"), ("out", "1")]


def test_names_of_appends_stay_until_the_next_epoch_but_one_is_sealed() -> None:
    appends = [("w", 0, [2]), ("w", 1, [3]), ("w", 2, [2, 4]), ("w", 3, [7])]
    assert InputHistory.of(InputBase(appends=appends)).as_base(3).appends == appends[1:]


def test_names_of_logs_that_the_only_base_stands_for_are_those_of_a_restart(store: SimulatedStore) -> None:
    """If something of that base is damaged, the logs have the same."""
    begun = announce(store, 1)
    process = Process(store, begun)
    process.begin_flow()
    process.journal.input(0, "in").few("w", 0, 0, 1, [["row"]])
    process.journal.cut("cut")
    process.done()
    base = fold(cut_logs(store, begun, "cut"), live=begun.number)
    assert base is not None and prune(store, begun.number) == []
    process = Process(store, announce(store, 1))
    process.done()
    store.remove(manifest_path(base.number))
    assert rows_behind(store, announce(store, 1)).few == {0: ([("row",)], [1])}


def test_names_of_logs_stay_in_bases_until_their_files_are_gone(store: SimulatedStore) -> None:
    """Folds that are killed before they remove anything; a later one does."""
    for life in range(4):
        begun = announce(store, 1)
        process = Process(store, begun)
        if not life:
            process.begin_flow()
        for cut in ("first", "second"):
            process.journal.cut(cut)
            process.done()
            assert fold(cut_logs(store, begun, cut), live=begun.number) is not None
    assert len(store.list("log/000001")) >= 3
    prune(store, begun.number)
    assert not store.list("log/000001") and not store.list("log/000002")


# report_


def outputs_after(store: SimulatedStore, incarnation: Incarnation) -> OutputBase:
    return read_history(logs_of(store, incarnation), 0).outputs[0]["out"]


def test_report_counts_once_all_workers_have_made_it(store: SimulatedStore) -> None:
    begun = announce(store, 2)
    processes = [Process(store, begun, number) for number in range(2)]
    processes[0].begin_flow()
    processes[0].report(2, 7, [3, 4])
    processes[1].report(1, 5, [3])
    for process in processes:
        process.done()
    output = outputs_after(store, announce(store, 1))
    assert (output.kept_from, output.kept_before) == (2, 5)  # worker 0 had forgotten its changes of epoch 1


def test_report_of_one_worker_does_not_count(store: SimulatedStore) -> None:
    begun = announce(store, 2)
    processes = [Process(store, begun, number) for number in range(2)]
    processes[0].begin_flow()
    processes[1].report(0, 5, [3])
    for process in processes:
        process.done()
    output = outputs_after(store, announce(store, 1))
    assert (output.kept_from, output.kept_before) == (0, 0)


def test_report_of_a_later_incarnation_adds_only_what_is_missing(store: SimulatedStore) -> None:
    for stop in (4, 6):
        begun = announce(store, 1)
        process = Process(store, begun)
        if stop == 4:
            process.begin_flow()
        process.report(0, stop, range(stop))
        process.done()
    begun = announce(store, 1)
    base = fold(logs_of(store, begun))
    assert base is not None
    (file,) = base.flows[0].outputs["out"].files
    assert (file.rows, file.epochs) == (6, (0, 5))


def test_report_beyond_the_cut_waits_for_the_next_base(store: SimulatedStore) -> None:
    begun = announce(store, 1)
    process = Process(store, begun)
    process.begin_flow()
    process.report(0, 2, [0, 1])
    process.journal.cut("cut")
    process.report(0, 3, [2])
    process.done()
    logs: Logs = cut_logs(store, begun, "cut")
    assert read_history(logs, begun.number).outputs[0]["out"].kept_before == 2


def test_part_that_was_dropped_holds_nothing(store: SimulatedStore) -> None:
    begun = announce(store, 2)
    process, other = Process(store, begun), Process(store, begun, number=1)
    process.begin_flow()
    for each in (process, other):
        for sequence in range(2):
            each.part("lost", sequence=sequence)
    process.attempt("lost", "a")
    process.journal.cut("first")
    other.journal.cut("first")
    pinned = [SegmentName(begun.number, number, 0) for number in range(2)]
    for each in (process, other):
        each.done()
    assert sorted(folded_live(store, begun, "first").pinned) == pinned
    dropped = process.journal.input(0, "in").dropped
    dropped("w", 0, ONE_ATTEMPT)
    dropped("w", 1, ONE_ATTEMPT)
    process.journal.cut("second")
    other.journal.cut("second")
    for each in (process, other):
        each.done()
    pinned.insert(1, SegmentName(begun.number, 0, 1))  # which says what was dropped of the one before
    assert sorted(folded_live(store, begun, "second").pinned) == pinned, "of an attempt, and of the other"
    dropped("q", 0, "a")
    for sequence in range(2):
        other.journal.input(0, "in").dropped("w", sequence, ONE_ATTEMPT)
    other.part("again", sequence=1)
    process.journal.cut("third")
    other.journal.cut("third")
    for each in (process, other):
        each.done()
    assert list(folded_live(store, begun, "third").pinned) == [SegmentName(begun.number, 1, 2)]


def test_batch_and_insertion_with_the_same_name_are_two(store: SimulatedStore) -> None:
    begun = announce(store, 1)
    process = Process(store, begun)
    process.begin_flow()
    process.attempt("batch", "a", query="w")
    process.part("inserted")
    process.part("inserted, too", number=1, is_first=False)
    process.commit(("a",), query="w")
    process.enter()
    process.journal.cut("cut")
    process.done()
    base = folded_live(store, begun, "cut")
    into = base.flows[0].inputs["in"]
    assert sum(file.rows for file in into.files) == 3
    assert into.queries == [QueryBase("w", 0, 1, "stream")] and [name[0] for name in into.names] == ["w"]


def test_batches_behind_a_switch_are_later_than_those_that_the_old_version_had(store: SimulatedStore) -> None:
    begun = announce(store, 2)
    process, other = Process(store, begun), Process(store, begun, number=1)
    process.begin_flow()
    process.journal.version(1, ["", b"", "new", [], 0, "another", [], FACTS.plain()])
    for each, rows in ((process, 30), (other, 40)):
        taken = [QueryBase("old", 2, rows, "s"), QueryBase("q", 5, rows, "s")]
        each.journal.input(1, "in").taken([[], [], taken, 0])
        each.done()
    process.journal.switched(PastSwitch(0, 1, 0, "query", (), {}, {}).plain())
    for each in (process, other):
        each.journal.input(1, "in").part("q", 6, "a", 0, True, [Records(["six"])], 1)
    order = Entering("in", "q", 6, 0, 0, ("a",))
    process.journal.order(1, encode_control(Decided(1, -1, (order,))), [("in", "q", "s")])
    for each in (process, other):
        each.journal.cut("cut")
        each.done()
    queries = folded_live(store, begun, "cut").flows[1].inputs["in"].queries
    assert sorted(queries) == [QueryBase("old", 2, 70, "s"), QueryBase("q", 6, 2, "s")]


def test_rows_in_front_of_a_cut_whose_dataflow_has_begun_behind_that_of_worker_0(
    store: SimulatedStore,
) -> None:
    begun = announce(store, 2)
    process, other = Process(store, begun), Process(store, begun, number=1)
    process.begin_flow()
    process.journal.cut("cut")
    process.journal.flow(1, ["", b"", "later", [], 0, "fingerprint", [], FACTS.plain()])
    other.journal.input(1, "in").few("w", 0, 0, 1, [("early",)])
    other.journal.digest(1, "out", 5, [(4, 70)])
    other.journal.place(1, "out", "reader", 3, 60.0)
    other.journal.cut("cut")
    for each in (process, other):
        each.done()
    folded_live(store, begun, "cut")
    other.journal.input(1, "in").few("w", 1, 0, 1, [("late",)])
    for each in (process, other):
        each.journal.digest(1, "out", 9, [(7, 4)])
        each.done()
    logs = logs_of(store, announce(store, 1))
    flows = read_orders(logs).flows
    assert flows[1].digests["out"].sums == {4: 70, 7: 8}
    assert flows[1].places["out", "reader"][:2] == (3, 60.0)
    into = read_rows(logs, list(flows.values()), lambda worker: True)[1]["in"]
    assert into.few == {0: ([("early",), ("late",)], [1, 1])}


def test_importers_begin_with_what_a_dataflow_that_looks_back_answers_rightly(store: SimulatedStore) -> None:
    """As of the epoch with which its importer begins, the owner needs the epochs before that one by one."""
    facts = FoldFacts(3, (InputFacts("in", "", [MODULE], sums=True),))
    begun = announce(store, 1)
    process = Process(store, begun)
    process.journal.flow(0, ["", b"", "owner", [], 0, "fingerprint", [], facts.plain()])
    process.journal.flow(1, ["", b"", "importer", [0], 0, "fingerprint", [], facts.plain()])
    process.journal.sealed(0, 20, 0)
    process.journal.sealed(1, 12, 0)
    process.journal.cut("cut")
    process.done()
    summed = summed_epochs(read_history(cut_logs(store, begun, "cut"), begun.number))
    assert summed == {1: 12 - 3, 0: 12 - 3 - 3}


# version_


def test_version_that_may_yet_take_over_keeps_the_epochs_of_what_it_reads(store: SimulatedStore) -> None:
    """It goes on with an early epoch, although what it imports is sealed far ahead of that."""
    facts = FoldFacts(0, (InputFacts("in", "", [MODULE], sums=True),)).plain()
    begun = announce(store, 1)
    process = Process(store, begun)
    process.journal.flow(0, ["", b"", "owner", [], 0, "fingerprint", [], facts])
    process.journal.flow(1, ["", b"", "old", [], 0, "fingerprint", [], facts])
    process.journal.version(2, ["", b"", "new", [0], 3, "fingerprint", [], facts])
    process.journal.sealed(0, 9, 0)
    for cut, summed in (("while it catches up", 3), ("when it has failed", 9)):
        process.journal.cut(cut)
        process.done()
        assert summed_epochs(read_history(cut_logs(store, begun, cut), begun.number))[0] == summed
        process.journal.gone([2], "it has failed", [])
