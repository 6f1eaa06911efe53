"""group_functions.py: a user's function of a group, on words.

call_*     what the function gets and what becomes of its answers
refused_*  it raises, or answers with what does not fit
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable

import pytest

from differential.columns.rows import Row, decode_rows, encode_rows
from differential.columns.schema import Schema
from differential.columns.worker_symbols import SYMBOLS
from differential.errors import UserFunctionError
from differential.operators.reducing.group_functions import on_words

KEYS = Schema.of("name: string, n: int?")
REST = Schema.of("at: timestamp, x: float")
MOMENT = dt.datetime(2020, 5, 17, 12, tzinfo=dt.UTC)
Words = tuple[int, ...]


def _words(schema: Schema, row: Row) -> Words:
    return tuple(encode_rows(schema, [row], SYMBOLS).T[0].tolist())


def _call(
    function: Callable[[Row, list[tuple[Row, int]]], Iterable[object]],
    given: str,
    members: list[tuple[Row, int]],
    rest: Schema = REST,
) -> list[Row]:
    reduced = on_words(function, KEYS, rest, Schema.of(given), "query.py:7")
    rows = [(_words(rest, row), count) for row, count in members]
    answers = reduced.function(_words(KEYS, ("a", None)), rows)
    assert reduced.words == Schema.of(given).width
    return [decode_rows(Schema.of(given), _column(answer), SYMBOLS)[0] for answer in answers]


def _column(answer: Words):  # type: ignore[no-untyped-def]  # int64[words, 1]
    import numpy as np

    return np.array(answer, dtype=np.int64).reshape(-1, 1)


# call_


def test_call_with_values_and_multiplicities() -> None:
    seen: list[object] = []

    def function(key: Row, rows: list[tuple[Row, int]]) -> list[object]:
        seen.extend([key, *rows])
        return []

    assert _call(function, "n: int", [((MOMENT, 0.5), 2), ((MOMENT, -1.0), -1)]) == []
    assert seen == [("a", None), ((MOMENT, 0.5), 2), ((MOMENT, -1.0), -1)]


def test_call_answers_are_tuples_lists_or_bare_values_of_one_column() -> None:
    assert _call(lambda key, rows: [("x", 1), ["y", None]], "s: string, n: int?", []) == [
        ("x", 1),
        ("y", None),
    ]
    assert _call(lambda key, rows: iter([1, (2,)]), "n: int", []) == [(1,), (2,)]


def test_call_with_groups_that_have_no_other_columns() -> None:
    found = _call(lambda key, rows: [count for _, count in rows], "n: int", [((), 3)], Schema(()))
    assert found == [(3,)]


def test_call_may_give_rows_without_columns() -> None:
    assert _call(lambda key, rows: [(), ()], "", []) == [(), ()]


# refused_


@pytest.mark.parametrize("function", [lambda key, rows: [key.name], lambda key, rows: [rows[0][0].x]])
def test_refused_names_of_tuples_say_what_to_write(function: Callable[..., Iterable[object]]) -> None:
    with pytest.raises(
        UserFunctionError, match=r"no attribute '(name|x)'\n  Keys and rows .* multiplicity in"
    ):
        _call(function, "n: int", [((MOMENT, 0.5), 2)])


def _refused(
    function: Callable[[Row, list[tuple[Row, int]]], Iterable[object]], given: str
) -> UserFunctionError:
    with pytest.raises(UserFunctionError) as caught:
        _call(function, given, [((MOMENT, 0.5), 2)])
    said = str(caught.value)
    assert "query.py:7" in said and "('a', None)" in said
    return caught.value


def test_refused_a_function_that_raises_has_the_exception_as_its_cause() -> None:
    error = _refused(lambda key, rows: 1 // 0, "n: int")  # type: ignore[arg-type,return-value]
    assert "ZeroDivisionError" in str(error) and isinstance(error.__cause__, ZeroDivisionError)


def test_refused_answers_that_do_not_fit_the_declared_columns() -> None:
    assert "n: int" in str(_refused(lambda key, rows: ["text"], "n: int"))
    assert "2 values" in str(_refused(lambda key, rows: [7], "n: int, m: int"))
    assert "3 values" in str(_refused(lambda key, rows: [(1, 2, 3)], "n: int, m: int"))
    assert "null" in str(_refused(lambda key, rows: [None], "n: int")).lower()


def test_refused_an_answer_that_is_no_list_of_rows() -> None:
    assert "TypeError" in str(_refused(lambda key, rows: 7, "n: int"))  # type: ignore[arg-type,return-value]
