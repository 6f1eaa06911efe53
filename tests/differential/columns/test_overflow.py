"""What leaves 64 bits is an error that names operator and row. A multiplicity ends the dataflow; a sum leaves
outputs without an answer.

loop_*      loops that double rows for ever, with every operator in them
sum_*       sums and counts of groups: the exact total at a time decides
row_*       multiplicities of inputs, traces and outputs
message_*   how the row is found for the message
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest
from machines import advanced
from reference.words import as_words
from strategies_words import CODES

import differential as dd
import timely
from differential import Collection, col
from differential.columns.overflow import (
    components_overflow,
    count_overflow,
    mean_overflow,
    negate_diffs,
    product_overflow,
    row_overflow,
    show_words,
)
from differential.columns.wide.wide_words import split_value
from differential.errors import MultiplicityOverflowError, SumOverflowError
from differential.kernels.sums.accumulated import DECIMAL_MEAN, TOTAL, WIDE_TOTAL_HIGH, WIDE_TOTAL_LOW
from differential.kernels.sums.components import LIMB
from differential.operators.consolidate import ConsolidateMachine
from differential.operators.join import LEFT, RIGHT, JoinMachine
from differential.operators.reduce import Accumulation, Aggregates, GroupFunction, ReduceMachine
from differential.thresholds import MANY_ROWS
from differential.trace.trace import Trace

GUARDS = CODES[2].guards
MAX = 2**63 - 1
Body = Callable[[Collection], Collection]


def doubled(x: Collection) -> Collection:
    return x.concat(x)


def joined_with_itself(x: Collection) -> Collection:
    return x.join(x.select("k"), on="k")


def doubled_in_a_loop(x: Collection) -> Collection:
    return x.iterate(doubled, name="inner")


def negated(x: Collection) -> Collection:
    return x.concat(x).negate()


def function_of_doubled(x: Collection) -> Collection:
    return x.concat(x).group_by("k").reduce(lambda key, rows: [r[0] for r in rows], "s: string").concat(x, x)


LOOPS: list[tuple[Body, str]] = [
    (doubled, "'consolidate'"),
    (joined_with_itself, "'join on k'"),
    (doubled_in_a_loop, "'consolidate'"),
    (negated, "'consolidate'"),
    (function_of_doubled, "'reduce by k: "),
]


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize(("body", "operator"), LOOPS)
def test_loop_that_doubles_rows_ends_in_an_error(body: Body, operator: str, workers: int) -> None:
    def build(flow: timely.Dataflow) -> None:
        dd.input(flow, "rows", "k: int, s: string").iterate(body).output("all")

    with timely.connect(workers=workers, embedded=True) as cluster:
        flow = cluster.install(build)
        flow.input("rows").insert([(1, "ada"), (1, "ada")])
        with pytest.raises(timely.TimelyError) as caught:
            flow.wait(flow.seal())
    said = str(caught.value) + "".join(getattr(caught.value, "__notes__", []))
    assert isinstance(caught.value, MultiplicityOverflowError), said
    assert "k=1" in said and operator in said and "test_overflow.py:" in said, said


def _totals(rows: list[tuple[int, int]], remove: list[tuple[int, int]]) -> list[dict[str, int]]:
    def build(flow: timely.Dataflow) -> None:
        sales = dd.input(flow, "sales", "shop: int, amount: int")
        sales.group_by("shop").agg(total=dd.sum("amount"), n=dd.count()).output("totals")

    with timely.connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(build)
        flow.input("sales").insert(rows)
        flow.input("sales").remove(remove)
        flow.wait(flow.seal())
        found: list[dict[str, int]] = flow.output("totals").snapshot().to_pylist()
        return found


def test_sum_that_fits_is_exact_however_large_its_parts() -> None:
    rows = [(1, MAX), (1, MAX), (1, -MAX), (1, -5), (2, MAX), (2, 3)]
    assert _totals(rows, [(2, 4), (2, MAX), (2, 1)]) == [
        {"shop": 1, "total": MAX - 5, "n": 4},
        {"shop": 2, "total": -2, "n": -1},
    ]


@pytest.mark.parametrize(("sign", "total"), [(1, MAX + 1), (-1, -MAX - 2)])
def test_sum_that_does_not_fit_names_column_and_group(sign: int, total: int) -> None:
    last = sign * (abs(total) - MAX)
    assert _totals([(1, sign * MAX), (1, last - sign)], [])[0]["n"] == 2
    with pytest.raises(
        SumOverflowError, match=r"sum\(amount\) \(.*\) of the group \(shop=1\) leaves 64 bits"
    ):
        _totals([(5, 5), (1, sign * MAX), (1, last)], [])


def test_sum_of_components_beyond_the_bits_for_partial_sums_is_refused_too() -> None:
    machine = ReduceMachine(0, 1, GUARDS, Accumulation(((TOTAL, 1, -1, 0, 0),), 3, 1))
    machine.recv(0, [as_words([(0, 0, 1), (1, 0, MAX), (2, 0, MAX)], 3)])
    with pytest.raises(SumOverflowError, match="word 0 of the answer of the group with the words"):
        advanced(machine, np.array([1]))


@pytest.mark.parametrize("sign", [1, -1])
def test_mean_that_has_too_many_digits_names_its_group_and_no_other(sign: int) -> None:
    asked = Accumulation(((DECIMAL_MEAN, 1, 0, 10**18 - 1, 4),), 3, 1)
    machine = ReduceMachine(1, 1, GUARDS, asked)
    most = 10**14 - 1  # of one row: what it has more goes to other groups' means
    fits = [(3, 0, 0, 1), (3, 1, 0, sign * most), (5, 0, 0, 9), (5, 1, 0, sign * 9 * most)]
    machine.recv(0, [as_words(fits, 4)])
    assert advanced(machine, np.array([1])).shape[1] == 2
    machine.recv(0, [as_words([(3, 0, 1, 1), (5, 1, 1, sign * 9)], 4)])
    with pytest.raises(SumOverflowError, match=r"of the group with the words \(5\) has more than 18 digits"):
        advanced(machine, np.array([2]))


def test_mean_in_a_loop_that_has_too_many_digits_is_named_by_what_its_parts_could_be() -> None:
    words = as_words([(4, 1, 0, 10**15), (4, 0, 0, 1), (4, 1, 0, -(10**15))], 4)
    error = mean_overflow(words, 1, (1, 0, 4), "avg(d)", show_words)
    assert error is not None and "avg(d) of the group with the words (4)" in str(error)
    assert mean_overflow(words[:, 1:2], 1, (1, 0, 4), "avg(d)", show_words) is None


def test_sum_of_two_words_that_has_too_many_digits_names_its_group_and_no_other() -> None:
    asked = Accumulation(tuple((what, 1, -1, 4, 20) for what in (WIDE_TOTAL_HIGH, WIDE_TOTAL_LOW)), 5, 1)
    machine = ReduceMachine(1, 1, GUARDS, asked)
    high, low = split_value(10**20 - 1)
    limbs = [(1, low & LIMB), (2, low >> 32), (3, high)]
    machine.recv(0, [as_words([(k, at, 0, n) for k in (3, 5) for at, n in [(0, 1), *limbs]], 4)])
    assert advanced(machine, np.array([1])).tolist() == [[3, 5], [high] * 2, [low] * 2, [0] * 2, [1] * 2]
    machine.recv(0, [as_words([(5, 1, 1, 1)], 4)])
    with pytest.raises(SumOverflowError, match=r"of the group with the words \(5\) has more than 20 digits"):
        advanced(machine, np.array([2]))


def test_sum_counts_beyond_64_bits_are_refused() -> None:
    machine = ReduceMachine(1, 1, GUARDS, Aggregates((("count", 0),)))
    machine.recv(0, [as_words([(4, 1, 0, MAX), (4, 2, 0, 1)], 4)])
    with pytest.raises(SumOverflowError, match=r"the count of the group .*\(4\)"):
        advanced(machine, np.array([1]))


def test_row_of_a_function_s_group_is_refused() -> None:
    machine = ReduceMachine(1, 1, GUARDS, GroupFunction(lambda key, rows: [(1,)], 1))
    early, late = (CODES[2].pack(time) for time in [(0, 1), (1, 0)])
    machine.recv(0, [as_words([(4, 1, early, MAX), (4, 1, late, 1)], 4)])
    with pytest.raises(MultiplicityOverflowError, match=r"\(4, 1\)"):
        advanced(machine, np.empty(0, np.int64))


@pytest.mark.parametrize("count", [1, MANY_ROWS])
def test_row_that_waits_is_named_however_many_do(count: int) -> None:
    machine = ConsolidateMachine(1, GUARDS)
    for part in range(2):
        machine.recv(0, [as_words([(key, 0, MAX - 5 * key) for key in range(count)][part:], 3)])
    machine.recv(0, [as_words([(0, 0, 1), (count + 7, 0, 1)], 3)])
    with pytest.raises(MultiplicityOverflowError, match=r"the row with the words \(\d+\)"):
        advanced(machine, np.array([1]))


@pytest.mark.parametrize("rows", [1, 700])
def test_row_of_a_trace_is_named(rows: int) -> None:
    """In its head, and where two runs become one."""
    trace = Trace(1, 0, GUARDS)
    words = as_words([(key, 0, MAX - rows + 1 + key) for key in range(rows)], 3)
    trace.insert(words)
    with pytest.raises(MultiplicityOverflowError, match=rf"the row with the words \({rows - 1}\)"):
        trace.insert(as_words([(key, 0, 1) for key in range(rows)], 3))


def test_row_that_fits_at_each_time_may_not_at_a_later_one() -> None:
    times = [CODES[2].pack((0, i)) for i in range(3)]
    trace = Trace(1, 0, GUARDS)
    trace.insert(as_words([(5, times[0], 2**62)], 3))
    assert trace.accumulated().all()[2].tolist() == [2**62]
    trace.insert(as_words([(5, time, 2**62) for time in times[1:]], 3))
    with pytest.raises(MultiplicityOverflowError, match=r"\(5\)"):
        trace.accumulated()
    trace.set_since(np.array([times[2]]))
    with pytest.raises(MultiplicityOverflowError, match=r"\(5\)"):
        trace.compact()


def test_row_of_a_join_is_named_on_either_side_and_as_a_pair() -> None:
    for port in (LEFT, RIGHT):
        machine = JoinMachine(1, 1, 1, GUARDS)
        with pytest.raises(MultiplicityOverflowError, match=r"the row with the words \(1, 2\)"):
            machine.recv(port, as_words([(1, 2, 0, MAX), (1, 2, 0, 1)], 4))
        machine = JoinMachine(1, 1, 1, GUARDS)
        machine.recv(port, as_words([(1, 2, 0, 2**40), (2, 2, 0, 1)], 4))
        pairs = machine.recv(1 - port, as_words([(1, 3, 0, -(2**23)), (2, 3, 0, 2**40)], 4))
        assert pairs[-1].tolist() == [-(2**63), 2**40]
        with pytest.raises(MultiplicityOverflowError, match=r"words \(1, 4\), 8388608 times, matches one"):
            machine.recv(1 - port, as_words([(1, 4, 0, 2**23)], 4))


def test_row_without_a_negative_is_refused() -> None:
    words = as_words([(1, 0, 5), (2, 0, -(2**63))], 3)
    with pytest.raises(MultiplicityOverflowError, match=r"negate\(\)"):
        negate_diffs(words)


def test_row_of_an_output_is_refused_where_clients_sum_it() -> None:
    def build(flow: timely.Dataflow) -> None:
        numbers = dd.input(flow, "numbers", "n: int")
        large = numbers
        for _ in range(40):
            large = large.concat(large).consolidate()
        large.join(large.filter(col.n > 0), on="n").output("large")

    with timely.connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(build)
        flow.input("numbers").insert(pa.table({"n": [1]}))
        with pytest.raises(MultiplicityOverflowError, match="matches one that is there 1099511627776 times"):
            flow.wait(flow.seal())


def test_message_tells_the_first_row_of_those_that_are_too_many() -> None:
    words = as_words([(1, 0, MAX), (2, 0, 2**62), (3, 0, MAX), (2, 1, 2**62), (3, 1, 1), (1, 1, -9)], 3)
    assert "(2) would be there more often than 64 bits can say (9223372036854775808 in all)" in str(
        row_overflow([words], show_words)
    )
    words[2, 1] = 5
    assert "(3) would" in str(row_overflow([words[:, :2], words[:, 2:]], show_words))
    taken_back = as_words([(1, 0, MAX), (1, 1, 1), (1, 2, -1)], 3)
    assert "(1) would be there more often than 64 bits can say.\n" in str(
        row_overflow([taken_back], show_words)
    )
    assert "a row leaves 64 bits" in str(row_overflow([words[:, :1]], show_words))


def test_message_of_sums_and_pairs_says_nothing_of_what_fits() -> None:
    words = as_words([(1, 0, 0, 2**62), (1, 0, 1, 2**62), (2, 1, 0, 2**31), (3, 1, 0, 1)], 4)
    assert "it of the group with the words (1) leaves 64 bits" in str(
        count_overflow(words, 1, "it", show_words)
    )
    assert count_overflow(words[:, 1:], 1, "it", show_words) is None
    said = str(components_overflow(words[:, 2:], 1, 0, "it", show_words))
    assert "it of the group with the words (2) leaves 64 bits" in said
    assert components_overflow(words[:, 3:], 1, 0, "it", show_words) is None
    pair = product_overflow(words[:, 3:], as_words([(2, 7, 0, MAX)], 4), 1, show_words)
    assert "a pair leaves 64 bits" in str(pair)
