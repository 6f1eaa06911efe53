"""What earlier incarnations have logged, as each worker of the next one reads it.

flows_*    which dataflows there are, and which are gone
orders_*   what worker 0 has decided
places_*   where readers are
rows_*     deliveries that count by themselves
parts_*    staged rows, which count if a decision of their own incarnation names them
share_*    rows of other workers, of which only names and symbols matter
damage_*   what cannot be read
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

import pytest
from simulated_store import SimulatedStore
from written_logs import WrittenLogs, another_process, symbols, texts_of

from timely.durable.bases.coverage import logs_of
from timely.durable.bases.facts import FoldFacts, InputFacts
from timely.durable.bases.positions import SourcePosition, source_key
from timely.durable.incarnations import announce
from timely.durable.journal import BY_EPOCH, IN_OPEN_EPOCH
from timely.durable.past import Past, PastFlow, PastInput, PastPart, read_orders, read_rows
from timely.durable.versions import PastSwitch
from timely.errors import StoreError
from timely.wire.batch import Batch, Records, register
from timely.wire.handshake import Decided, Entering, encode_control
from timely.wire.requests import ALL_PARTS, ONE_ATTEMPT

IS_MINE: Callable[[int], bool] = lambda worker: True  # noqa: E731


@pytest.fixture
def store() -> SimulatedStore:
    return SimulatedStore()


def past_of(store: SimulatedStore) -> Past:
    return read_orders(logs_of(store, announce(store, 1)))


def rows_of(
    store: SimulatedStore, is_mine: Callable[[int], bool] = IS_MINE, flows: Sequence[int] = (0,)
) -> dict[int, dict[str, PastInput]]:
    logs = logs_of(store, announce(store, 1))
    past = read_orders(logs)
    return read_rows(logs, [past.flows[number] for number in flows], is_mine)


def input_of(store: SimulatedStore, is_mine: Callable[[int], bool] = IS_MINE) -> PastInput:
    return rows_of(store, is_mine)[0]["in"]


def entering(
    writer: str,
    sequence: int,
    epoch: int,
    attempts: tuple[str, ...] | None = None,
    parts: int = ALL_PARTS,
    order: int = 0,
) -> Entering:
    return Entering("in", writer, sequence, epoch, order, attempts, parts)


def decide(
    logs: WrittenLogs,
    *enter: Entering,
    sealed: int = -1,
    close: tuple[str, ...] = (),
    streams: Sequence[tuple[str, str, str]] = (),
) -> None:
    logs.journals[0].order(0, encode_control(Decided(0, sealed, enter, close)), streams)


def stage(
    logs: WrittenLogs,
    record: object,
    sequence: int = 0,
    attempt: str = ONE_ATTEMPT,
    part: int = 0,
    worker: int = 0,
    is_first: bool = False,
    writer: str = "w",
) -> None:
    """Write a part of one record, which its client counts as 10 rows."""
    journal = logs.journals[worker].input(0, "in")
    journal.part(writer, sequence, attempt, part, is_first, [Records([record])], 10)


def records_in(batches: Sequence[Batch]) -> list[object]:
    return [record for batch in batches for record in cast("Records", batch).records]


def parts_of(past: PastInput) -> dict[tuple[str, int, int], list[object]]:
    """The records of all parts that enter, by attempt, worker and number."""
    return {
        key: records_in(part.batches) for each in past.entered.values() for key, part in each.parts.items()
    }


# flows_


def test_flows_have_the_facts_with_which_they_began(store: SimulatedStore) -> None:
    with WrittenLogs(store) as logs:
        logs.journals[0].flow(2, ["m:f", b"args", "key", (0, 1), 5, "print", ["a", "b"], ["folding"]])
    (flow,) = past_of(store).flows.values()
    assert flow == PastFlow(2, "m:f", b"args", "key", (0, 1), 5, "print", ("a", "b"), ["folding"])
    assert isinstance(flow.reads, tuple)


def test_flows_get_numbers_that_none_has_had_also_behind_one_that_is_gone(store: SimulatedStore) -> None:
    assert past_of(store).next_number == 0
    with WrittenLogs(store) as logs:
        logs.flow(0)
        logs.flow(7)
    with WrittenLogs(store) as logs:
        logs.flow(3)
        logs.journals[0].gone([7], "was uninstalled", ["UninstalledError", "TimelyError"])
    past = past_of(store)
    assert past.next_number == 8
    assert list(past.flows) == [0, 3]
    assert past.gone == {7: ("was uninstalled", ("UninstalledError", "TimelyError"))}


def test_flows_that_read_one_that_is_gone_are_gone(store: SimulatedStore) -> None:
    with WrittenLogs(store) as logs:
        logs.flow(0)
        logs.flow(1, reads=[0])
        logs.flow(2, reads=[1])
        logs.flow(3)
        logs.journals[0].gone([0], "why", ["TimelyError"])
        logs.flow(4, key="flow 0")
        logs.flow(5, reads=[4, 3])
    past = past_of(store)
    assert list(past.flows) == [3, 4, 5]
    assert past.gone == dict.fromkeys((0, 1, 2), ("why", ("TimelyError",)))


def test_flows_ended_one_by_one_keep_their_reasons(store: SimulatedStore) -> None:
    with WrittenLogs(store) as logs:
        logs.flow(0)
        logs.flow(1, reads=[0])
        logs.journals[0].gone([1], "first", [])
        logs.journals[0].gone([0], "then", [])
    assert past_of(store).gone == {1: ("first", ()), 0: ("then", ())}


# orders_


def test_orders_seal_up_to_the_last_epoch_of_all(store: SimulatedStore) -> None:
    with WrittenLogs(store) as logs:
        logs.flow(0)
        logs.flow(1)
        logs.journals[0].sealed(0, 3, 2)
        logs.journals[0].sealed(0, 2**40, 3)
        decide(logs, sealed=5)
        decide(logs, close=("in",))
    past = past_of(store)
    assert past.flows[0].sealed == 2**40
    assert past.flows[0].closed == ["in"]
    assert past.flows[1].sealed == -1


def test_orders_that_enter_and_seal_seal(store: SimulatedStore) -> None:
    with WrittenLogs(store) as logs:
        logs.flow(0)
        decide(logs, entering("w", 0, 4), sealed=4)
    assert past_of(store).flows[0].sealed == 4


def test_orders_of_a_query_keep_its_last_stream(store: SimulatedStore) -> None:
    with WrittenLogs(store) as logs:
        logs.flow(0)
        decide(logs, entering("q", 0, 0, ("a",)), streams=[("in", "q", "first")])
        decide(logs, entering("q", 1, 0, ("b",)), streams=[("in", "q", "second"), ("in", "p", "other")])
    assert input_of(store).streams == {"q": "second", "p": "other"}


def test_orders_about_repetitions_enter_nothing(store: SimulatedStore) -> None:
    with WrittenLogs(store) as logs:
        logs.flow(0)
        stage(logs, "once", is_first=True)
        decide(logs, entering("w", 0, 2))
        stage(logs, "again", is_first=True)
        decide(logs, entering("w", 0, -1))
    (only,) = input_of(store).entered.values()
    assert only.order.epoch == 2


def test_orders_of_a_dataflow_that_is_unknown_or_gone_change_nothing(store: SimulatedStore) -> None:
    with WrittenLogs(store) as logs:
        logs.journals[0].sealed(5, 1, 0)
        logs.journals[0].order(5, encode_control(Decided(5, 2)), [])
        logs.journals[0].place(5, "out", "r", 1, 1.0)
        logs.journals[0].input(5, "in").few("w", 0, 0, 1, [(1,)])
        logs.journals[0].input(5, "in").rows(BY_EPOCH, "w", 0, [(0, [Records([1])])])
        logs.journals[0].input(5, "in").part("w", 0, "", 0, True, [Records([1])], 1)
        logs.flow(0)
    assert past_of(store).flows.keys() == {0}
    assert rows_of(store) == {0: {}}


# places_


def places(store: SimulatedStore) -> dict[tuple[str, str], tuple[int, float]]:
    return without_times(past_of(store).flows[0])


def without_times(flow: PastFlow) -> dict[tuple[str, str], tuple[int, float]]:
    return {reader: place[:2] for reader, place in flow.places.items()}


def test_places_are_the_last_ones(store: SimulatedStore) -> None:
    with WrittenLogs(store) as logs:
        logs.flow(0)
        for epoch in (3, 5):
            logs.journals[0].place(0, "out", "r", epoch, 60.0)
        logs.journals[0].place(0, "beside", "r", 4, 1.5)
        logs.journals[0].place(0, "out", "left", 2, 60.0)
        logs.journals[0].place(0, "out", "left", -1, 0.0)
    assert places(store) == {("out", "r"): (5, 60.0), ("beside", "r"): (4, 1.5)}


def test_places_that_differ_between_workers_are_the_first_of_them(store: SimulatedStore) -> None:
    with WrittenLogs(store, workers=3) as logs:
        logs.flow(0)
        for worker, epoch in enumerate((4, 2, 3)):
            logs.journals[worker].place(0, "out", "r", epoch, float(worker))
    assert places(store) == {("out", "r"): (2, 1.0)}


def test_places_of_a_reader_that_has_left_some_workers_are_those_on_the_others(
    store: SimulatedStore,
) -> None:
    with WrittenLogs(store, workers=2) as logs:
        logs.flow(0)
        for worker in range(2):
            logs.journals[worker].place(0, "out", "r", worker + 1, 1.0)
        logs.journals[0].place(0, "out", "r", -1, 0.0)
    assert places(store) == {("out", "r"): (2, 1.0)}


def test_places_of_an_earlier_incarnation_count_where_the_reader_has_not_moved(
    store: SimulatedStore,
) -> None:
    with WrittenLogs(store, workers=3) as logs:
        logs.flow(0)
        for worker in range(3):
            logs.journals[worker].place(0, "out", "stays", 1, 1.0)
            logs.journals[worker].place(0, "out", "moves", 2, 1.0)
            logs.journals[worker].place(0, "out", "half", 3, 1.0)
            logs.journals[worker].place(0, "out", "leaves", 4, 1.0)
    with WrittenLogs(store, workers=2) as logs:
        for worker in range(2):
            logs.journals[worker].place(0, "out", "moves", 7, 1.0)
            logs.journals[worker].place(0, "out", "leaves", -1, 0.0)
        logs.journals[1].place(0, "out", "half", 8, 1.0)
    with WrittenLogs(store, workers=1):
        pass
    assert {reader: epoch for (_, reader), (epoch, _) in places(store).items()} == {
        "stays": 1,
        "moves": 7,
        "half": 3,
    }


def test_places_are_listed_by_when_they_moved(store: SimulatedStore) -> None:
    with WrittenLogs(store) as logs:
        logs.flow(0)
        for reader in "abc":
            logs.journals[0].place(0, "out", reader, 0, 1.0)
    with WrittenLogs(store) as logs:
        for reader in "ba":
            logs.journals[0].place(0, "out", reader, 1, 1.0)
        logs.journals[0].place(0, "out", "b", 2, 1.0)
    assert [reader for _, reader in places(store)] == ["c", "a", "b"]


def test_places_go_on_in_a_new_version_where_the_output_does(store: SimulatedStore) -> None:
    with WrittenLogs(store) as logs:
        logs.flow(0)
        logs.journals[0].version(1, ["", b"", "key", [], 0, "print", [], []])
        for reader, output in ("stays", "out"), ("leaves", "out"), ("stays", "lost"):
            logs.journals[0].place(0, output, reader, 3, 60.0)
        logs.journals[0].switched(PastSwitch(0, 1, 5, "key", (), {"out": ()}, {"lost": "gone"}).plain())
        logs.journals[0].place(0, "out", "comes", 5, 60.0)  # clients may know the old number only
        logs.journals[0].place(1, "out", "leaves", -1, 0.0)
    with WrittenLogs(store) as logs:
        logs.journals[0].place(0, "out", "later", 6, 60.0)
    (flow,) = past_of(store).flows.values()
    assert flow.number == 1
    assert (flow.sealed, flow.durable) == (4, 5), "workers that follow need no further news to go on"
    assert without_times(flow) == {
        ("out", "stays"): (3, 60.0),
        ("out", "comes"): (5, 60.0),
        ("out", "later"): (6, 60.0),
    }


def test_places_of_an_earlier_incarnation_go_on_in_a_new_version_where_the_output_does(
    store: SimulatedStore,
) -> None:
    with WrittenLogs(store) as logs:
        logs.flow(0)
        for output in ("out", "lost"):
            logs.journals[0].place(0, output, "reader", 3, 60.0)
    with WrittenLogs(store) as logs:
        logs.journals[0].version(1, ["", b"", "key", [], 0, "print", [], []])
        logs.journals[0].switched(PastSwitch(0, 1, 5, "key", (), {"out": ()}, {"lost": "gone"}).plain())
    assert without_times(past_of(store).flows[1]) == {("out", "reader"): (3, 60.0)}


# rows_


def test_rows_that_are_few_are_tuples_by_epoch_each_with_its_diff(store: SimulatedStore) -> None:
    values = (1, -(1 << 63), 1.5, True, None, "text", b"bytes")
    with WrittenLogs(store) as logs:
        logs.flow(0)
        journal = logs.journals[0].input(0, "in")
        journal.few("w", 0, 4, 1, [values, values[::-1]])
        journal.few("w", 1, 4, -1, [values])
        journal.few("v", 9, 5, 1, [("later",)])
    past = input_of(store)
    assert past.few == {4: ([values, values[::-1], values], [1, 1, -1]), 5: ([("later",)], [1])}
    assert [type(row) for rows, _ in past.few.values() for row in rows] == [tuple] * 4
    assert past.names == [(1, "w", 0, 4), (1, "w", 1, 4), (1, "v", 9, 5)]


def test_rows_of_deliveries_come_back_by_epoch_in_order(store: SimulatedStore) -> None:
    with WrittenLogs(store) as logs:
        logs.flow(0)
        journal = logs.journals[0].input(0, "in")
        journal.rows(BY_EPOCH, "w", 3, [(2, [Records([1]), Records([2])]), (7, []), (9, [Records([3])])], 4)
        journal.rows(IN_OPEN_EPOCH, "v", 5, [(6, [Records([4])])], 2)
    past = input_of(store)
    by_epoch, in_open = past.deliveries
    assert [(each.series, each.writer, each.sequence, each.epochs) for each in past.deliveries] == [
        ("epochs", "w", 3, [2, 7, 9]),
        ("open", "v", 5, [6]),
    ]
    assert [list(map(records_in, [batches])) for batches in by_epoch.batches] == [[[1, 2]], [[]], [[3]]]
    assert [records_in(batches) for batches in in_open.batches] == [[4]]
    assert past.names == [(1, "v", 5, 6)], "the others have their names in their epochs"
    assert past.calls == 4


def test_rows_of_all_incarnations_count_oldest_first(store: SimulatedStore) -> None:
    for incarnation in range(3):
        with WrittenLogs(store, workers=2) as logs:
            if not incarnation:
                logs.flow(0)
            for worker in (1, 0):
                logs.journals[worker].input(0, "in").few(f"{worker}", incarnation, 0, 1, [(incarnation,)])
    past = input_of(store)
    assert past.names == [(1, "0", 0, 0), (1, "1", 0, 0), (2, "0", 1, 0), (2, "1", 1, 0),
                          (3, "0", 2, 0), (3, "1", 2, 0)]  # fmt: skip


def test_rows_are_read_anew_each_time(store: SimulatedStore) -> None:
    with WrittenLogs(store) as logs:
        logs.flow(0)
        stage(logs, "part", is_first=True)
        decide(logs, entering("w", 0, 0))
        logs.journals[0].input(0, "in").few("w", 1, 0, 1, [(1,)])
    logs = logs_of(store, announce(store, 1))
    past = read_orders(logs)
    first = read_rows(logs, past.flows.values(), lambda worker: True)
    first[0]["in"].entered.clear()
    second = read_rows(logs, past.flows.values(), lambda worker: True)
    assert len(second[0]["in"].entered) == len(second[0]["in"].names) == 1
    assert parts_of(second[0]["in"]) == {("", 0, 0): ["part"]}
    assert past.flows[0].inputs["in"].names == []
    assert [each.parts for each in past.flows[0].inputs["in"].entered.values()] == [{}]


# parts_


def test_parts_count_once_a_decision_names_them(store: SimulatedStore) -> None:
    with WrittenLogs(store, workers=2) as logs:
        logs.flow(0)
        for worker in range(2):
            for part in range(3):
                stage(logs, f"{worker}.{part}", part=part, worker=worker, is_first=part == 0)
        stage(logs, "of another delivery", sequence=1, is_first=True)
        stage(logs, "of another writer", writer="v", is_first=True)
        decide(logs, entering("w", 0, 4, parts=2, order=6))
    past = input_of(store)
    assert parts_of(past) == {("", w, p): [f"{w}.{p}"] for w in range(2) for p in range(2)}
    (only,) = past.entered.values()
    assert only.order == entering("w", 0, 4, parts=2, order=6)
    assert all(
        part == PastPart(*key, key[2] == 0, 10, part.batches, True) for key, part in only.parts.items()
    )


def test_parts_of_an_insertion_without_a_number_count_all(store: SimulatedStore) -> None:
    with WrittenLogs(store) as logs:
        logs.flow(0)
        for part in range(3):
            stage(logs, part, part=part)
        stage(logs, "an attempt", attempt="a")
        decide(logs, entering("w", 0, 0))
    assert parts_of(input_of(store)) == {("", 0, part): [part] for part in range(3)}


def test_parts_of_a_batch_count_if_their_attempt_is_named(store: SimulatedStore) -> None:
    with WrittenLogs(store) as logs:
        logs.flow(0)
        for attempt in ("a", "b", "c", ONE_ATTEMPT):
            stage(logs, attempt, attempt=attempt, part=5, is_first=True)
        decide(logs, entering("w", 0, 0, ("c", "a")))
    assert parts_of(input_of(store)) == {("a", 0, 5): ["a"], ("c", 0, 5): ["c"]}


def test_parts_of_another_incarnation_than_their_decision_are_gone(store: SimulatedStore) -> None:
    with WrittenLogs(store) as logs:
        logs.flow(0)
        stage(logs, "lost", is_first=True)
    with WrittenLogs(store) as logs:
        stage(logs, "there", part=1, is_first=True)
        decide(logs, entering("w", 0, 0))
    with WrittenLogs(store) as logs:
        stage(logs, "too late", part=2, is_first=True)
    assert parts_of(input_of(store)) == {("", 0, 1): ["there"]}


def test_parts_that_are_sent_again_replace_those_of_the_same_number(store: SimulatedStore) -> None:
    with WrittenLogs(store, workers=2) as logs:
        logs.flow(0)
        stage(logs, "first", is_first=True)
        stage(logs, "of worker 1", worker=1, is_first=True)
        stage(logs, "kept", part=1)
        stage(logs, "again")
        decide(logs, entering("w", 0, 0))
    assert parts_of(input_of(store)) == {
        ("", 0, 0): ["again"],
        ("", 0, 1): ["kept"],
        ("", 1, 0): ["of worker 1"],
    }


def test_parts_that_were_dropped_before_the_attempt_began_anew_are_gone(store: SimulatedStore) -> None:
    with WrittenLogs(store, workers=2) as logs:
        logs.flow(0)
        for attempt in "ab":
            stage(logs, "dropped", attempt=attempt, is_first=True)
            stage(logs, "dropped", attempt=attempt, part=1)
            stage(logs, "on worker 1", attempt=attempt, part=1, worker=1, is_first=True)
        stage(logs, "anew", attempt="a", is_first=True)
        decide(logs, entering("w", 0, 0, ("a", "b")))
    assert parts_of(input_of(store)) == {
        ("a", 0, 0): ["anew"],
        ("a", 1, 1): ["on worker 1"],
        ("b", 0, 0): ["dropped"],
        ("b", 0, 1): ["dropped"],
        ("b", 1, 1): ["on worker 1"],
    }


def test_parts_with_no_rows_are_parts(store: SimulatedStore) -> None:
    with WrittenLogs(store) as logs:
        logs.flow(0)
        logs.journals[0].input(0, "in").part("w", 0, "", 0, True, [], 0)
        decide(logs, entering("w", 0, 0))
    assert parts_of(input_of(store)) == {("", 0, 0): []}


def test_rows_of_an_older_version_are_kept_as_far_as_no_worker_has_forgotten_some(
    store: SimulatedStore,
) -> None:
    with WrittenLogs(store, 2) as logs:
        logs.flow(0)
        for worker, kept_from in enumerate((5, 3)):
            logs.journals[worker].older(0, "out", kept_from, [(kept_from - 1, [Records([worker])])])
    logs_before = logs_of(store, announce(store, 1))
    past = read_orders(logs_before)
    read_rows(logs_before, [past.flows[0]], IS_MINE)
    older = past.flows[0].older["out"]
    assert older.kept_from == 5 and [epoch for epoch, _ in older.changes] == [4, 2]


# share_


def test_share_of_another_worker_brings_names_and_no_rows(store: SimulatedStore) -> None:
    with WrittenLogs(store, workers=3) as logs:
        logs.flow(0)
        for worker in range(3):
            journal = logs.journals[worker].input(0, "in")
            journal.few("few", worker, 0, 1, [(worker,)])
            journal.rows(BY_EPOCH, "rows", worker, [(0, [Records([worker])]), (1, [])], worker)
            stage(logs, worker, attempt=f"{worker}", worker=worker, is_first=True)
        decide(logs, entering("w", 0, 0, ("0", "1", "2")))
    past = input_of(store, lambda worker: worker == 1)
    assert past.names == [(1, "few", worker, 0) for worker in range(3)]
    assert past.few == {0: ([(1,)], [1])}
    assert [[records_in(batches) for batches in each.batches] for each in past.deliveries] == [
        [[], []], [[1], []], [[], []]
    ]  # fmt: skip
    assert [each.epochs for each in past.deliveries] == [[0, 1]] * 3
    assert past.calls == 2
    (only,) = past.entered.values()
    assert [(records_in(part.batches), part.is_mine, part.rows) for part in only.parts.values()] == [
        ([], False, 10), ([1], True, 10), ([], False, 10)
    ]  # fmt: skip


@pytest.mark.parametrize("first", ["rows", "part", "unnamed part", "other dataflow"])
def test_share_of_another_worker_has_symbols_of_later_rows(store: SimulatedStore, first: str) -> None:
    batch = symbols(["seldom", "often"])
    with WrittenLogs(store, workers=2, processes=1) as logs:
        logs.flow(0)
        logs.flow(1)
        journal = logs.journals[0].input(int(first == "other dataflow"), "in")
        if first in ("rows", "other dataflow"):
            journal.rows(BY_EPOCH, "w", 0, [(0, [batch])])
        else:
            journal.part("w", int(first == "unnamed part"), "", 0, True, [batch], 1)
        decide(logs, entering("w", 0, 0))
        logs.journals[1].input(0, "in").rows(BY_EPOCH, "w", 1, [(0, [symbols(["often"])])])
    with another_process() as table:
        past = input_of(store, lambda worker: worker == 1)
        (mine,) = [each for each in past.deliveries if any(each.batches)]
        assert texts_of(mine.batches[0][0], table) == ["often"]


def test_share_of_mine_is_read_where_worker_w_goes_to_worker_w_modulo_the_new_number(
    store: SimulatedStore,
) -> None:
    with WrittenLogs(store, workers=5) as logs:
        logs.flow(0)
        for worker in range(5):
            logs.journals[worker].input(0, "in").few("w", worker, 0, 1, [(worker,)])
    shares = [input_of(store, lambda worker, own=own: worker % 2 == own).few[0][0] for own in range(2)]  # type: ignore[misc]
    assert shares == [[(0,), (2,), (4,)], [(1,), (3,)]]


class Unregistered(Records):
    """Of a class that the next process does not know."""

    KIND = 9_871


def test_share_of_no_dataflow_here_may_be_of_an_unknown_class(
    store: SimulatedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    from timely.wire import batch as batches

    monkeypatch.setattr(batches, "_kinds", {**batches._kinds})
    monkeypatch.setattr(batches, "_of_users", {*batches._of_users})
    register(Unregistered)
    with WrittenLogs(store) as logs:
        logs.flow(0)
        logs.flow(1)
        logs.journals[0].input(1, "in").rows(BY_EPOCH, "w", 0, [(0, [Unregistered([1])])])
        logs.journals[0].input(0, "in").few("w", 0, 0, 1, [(1,)])
    batches._kinds.pop(Unregistered.KIND)
    assert input_of(store).few == {0: ([(1,)], [1])}
    with pytest.raises(StoreError, match="log/000001/p0-000000.log.* has a record of rows, at byte"):
        rows_of(store, flows=[1])


# damage_


def test_damage_of_a_batch_is_an_error_of_the_store(store: SimulatedStore) -> None:
    with WrittenLogs(store, workers=2) as logs:
        logs.flow(0)
        logs.logs[1].add(["rows", 1, 0, "in", "open", "w", 0, 0, [[0, [[1, 1]]]]], [b"\xc1"])
    with pytest.raises(
        StoreError, match="simulated/log/000001/p1-000000.log.* has a record of rows, at byte"
    ):
        input_of(store)


def test_an_epoch_is_passed_when_all_inputs_and_sources_are_behind_it() -> None:
    def flow(sealed: int, *names: str) -> PastFlow:
        inputs = tuple(InputFacts(name) for name in names)
        return PastFlow(0, "", b"", "", (), 0, "", (), FoldFacts(inputs=inputs).plain(), sealed=sealed)

    def held(flow: PastFlow, name: str, epoch: int) -> PastFlow:
        flow.source(name).note(SourcePosition(1, 0, 1, epoch, b"x"))
        return flow

    source, other = source_key("one"), source_key("other")
    assert flow(3, "rows").passed == 3
    assert held(flow(-1, source), "one", 5).passed == 4, "rows of epoch 5 may still come"
    assert held(held(flow(-1, source, other), "one", 5), "other", 2).passed == 1
    assert held(held(flow(-1, source, other), "one", ~5), "other", 2).passed == 1, "one source is over"
    assert held(flow(3, "rows", source), "one", 9).passed == 3
    assert held(flow(3, "rows", source), "one", ~9).passed == 3
