"""What is asked of inputs, without a socket; what is refused: `test_server.py`."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from one_worker import LINES, answer, serving

import differential as dd
from timely import Dataflow, InputClosedError, MisuseError, RequestError
from timely.running.checking.comparable import comparable
from timely.running.core import Worker
from timely.wire.requests import (
    BY_COLUMN,
    IN_EPOCH,
    IN_OPEN,
    WHEN_NAMED,
    Decide,
    Deliver,
    Describe,
    Drop,
    Missing,
    Value,
)
from timely.wire.transport.memory import MemoryNetwork
from timely.worker.answers.inputs import inputs_named
from timely.worker.server import Server


def test_sealing_with_something_missing_seals_nothing() -> None:
    server, worker, _ = serving()
    expected: list[Value] = [["lines", "w", 0], ["lines", "w", 1]]
    answer(server, Deliver(0, "lines", "w", 1, IN_EPOCH, 0, 0), LINES)
    assert answer(server, Missing(0, 0, expected)).items("missing") == [["lines", "w", 0]]
    assert answer(server, Missing(0, 1, expected)).items("missing") == expected
    assert worker.instance(0).input("lines").epoch == 0


def two_workers() -> list[Server]:
    network = MemoryNetwork(2)
    workers = [Worker(index, 2, network.transport(index)) for index in range(2)]
    for worker in workers:
        flow = Dataflow("flow")
        dd.input(flow, "values", "k: int, v: int", key="k", mode="upsert").output("values")
        dd.input(flow, "rows", "k: int, v: int").output("rows")
        worker.install(flow.freeze())
    return [Server(worker) for worker in workers]


SAID = pa.table({"k": [1], "v": [2]})
BY_DIFF = SAID.append_column("diff", pa.array([1]))
BY_EPOCH = BY_DIFF.append_column("at", pa.array([0]))


@pytest.mark.parametrize(
    ("request_", "table"),
    [
        (Deliver(0, "values", "w", -1, IN_EPOCH, 0, 0), BY_DIFF),
        (Deliver(0, "values", "w", -1, BY_COLUMN, 0, 0, column="at"), BY_EPOCH),
        (Deliver(0, "values", "w", 0, IN_OPEN, 0, 1), SAID),
        (Deliver(0, "values", "w", 0, IN_OPEN, 0, 1, [(1, 2)]), None),
    ],
)
def test_rows_in_the_order_of_calls_are_taken_by_worker_0_alone_where_that_counts(
    request_: Deliver, table: pa.Table | None
) -> None:
    first, second = two_workers()
    with pytest.raises(RequestError, match=r"'values' keeps the last value by key: worker 0 .* is worker 1$"):
        second.handle(request_, table)
    assert answer(first, request_, table).values["is_new"]
    assert answer(second, replace(request_, input="rows"), table).values["is_new"], (
        "of rows it does not count"
    )


def test_rows_that_have_a_place_in_the_order_anyhow_are_taken_by_any_worker() -> None:
    """By their name, or by the call that lets them enter."""
    for server in two_workers():
        assert answer(server, Deliver(0, "values", "w", 0, IN_EPOCH, 0, 0), BY_DIFF).values["is_new"]
        assert answer(server, Deliver(0, "values", "w", 1, BY_COLUMN, 0, 0, column="at"), BY_EPOCH).values[
            "is_new"
        ]
        assert answer(server, Deliver(0, "values", "w", 0, WHEN_NAMED, 0, 1, part=0), SAID).values["is_new"]


def test_parts_of_insertions_for_which_there_is_no_room_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("timely.operators.inputs.deliveries.STAGED_BYTES_MAX", 1 << 10)
    server, _ = two_workers()
    assert answer(server, Deliver(0, "rows", "w", 0, WHEN_NAMED, 0, 1, part=0), SAID).values["is_new"]
    with pytest.raises(MisuseError, match="parts of insertions wait here with .* are the limit"):
        server.handle(Deliver(0, "rows", "w", 0, WHEN_NAMED, 0, 1, part=1), SAID)
    assert answer(server, Decide(0, 0, enter=[["rows", "w", 0]])).values["entered"] == [[True, 0]]
    assert answer(server, Deliver(0, "rows", "w", 1, WHEN_NAMED, 0, 1, part=0), SAID).values["is_new"]


def test_rows_count_in_one_of_four_ways() -> None:
    server, _ = two_workers()
    with pytest.raises(
        RequestError, match="count as one of 'open', 'epoch', 'column', 'named', not as 'now'"
    ):
        server.handle(Deliver(0, "rows", "w", 0, "now", 0, 1), SAID)


def test_rows_come_in_a_table_or_plain_and_never_not_at_all() -> None:
    """A delivery that counted without its rows would have lost them: its name is taken."""
    server, _ = two_workers()
    for table, counts, rows in (
        (None, IN_OPEN, []),
        (None, IN_EPOCH, []),
        (None, WHEN_NAMED, [(1, 2)]),
        (SAID, IN_OPEN, [(1, 2)]),
    ):
        with pytest.raises(RequestError, match="came without a table|come alone, and count as 'open'"):
            server.handle(Deliver(0, "rows", "w", 0, counts, 0, 1, rows), table)
    assert answer(server, Deliver(0, "rows", "w", 0, IN_OPEN, 0, 1, [(1, 2)])).values["is_new"]


@pytest.mark.parametrize("rows", [0, 1])
def test_an_append_by_column_is_refused_once_the_input_is_closed_though_it_has_no_rows(rows: int) -> None:
    first, _ = two_workers()
    answer(first, Decide(0, -1, close=["rows"]))
    with pytest.raises(InputClosedError, match="input 'rows' is closed"):
        first.handle(Deliver(0, "rows", "w", 0, BY_COLUMN, 0, 0, column="at"), BY_EPOCH.slice(0, rows))


def test_inputs_that_a_request_names_are_found_wherever_they_stand() -> None:
    for request, names in (
        (Deliver(0, "a", "w", 0, IN_OPEN, 0, 1), ["a"]),
        (Decide(0, 0, True, [["a", "w", 0]], [["b", "w", 0]], ["c"]), ["c", "a", "b"]),
        (Decide(0, 0, True, [7, []], ["x"], [7]), []),
        (Missing(0, 0, [["a", "w", 0]], [["b", "q"]]), ["a", "b"]),
        (Drop(0, [["a", "q", 0]]), ["a"]),
        (Describe(0), []),
    ):
        assert list(inputs_named(request)) == names


def test_what_cannot_be_read_of_a_request_changes_nothing() -> None:
    server, _ = two_workers()
    answer(server, Deliver(0, "rows", "q", 0, WHEN_NAMED, 0, 1, attempt="a"), SAID)
    with pytest.raises(RequestError, match="what is dropped is"):
        server.handle(Drop(0, [["rows", "q", 0, "a"], ["rows", "q", 0, "a", "b"]]))
    with pytest.raises(RequestError, match="what may be missing is"):
        server.handle(Missing(0, 0, [["rows", "q", 0, "a", 1], ["rows"]]))
    answer(server, Drop(0, [["rows", "q", 0]]))  # it was not found by the look that was refused
    assert answer(server, Missing(0, 0, [["rows", "q", 0, "a", 1]])).items("missing")


ODD = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**62), 2**62)
    | st.sampled_from(["rows", "values", "w", "q", "", "a", "\ud800"]),
    lambda inner: st.lists(inner, max_size=7) | st.dictionaries(st.text(max_size=2), inner, max_size=2),
    max_leaves=12,
)
NAMED = st.tuples(
    st.sampled_from(["rows", "values", "none"]),
    st.sampled_from(["w", "q", ""]),
    st.integers(-1, 2) | st.just(2**62),
).map(list)
ENTRIES = st.lists(
    NAMED
    | st.tuples(NAMED, st.lists(ODD, max_size=4)).map(lambda both: [*both[0], *both[1]])
    | st.tuples(
        NAMED, st.lists(st.sampled_from("ab"), max_size=2), st.text(max_size=1), st.booleans(), st.integers()
    ).map(lambda all_of: [*all_of[0], *all_of[1:]])
    | ODD,
    max_size=3,
)


@given(st.integers(-1, 2), st.booleans(), ENTRIES, ENTRIES, st.lists(ODD, max_size=2))
def test_odd_names_are_refused_or_mean_something_and_what_is_refused_changes_nothing(
    epoch: int, seals: bool, some: list[Value], others: list[Value], close: list[Value]
) -> None:
    server, second = two_workers()
    answer(server, Deliver(0, "rows", "w", 0, IN_OPEN, 0, 1), SAID)
    answer(server, Deliver(0, "rows", "w", 1, WHEN_NAMED, 0, 1), SAID)
    answer(server, Deliver(0, "rows", "q", 0, WHEN_NAMED, 0, 1, attempt="a"), SAID)
    handles = server._worker.instance(0).inputs
    for request in (
        Decide(0, epoch, seals, some, others, close),
        Decide(0, epoch, seals, enter=some),
        Missing(0, epoch, some, others),
        Drop(0, others),
    ):
        before = comparable(handles)
        try:
            answer(server, request)
        except MisuseError:  # never a bug of ours
            assert comparable(handles) == before
        with suppress(MisuseError):
            answer(second, request)
