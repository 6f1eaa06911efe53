"""Tables as text."""

from __future__ import annotations

import pyarrow as pa

from timely.client.statements.drawing import drawn


def test_numbers_are_on_the_right_and_rows_are_counted() -> None:
    table = pa.table({"name": ["ann", None], "n": [1, 1_000], "is": [True, None]})
    assert drawn(table).splitlines() == [
        "name |    n | is",
        "-----+------+-----",
        "ann  |    1 | true",
        "null | 1000 | null",
        "(2 rows)",
    ]
    assert drawn(table, 1).splitlines()[-1] == "(2 rows, 1 not shown)"
    assert drawn(table.slice(0, 0)).splitlines()[-1] == "(0 rows)"


def test_a_text_of_several_lines_takes_as_many_and_a_long_one_is_cut() -> None:
    assert drawn(pa.table({"s": ["a\nbc"], "n": [7]})).splitlines()[2:4] == ["a  | 7", "bc |"]
    assert len(drawn(pa.table({"s": ["x" * 1_000]})).splitlines()[2]) == 200
