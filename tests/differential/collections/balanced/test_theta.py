"""theta.py: a theta join is all pairs of which the condition is true, at every time.

meaning_*   against all pairs, by random conditions, bands at the ends of 64 bits, floats, nulls
kept_*      what becomes a key, and what is asked of pairs
refused_*   what a user may do wrong, and what he is told
"""

from __future__ import annotations

import datetime as dt
import math
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from typing import cast

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from reference import collection as plainly
from reference.collection import Collection as Rows
from reference.dataflow import Change, Cluster, check_at_times
from strategies_collections import examples, histories

import differential as dd
from differential import Collection, col
from differential.errors import SchemaError, UserFunctionError
from timely.building.dataflow import Dataflow

workers = st.integers(1, 3)
seeds = st.integers(0, 2**20)
Holds = Callable[[int, int, int, int], bool]


def _sum_is_odd(one: tuple[int, int], other: tuple[int, int]) -> bool:
    return (one[1] + other[0]) % 2 == 1


CONDITIONS: dict[str, tuple[object, Holds]] = {
    "equality": (col.k == col.x, lambda k, v, x, y: k == x),
    "equality the other way round": (col.y == col.v, lambda k, v, x, y: v == y),
    "two of one column": ((col.k == col.x) & (col.k == col.y), lambda k, v, x, y: k == x == y),
    "band": (dd.band("k", "x", 1), lambda k, v, x, y: abs(k - x) <= 1),
    "band of nothing": (dd.band(col.v, col.y, 0), lambda k, v, x, y: v == y),
    "two bands": (
        [dd.band("k", "x", 1), dd.band("v", "y", 2)],
        lambda k, v, x, y: abs(k - x) <= 1 and abs(v - y) <= 2,
    ),
    "equality, band and more": (
        [(col.k == col.x) & (col.k > 0), dd.band("v", "y", 1)],
        lambda k, v, x, y: k == x and k > 0 and abs(v - y) <= 1,
    ),
    "inequality": (col.v < col.y, lambda k, v, x, y: v < y),
    "function": (_sum_is_odd, lambda k, v, x, y: (v + x) % 2 == 1),
    "equality and function": (
        [col.k == col.x, lambda one, other: one[1] != other[1]],
        lambda k, v, x, y: k == x and v != y,
    ),
}
BALANCES = (None, dd.Balance("matrix", units=4), dd.Balance("JB", units=3), dd.Balance("hash", units=4))


def _plainly(holds: Holds) -> Callable[[Rows, Rows], Rows]:
    def plain(a: Rows, b: Rows) -> Rows:
        found: Rows = Counter()
        for one, count in a.items():
            for other, times in b.items():
                if holds(*cast("tuple[int, int]", one), *cast("tuple[int, int]", other)):
                    found[(*one, *other)] += count * times
        return plainly.collection(found)

    return plain


@pytest.mark.parametrize("name", CONDITIONS)
def test_meaning_of_all_pairs_of_which_it_is_true(name: str) -> None:
    condition, holds = CONDITIONS[name]

    @cache
    def joined(balance: dd.Balance | None) -> Callable[[Collection, Collection], Collection]:
        def build(a: Collection, b: Collection) -> Collection:
            other = b.select(x=col.k, y=col.v)
            return a.theta_join(other, condition, balance=balance)  # type: ignore[arg-type]

        return build

    @examples(0.7)
    @given(histories(2), histories(2), st.sampled_from(BALANCES), workers, seeds)
    def is_so(
        left: list[Change], right: list[Change], balance: dd.Balance | None, workers: int, seed: int
    ) -> None:
        check_at_times(joined(balance), _plainly(holds), [left, right], depth=2, workers=workers, seed=seed)

    is_so()


EXTREMES = (-(2**63), -(2**63) + 1, -(2**62), -1, 0, 1, 2**62, 2**63 - 2, 2**63 - 1)
_far = st.one_of(st.none(), st.sampled_from(EXTREMES), st.integers(-(2**63), 2**63 - 1))


