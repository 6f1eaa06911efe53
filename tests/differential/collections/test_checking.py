"""checking.py: what is late, what must not be, what fails.

delay_*     changes come later, in order
claims_*    where one does not hold outputs have no answer, but an error with a row
attempt_*   what fails becomes errors, at its time, and goes with its row
refused_*   what a user may do wrong, and what he is told
"""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference.dataflow import Change, Cluster, check_at_times
from strategies_collections import NUMBERS, UNARY, examples, histories

import differential as dd
import timely
from differential import Collection, col
from differential.errors import ExpressionError, NotEmptyError, UserFunctionError
from differential.operators.edge import failure_log
from differential.operators.edge.failure_log import TableFailures
from timely.building.dataflow import Dataflow
from timely.errors import GraphError
from timely.wire.batch import Batch


def _run(build: Callable[[Collection], Collection], *epochs: list[tuple[tuple[int, int], int]]) -> Cluster:
    cluster = Cluster(lambda flow: build(dd.input(flow, "numbers", NUMBERS)).output("result"))
    for changes in epochs:
        cluster.change("numbers", changes)
        cluster.seal()
        cluster.run()
    return cluster


# delay_


def test_delay_shows_what_was_so_many_epochs_ago() -> None:
    cluster = _run(lambda c: c.delay(2), [((1, 1), 1)], [((2, 2), 1)], [((1, 1), -1)], [], [])
    assert cluster.changes("result") == {(2,): {(1, 1): 1}, (3,): {(2, 2): 1}, (4,): {(1, 1): -1}}


def test_delay_by_a_function_is_what_was_at_the_latest_epoch_that_has_come() -> None:
    to_even = _run(lambda c: c.delay(lambda e: e + e % 2), [((1, 1), 1)], [((2, 2), 1)], [((3, 3), 1)])
    assert to_even.changes("result") == {(0,): {(1, 1): 1}, (2,): {(2, 2): 1, (3, 3): 1}}


def test_delay_compares_with_what_others_read_now() -> None:
    cluster = _run(lambda c: c.concat(c.delay(1).negate()), [((1, 1), 2)], [], [((1, 1), -1)], [])
    assert cluster.changes("result") == {
        (0,): {(1, 1): 2}, (1,): {(1, 1): -2}, (2,): {(1, 1): -1}, (3,): {(1, 1): 1}
    }  # fmt: skip


def test_delay_travels_to_workers() -> None:
    def build(flow: timely.Dataflow) -> None:
        dd.input(flow, "numbers", NUMBERS).delay(1).delay(lambda e: e + 1).output("later")

    with timely.connect(workers=1) as cluster:
        flow = cluster.install(build)
        flow.input("numbers").insert([(1, 2)])
        for _ in range(3):
            flow.seal()
        assert flow.output("later").changes().to_pylist() == [{"k": 1, "v": 2, "epoch": 2, "diff": 1}]


def test_delay_refuses_to_go_back_or_out_of_order() -> None:
    with pytest.raises(UserFunctionError, match="epoch 1 goes to 0; it must be a whole number, 1 or more"):
        _run(lambda c: c.delay(lambda e: 0), [((1, 1), 1)], [((1, 1), 1)])
    with pytest.raises(UserFunctionError, match="epoch 1 goes to 4, but epoch 0 to 9"):
        _run(lambda c: c.delay(lambda e: 9 - 5 * e), [((1, 1), 1)], [((1, 1), 1)])
    with pytest.raises(GraphError, match="cannot come earlier"):
        dd.input(Dataflow("queries"), "numbers", NUMBERS).delay(-1)


# claims_


def test_claims_that_hold_change_nothing() -> None:
    cluster = _run(
        lambda c: c.assert_equal(c.select("v", "k").concat(c, c.negate())),
        [((1, 1), 1), ((2, 2), 2)],
        [((1, 1), -1)],
    )
    assert cluster.snapshot("result") == {(2, 2): 2}


def test_claims_that_do_not_hold_name_a_row_and_say_how_many_there_are_more() -> None:
    cluster = _run(
        lambda c: c.filter(col.k == 7).assert_empty("no sevens"),
        [((1, 1), 1)],
        [((7, 2), 3), ((7, 1), 0)],
        [((7, 3), 1)],
        [((7, 2), -3), ((7, 3), -1)],
    )
    assert [cluster.has_answer("result", epoch) for epoch in range(4)] == [True, False, False, True]
    error = cluster.error("result", 1)
    assert type(error) is NotEmptyError
    said = (
        "output 'result' has no answer at epoch 1: no sevens does not hold, for there is the row k=7, v=2.\n"
    )
    assert str(error).startswith(said)
    assert "no sevens does not hold, for there is the row k=7, v=2. (1 more row failed, too)" in str(
        cluster.error("result", 2)
    )
    assert cluster.snapshot("result") == {}


