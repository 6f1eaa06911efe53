"""What two workers make of what tasks have staged, through the same door as for every client.

commit_*    what enters, in which epoch, and what is left
order_*     where the order of calls counts
refused_*   what cannot be staged or committed changes nothing
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa
import pytest

import differential as dd
import timely
from timely import InputClosedError, MisuseError, RequestError
from timely.client.session import Flow
from timely.operators.inputs.deliveries import COMMIT_SECONDS_MAX, Deliveries
from timely.wire.requests import WHEN_NAMED, Decide, Deliver, Drop, Missing, Reply, Request, Value


@pytest.fixture
def flow() -> Iterator[Flow]:
    def passed_on(dataflow: timely.Dataflow) -> None:
        dd.input(dataflow, "rows", "n: int").output("rows")
        dd.input(dataflow, "last", "k: int, v: int", key="k", mode="upsert").output("last")

    with timely.connect(workers=2, embedded=True) as cluster:
        yield cluster.install(passed_on)


def ask(flow: Flow, request: Request, worker: int = 0, table: pa.Table | None = None) -> Reply:
    (reply,) = flow._workers.ask([(worker, request, table)])
    return reply


def check_of(name: str, batch: int, attempts: list[tuple[str, int]]) -> Missing:
    """Ask for parts of attempts at a batch of query "q", and for what is known of that."""
    return Missing(0, -1, [[name, "q", batch, *one] for one in attempts], [[name, "q"]])


def missing(reply: Reply) -> list[Value]:
    """The attempts that are not here, by name."""
    return [attempt for _, _, _, attempt, _ in reply.values["missing"]]  # type: ignore[attr-defined]


def drop_of(batch: int, *attempts: str) -> Drop:
    """Drop attempts at a batch of query "q", or, without any, what no check has found."""
    return Drop(0, [["rows", "q", batch, attempt] for attempt in attempts] or [["rows", "q", batch]])


def outcome(reply: Reply) -> dict[str, Value]:
    """Whether the one batch that was to enter is new, its epoch, and the open one."""
    ((is_new, epoch),) = reply.values["entered"]  # type: ignore[attr-defined]
    return {"is_new": is_new, "epoch": epoch, "open": reply.values["open"]}


def stage(flow: Flow, batch: int, attempt: str, number: int, *rows: int, worker: int = 0) -> bool:
    request = Deliver(0, "rows", "q", batch, WHEN_NAMED, 0, 1, part=number, attempt=attempt)
    return bool(ask(flow, request, worker, pa.table({"n": list(rows)})).values["is_new"])


def commit(
    flow: Flow, batch: int, *attempts: str, seals: bool = True, may_skip: bool = False, stream: str = ""
) -> dict[str, Value]:
    request = Decide(0, -1, seals, enter=[["rows", "q", batch, list(attempts), stream, may_skip, looked()]])
    return outcome(ask(flow, request))


def looked(seconds_ago: float = 0.0) -> int:
    """By the clock of worker 0, which is that of this process."""
    return int(time.monotonic() - seconds_ago)


def full(deliveries: Deliveries, query: str) -> None:
    raise MisuseError(f"no room for {query}")


def rows(flow: Flow) -> list[tuple[int, int]]:
    return [(row["epoch"], row["n"]) for row in flow.output("rows").changes(0, flow.refresh()).to_pylist()]


def test_commit_lets_in_exactly_the_attempts_that_it_names_on_all_workers(flow: Flow) -> None:
    assert stage(flow, 0, "first", 0, 1, 2) and stage(flow, 0, "first", 1, 3, worker=1)
    assert stage(flow, 0, "failed", 0, 1, 2, worker=1), "the same task, run twice"
    assert stage(flow, 0, "other", 0, 4, worker=1)
    assert commit(flow, 0, "first", "other") == {"is_new": True, "epoch": 0, "open": 1}
    assert rows(flow) == [(0, 1), (0, 2), (0, 3), (0, 4)]
    assert not stage(flow, 0, "late", 0, 9, worker=1), "one that still runs is told so"
    assert stage(flow, 1, "next", 0, 5)
    assert commit(flow, 0, "late") == {"is_new": False, "epoch": 1, "open": 1}
    assert commit(flow, 1, "next")["epoch"] == 1
    assert rows(flow) == [(0, 1), (0, 2), (0, 3), (0, 4), (1, 5)]
    with pytest.raises(MisuseError, match="batch 0 of query q has come already, and so have those up to 1"):
        commit(flow, 0, "late", may_skip=True)
    assert rows(flow) == [(0, 1), (0, 2), (0, 3), (0, 4), (1, 5)]


@pytest.mark.parametrize("parts", [0, 1, 3])
def test_missing_is_an_attempt_of_more_or_fewer_parts_than_its_task_has_staged(
    flow: Flow, parts: int
) -> None:
    assert stage(flow, 0, "a", 0, 1) and stage(flow, 0, "a", 1, 2)
    assert missing(ask(flow, check_of("rows", 0, [("a", parts)]))) == ["a"]
    assert missing(ask(flow, check_of("rows", 0, [("a", 2)]))) == []


def test_commit_leaves_behind_how_many_rows_it_had_on_each_worker(flow: Flow) -> None:
    assert stage(flow, 0, "a", 0, 1, 2) and stage(flow, 0, "a", 1, 3) and stage(flow, 0, "a", 2, 4, worker=1)
    assert stage(flow, 0, "failed", 0, 5, worker=1)
    commit(flow, 0, "a")
    assert rows(flow) == [(0, 1), (0, 2), (0, 3), (0, 4)]
    check = check_of("rows", 0, [])
    assert [ask(flow, check, worker).values["queries"][0][1] for worker in range(2)] == [3, 1]  # type: ignore[index]


def test_commit_of_another_stream_under_the_same_name_is_refused(flow: Flow) -> None:
    for batch, stream in enumerate(("one", "one")):
        assert stage(flow, batch, "a", 0, batch)
        commit(flow, batch, "a", stream=stream)
    assert stage(flow, 2, "b", 0, 9)
    for batch in (1, 2):
        for stream in ("two", ""):
            with pytest.raises(MisuseError, match=f"batch {batch} of query q is not written: another stream"):
                commit(flow, batch, "b", stream=stream)
    assert not commit(flow, 1, "b", stream="one")["is_new"]
    assert commit(flow, 2, "b", may_skip=True, stream="two")["is_new"]
    assert stage(flow, 3, "c", 0, 7) and commit(flow, 3, "c", stream="two")["is_new"]
    assert rows(flow) == [(0, 0), (1, 1), (2, 9), (3, 7)]


def test_commit_that_repeats_a_batch_makes_its_stream_none_of_another_name(flow: Flow) -> None:
    assert stage(flow, 0, "a", 0, 1)
    assert commit(flow, 0, "a", stream="one")["is_new"]
    assert not commit(flow, 0, "a", stream="two", may_skip=True)["is_new"]
    assert stage(flow, 1, "b", 0, 2)
    assert commit(flow, 1, "b", stream="one")["is_new"]
    assert rows(flow) == [(0, 1), (1, 2)]


def test_commit_may_leave_the_epoch_open_for_others(flow: Flow) -> None:
    stage(flow, 0, "a", 0, 1)
    assert commit(flow, 0, "a", seals=False) == {"is_new": True, "epoch": 0, "open": 0}
    flow.input("rows").insert([(2,)])
    assert commit(flow, 1)["epoch"] == 0, "a batch without rows completes it"
    assert rows(flow) == [(0, 1), (0, 2)]


def test_commit_enters_the_epoch_that_is_open_then(flow: Flow) -> None:
    stage(flow, 0, "a", 0, 1, worker=1)
    flow.seal()
    assert commit(flow, 0, "a")["epoch"] == 1
    assert rows(flow) == [(1, 1)]


def test_commit_counts_what_was_checked_though_another_driver_gives_the_batch_up(flow: Flow) -> None:
    stage(flow, 0, "ours", 0, 1, worker=1)
    stage(flow, 0, "theirs", 0, 2, worker=1)
    ask(flow, check_of("rows", 0, [("ours", 1)]), 1)
    ask(flow, drop_of(0, "theirs"), 1)
    ask(flow, drop_of(0), 1)
    commit(flow, 0, "ours")
    assert rows(flow) == [(0, 1)]


def test_order_of_calls_is_that_of_attempts_and_parts(flow: Flow) -> None:
    flow.input("last").upsert([(1, 0), (2, 0)])
    for attempt, number, worker, value in (("b", 0, 1, 5), ("a", 1, 0, 3), ("a", 0, 1, 9), ("b", 1, 1, 7)):
        request = Deliver(0, "last", "q", 0, WHEN_NAMED, 0, 1, part=number, attempt=attempt)
        ask(flow, request, worker, pa.table({"k": [1], "v": [value]}))
    ask(flow, Decide(0, -1, False, enter=[["last", "q", 0, ["a", "b"], "", False, looked()]]))
    flow.input("last").upsert([(2, 8)])
    flow.seal()
    assert flow.output("last").snapshot().to_pylist() == [{"k": 1, "v": 7}, {"k": 2, "v": 8}]


def test_order_of_calls_behind_a_batch_is_behind_all_of_its_attempts(flow: Flow) -> None:
    for attempt in "abc":
        request = Deliver(0, "last", "q", 0, WHEN_NAMED, 0, 1, part=0, attempt=attempt)
        ask(flow, request, 1, pa.table({"k": [1], "v": [ord(attempt)]}))
    ask(flow, Decide(0, -1, False, enter=[["last", "q", 0, ["a", "b", "c"], "", False, looked()]]))
    flow.input("last").upsert([(1, 8)])
    flow.seal()
    assert flow.output("last").snapshot().to_pylist() == [{"k": 1, "v": 8}]


def test_refused_batches_before_a_gap_unless_it_is_allowed(flow: Flow) -> None:
    stage(flow, 3, "a", 0, 1)
    with pytest.raises(MisuseError, match="batch 3 of query q comes before batches 0 to 2"):
        commit(flow, 3, "a")
    assert rows(flow) == []
    assert commit(flow, 3, "a", may_skip=True)["epoch"] == 0
    assert rows(flow) == [(0, 1)]


def test_refused_is_a_commit_that_comes_so_late_that_some_worker_may_have_let_go_of_rows(flow: Flow) -> None:
    """Worker 0 may have computed all the time, and kept its own; half of the batch would enter."""
    stage(flow, 0, "a", 0, 1)
    stage(flow, 0, "a", 1, 2, worker=1)
    late = Decide(0, -1, True, enter=[["rows", "q", 0, ["a"], "", False, looked(COMMIT_SECONDS_MAX + 2)]])
    with pytest.raises(MisuseError, match=r"batch 0 of query q is not committed: .* more than 4\.5 hours"):
        ask(flow, late)
    assert rows(flow) == [] and flow.refresh() == 0
    in_time = replace(late, enter=[["rows", "q", 0, ["a"], "", False, looked(COMMIT_SECONDS_MAX - 60)]])
    assert outcome(ask(flow, in_time))["is_new"]
    assert not outcome(ask(flow, late))["is_new"], "a repetition is none, however late"
    empty = replace(late, enter=[["rows", "q", 1, [], "", False, looked(COMMIT_SECONDS_MAX + 2)]])
    assert outcome(ask(flow, empty))["is_new"], "nothing can be missing of it"
    assert rows(flow) == [(0, 1), (0, 2)]


def test_refused_rows_keep_nothing_and_what_is_dropped_is_missing(flow: Flow) -> None:
    with pytest.raises(MisuseError, match="column 'n'"):
        ask(
            flow, Deliver(0, "rows", "q", 0, WHEN_NAMED, 0, 1, part=0, attempt="a"), 1, pa.table({"n": ["x"]})
        )
    stage(flow, 0, "a", 0, 1, worker=1)
    stage(flow, 0, "b", 0, 2, worker=1)
    check = check_of("rows", 0, [("a", 1), ("b", 2), ("c", 1)])
    flow.seal()
    begin = looked()
    told = ask(flow, check, 1)
    ((*known, seconds),) = told.values["queries"]  # type: ignore[attr-defined]
    assert begin <= seconds <= looked()
    assert missing(told) == ["b", "c"] and known == [-1, 0, 1]
    ask(flow, drop_of(0, "a"), 1)
    assert missing(ask(flow, check, 1)) == ["a", "b", "c"]
    ask(flow, drop_of(0, "b"), 1)
    stage(flow, 0, "d", 0, 2, worker=1)
    ask(flow, drop_of(0), 1)
    commit(flow, 0, "b", "d")
    assert rows(flow) == []


@pytest.mark.parametrize("diffs", [[2, 2], [-2, -2], [1, 2]])
def test_refused_is_a_value_by_key_that_is_said_twice(flow: Flow, diffs: list[int]) -> None:
    table = pa.table({"k": [1, 2], "v": [3, 4], "diff": diffs})
    with pytest.raises(MisuseError, match="'diff' says 1 for a value"):
        ask(flow, Deliver(0, "last", "q", 0, WHEN_NAMED, 0, 0, part=0, attempt="a"), 1, table)
    assert missing(ask(flow, check_of("last", 0, [("a", 1)]), 1)) == ["a"]


def test_refused_is_a_query_too_many_before_it_has_staged_anything(
    flow: Flow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Deliveries, "check_remembered", full)
    for ask_for in (lambda: stage(flow, 0, "a", 0, 1, worker=1), lambda: commit(flow, 0)):
        with pytest.raises(MisuseError, match="no room for q"):
            ask_for()
    assert missing(ask(flow, check_of("rows", 0, [("a", 1)]), 1)) == ["a"]
    assert rows(flow) == []


def test_refused_are_more_bytes_than_may_wait_and_an_attempt_without_rows_has_some(
    flow: Flow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("timely.operators.inputs.deliveries.STAGED_BYTES_MAX", 1_500)
    assert stage(flow, 0, "a", 0)
    with pytest.raises(MisuseError, match="1,024 bytes in all"):
        stage(flow, 0, "b", 0)


@pytest.mark.parametrize("number", [-1, 1 << 20, 1 << 40])
def test_refused_parts_of_an_insertion_that_have_no_place_among_rows_in_order(
    flow: Flow, number: int
) -> None:
    """Once they are to enter it would be too late: the dataflow would end."""
    table = pa.table({"k": [1], "v": [2]})
    with pytest.raises(RequestError, match=f"numbered from 0 to 1048575, not {number}"):
        ask(flow, Deliver(0, "last", "w", 0, WHEN_NAMED, 0, 1, part=number), 0, table)
    ask(flow, Deliver(0, "last", "w", 0, WHEN_NAMED, 0, 1, part=(1 << 20) - 1), 0, table)
    ask(flow, Decide(0, 0, enter=[["last", "w", 0]]))
    flow.seal()
    assert flow.output("last").snapshot().to_pylist() == [{"k": 1, "v": 2}]


@pytest.mark.parametrize("attempts", [["a", "a"], [1], [["a", 1]]])
def test_refused_names_of_attempts_that_are_none(flow: Flow, attempts: list[Value]) -> None:
    with pytest.raises(RequestError, match="named, each once"):
        ask(flow, Decide(0, -1, True, enter=[["rows", "q", 0, attempts, "", False, looked()]]))
    with pytest.raises(RequestError, match=r"an attempt \[input, query, batch, attempt, parts\]"):
        ask(flow, Missing(0, -1, [["rows", "q", 0, "a"]]))
    with pytest.raises(RequestError, match=r"a query is \[input, query\]"):
        ask(flow, Missing(0, -1, [], ["q"]))
    with pytest.raises(RequestError, match="what is dropped is"):
        ask(flow, Drop(0, [["rows", "q"]]))
    for batch, number in ((-1, 0), (0, -1), (0, 1 << 22)):
        with pytest.raises(RequestError, match="numbered from 0"):
            stage(flow, batch, "a", number, 1)
    with pytest.raises(RequestError, match="without a table"):
        ask(flow, Deliver(0, "rows", "q", 0, WHEN_NAMED, 0, 1, part=0, attempt="a"))
    with pytest.raises(RequestError, match="goes to worker 0"):
        ask(flow, Decide(0, -1, True, enter=[["rows", "q", 0, [], "", False, looked()]]), 1)


def test_refused_once_the_input_is_closed_but_a_repetition_is_none(flow: Flow) -> None:
    stage(flow, 0, "a", 0, 1)
    commit(flow, 0, "a")
    stage(flow, 1, "b", 0, 2)
    flow.input("rows").close()
    assert not commit(flow, 0, "a")["is_new"] and not stage(flow, 0, "late", 0, 1)
    with pytest.raises(InputClosedError, match="'rows' is closed"):
        commit(flow, 1, "b")
    with pytest.raises(InputClosedError, match="'rows' is closed"):
        stage(flow, 1, "c", 0, 2)
    assert rows(flow) == [(0, 1)]


def test_refused_is_a_commit_of_what_was_staged_before_a_restart(flow: Flow) -> None:
    """Its rows are gone, or some of them; what has entered already is no mistake."""
    for server in getattr(flow._workers, "_servers"):  # noqa: B009
        server._orders.incarnation = 4
    assert ask(flow, check_of("rows", 0, [])).incarnation == 4
    stage(flow, 0, "a", 0, 1)
    entry = ["rows", "q", 0, ["a"], "", False, looked()]
    part = Deliver(0, "rows", "w", 0, WHEN_NAMED, 0, 1)
    ask(flow, part, 0, pa.table({"n": [2]}))
    ask(flow, part, 1, pa.table({"n": [3]}))
    for entering in (entry, ["rows", "w", 0, 1]):
        stale = Decide(0, -1, True, enter=[entering], incarnation=3)
        with pytest.raises(timely.RestartedError, match="before the cluster started again"):
            ask(flow, stale)
        assert flow.refresh() == 0 and rows(flow) == []
        for again in (replace(stale, incarnation=4), stale):
            is_new = again.incarnation == 4
            entered = outcome(ask(flow, replace(again, seals=False)))
            assert entered["is_new"] is is_new
    flow.seal()
    assert rows(flow) == [(0, 1), (0, 2), (0, 3)]
    empty = Decide(0, -1, False, enter=[["rows", "q", 1, [], "", False, looked()]], incarnation=3)
    assert outcome(ask(flow, empty))["is_new"], "a batch without rows has lost none"
