"""Numbers of keys: equal for equal keys, the same in every process, and spread over all workers."""

from __future__ import annotations

import datetime as dt
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from uuid import UUID
from zoneinfo import ZoneInfo

import msgpack
import numpy as np
import pytest
from house import ROOT
from hypothesis import given
from hypothesis import strategies as st

import timely
from timely import MisuseError
from timely.building.record_hash import by, number_of_key
from timely.wire.routing import BUCKETS

NOON = dt.datetime(2024, 5, 1, 12, tzinfo=dt.UTC)
NAN = float("nan")
EQUAL: list[tuple[object, ...]] = [
    (1, 1.0, True, Decimal(1), Fraction(1), np.int64(1), np.float32(1), np.True_, 1 + 0j),
    (0, 0.0, -0.0, False, Decimal("0.00")),
    (0.5, Fraction(1, 2), np.float64(0.5)),
    (2**70, float(2**70), Decimal(2**70)),
    (NAN, float("nan"), np.float64("nan")),
    ("a", np.str_("a")),
    (b"a", bytearray(b"a")),
    ((1, "a", None), [1.0, "a", None], (True, "a", None)),
    ({"a": 1, "b": 2}, {"b": 2.0, "a": True}),
    (NOON, NOON.astimezone(ZoneInfo("America/Lima"))),
    (NOON.replace(tzinfo=None), NOON.replace(tzinfo=None, fold=1)),
    (dt.timedelta(days=1), dt.timedelta(hours=24)),
    (dt.time(12, tzinfo=dt.UTC), dt.time(13, tzinfo=dt.timezone(dt.timedelta(hours=1)))),
    (UUID(int=5), UUID(hex="5".zfill(32))),
]
KEYS: list[object] = [
    *(
        None,
        "",
        "a",
        "\ud800",
        "Ω",
        b"a",
        0,
        1,
        -1,
        2**63,
        -(2**70),
        1.5,
        (),
        ("a",),
        ("a", None),
        (1, (2, "b")),
    ),
    *(
        {"a": [1, None]},
        dt.date(2024, 5, 1),
        NOON,
        NOON.replace(tzinfo=None),
        dt.timedelta(1),
        UUID(int=5),
        NAN,
    ),
]
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.text() | st.binary(),
    lambda inner: st.tuples(inner, inner) | st.dictionaries(st.text(), inner, max_size=3),
)


@pytest.mark.parametrize("equal", EQUAL, ids=lambda equal: repr(equal[0]))
def test_equal_keys_have_one_number(equal: tuple[object, ...]) -> None:
    assert len({number_of_key(key) for key in equal}) == 1


def test_keys_that_differ_have_numbers_that_differ() -> None:
    firsts = [key for equal in EQUAL for key in equal[:1]] + [
        (),
        ("ab", "c"),
        ("a", "bc"),
        (("a",), "bc"),
        None,
    ]
    assert len({number_of_key(key) for key in firsts}) == len(firsts)


@given(PLAIN)
def test_a_record_has_its_number_after_it_has_travelled(record: object) -> None:
    arrived = msgpack.unpackb(msgpack.packb(record), use_list=False, strict_map_key=False)
    assert by()(arrived) == by()(record)
    assert 0 <= by()(record) < 2**32


def test_numbers_are_the_same_in_processes_with_other_seeds() -> None:
    program = (
        "import sys; sys.path[:0] = sys.argv[1:]\n"
        "from test_record_hash import KEYS\n"
        "from timely.building.record_hash import number_of_key\n"
        "print([number_of_key(key) for key in KEYS])"
    )
    folders = [str(ROOT), str(ROOT / "tests"), os.path.dirname(__file__)]  # noqa: PTH120
    told = {
        subprocess.run(
            [sys.executable, "-c", program, *folders],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        ).stdout
        for seed in ("1", "2")
    }
    assert told == {f"{[number_of_key(key) for key in KEYS]}\n"}


def test_numbers_stay_as_they_are_in_every_release() -> None:
    """Other numbers would send keys elsewhere than where another release keeps them: never change these."""
    keys = ["word", b"word", 7, -1, 0.5, None, ("a", 1), {"a": 1}, dt.date(2024, 5, 1), NOON]
    assert [number_of_key(key) for key in keys] == [
        3287381265,
        3510950655,
        2739787502,
        558161692,
        3024080787,
        3583625284,
        1942656704,
        1632639528,
        1246046867,
        754274547,
    ]


@pytest.mark.parametrize(
    "make", [str, float, lambda n: n * 1024, lambda n: n / 4096, lambda n: (n % 64, str(n // 64))]
)
def test_keys_are_spread_over_the_buckets(make: Callable[[int], object]) -> None:
    """Also multiples of the number of buckets, and fractions, whose own hashes end in zeros."""
    counts = Counter(number_of_key(make(n)) % BUCKETS % 8 for n in range(4096))
    assert len(counts) == 8 and max(counts.values()) < 1.2 * 512, counts


def test_a_key_is_a_function_or_places_of_a_record() -> None:
    assert timely.by(lambda record: str(record)[0])("ab") == number_of_key("a")
    assert timely.by(1)(("x", "y")) == number_of_key("y")
    assert timely.by("day")({"day": 3.0}) == number_of_key(3)
    assert timely.by("year", "day")({"day": 3, "year": 24}) == number_of_key((24, 3))
    assert timely.by()("ab") == number_of_key("ab")


@pytest.mark.parametrize("key", [1.5, True, None, ("a", "b")])
def test_what_is_no_key_is_refused(key: object) -> None:
    with pytest.raises(MisuseError, match=r"a key is a function of the record, .* timely.by\('word'\)"):
        timely.by(key)  # type: ignore[arg-type]  # that is the mistake


def test_a_key_without_a_number_and_a_missing_entry_are_told() -> None:
    with pytest.raises(
        MisuseError, match=r"<lambda>\) cannot number the key frozenset.* of the record 1: 'froz"
    ):
        timely.by(lambda record: frozenset([record]))(1)
    with pytest.raises(MisuseError, match=r"timely.by\('word'\): the record \(1, 2\) has no entry 'word'"):
        timely.by("word", 1)((1, 2))
    nested: list[object] = []
    nested.append(nested)
    with pytest.raises(MisuseError, match="cannot number"):
        timely.by()(nested)
