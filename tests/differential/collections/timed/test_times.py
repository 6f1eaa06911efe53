"""times.py: windows, rows that leave as epochs pass, updates that come too late.

meaning_*   at every time, in loops too, on several workers, against the plain definition
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import cast
from zoneinfo import ZoneInfo

import pytest
from clock_changes import instants
from hypothesis import given
from hypothesis import strategies as st
from reference.collection import Time, accumulated_at, collection, flat_map, history, map_rows
from reference.dataflow import Change, Cluster, check_at_times, run_at_times
from reference.timed.plain import during
from strategies_collections import BINARY, UNARY, examples, histories

import differential as dd
import timely
from differential import col
from differential.errors import SchemaError
from differential.operators import reduce
from timely.building.dataflow import Dataflow

workers = st.integers(1, 3)
seeds = st.integers(0, 2**20)


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("name", ["tumbling windows", "sliding windows", "windows of days", "sessions"])
def test_meaning_of_windows_at_every_time(name: str, depth: int, monkeypatch: pytest.MonkeyPatch) -> None:
    @examples(0.3)
    @given(histories(depth), workers, seeds)
    def holds(changes: list[Change], workers: int, seed: int) -> None:
        operator = UNARY[name]
        monkeypatch.setattr(reduce, "NEAR_SHARE", (0, 8)[seed % 2])  # what is near new rows, or whole groups
        check_at_times(operator.build, operator.plain, [changes], depth=depth, workers=workers, seed=seed)

    holds()


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("name", ["as of before", "as of after"])
def test_meaning_of_the_nearest_row_at_every_time(
    name: str, depth: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    @examples(0.3)
    @given(histories(depth), histories(depth), workers, seeds)
    def holds(left: list[Change], right: list[Change], workers: int, seed: int) -> None:
        operator = BINARY[name]
        monkeypatch.setattr(reduce, "NEAR_SHARE", (0, 8)[seed % 2])  # what is near new rows, or whole groups
        check_at_times(operator.build, operator.plain, [left, right], depth=depth, workers=workers, seed=seed)

    holds()


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_meaning_of_during_at_every_time(depth: int) -> None:
    """A row (k, v) is there in the epochs k ≤ epoch < v + 3; 0 ≤ counters ≤ 3."""

    def build(c: dd.Collection) -> dd.Collection:
        return c.during(col.k, col.v + 3)

    @examples(0.5)
    @given(histories(depth), workers, seeds)
    def holds(changes: list[Change], workers: int, seed: int) -> None:
        actual = run_at_times(build, [changes], depth=depth, workers=workers, seed=seed)
        for epoch in range(7):
            for counters in {time[1:] for _, time, _ in changes} | {(3,) * (depth - 1)}:
                time: Time = (epoch, *counters)
                rows = accumulated_at(history(changes), time)
                wide = flat_map(rows, lambda row: [(*row, cast(int, row[1]) + 3)])
                wanted = map_rows(during(wide, epoch, 0, 2), lambda row: row[:2])
                assert accumulated_at(actual, time) == wanted, time

    holds()


@examples(0.5)
@given(histories(1), histories(1), workers, seeds)
def test_meaning_of_what_stands_behind_rows_that_leave(
    left: list[Change], right: list[Change], workers: int, seed: int
) -> None:
    """Joins and groups of rows whose removal is sent long before it counts, with traces compacted
    meanwhile.
    """
    actual = run_at_times(
        lambda a, b: (
            a.during(None, col.v + 3).join(b.distinct(), on=["k", "v"]).group_by("k").agg(v=dd.sum("v"))
        ),
        [left, right],
        depth=1,
        workers=workers,
        seed=seed,
    )
    for epoch in range(7):
        sums: dict[int, int] = {}
        counts: dict[int, int] = {}
        present = accumulated_at(history(right), (epoch,))
        for row, count in accumulated_at(history(left), (epoch,)).items():
            k, v = row
            assert isinstance(k, int) and isinstance(v, int)
            if epoch < v + 3 and present[row] > 0:
                sums[k] = sums.get(k, 0) + v * count
                counts[k] = counts.get(k, 0) + count
        there = [(k, total) for k, total in sums.items() if counts[k]]
        assert accumulated_at(actual, (epoch,)) == collection(there)


def _last(flow: Dataflow) -> None:
    rows = dd.input(flow, "rows", "id: int, at: int?")
    clock = dd.clock(10, 5)
    rows.last("at", 12, clock=clock).output("last")
    on_time, late = rows.split_late("at", 3, clock=clock)
    on_time.output("on time")
    late.output("late")


@examples(0.5)
@given(
    st.lists(
        st.tuples(st.one_of(st.none(), st.integers(0, 50)), st.integers(0, 6), st.sampled_from([1, 1, -1]))
    ),
    st.integers(1, 2),
)
def test_meaning_of_last_and_late_by_a_clock(rows: list[tuple[int | None, int, int]], workers: int) -> None:
    cluster = Cluster(_last, workers)
    for number, (at, epoch, diff) in enumerate(rows):
        cluster.change("rows", [((number % 3, at), diff)], epoch, worker=number % workers)
    cluster.seal(12)
    cluster.run()
    for epoch in range(13):
        now = 10 + 5 * epoch
        come = [(number % 3, at, came, diff) for number, (at, came, diff) in enumerate(rows) if came <= epoch]
        for name, is_there in (
            ("last", lambda at, came, now=now: at is not None and now - 12 < at <= now),
            ("on time", lambda at, came: at is None or 10 + 5 * came <= at + 3),
            ("late", lambda at, came: at is not None and 10 + 5 * came > at + 3),
        ):
            wanted: dict[tuple[object, ...], int] = {}
            for number, at, came, diff in come:
                if is_there(at, came):  # type: ignore[no-untyped-call]
                    wanted[number, at] = wanted.get((number, at), 0) + diff
            assert accumulated_at(cluster.changes(name), (epoch,)) == collection(wanted), (name, epoch)


def test_what_is_to_leave_has_left_when_the_inputs_are_closed() -> None:
    cluster = Cluster(_last)
    cluster.change("rows", [((1, 10), 1)])
    cluster.close()
    cluster.run()
    assert accumulated_at(cluster.changes("last"), (10**6,)) == collection({})
    assert len(cluster.changes("last")) == 2


def test_windows_of_timestamps_begin_at_their_origin() -> None:
    def build(flow: Dataflow) -> None:
        rows = dd.input(flow, "rows", "at: timestamp?")
        monday = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
        rows.window("at", dd.tumbling(weeks=1, origin=monday)).output("weeks")

    cluster = Cluster(build)
    sunday = dt.datetime(2023, 12, 31, 23, 59, tzinfo=dt.UTC)
    cluster.change("rows", [((sunday,), 1), ((None,), 1)])
    cluster.seal()
    cluster.run()
    week = dt.timedelta(weeks=1)
    start = dt.datetime(2023, 12, 25, tzinfo=dt.UTC)
    assert cluster.snapshot("weeks") == collection([(sunday, start, start + week)])


DAYS = ("day", dt.timedelta(days=1), dt.date(1970, 1, 1))
UNITS = ("n", 1, 0)


@pytest.mark.parametrize("name", ["tumbling", "sliding", "sessions", "last", "late", "nearest"])
@examples(0.3)
@given(st.lists(st.tuples(st.integers(-2, 9), st.integers(0, 2)), max_size=6))
def test_meaning_of_days_is_that_of_their_numbers(name: str, epochs: list[tuple[int, int]]) -> None:
    def asked(rows: dd.Collection, time: str, one: dt.timedelta | int, zero: dt.date | int) -> dd.Collection:
        clock = dd.clock(zero, one)
        if name == "nearest":
            found = rows.asof_join(rows, on="k", left_time=time, tolerance=2 * one, exact=False)
            return found.select("k", v=col.n_right)
        if name == "late":
            return rows.split_late(time, 2 * one, clock=clock)[1].select("k", v=col.n)
        if name == "last":
            return rows.last(time, 2 * one, clock=clock).select("k", v=col.n)
        window = {
            "tumbling": dd.tumbling(3 * one, origin=zero),
            "sliding": dd.sliding(3 * one, one),
            "sessions": dd.session(2 * one, by="k"),
        }[name]
        found = rows.window(time, window)
        return found.select(k=100 * col.window_start.cast("int") + col.window_end.cast("int"), v=col.n)

    def build(flow: Dataflow) -> None:
        rows = dd.input(flow, "rows", "n: int, k: int").with_columns(day=col.n.cast("date"))
        asked(rows, *DAYS).output("days")
        asked(rows, *UNITS).output("numbers")

    cluster = Cluster(build)
    for row in epochs:
        cluster.change("rows", [(row, 1)])
        cluster.seal()
    cluster.close()
    cluster.run()
    assert cluster.changes("days") == cluster.changes("numbers")


def test_meaning_of_a_week_of_dates_that_may_be_null() -> None:
    def build(flow: Dataflow) -> None:
        rows = dd.input(flow, "rows", "day: date?")
        rows.window("day", dd.tumbling(weeks=1, origin=dt.date(2024, 1, 1))).output("weeks")

    cluster = Cluster(build)
    cluster.change("rows", [((dt.date(2023, 12, 31),), 1), ((None,), 1)])
    cluster.seal()
    cluster.run()
    week = (dt.date(2023, 12, 31), dt.date(2023, 12, 25), dt.date(2024, 1, 1))
    assert cluster.snapshot("weeks") == collection([week])


@pytest.mark.parametrize("zone", ["Europe/Rome", "America/Havana", "Pacific/Apia", "America/Sao_Paulo"])
def test_meaning_of_local_days_is_that_of_the_clocks_there(zone: str) -> None:
    times = instants(zone)

    def build(flow: Dataflow) -> None:
        rows = dd.input(flow, "t", "at: timestamp?")
        monday = dt.datetime(2024, 1, 1)
        weeks = dd.tumbling(weeks=1, origin=monday, zone=zone)
        rows.window("at", dd.tumbling(days=1, zone=zone)).window("at", weeks, start="w", end="x").output("o")

    with timely.connect(embedded=True) as cluster:
        flow = cluster.install(build)
        flow.input("t").insert([(None,), *((time,) for time in times)])
        flow.seal()
        found = flow.output("o").snapshot().to_pylist()
    assert len(found) == len(times), "null is in no window"
    for row in found:
        at, first, last, week, after = (row[name] for name in ("at", "window_start", "window_end", "w", "x"))
        assert week <= first <= at < last <= after

        def day(instant: dt.datetime) -> dt.date:
            return instant.astimezone(ZoneInfo(zone)).date()

        moment = dt.timedelta(microseconds=1)
        assert day(first) == day(at) < day(last) and day(first - moment) < day(at)
        assert day(last - moment) <= day(at) and day(last) <= day(at) + dt.timedelta(days=2)
        monday = day(at) - dt.timedelta(days=day(at).weekday())
        assert day(week) >= monday > day(week - moment)
        assert day(after) >= monday + dt.timedelta(days=7) > day(after - moment)


@pytest.mark.parametrize(
    ("build", "told"),
    [
        (
            lambda c: c.window("at", dd.tumbling(hours=1, zone="Europe/Rome")),
            "windows in a zone are of whole days",
        ),
        (lambda c: c.window("day", dd.tumbling(days=1, zone="Europe/Rome")), "of a column of timestamps"),
        (lambda c: c.window("at", dd.tumbling(days=1, zone="Rome")), "'Rome' is no time zone"),
    ],
)
def test_refused_windows_in_a_zone_that_have_no_meaning(
    build: Callable[[dd.Collection], object], told: str
) -> None:
    with pytest.raises(SchemaError, match=told):
        build(dd.input(Dataflow(), "t", "at: timestamp, day: date"))


def test_refused_bounds_that_are_no_epochs() -> None:
    rows = dd.input(Dataflow("queries"), "rows", "id: int, at: timestamp")
    with pytest.raises(SchemaError, match=r"last\(…, clock=…\)"):
        rows.during(col.at)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"direction": "nearest"}, "there is no direction='nearest'. Write 'backward' or 'forward'"),
        ({"how": "outer"}, "there is no how='outer'. Write 'left' or 'inner'"),
    ],
)
def test_refused_options_of_an_as_of_join_that_there_are_not(options: dict[str, str], told: str) -> None:
    rows = dd.input(Dataflow("queries"), "rows", "k: int, at: timestamp")
    with pytest.raises(SchemaError, match=rf"asof_join \(.*test_times.py:\d+\): {told}"):
        rows.asof_join(rows, on="k", left_time="at", **options)  # type: ignore[arg-type]  # the mistake


def test_columns_of_an_inner_as_of_join_are_null_only_where_they_may_be() -> None:
    def build(flow: Dataflow) -> None:
        left = dd.input(flow, "left", "k: string, t: int")
        right = dd.input(flow, "right", "k: string, t: int, a: string, b: float?, d: int")
        inner = left.asof_join(right, on="k", left_time="t", how="inner")
        assert str(inner.schema) == "k: string, t: int, t_right: int, a: string, b: float?, d: int"
        outer = left.asof_join(right, on="k", left_time="t")
        assert str(outer.schema) == "k: string, t: int, t_right: int?, a: string?, b: float?, d: int?"
        inner.output("inner")
        outer.output("outer")

    cluster = Cluster(build)
    cluster.change("left", [(("x", 5), 1), (("x", 1), 1)])
    cluster.change("right", [(("x", 3, "text", None, 7), 1)])
    cluster.seal()
    cluster.run()
    found = ("x", 5, 3, "text", None, 7)
    assert cluster.snapshot("inner") == {found: 1}
    assert cluster.snapshot("outer") == {found: 1, ("x", 1, None, None, None, None): 1}


def test_a_length_in_place_of_a_shape_is_answered_with_the_shape() -> None:
    clicks = dd.input(Dataflow("tested"), "clicks", "at: timestamp")
    with pytest.raises(SchemaError, match=r"not '1 hour'. Write dd.tumbling\('1 hour'\)"):
        clicks.window("at", "1 hour")  # type: ignore[arg-type]


def test_the_columns_of_a_window_are_named_by_whoever_asks_for_it() -> None:
    clicks = dd.input(Dataflow("tested"), "clicks", "at: timestamp")
    windows = clicks.window("at", dd.tumbling(minutes=5))
    assert windows.schema.names == ("at", "window_start", "window_end")
    around = windows.window("at", dd.tumbling(hours=1), start="hour", end="hour_end")
    assert around.schema.names == (*windows.schema.names, "hour", "hour_end")


@pytest.mark.parametrize("shape", [dd.tumbling(5), dd.sliding(10, 5), dd.session(5, by="user")])
def test_columns_of_a_window_that_are_there_already_are_refused_with_names_that_are_free(
    shape: dd.Tumbling,
) -> None:
    clicks = dd.input(Dataflow("tested"), "clicks", "user: string, at: int, window_end: int, at_end: int")
    written = r"window\('at', …, start='at_start', end='at_end_2'\)"
    with pytest.raises(SchemaError, match=rf"test_times\.py:\d+.* there is 'window_end' already.*{written}"):
        clicks.window("at", shape)
    assert clicks.window("at", shape, start="at_start", end="at_end_2").schema.names[-2:] == (
        "at_start",
        "at_end_2",
    )


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ({"start": "w", "end": "w"}, "start= and end= are both 'w', and are the names of two columns"),
        ({"start": None}, "start= is the name of a column that is to be made, as start='at_start', not None"),
        ({"end": True}, "end= is the name .*not True"),
        ({"end": ""}, "end= is the name .*not ''"),
        ({"start": col.w}, "start= is the name .*not col.w"),
        ({"start": "at"}, "there is 'at' already"),
        ({"alias": "w"}, "unexpected keyword argument 'alias'.*start='window_start' and end='window_end'"),
    ],
)
def test_names_of_a_window_s_columns_that_are_none_are_refused_with_the_line(
    names: dict[str, object], message: str
) -> None:
    clicks = dd.input(Dataflow("tested"), "clicks", "at: timestamp")
    with pytest.raises(SchemaError, match=rf"test_times\.py:\d+.*{message}"):
        clicks.window("at", dd.tumbling(minutes=5), **names)  # type: ignore[arg-type]


def test_the_one_column_that_spark_makes_of_a_window_is_answered_with_the_two_here() -> None:
    clicks = dd.input(Dataflow("tested"), "clicks", "at: timestamp").window("at", dd.tumbling(minutes=5))
    for query in (
        lambda: clicks.group_by("window").agg(n=dd.count()),
        lambda: clicks.select("window"),
        lambda: clicks.filter(col.window == 1),
    ):
        with pytest.raises(timely.TimelyError, match="two columns here: 'window_start' and 'window_end'"):
            query()
