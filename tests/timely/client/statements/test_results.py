"""What statements return."""

from __future__ import annotations

import pyarrow as pa
import pytest

from timely import MisuseError
from timely.client.statements.results import SqlChanges, SqlResult


def test_rows_come_as_dicts_tuples_and_frames() -> None:
    result = SqlResult("SELECT", pa.table({"a": [1, 2]}), 3)
    assert result.to_pylist() == result.collect() == list(result) == [{"a": 1}, {"a": 2}]
    assert result.fetchall() == [(1,), (2,)] and result.columns == ["a"] and len(result) == 2
    assert list(result.to_pandas()["a"]) == [1, 2]  # type: ignore[index]  # a frame
    assert result.to_polars()["a"].to_list() == [1, 2]  # type: ignore[index]


def test_a_statement_without_rows_says_what_it_has_done(capsys: pytest.CaptureFixture[str]) -> None:
    result = SqlResult("INSERT 3")
    assert repr(result) == "INSERT 3" and not result.has_rows and len(result) == 0 and result.columns == []
    result.show()
    SqlResult("SELECT", pa.table({"a": [1]})).show()
    assert capsys.readouterr().out == "INSERT 3\na\n-\n1\n(1 row)\n"
    with pytest.raises(MisuseError, match="INSERT 3 has no rows"):
        result.fetchall()


def test_changes_end_once() -> None:
    ends: list[int] = []
    with SqlChanges(
        iter([(0, pa.table({"a": [1]}))]), pa.schema({"a": "int64"}), lambda: ends.append(1)
    ) as changes:
        assert [epoch for epoch, _ in changes] == [0] and repr(changes) == "SqlChanges(a)"
    changes.close()
    assert ends == [1]