def test_claims_of_equality_hold_as_soon_as_both_are_equal_again() -> None:
    cluster = _run(lambda c: c.assert_equal(c.distinct()), [((1, 1), 2)], [((1, 1), -1)], [((1, 1), 2)])
    assert [cluster.has_answer("result", epoch) for epoch in range(3)] == [False, True, False]
    for epoch in (0, 2):
        error = cluster.error("result", epoch)
        assert type(error) is NotEmptyError
        assert re.search(
            r": assert_equal \(.*test_checking.py:\d+\) does not hold, .* k=1, v=1\.$", str(error), re.M
        )
    assert cluster.changes("result") == {(1,): {(1, 1): 1}}


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("times", [2, 3, 5])
def test_claims_count_a_collection_as_often_as_it_is_there(times: int, workers: int) -> None:
    """Several connectors that run the same chain into one operator are several times the same rows."""

    def build(flow: Dataflow) -> None:
        c = dd.input(flow, "numbers", NUMBERS)
        tripled = c.flat_map(lambda r: [r] * times)
        tripled.concat(*[c.negate()] * times).assert_empty("as many")
        c.output("result")
        tripled.concat(*[c.negate()] * (times - 1)).assert_empty("one more").output("other")

    cluster = Cluster(build, workers)
    for changes in ([((1, 1), 1), ((2, 2), 2)], [((1, 1), -1)], [((2, 2), -2)]):
        cluster.change("numbers", changes)
        cluster.seal()
        cluster.run()
    assert cluster.changes("result") == {(0,): {(1, 1): 1, (2, 2): 2}, (1,): {(1, 1): -1}, (2,): {(2, 2): -2}}
    assert [cluster.has_answer("other", epoch) for epoch in range(3)] == [False, False, True]


def test_claims_end_a_dataflow_with_a_strict_output_at_the_first_epoch_in_which_they_do_not_hold() -> None:
    def build(flow: Dataflow) -> None:
        numbers = dd.input(flow, "numbers", NUMBERS)
        numbers.filter(col.k == 7).assert_empty("no sevens").output("sevens")
        numbers.output("result", strict=True)

    cluster = Cluster(build)
    cluster.change("numbers", [((7, 2), 3)])
    cluster.seal()
    cluster.run()
    assert not cluster.has_answer("sevens", 0)
    assert cluster.snapshot("result") == {(7, 2): 3}, "from what does not hold nothing leads there"

    def claimed(flow: Dataflow) -> None:
        dd.input(flow, "numbers", NUMBERS).assert_empty("no sevens").output("result", strict=True)

    cluster = Cluster(claimed)
    cluster.change("numbers", [((7, 2), 3)], epoch=1)
    cluster.change("numbers", [((7, 2), -3)], epoch=2)
    cluster.seal(0)
    cluster.run()
    assert cluster.snapshot("result") == {}
    cluster.seal(2)
    with pytest.raises(NotEmptyError, match="has no answer at epoch 1: no sevens does not hold") as caught:
        cluster.run()
    assert "answers again" not in str(caught.value)


def test_claims_are_checked_in_loops_and_without_readers() -> None:
    def build(flow: Dataflow) -> None:
        numbers = dd.input(flow, "numbers", NUMBERS)

        def body(x: Collection) -> Collection:
            x.filter(col.v > 2).assert_empty("values stay small")
            return x.select(k=col.k, v=dd.min_of(col.v + 1, 4))

        numbers.iterate(body)

    cluster = Cluster(build)
    cluster.change("numbers", [((1, 0), 1)], epoch=1)
    cluster.seal(0)
    cluster.run()
    cluster.seal(1)
    with pytest.raises(
        NotEmptyError,
        match=r"the dataflow 'tested' has no answer at epoch 1: values stay small does not hold, for there "
        r"is the row k=1, v=[34]\. \(1 more row failed, too\)",
    ):
        cluster.run()


def test_claims_of_rows_that_cancel_within_an_epoch_make_no_failures() -> None:
    made: list[int] = []

    def build(flow: Dataflow) -> None:
        left, right = (dd.input(flow, name, NUMBERS) for name in ("left", "right"))
        left.assert_equal(right, "both are one").output("result")
        right.output("right")

    class Counting(TableFailures):
        def add(self, batch: Batch) -> None:
            made.append(batch.rows)
            super().add(batch)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(failure_log, "TableFailures", Counting)
        cluster = Cluster(build, workers=2)
    rows = [((key, 7), 1) for key in range(50)]
    cluster.change("left", rows)
    cluster.change("right", rows, worker=1)
    cluster.seal()
    cluster.run()
    assert cluster.snapshot("result") == dict(rows) and not made
    cluster.change("left", [((50, 7), 1)])
    cluster.seal()
    cluster.run()
    assert not cluster.has_answer("result", 1) and cluster.has_answer("right", 1)
    assert made == [1, 1], "each worker hears of the one row"