@settings(examples(1.5), phases=[Phase.generate])
@given(
    st.lists(_far, max_size=8), st.lists(_far, max_size=8), st.sampled_from((0, 1, 2, 3, 2**62, 2**63 - 1))
)
def test_meaning_of_bands_up_to_the_ends_of_64_bits(
    left: list[int | None], right: list[int | None], width: int
) -> None:
    assert _banded("int?", left, right, width) == Counter(
        (a, b) for a in left for b in right if a is not None and b is not None and abs(a - b) <= width
    )


_floats = st.one_of(
    st.none(), st.floats(), st.sampled_from((0.0, -0.0, 0.5, 1.5, -1.5, 1e300, 2.0**53, math.inf, -math.inf))
)


@settings(examples(1.5), phases=[Phase.generate])
@given(
    st.lists(_floats, max_size=8), st.lists(_floats, max_size=8), st.sampled_from((0, 0.5, 1, 3.25, 1e300))
)
def test_meaning_of_bands_of_floats(
    left: list[float | None], right: list[float | None], width: float
) -> None:
    """Null, NaN and what is infinite are near nothing."""
    found = _banded("float?", left, right, width)
    assert found == Counter(
        (a, b)
        for a in left
        for b in right
        if a is not None and b is not None and math.isfinite(a) and math.isfinite(b) and abs(a - b) <= width
    )


_START = dt.datetime(2024, 2, 28, 23, 59, 58, tzinfo=dt.UTC)
_TIMES = {
    "date?": [dt.date.min, dt.date(1969, 12, 31), dt.date(1970, 1, 1), dt.date(2024, 2, 29), dt.date.max],
    "timestamp?": [_START + dt.timedelta(seconds=n) for n in (-86_400, -1, 0, 1, 2, 86_400)],
}
_WIDTHS = {
    "1 day": dt.timedelta(days=1),
    "3 days": dt.timedelta(days=3),
    "2 seconds": dt.timedelta(seconds=2),
}


@settings(examples(1.5), phases=[Phase.generate])
@given(
    st.data(),
    st.sampled_from([("date?", "1 day"), ("date?", "3 days"), *(("timestamp?", w) for w in _WIDTHS)]),
)
def test_meaning_of_bands_of_dates_and_timestamps(data: st.DataObject, case: tuple[str, str]) -> None:
    type_, text = case
    times = st.lists(st.one_of(st.none(), st.sampled_from(_TIMES[type_])), max_size=8)
    left, right, width = data.draw(times), data.draw(times), _WIDTHS[text]
    wanted = Counter(
        (a, b) for a in left for b in right if a is not None and b is not None and abs(a - b) <= width
    )
    assert _banded(type_, left, right, text) == _banded(type_, left, right, width) == wanted


def _banded(
    type_: str, left: Sequence[object], right: Sequence[object], width: float | dt.timedelta | str
) -> Counter[tuple[object, ...]]:
    def build(flow: Dataflow) -> None:
        a, b = dd.input(flow, "a", f"a: {type_}"), dd.input(flow, "b", f"b: {type_}")
        a.theta_join(b, dd.band("a", "b", width)).output("pairs")

    cluster = Cluster(build)
    cluster.change("a", [((value,), 1) for value in left])
    cluster.change("b", [((value,), 1) for value in right])
    cluster.seal()
    cluster.run()
    return Counter(cluster.snapshot("pairs"))


# kept_


def _plan(condition: object) -> str:
    flow = Dataflow("tested")
    a, b = dd.input(flow, "a", "k: int, v: int"), dd.input(flow, "b", "x: int, y: int")
    return a.theta_join(b, condition).explain().split("== after the rules")[1]  # type: ignore[arg-type]


def test_kept_by_what_is_equal_and_by_bins() -> None:
    assert "join on k = x" in _plan((col.k == col.x) & (col.v < col.y))
    assert "join on k = x and (bin)" in _plan([dd.band("v", "y", 7), col.x == col.k])
    assert "join on nothing" in _plan(col.v < col.y)


