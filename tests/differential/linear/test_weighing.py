"""weighing.py: multiplicities times a column.

weighed_*   what is left is summed, and what cancels goes
refused_*   what does not fit 64 bits
"""

from __future__ import annotations

import pytest

from differential.columns.schema import Schema
from differential.columns.symbols.table import SymbolTable
from differential.errors import MultiplicityOverflowError
from differential.linear.weighing import weighed, without
from differential.testing import Updates, updates, updates_from_words, updates_to_words

SCHEMA = Schema.of("n: int, s: string")


def run(table: str) -> Updates | None:
    symbols = SymbolTable()
    words = updates_to_words(updates(table, SCHEMA), SCHEMA, symbols)
    found = weighed(SCHEMA, "n", symbols)(words)
    return None if found is None else updates_from_words(found, without(SCHEMA, "n"), symbols)


def test_weighed_rows_of_one_time_are_one() -> None:
    found = run(
        """
        n | s | epoch | diff
        3 | x | 0     | +1
        2 | x | 0     | -1
        5 | x | 1     | +2
        0 | y | 0     | +7
        """
    )
    assert found is not None and found.changes == ((("x",), (0,), 1), (("x",), (1,), 10))


def test_weighed_what_stays_the_same_is_not_said() -> None:
    assert run("n | s | epoch | diff\n 4 | x | 0 | +1\n 4 | x | 0 | -1") is None


def test_refused_more_than_64_bits() -> None:
    with pytest.raises(MultiplicityOverflowError, match="64 bits"):
        run(f"n | s | epoch | diff\n {2**62} | x | 0 | +2")
