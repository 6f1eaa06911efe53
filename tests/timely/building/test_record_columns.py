"""Buckets of many records are those of single records, whatever their keys are."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from timely import MisuseError
from timely.building.exchange import RecordRoute
from timely.building.record_columns import divided_records, keys_numbered
from timely.building.record_hash import KeyNumber, by, number_of_key
from timely.thresholds import DIVIDED_RECORDS_MIN
from timely.wire.batch import Records
from timely.wire.routing import BUCKETS, Routing

COLUMNS: dict[str, list[object]] = {
    "whole numbers": [0, 1, -1, -2, 2**61 - 1, -(2**61), 2**63 - 1, -(2**63)],
    "large ones": [1, 2**63, -(2**70), 2**200],
    "truth values": [True, False],
    "floats": [0.0, -0.0, 1.0, 0.5, float("nan"), float("inf"), 1e300, 2.0**70],
    "numbers of all kinds": [1, 1.0, True, Decimal(1), np.int64(3), float("nan")],
    "text": ["", "a", "Ω", "a" * 2_000],
    "text that UTF-8 has not": ["a", "\ud800"],
    "bytes": [b"", b"a"],
    "text and bytes and nothing": ["a", b"a", None],
    "tuples": [(1, "a"), (2, "b"), (1, None)],
    "lists": [[1, ("a", 2)], [2, ("b", 3)]],
    "tuples and lists": [(1, 2), [1, 2]],
    "tuples of several lengths": [(), (1,), (1, 2)],
    "empty tuples": [(), ()],
    "dicts": [{"a": 1}, {"b": 2}],
    "moments": [dt.date(2024, 5, 1), dt.datetime(2024, 5, 1, tzinfo=dt.UTC)],
}


@pytest.mark.parametrize("column", COLUMNS.values(), ids=COLUMNS)
def test_numbers_of_a_column_are_those_of_its_keys(column: list[object]) -> None:
    records: list[object] = [(key, "x") for key in column]
    routes: list[tuple[KeyNumber, list[object]]] = [
        (by(0), records),
        (by(-2), records),
        (by(lambda record: record[0]), records),  # type: ignore[index]
        (by("k"), [{"k": key} for key in column]),
        (by(), column),
        (by(1, 0), records),
        (by(), records),
    ]
    for keys, of_keys in routes:
        numbers = keys_numbered(keys, of_keys)
        if numbers is None:
            assert any("\ud800" in str(key) for key in column), "only text that cannot be encoded is left"
            continue
        assert numbers.tolist() == [keys(record) for record in of_keys]


@settings(max_examples=30)
@given(st.lists(st.integers() | st.floats() | st.text() | st.none(), min_size=2), st.integers(1, 5))
def test_records_are_divided_as_one_by_one(keys: list[object], workers: int) -> None:
    """Many records of a few keys, compared with a loop over them."""
    records: list[object] = [(key, place) for place, key in enumerate(keys * DIVIDED_RECORDS_MIN)]
    parts = RecordRoute(by(0)).split(Records(records), 0, Routing.default(workers))
    wanted: list[list[object]] = [[] for _ in range(workers)]
    for record in records:
        wanted[number_of_key(record[0]) % BUCKETS % workers].append(record)  # type: ignore[index]
    assert [part.records if isinstance(part, Records) else [] for part in parts] == wanted


def test_records_that_all_go_to_one_worker_stay_together() -> None:
    records: list[object] = ["a", "b", "c"]
    owners = Routing.default(3).owner_array_at(0)
    assert divided_records(records, np.array([1, 1, 1], np.uint32), owners, 3) == [[], records, []]
    assert divided_records(records, np.array([2, 0, 5], np.uint32), owners, 3) == [["b"], [], ["a", "c"]]


@pytest.mark.parametrize(
    ("keys", "bad", "message"),
    [
        (by(1), (1,), r"timely.by\(1\): the record \(1,\) has no entry 1"),
        (by("k"), {"other": 1}, "has no entry 'k'"),
        (by(0), (object(), 1), "cannot number the key <object"),
        (by(0), ({1, 2}, 1), "cannot number the key {1, 2}"),
    ],
)
def test_one_bad_record_among_many_is_named(keys: Callable[[object], int], bad: object, message: str) -> None:
    good: object = {"k": 1} if isinstance(bad, dict) else (1, 2)
    records = [good] * DIVIDED_RECORDS_MIN + [bad]
    with pytest.raises(MisuseError, match=message):
        RecordRoute(keys).split(Records(records), 0, Routing.default(2))


def test_what_a_function_of_the_user_raises_comes_out_as_it_is() -> None:
    def key(record: object) -> object:
        raise ZeroDivisionError("of the user")

    with pytest.raises(ZeroDivisionError, match="of the user"):
        RecordRoute(by(key)).split(Records([1] * DIVIDED_RECORDS_MIN), 0, Routing.default(2))
