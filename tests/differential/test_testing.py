"""testing.py: changes written and read as tables.

read_*      what a table says
compare_*   equal changes however they came, and what the message shows if they are not
law_*       printing, words and accumulation
"""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from differential.columns.symbols.table import SymbolTable
from differential.errors import SchemaError
from differential.testing import (
    Update,
    Updates,
    accumulated_at,
    assert_updates,
    format_updates,
    updates,
    updates_from_words,
    updates_to_words,
)

cells = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=6)
changes = st.lists(
    st.tuples(st.tuples(cells, cells), st.tuples(st.integers(0, 3), st.integers(0, 3)), st.integers(-3, 3))
)


def test_read_values_by_their_look_and_defaults() -> None:
    found = updates("""
        a    | b     | c    | d
        ---- | ----- | ---- | --------
        1    | -2.5  | true | it works   # a comment
        null | 1e3   | "5"  | 'true'
    """)
    assert found.columns == ("a", "b", "c", "d")
    assert found.changes == (
        Update((1, -2.5, True, "it works"), (0,), 1),
        Update((None, 1000.0, "5", "true"), (0,), 1),
    )


def test_read_by_declared_types_epochs_and_nested_times() -> None:
    found = updates("""
        name | n  | epoch | diff
        5    | 7  | 3     | -2
        null | 8  | 4     | +1
    """, "n: float, name: string?")  # fmt: skip
    assert found.changes == (Update((7.0, "5"), (3,), -2), Update((8.0, None), (4,), 1))
    assert found.by_epoch() == {3: [((7.0, "5"), -2)], 4: [((8.0, None), 1)]}
    assert updates("n | time\n 1 | (0, 2)").changes == (Update((1,), (0, 2), 1),)


@pytest.mark.parametrize(
    ("table", "schema", "said"),
    [
        ("a | b\n1", None, "has 1 cells"),
        ("a\nx", "a: int", "'x' is not of type int"),
        ("a\n1", "b: int", "the columns a"),
    ],
)
def test_read_a_broken_table_is_refused(table: str, schema: str | None, said: str) -> None:
    with pytest.raises(SchemaError, match=said):
        updates(table, schema)


def test_compare_changes_in_any_order_form_and_number_of_pieces() -> None:
    expected = "x | y | epoch | diff\n 1 | a | 0 | +2\n 2 | b | 1 | -1"
    assert_updates(
        "y | x | epoch | diff\n b | 2 | 1 | -1\n a | 1 | 0 | +1\n a | 1 | 0 | +1\n c | 9 | 5 | 0", expected
    )
    assert_updates([((1, "a"), 0, 2), ((2, "b"), (1,), -1)], expected)
    assert_updates(pa.table({"epoch": [0, 1], "diff": [2, -1], "y": ["a", "b"], "x": [1, 2]}), expected)
    assert_updates([], "x | epoch")


def test_compare_the_message_shows_what_is_missing_and_what_is_too_much() -> None:
    with pytest.raises(AssertionError) as caught:
        assert_updates(
            "x | epoch | diff\n 1 | 0 | +1\n 3 | 0 | +1", "x | epoch | diff\n 1 | 0 | +2\n 3 | 0 | +1"
        )
    missing, _, unexpected = str(caught.value).partition("unexpected:")
    assert "1 | 0     | +2" in missing and "3 " not in missing
    assert "1 | 0     | +1" in unexpected
    with pytest.raises(AssertionError, match="columns are x, not y"):
        assert_updates("x\n1", "y\n1")


@given(changes)
def test_law_a_printed_table_is_read_back(
    given_changes: list[tuple[tuple[object, object], tuple[int, int], int]],
) -> None:
    one = Updates(("a", "b"), tuple(Update(*change) for change in given_changes))
    again = updates(format_updates(one)) if one.changes else one
    assert [repr(change) for change in again.changes] == [repr(change) for change in one.changes]


def test_law_accumulation_sums_what_is_not_later() -> None:
    one = "x | time | diff\n 1 | (0, 1) | +1\n 1 | (1, 0) | +1\n 1 | (1, 1) | -2\n 2 | (0, 0) | +1"
    assert accumulated_at(one, (0, 1)) == Counter({(1,): 1, (2,): 1})
    assert accumulated_at(one, (1, 0)) == Counter({(1,): 1, (2,): 1})
    assert accumulated_at(one, (1, 1)) == Counter({(2,): 1})
    assert accumulated_at(one, (1, 1), lambda a, b: a <= b) == Counter({(2,): 1})


def test_law_changes_become_words_and_changes_again() -> None:
    symbols = SymbolTable()
    one = updates("n | s | epoch | diff\n 1 | null | 4 | -3\n 2 | x | 5 | +1", "n: int, s: string?")
    words = updates_to_words(one, "n: int, s: string?", symbols)
    assert words[[0, 1, 3, 4]].tolist() == [[1, 2], [0, 1], [4, 5], [-3, 1]]
    assert updates_from_words(words, "n: int, s: string?", symbols) == one
