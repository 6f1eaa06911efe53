"""guarding.py: rows on which a chain fails.

halves_*   exactly the rows that fail by themselves are bad, wherever they are
texts_*    what is said of them does not depend on where it is said
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from differential.columns.column_types import Int64s
from differential.columns.schema import Schema
from differential.columns.symbols.table import SymbolTable
from differential.errors import RowError, UserFunctionError
from differential.linear.failures.guarding import Guard, error_texts, guarded, record_text
from differential.plan.nodes.guarded import ERRORS

NUMBERS = Schema.of("n: int")


def _function(words: Int64s) -> Int64s | None:
    """Drops zeros, and fails on negative numbers."""
    if (words[0] < 0).any():
        raise RowError("negative")
    kept = words[:, words[0] != 0]
    return np.ascontiguousarray(kept) if kept.shape[1] else None


@given(st.lists(st.integers(-2, 5)))
def test_halves_find_each_bad_row_once(numbers: list[int]) -> None:
    symbols = SymbolTable()
    words = np.array([numbers, range(len(numbers)), [1] * len(numbers)], np.int64).reshape(3, -1)
    parts = [
        guarded(Guard(part, "stage", NUMBERS, schema, lambda _: _function, ""), symbols)(words)  # type: ignore[arg-type]  # the two parts
        for part, schema in (("good", NUMBERS), ("errors", ERRORS))
    ]
    good, bad = ([] if part is None else part[-2].tolist() for part in parts)
    assert good == [place for place, number in enumerate(numbers) if number > 0]
    assert bad == [place for place, number in enumerate(numbers) if number < 0]


def test_texts_hide_addresses_and_places() -> None:
    assert record_text("<object at 0x7f3a> (/home/me/query.py:12) fails") == "<object at 0x…> fails"
    assert len(record_text("x" * 5_000)) == 2_000
    assert error_texts(RowError("a // b (q.py:3) divides by zero.\n  Mend it.")) == (
        "", "RowError: a // b divides by zero.", ""
    )  # fmt: skip


def test_texts_name_lines_of_the_function() -> None:
    def inner() -> None:
        raise ValueError("no luck")

    def outer() -> None:
        inner()

    with pytest.raises(UserFunctionError) as caught:
        try:
            outer()
        except ValueError as error:
            raise UserFunctionError("outer failed") from error
    line, said, traceback = error_texts(caught.value)
    assert (line, said) == ("line 2 of inner", "ValueError: no luck")
    assert traceback.splitlines()[-2:] == ["line 2 of outer", "line 2 of inner"]
