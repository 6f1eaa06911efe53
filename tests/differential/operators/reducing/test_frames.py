"""frames.py: windows mean what their plain definition means, at every epoch; and what DuckDB says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from decimal import Decimal

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference.ordered_windows import By, Call, windowed
from strategies_collections import examples
from windows_drawn import (
    COLUMNS,
    NAMES,
    Frame,
    bounds,
    calls,
    frames,
    function_of,
    held,
    ordering,
    orders,
    query,
    row,
)

import differential as dd
import timely
from differential import col
from differential.errors import MultiplicityOverflowError, SumOverflowError

LONG = "ä text that goes on for more than one word"


@pytest.mark.parametrize("workers", [1, 2])
def test_law_every_row_has_the_answers_of_its_group_at_every_epoch(workers: int) -> None:
    @examples(1.5)
    @given(st.data())
    def holds(data: st.DataObject) -> None:
        keys = data.draw(st.sampled_from([(), ("k",)]))
        order = data.draw(orders)
        frame = data.draw(frames(order))
        functions = data.draw(calls())
        there: Counter[tuple[object, ...]] = Counter()
        with timely.connect(workers=workers, embedded=True) as cluster:
            flow = cluster.install(query(keys, order, functions, frame))
            for _ in range(data.draw(st.integers(1, 3))):
                come, go = data.draw(st.lists(row, max_size=6)), []
                if there:
                    listed = sorted(there.elements(), key=repr)
                    drawn = Counter(data.draw(st.lists(st.sampled_from(listed), max_size=3)))
                    go = list((drawn & there).elements())
                flow.input("rows").insert(come)
                flow.input("rows").remove(go)
                there = Counter([*there.elements(), *come])
                there.subtract(go)
                there += Counter()
                flow.seal(wait=True)
                rows = [dict(zip(NAMES, each, strict=True)) for each in there.elements()]
                if tie_by_text_alone(rows, order):
                    continue  # such texts come in the order of their words, which says nothing
                expected = windowed(rows, keys, order, functions, frame)
                assert held(flow) == Counter(tuple(each.values()) for each in expected)

    holds()


def tie_by_text_alone(rows: Sequence[dict[str, object]], order: Sequence[By]) -> bool:
    if "note" in (by.column for by in order):
        return False
    different = {tuple(row.values()) for row in rows}
    return len({each[:-1] for each in different}) < len(different)


SQL = {
    "sum": "sum({})", "avg": "avg({})", "min": "min({})", "max": "max({})", "count": "count({})",
    "first_value": "first_value({})", "last_value": "last_value({})", "nth_value": "nth_value({}, {})",
    "lag": "lag({}, {})", "ntile": "ntile({})",
}  # fmt: skip


def sql_of(call: Call) -> str:
    arguments = [*([call.column] if call.column else []), *([call.amount] if call.amount else [])]
    if call.kind == "count" and not arguments:
        return "count(*)"
    return SQL[call.kind].format(*arguments) if call.kind in SQL else f"{call.kind}()"


def bound(number: int | None, side: str) -> str:
    if number is None:
        return f"UNBOUNDED {side}"
    return "CURRENT ROW" if not number else f"{abs(number)} {'PRECEDING' if number < 0 else 'FOLLOWING'}"


def test_law_duckdb_says_the_same() -> None:
    database = duckdb.connect(":memory:")

    @examples(1)
    @given(st.data())
    def holds(data: st.DataObject) -> None:
        by = data.draw(st.builds(By, st.just("t"), st.booleans(), st.booleans()))
        unit = data.draw(st.sampled_from(["rows", "range", "groups"]))
        start = data.draw(bounds)
        stop = data.draw(st.one_of(st.none(), st.integers(-2 if start is None else start, 2)))
        functions = [call for call in data.draw(calls()) if call.kind != "lag" or call.amount]
        rows = data.draw(st.lists(row, max_size=8, unique_by=lambda each: each[:2]))
        if not functions:
            return
        window = (
            f"(partition by k order by t {'desc' if by.descending else 'asc'} nulls "
            f"{'last' if by.nulls_last else 'first'} {unit} between {bound(start, 'PRECEDING')} and "
            f"{bound(stop, 'FOLLOWING')})"
        )
        selected = ", ".join(f"{sql_of(call)} over {window} as {call.name}" for call in functions)
        gone = data.draw(st.lists(st.sampled_from(rows), max_size=3, unique=True)) if rows else []
        database.execute("create or replace table rows (k int8, t int8, v int8, w double, note varchar)")
        with timely.connect(workers=1, embedded=True) as cluster:
            flow = cluster.install(query(["k"], [by], functions, (unit, start, stop)))
            for come, go in ((rows[1:], []), (rows[:1], gone)):
                flow.input("rows").insert(come)
                flow.input("rows").remove(go)
                flow.seal(wait=True)
                if come:
                    database.executemany("insert into rows values (?, ?, ?, ?, ?)", come)
                if go:
                    database.executemany(
                        "delete from rows where k = ? and t is not distinct from ?", [each[:2] for each in go]
                    )
                expected = Counter(database.execute(f"select *, {selected} from rows").fetchall())
                assert held(flow) == expected, (window, selected)

    holds()


def test_each_frame_of_a_group_with_peers_and_nulls() -> None:
    """The laws above draw some frames; here are all with bounds of at most 1, in both directions."""
    some = (None, -1, 0, 1)
    frames_of_all: list[Frame] = [
        (unit, start, stop) for unit in ("rows", "range", "groups") for start in some for stop in some
    ]
    functions = [
        Call("n", "count"), Call("s", "sum", "v"), Call("least", "min", "v"), Call("most", "max", "w"),
        Call("f", "sum", "w"), Call("first", "first_value", "v"), Call("second", "nth_value", "v", 2),
    ]  # fmt: skip
    times = (None, None, 1, 1, 2, 4, 4, 5, 8)
    rows = [(0, t, None if at == 4 else at * 3 % 7, at * 0.5, "a") for at, t in enumerate(times)]

    def build(flow: timely.Dataflow) -> None:
        source = dd.input(flow, "rows", COLUMNS)
        for at, (unit, start, stop) in enumerate(frames_of_all):
            window = source.over("k", by=ordering(By("t", (at + at // 4) % 2 == 1, at % 4 < 2)))
            window = getattr(window, f"{unit}_between")(start, stop)
            window.with_columns(**{call.name: function_of(call) for call in functions}).output(f"out {at}")

    with timely.connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(build)
        flow.input("rows").insert(rows)
        flow.seal(wait=True)
        for at, frame in enumerate(frames_of_all):
            order = [By("t", (at + at // 4) % 2 == 1, at % 4 < 2)]
            expected = windowed(
                [dict(zip(NAMES, each, strict=True)) for each in rows], ["k"], order, functions, frame
            )
            assert held(flow, f"out {at}") == Counter(tuple(each.values()) for each in expected), frame


# Edges.


def test_rows_of_a_negative_multiplicity_are_none() -> None:
    def owed(rows: dd.Collection) -> dd.Collection:
        two = rows.filter(col.t == 2)
        return rows.concat(two.negate(), two.negate()).over(by="t").with_columns(n=dd.row_number())

    assert answers([(1,), (2,), (3,)], "t: int", owed) == Counter([(1, 1), (3, 2)])


def answers(
    rows: list[tuple[object, ...]], schema: str, build: Callable[[dd.Collection], dd.Collection]
) -> object:
    with timely.connect(workers=2, embedded=True) as cluster:
        flow = cluster.install(lambda flow: build(dd.input(flow, "rows", schema)).output("out"))
        flow.input("rows").insert(rows)
        flow.seal(wait=True)
        return held(flow)


def test_long_texts_come_in_their_order_whichever_came_first() -> None:
    """Texts inserted one by one, each just in front of the last one, run out of places between neighbours."""
    texts = [f"{LONG} {number:03d}" for number in range(200)]

    def numbered(flow: timely.Dataflow) -> None:
        rows = dd.input(flow, "rows", "note: string")
        rows.over(by="note").with_columns(n=dd.row_number()).output("out")

    with timely.connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(
            lambda flow: (
                dd.input(flow, "rows", "note: string")
                .over(by="note")
                .with_columns(n=dd.row_number())
                .output("out")
            )
        )
        flow.input("rows").insert([(texts[0],)])
        for text in reversed(texts[1:]):
            flow.input("rows").insert([(text,)])
            flow.seal(wait=True)
        assert held(flow) == Counter((text, number + 1) for number, text in enumerate(texts))


def test_within_loops_and_at_the_ends_of_64_bits() -> None:
    top = (1 << 63) - 1
    rows = [(-top - 1, 1), (-top, 2), (0, 3), (top - 1, 4), (top, 5)]
    near = answers(
        rows, "t: int, v: int", lambda r: r.over(by="t").range_between(-1, 1).with_columns(s=dd.sum("v"))
    )
    assert near == Counter([(-top - 1, 1, 3), (-top, 2, 3), (0, 3, 3), (top - 1, 4, 9), (top, 5, 9)])

    def halved(flow: timely.Dataflow) -> None:
        numbers = dd.input(flow, "rows", "n: int")

        def body(x: dd.Collection) -> dd.Collection:
            odd = x.over(by="n").with_columns(p=dd.row_number()).filter(col.p % 2 == 1)
            return odd.select("n").concat(numbers).distinct()

        numbers.iterate(body).output("out")

    with timely.connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(halved)
        flow.input("rows").insert([(n,) for n in range(9)])
        flow.seal(wait=True)
        flow.input("rows").remove([(3,)])
        flow.seal(wait=True)
        assert held(flow) == Counter((n,) for n in range(9) if n != 3)


def total(rows: dd.Collection) -> dd.Collection:
    return rows.over().with_columns(s=dd.sum("v"))


@pytest.mark.parametrize("workers", [1, 2])
def test_rows_whose_sum_does_not_fit_leave_outputs_without_an_answer_until_it_fits(workers: int) -> None:
    def so_far(flow: timely.Dataflow) -> None:
        rows = dd.input(flow, "rows", "k: string, v: int")
        window = rows.over("k", by=col.v.desc()).with_columns(s=dd.sum("v"), n=dd.sum("v"))
        window.output("out")
        window.join(rows.group_by("k").agg(m=dd.min("v")), on="k").select("k", "s").output("joined")
        rows.over("k", by="v").with_columns(n=dd.row_number()).output("others")

    half = 1 << 62
    with timely.connect(workers=workers, embedded=True) as cluster:
        flow = cluster.install(so_far)
        flow.input("rows").insert([("a", half), ("a", half), ("a", 1), ("b", 5)])
        flow.seal(wait=True)
        for output in ("out", "joined"):
            with pytest.raises(
                SumOverflowError, match=r"s=sum\(v\) .* of the group \(k='a'\) leaves 64 bits"
            ):
                flow.output(output).snapshot()
        assert len(held(flow, "others")) == 4
        flow.input("rows").remove([("a", half)])
        flow.seal(wait=True)
        assert held(flow) == Counter([("a", half, *2 * [half]), ("a", 1, *2 * [half + 1]), ("b", 5, 5, 5)])
        assert held(flow, "joined") == Counter([("a", half), ("a", half + 1), ("b", 5)])


def test_sums_of_decimals_have_ten_digits_more_up_to_38() -> None:
    kept = answers(
        [(1, Decimal("99.9")), (2, Decimal("99.8"))],
        "t: int, v: decimal(3, 1)",
        lambda r: total(r).select("s"),
    )
    assert kept == Counter({(Decimal("199.7"),): 2})
    rows = [(t, Decimal("99999999999999999.9")) for t in range(2)]
    assert sum(answers(rows, "t: int, v: decimal(18, 1)", total).values()) == 2
    rows = [(t, Decimal("9" * 37 + ".9")) for t in range(2)]
    with pytest.raises(SumOverflowError, match="has more than 38 digits"):
        answers(rows, "t: int, v: decimal(38, 1)", total)


def test_sums_at_the_ends_of_their_columns() -> None:
    end = 1 << 63
    for rows, fits in (
        ([1 - end, -1], True),
        ([-end, -1], False),
        ([end - 2, 1], True),
        ([end - 1, 1], False),
    ):
        if fits:
            assert answers([(1, v) for v in rows], "t: int, v: int", total)
        else:
            with pytest.raises(SumOverflowError, match="64 bits"):
                answers([(1, v) for v in rows], "t: int, v: int", total)
    with pytest.raises(SumOverflowError, match="38 digits"):
        answers([(1, Decimal(1 - 10**38)), (2, Decimal(-1))], "t: int, v: decimal(38, 0)", total)


def test_within_loops_sums_may_not_fit() -> None:
    def doubled(flow: timely.Dataflow) -> None:
        numbers = dd.input(flow, "rows", "n: int")

        def body(x: dd.Collection) -> dd.Collection:
            more = x.concat(x).filter(col.n > 1).over().with_columns(s=dd.sum("n"))
            return more.select(n=col.s.fill_null(0)).concat(x).distinct()

        numbers.iterate(body).output("out")

    with timely.connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(doubled)
        flow.input("rows").insert([(1,)])
        flow.seal(wait=True)
        assert held(flow) == Counter([(1,)])
        flow.input("rows").insert([(2,)])
        flow.seal(wait=True)
        with pytest.raises(SumOverflowError, match="leaves 64 bits"):
            flow.output("out").snapshot()
        flow.input("rows").remove([(2,)])
        flow.seal(wait=True)
        assert held(flow) == Counter([(1,)])


def test_refused_more_copies_than_memory_holds() -> None:
    def numbered(flow: timely.Dataflow) -> None:
        dd.input(flow, "rows", "k: int").over().with_columns(n=dd.row_number()).output("out")

    with timely.connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(numbered)
        flow.input("rows").append(pa.table({"k": [1], "diff": [1 << 40]}))
        with pytest.raises(MultiplicityOverflowError, match="divide them by more keys"):
            flow.seal(wait=True)
