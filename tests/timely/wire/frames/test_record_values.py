"""record_values.py: what a record may hold, and how it comes back."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from timely.wire.batch import UNPACK_ERRORS
from timely.wire.frames.record_values import pack_value, unpack_value

_FLAT = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(1 << 63), (1 << 63) - 1),
    st.floats(allow_nan=False),
    st.decimals(allow_nan=False),
    st.text(),
    st.binary(),
    st.dates(),
    st.datetimes(timezones=st.just(dt.UTC)).map(lambda moment: moment.replace(fold=0)),
)
VALUES = st.recursive(
    _FLAT,
    lambda each: st.one_of(
        st.lists(each, max_size=3).map(tuple), st.dictionaries(st.text(), each, max_size=3)
    ),
)


@given(VALUES)
def test_values_come_back_as_they_were(value: object) -> None:
    again = unpack_value(pack_value(value))
    assert again == value and repr(again) == repr(value)


def test_values_come_back_in_utc_and_with_tuples_for_lists() -> None:
    east = dt.timezone(dt.timedelta(hours=9))
    moment = dt.datetime(2024, 2, 29, 9, tzinfo=east)
    assert unpack_value(pack_value([moment, [1]])) == (moment, (1,))
    assert (
        repr(unpack_value(pack_value(moment)))
        == "datetime.datetime(2024, 2, 29, 0, 0, tzinfo=datetime.timezone.utc)"
    )


@pytest.mark.parametrize(
    "value", [dt.datetime(2024, 1, 1), {1, 2}, print, dt.timedelta(1), 1 << 70, 1j], ids=repr
)
def test_refused_values_are_named(value: object) -> None:
    with pytest.raises(
        (TypeError, OverflowError), match="time zone: write value.replace|can not serialize|range"
    ):
        pack_value(value)


@pytest.mark.parametrize(
    "code, payload", [(1, b"123"), (1, b"\0\0\0\0"), (1, b"\xff" * 4), (2, b"x"), (2, b"\xff"), (3, b"")]
)
def test_refused_bytes_that_nothing_makes(code: int, payload: bytes) -> None:
    packed = msgpack.packb(msgpack.ExtType(code, payload))
    with pytest.raises(UNPACK_ERRORS):
        unpack_value(packed)


def test_values_of_decimals_keep_their_digits() -> None:
    assert str(unpack_value(pack_value(Decimal("1.00")))) == "1.00"
