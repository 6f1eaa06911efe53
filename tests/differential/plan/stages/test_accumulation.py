"""stages/accumulation.py: which components are kept, each once."""

from __future__ import annotations

import differential as dd
from differential.aggregates import Aggregate
from differential.columns.schema import Schema
from differential.kernels.sums import accumulated as a
from differential.kernels.sums import components as c
from differential.plan.nodes import Accumulate, AddedColumn, Input
from differential.plan.stages.accumulation import Plans, accumulation_of

SOURCE = Input(Schema.of("k: int, v: int, x: float?, b: bool, d: decimal(9, 2)"), "rows")


def _plans(*aggregates: Aggregate) -> Plans:
    added = tuple(AddedColumn(f"a{index}", 0, aggregate) for index, aggregate in enumerate(aggregates))
    node = Accumulate((SOURCE,), ("k",), 1, added)
    return accumulation_of(node, [SOURCE.schema])


def test_a_count_of_a_column_without_nulls_is_that_of_the_rows() -> None:
    plans = _plans(dd.count(), dd.count("v"))
    assert plans.makers == [[(c.ROWS, 0, -1, 0)]]
    assert plans.accumulation.formulas == ((a.COUNT, 0, -1, 0, 0), (a.COUNT, 0, -1, 0, 0))


def test_sum_and_mean_share_their_limbs() -> None:
    plans = _plans(dd.sum("v"), dd.avg("v"))
    assert plans.makers == [[(c.ROWS, 0, -1, 0), (c.WHOLE, 1, -1, 1)]]
    assert plans.accumulation.components == 1 + c.WHOLE_LIMBS


def test_what_may_be_null_has_a_flag_that_says_whether_there_is_a_value() -> None:
    plans = _plans(dd.sum("x"))
    assert plans.makers == [[(c.ROWS, 0, -1, 0), (c.VALUES, 3, 2, 1), (c.FLOAT, 3, 2, 2)]]
    assert plans.accumulation.formulas == ((a.FLAG, 0, 1, 0, 0), (a.FLOAT_TOTAL, 2, 1, c.FLOAT_LIMBS, 0))
    assert plans.names == ("sum(x)", "sum(x)")


def test_any_counts_what_is_true_and_all_what_is_not() -> None:
    either = _plans(dd.any_of("b"), dd.all_of("b"))
    assert either.makers == [[(c.ROWS, 0, -1, 0), (c.TRUE, 4, -1, 1), (c.FALSE, 4, -1, 2)]]
    assert either.accumulation.formulas == ((a.ANY, 1, 0, 0, 0), (a.ALL, 2, 0, 0, 0))


def test_squares_come_behind_the_numbers() -> None:
    for first in ([], [dd.sum("v")], [dd.avg("v"), dd.variance("v", sample=False)]):
        plans = _plans(*first, dd.variance("v"))
        makers = {maker[0]: maker[3] for maker in plans.makers[0]}
        assert len(plans.makers[0]) == 3, "a sum uses the same numbers"
        flag, spread = plans.accumulation.formulas[-2:]
        assert flag[0] == a.FLAG_OF_TWO and spread[1] == makers[c.WHOLE]
        assert makers[c.WHOLE_SQUARE] == makers[c.WHOLE] + c.WHOLE_LIMBS


def test_means_of_decimals_say_how_many_digits_they_have_more_and_spreads_how_many_there_are() -> None:
    plans = _plans(dd.avg("d"), dd.stddev("d", sample=False), dd.sum("d"))
    assert [what[0] for what in plans.accumulation.formulas] == [
        a.DECIMAL_MEAN,
        a.DEVIATION,
        a.WIDE_TOTAL_HIGH,
        a.WIDE_TOTAL_LOW,
    ]
    assert [what[4] for what in plans.accumulation.formulas] == [4, 2, 19, 19]
    assert len({what[1] for what in plans.accumulation.formulas}) == 1, "all of the same numbers"


def test_of_a_sample_of_one_there_is_no_spread_and_of_everything_that_is_one_row_there_is() -> None:
    for spread in (dd.variance, dd.stddev):
        assert _plans(spread("v")).accumulation.formulas[0][0] == a.FLAG_OF_TWO
        assert _plans(spread("x", sample=False)).accumulation.formulas[0][0] == a.FLAG


def test_sums_know_whether_they_add_up_pieces_of_symbols() -> None:
    names = Input(Schema.of("k: string, v: string?, n: int"), "rows")
    for kind, column, has_symbols in [("only", "v", True), ("only", "n", False), ("count", "v", False)]:
        added = (AddedColumn("a", 0, Aggregate("count")), AddedColumn("b", 0, Aggregate(kind, column)))
        plans = accumulation_of(Accumulate((names,), ("k",), 1, added), [names.schema])
        assert plans.accumulation.symbols == has_symbols
