"""How deep a value is nested is known without walking into it too deep."""

from __future__ import annotations

from types import MappingProxyType

import pytest

from timely.limits import NESTING_LEVELS_MAX
from timely.wire.nesting import is_one_record, is_too_deep


def nested(levels: int, kind: str) -> object:
    """A value with so many containers in one another."""
    value: object = 1
    for _ in range(levels):
        value = {"list": [1, value], "tuple": (value,), "dict": {"k": value}}[kind]
    return value


@pytest.mark.parametrize("kind", ["list", "tuple", "dict"])
def test_the_limit_itself_is_allowed_and_one_more_is_not(kind: str) -> None:
    assert not is_too_deep(nested(NESTING_LEVELS_MAX, kind))
    assert is_too_deep(nested(NESTING_LEVELS_MAX + 1, kind))
    assert is_too_deep(nested(100_000, kind))
    assert [is_too_deep(nested(levels, kind), 2) for levels in range(4)] == [False, False, False, True]


def test_keys_count_as_well() -> None:
    assert is_too_deep({((1,),): 2}, 2) and not is_too_deep({((1,),): 2}, 3)


@pytest.mark.parametrize("form", [dict, MappingProxyType])
def test_each_entry_of_a_mapping_of_any_kind_counts(form: type) -> None:
    assert is_too_deep(form({"flat": 1, "deep": [[1]]}), 2) and not is_too_deep(form({"a": 1, "b": [[1]]}), 3)


def test_what_holds_itself_is_too_deep() -> None:
    value: list[object] = []
    value += [value, value]
    assert is_too_deep(value)
    assert not is_too_deep("text") and not is_too_deep(None) and not is_too_deep(b"", 0)


@pytest.mark.parametrize("record", ["text", b"bytes", {"k": 1}, ("ada", 5), (1, 2, 3), (("a", 1), 2)])
def test_one_record_is_no_list_of_records(record: object) -> None:
    assert is_one_record(record)


@pytest.mark.parametrize("rows", [[], [1, "x"], (), (("a", 1), ("b", 2)), ({"k": 1},), iter([1]), {1, 2}, 5])
def test_several_records_are_not_one(rows: object) -> None:
    assert not is_one_record(rows)
