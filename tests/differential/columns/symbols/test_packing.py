"""Values as bytes, and bytes as words: the same in every process, different for what is different."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from types import SimpleNamespace

import msgpack
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from differential.columns.symbols import packing
from differential.columns.symbols.packing import pack, symbol_word, unpack
from differential.errors import SchemaError
from timely.limits import NESTING_LEVELS_MAX

DAY = dt.date(2020, 2, 29)
MOMENT = pd.Timestamp("2024-02-29 12:00:00.000001", tz="Europe/Berlin")


def test_law_equal_values_of_different_types_have_different_words() -> None:
    different = [
        1,
        1.0,
        True,
        "1",
        b"1",
        (1,),
        None,
        0,
        False,
        "",
        b"",
        (),
        {},
        DAY,
        Decimal(1),
        "2020-02-29",
    ]
    assert len({symbol_word(pack(value)) for value in different}) == len(different)


@given(st.decimals(allow_nan=False, allow_infinity=False), st.integers(0, 40))
def test_law_equal_decimals_are_one_value(value: Decimal, zeros: int) -> None:
    sign, digits, exponent = value.as_tuple()
    longer = Decimal((sign, (*digits, *[0] * zeros), int(exponent) - zeros))
    assert longer == value
    assert pack(longer) == pack(value) == pack(unpack(pack(value)))
    assert unpack(pack(value)) == value
    assert pack([{"price": longer}]) == pack([{"price": value}])


def test_law_decimals_are_shown_as_one_would_write_them() -> None:
    for text, shown in (
        ("1.00", "1"),
        ("0.10", "0.1"),
        ("1E+2", "100"),
        ("-0.0", "0"),
        ("12E+40", "1.2E+41"),
    ):
        assert str(unpack(pack(Decimal(text)))) == shown


@pytest.mark.parametrize(
    "value",
    [np.datetime64("2024-01-01T00:00:00.000000001"), np.timedelta64(1, "ns"), MOMENT + pd.Timedelta(1)],
)
def test_refused_are_times_that_would_lose_something(value: object) -> None:
    with pytest.raises(
        SchemaError, match="cannot be stored: a (datetime64|timedelta64|time with nanoseconds)"
    ):
        pack([value])


def test_law_a_time_of_pandas_is_that_of_python() -> None:
    assert pack(MOMENT) == pack(MOMENT.to_pydatetime()) and unpack(pack(MOMENT)) == MOMENT


def test_law_a_word_is_the_same_in_every_process() -> None:
    """Python's own hash is not: it begins with a random number in each."""
    assert symbol_word(pack("Grüße")) == -8456580833885620421
    assert symbol_word(pack({"a": [1, None]})) == -6856126235726093684


def test_law_no_word_is_that_of_null(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "blake2b", lambda *_, **__: SimpleNamespace(digest=lambda: bytes(8)))
    assert symbol_word(pack("a")) == 1


def test_law_lists_come_back_as_tuples_and_all_else_as_it_was() -> None:
    value = {"a": [1, None, -0.0], "b": [DAY, Decimal("1.50"), dt.datetime(2020, 1, 1, tzinfo=dt.UTC), b"x"]}
    found = unpack(pack(value))
    assert found == {name: tuple(entry) for name, entry in value.items()}
    assert pack(found) == pack(value)


@pytest.mark.parametrize("value", [object(), 2**64, {1, 2}, dt.datetime(2020, 1, 1), "\ud800"])
def test_refused_is_what_msgpack_cannot_hold(value: object) -> None:
    with pytest.raises(SchemaError, match="cannot be stored"):
        pack(value)


@pytest.mark.parametrize("value", [pd.NaT, [1, pd.NaT], {"at": pd.NaT}])
def test_refused_is_the_missing_time_of_pandas_with_what_to_write(value: object) -> None:
    with pytest.raises(SchemaError, match="no time; write None"):
        pack(value)


def test_refused_are_values_nested_deeper_than_the_limit() -> None:
    value: object = "x"
    for _ in range(NESTING_LEVELS_MAX):
        value = [value]
    assert pack(unpack(pack(value))) == pack(value)
    for deeper in (value, {"a": value}, {"a": (value, 1)}):
        with pytest.raises(
            SchemaError, match=f"cannot be stored: it is nested more than {NESTING_LEVELS_MAX} deep"
        ):
            pack([deeper])
    for _ in range(100_000):
        value = [value]
    with pytest.raises(SchemaError, match="a list that is nested too deep to be shown"):
        pack(value)


@pytest.mark.parametrize("size", [0, 1, 31, 32, 255, 256, 70_000])
def test_law_texts_have_the_bytes_of_msgpack(size: int) -> None:
    for text in ("x" * size, "ä" * (size // 2) + "x" * (size % 2)):
        assert pack(text) == msgpack.packb(text) and unpack(pack(text)) == text
    with pytest.raises(SchemaError, match="cannot be stored"):
        pack("x" * size + "\ud800")