def test_kept_columns_are_those_of_both_in_their_order() -> None:
    flow = Dataflow("tested")
    a = dd.input(flow, "a", "k: int, v: int")
    found = a.theta_join(a, [col.v == col.v_right, dd.band("k", "k_right", 1)], suffix="_right")
    assert found.schema.names == ("k", "v", "k_right", "v_right")


# refused_


def test_refused_bands_that_are_none() -> None:
    flow = Dataflow("tested")
    a = dd.input(flow, "a", "k: int, s: string, f: float, day: date, at: timestamp")
    b = dd.input(flow, "b", "x: int, t: string, g: float, on: date, upto: timestamp")
    hour = dt.timedelta(hours=1)
    for made, words in (
        (lambda: dd.band("k", "x", -1), "0 or more"),
        (lambda: dd.band("k", "x", 2**63), "has 64 bits"),
        (lambda: dd.band("k", "x", math.nan), "a width is a number"),
        (lambda: dd.band("k", "x", True), "a width is a number"),
        (lambda: dd.band(col.k + 1, "x", 1), "names of two columns"),
        (lambda: a.theta_join(b, dd.band("s", "t", 1)), "'s' is string, 't' is string; both are int"),
        (lambda: a.theta_join(b, dd.band("k", "g", 1)), "'k' is int, 'g' is float"),
        (lambda: a.theta_join(b, dd.band("x", "k", 1)), "the left has no column 'x'"),
        (lambda: a.theta_join(b, dd.band("k", "x", 0.5)), "of whole numbers the width is one"),
        (lambda: dd.band("at", "upto", -hour), "0 or more"),
        (lambda: a.theta_join(b, dd.band("at", "upto", 5)), "the width is a timedelta, or a text"),
        (lambda: a.theta_join(b, dd.band("day", "on", hour)), "lengths are whole days"),
        (lambda: a.theta_join(b, dd.band("day", "upto", hour)), "'day' is date, 'upto' is timestamp"),
        (lambda: a.theta_join(b, dd.band("k", "x", hour)), "'k' is int, so the width is a number"),
        (lambda: a.theta_join(b, dd.band("at", "upto", "soon")), "takes one length"),
    ):
        with pytest.raises(SchemaError, match=words):
            made()


def test_refused_conditions_that_are_none_and_columns_that_are_two() -> None:
    flow = Dataflow("tested")
    a, b = dd.input(flow, "a", "k: int, v: int"), dd.input(flow, "b", "k: int, w: int")
    with pytest.raises(SchemaError, match="both sides have a column 'k'"):
        a.theta_join(b, col.v < col.w)
    with pytest.raises(SchemaError, match="is no condition"):
        a.theta_join(b.select("w"), 3)  # type: ignore[arg-type]
    with pytest.raises(SchemaError, match="needs a condition"):
        a.theta_join(b.select("w"), [])


def _divides(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    return one[0] % other[0] == 0


def test_refused_pairs_on_which_a_function_fails_are_named_with_its_line() -> None:
    def build(flow: Dataflow) -> None:
        a, b = dd.input(flow, "a", "k: int"), dd.input(flow, "b", "x: int")
        a.theta_join(b, _divides).output("pairs")

    cluster = Cluster(build, workers=2)
    for changes in ([((0,), 1)], [((0,), -1), ((3,), 1)]):
        cluster.change("a", [((6,), 1)] if not cluster.instances[0].input("a").epoch else [])
        cluster.change("b", changes)
        cluster.seal()
        cluster.run()
    error = cluster.error("pairs", 0)
    assert type(error) is UserFunctionError
    assert "failed on" in str(error) and "6" in str(error) and "ZeroDivisionError" in str(error)
    assert "test_theta.py" in str(error) and "line 2 of _divides" in str(error)
    assert cluster.has_answer("pairs", 1) and cluster.snapshot("pairs") == {(6, 3): 1}