# attempt_


@pytest.mark.parametrize("name", ["attempt", "errors of an attempt", "attempt of groups", "errors of groups"])
def test_attempt_at_every_time(name: str) -> None:
    @examples(0.5)
    @given(st.sampled_from([1, 2, 3]).flatmap(_history), st.integers(1, 3), st.integers(0, 2**20))
    def holds(given: tuple[int, list[Change]], workers: int, seed: int) -> None:
        depth, changes = given
        operator = UNARY[name]
        check_at_times(operator.build, operator.plain, [changes], depth=depth, workers=workers, seed=seed)

    holds()


def _history(depth: int) -> st.SearchStrategy[tuple[int, list[Change]]]:
    return st.tuples(st.just(depth), histories(depth))


def _sixth(record: tuple[int, int]) -> tuple[int, int]:
    k, v = record
    return k, 6 // v


def _misfit(record: tuple[int, int]) -> object:
    return record if record[0] else object()


def test_attempt_says_record_stage_line_and_error() -> None:
    cluster = _run(
        lambda c: c.attempt(lambda c: c.filter(col.k > 0).map(_sixth))[1], [((1, 0), 2), ((1, 3), 1)]
    )
    (row,) = cluster.snapshot("result")
    assert row == (
        "k=1, v=0",
        "filter(col.k > 0); map(_sixth)",
        "line 3 of _sixth",
        "ZeroDivisionError: integer division or modulo by zero",
        "line 3 of _sixth",
    )
    cluster = _run(
        lambda c: c.attempt(lambda c: c.filter(lambda r: _sixth(r)[1] > 2))[1], [((1, 0), 1), ((1, 2), 1)]
    )
    (row,) = cluster.snapshot("result")
    assert row[0] == "k=1, v=0" and row[1].startswith("filter(") and row[2] == "line 3 of _sixth"
    cluster = _run(lambda c: c.attempt(lambda c: c.select(x=col.k // col.v))[1], [((1, 0), 1)])
    (row,) = cluster.snapshot("result")
    assert row[2:] == ("", "RowError: col.k // col.v divides by zero in the row with k=1, v=0.", "")


def test_attempt_counts_what_does_not_fit_as_an_error_and_hides_addresses() -> None:
    cluster = _run(lambda c: c.attempt(lambda c: c.map(_misfit))[1], [((0, 0), 1)])
    (row,) = cluster.snapshot("result")
    assert "0x…" in str(row[3]) and "test_checking" not in str(row)


def test_attempt_travels_to_workers() -> None:
    def build(flow: timely.Dataflow) -> None:
        good, errors = dd.input(flow, "lines", "t: string").attempt(
            lambda c: c.map(lambda r: int(r.t), "n: int")
        )
        good.output("numbers")
        errors.select("record", "line").output("errors")

    with timely.connect(workers=1) as cluster:
        flow = cluster.install(build)
        flow.input("lines").insert([("5",), ("x",)])
        flow.seal()
        assert flow.output("numbers").snapshot().to_pylist() == [{"n": 5}]
        (error,) = flow.output("errors").snapshot().to_pylist()
        assert error == {"record": "t='x'", "line": "line 1 of <lambda>"}


def _unlucky(key: object, rows: object) -> list[object]:
    raise ValueError("no luck")


def test_attempt_of_groups_may_give_columns_of_every_type() -> None:
    schema = (
        "d: date, m: decimal(10, 2), s: string, t: timestamp, a: any, y: bytes, z: bool, q: float, i: int?"
    )
    cluster = _run(lambda c: c.attempt(lambda c: c.group_by("k").reduce(_unlucky, schema))[1], [((1, 2), 1)])
    (row,) = cluster.snapshot("result")
    assert row[:2] == ("(1,): [((2,), 1)]", "reduce by k: _unlucky") and row[3] == "ValueError: no luck"


# refused_


def test_refused_attempts_at_something_else() -> None:
    numbers = dd.input(Dataflow("queries"), "numbers", NUMBERS)
    with pytest.raises(GraphError, match=r"attempt \(.*\) takes select.* not distinct"):
        numbers.attempt(lambda c: c.distinct())
    with pytest.raises(GraphError, match="does nothing"):
        numbers.attempt(lambda c: c)
    with pytest.raises(ExpressionError, match="takes a number of epochs, or a function"):
        numbers.delay("day")  # type: ignore[arg-type]  # what is refused
