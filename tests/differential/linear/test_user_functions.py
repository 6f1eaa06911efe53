"""Python functions per record and per batch, and how their failures are told."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, cast

import numpy as np
import pytest

from differential.columns.schema import Schema
from differential.columns.symbols.table import SymbolTable
from differential.errors import ExpressionError, SchemaError, UserFunctionError
from differential.linear.chain import LinearChain
from differential.testing import Update, Updates, updates, updates_from_words, updates_to_words

SCHEMA = Schema.of("a: int, n: int?, s: string, b: int")


CHANGES = updates(
    """
    a | n    | s | b | time   | diff
    1 | null | x | 5 | (0, 0) | +1
    2 | 3    | y | 6 | (0, 1) | +2
    3 | 4    | x | 7 | (1, 0) | -1
    """,
    SCHEMA,
)


def pack(time: tuple[int, ...]) -> int:
    return time[0] * 1000 + time[1]


def unpack(word: int) -> tuple[int, ...]:
    return divmod(word, 1000)


def run(chain: LinearChain, changes: Updates = CHANGES) -> Updates:
    """What the chain's function makes of `changes`, which it must leave alone."""
    symbols = SymbolTable()
    words = updates_to_words(changes, chain.schema_in, symbols, pack)
    before = words.copy()
    words.flags.writeable = False
    result = chain.compile(symbols)(words)
    assert np.array_equal(words, before)
    if result is None:
        return Updates(chain.schema_out.names, ())
    assert result.flags.c_contiguous and result.dtype == np.int64
    assert result.shape[0] == chain.schema_out.width + 2
    return updates_from_words(result, chain.schema_out, symbols, unpack)


OVER = LinearChain.over(SCHEMA)


class Pair(NamedTuple):
    """A record as a user may write one."""

    left: int
    right: str


def test_user_map_takes_named_records_and_gives_tuples_dicts_or_lone_values() -> None:
    schema = "left: int, right: string"
    expected = [(6, "x"), (8, "y"), (10, "x")]
    for function in (
        lambda row: (row.a + row.b, row.s),
        lambda row: {"right": row.s, "left": row.a + row.b},
        lambda row: Pair(row.a + row.b, row.s),
    ):
        found = run(OVER.map(function, schema))
        assert [change.row for change in found.changes] == expected
        assert [change[1:] for change in found.changes] == [change[1:] for change in CHANGES.changes]
    assert [change.row for change in run(OVER.map(lambda row: row.n, "n: int?")).changes] == [
        (None,),
        (3,),
        (4,),
    ]
    assert run(OVER.map(lambda row: row)) == CHANGES, "without a schema the columns stay"


def test_user_flat_map_gives_any_number_of_records_with_the_time_and_diff_of_theirs() -> None:
    chain = OVER.flat_map(lambda row: [(row.s, i) for i in range(row.a - 1)], "s: string, i: int")
    assert run(chain).changes == (
        Update(("y", 0), (0, 1), 2),
        Update(("x", 0), (1, 0), -1),
        Update(("x", 1), (1, 0), -1),
    )
    assert run(OVER.flat_map(lambda row: [])).changes == ()


def _broken(row: object) -> object:
    raise ValueError("no luck")


@pytest.mark.parametrize(
    ("chain", "said"),
    [
        (OVER.map(_broken), r"map\(.*_broken\) \(.*test_\w+.py:\d+\) failed on Record\(a=1, .*: no luck"),
        (OVER.map(_broken), r"ValueError: no luck, in .*test_\w+.py:\d+"),
        (OVER.flat_map(lambda row: row.nope), r"<lambda> at test_\w+.py:\d+\).*no attribute 'nope'"),
        (OVER.map(lambda row: 5, "a: int, b: int"), "gave 5; a record of a: int, b: int is a tuple"),
        (OVER.map(lambda row: (1,), "a: int, b: int"), r"gave \(1,\); a record"),
        (OVER.map(lambda row: "x", "a: int"), r"Record\(a=1, .*column 'a' \(int\): 'x' is a str, not int"),
        (OVER.map(lambda row: None, "a: int"), "None is null"),
    ],
)  # fmt: skip
def test_user_failures_name_the_record_the_operator_and_the_line(chain: LinearChain, said: str) -> None:
    with pytest.raises(UserFunctionError, match=f"(?s){said}"):
        run(chain)


@pytest.mark.parametrize(
    ("result", "said"),
    [
        ("many", "its result does not fit x: int: column 'x' (int): 'many' is a str, not int."),
        (2**63, "its result does not fit x: int: column 'x' (int): 9223372036854775808 is out of range."),
        (None, "its result does not fit x: int: column 'x' (int): None is null"),
        ((1, 2), "it gave (1, 2); a record of x: int is a tuple in that order, or a dict"),
    ],
)
@pytest.mark.parametrize("bad", [1, 2, 3])
def test_a_result_that_does_not_fit_is_shown_with_the_record_that_gave_it(
    result: object, said: str, bad: int
) -> None:
    """Of many records of one batch, and where a record gives none, or several results."""
    of_each = OVER.map(lambda row: result if row.a == bad else row.a, "x: int")
    of_many = OVER.flat_map(lambda row: [result] if row.a == bad else [row.a] * (row.a - 1), "x: int")
    for chain in (of_each, of_many):
        with pytest.raises(UserFunctionError) as caught:
            run(chain)
        assert f" failed on Record(a={bad}, " in str(caught.value)
        assert said in str(caught.value) and isinstance(caught.value.__cause__, SchemaError)


def test_user_failures_keep_the_cause() -> None:
    with pytest.raises(UserFunctionError) as caught:
        run(OVER.map(_broken))
    assert isinstance(caught.value.__cause__, ValueError)
    with pytest.raises(ExpressionError, match="needs a function"):
        OVER.map(cast(Callable[[object], object], 5))
