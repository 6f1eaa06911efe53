"""windows.py: how users write windows, and what they mean at times that are not in one order.

What they mean at the epochs of a dataflow is tested where `frames.py` and `stretches.py` are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference.collection import Collection as Rows
from reference.dataflow import check_at_times
from reference.ordered_windows import By, Call, windowed
from strategies_collections import examples, histories
from windows_drawn import calls, framed, frames, function_of, ordering

import differential as dd
import timely
from differential import col
from differential.errors import ExpressionError, SchemaError


def answers(
    rows: list[tuple[object, ...]], schema: str, build: Callable[[dd.Collection], dd.Collection]
) -> object:
    with timely.connect(workers=2, embedded=True) as cluster:
        flow = cluster.install(lambda flow: build(dd.input(flow, "rows", schema)).output("out"))
        flow.input("rows").insert(rows)
        flow.seal(wait=True)
        return Counter(tuple(row.values()) for row in flow.output("out").snapshot().to_pylist())


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_meaning_at_every_time(depth: int) -> None:
    @examples(1)
    @given(st.data())
    def holds(data: st.DataObject) -> None:
        keys = data.draw(st.sampled_from([(), ("k",)]))
        order = [By(data.draw(st.sampled_from(["k", "v"])), data.draw(st.booleans()))]
        order = [by for by in order if by.column not in keys]
        unit, start, stop = data.draw(frames(order))
        if unit == "range" and order and order[0].column == "k":
            start, stop = start and 0, stop and 0
        functions = data.draw(calls(("v", "k") if not keys else ("v",)))

        def build(c: dd.Collection) -> dd.Collection:
            window = c.over(*keys, by=[ordering(by) for by in order]) if order else c.over(*keys)
            window = framed(window, (unit, start, stop))
            return window.with_columns(**{call.name: function_of(call) for call in functions})

        def plain(c: Rows) -> Rows:
            rows = [dict(zip("kv", row, strict=True)) for row, count in c.items() for _ in range(count)]
            out = windowed(rows, keys, order, functions, (unit, start, stop))
            return Counter(tuple(row.values()) for row in out)

        changes, seed = data.draw(histories(depth, size_max=12)), data.draw(st.integers(0, 1 << 20))
        workers = data.draw(st.integers(1, 2))
        check_at_times(build, plain, [changes], depth=depth, workers=workers, seed=seed)

    holds()


def test_defaults_stand_where_there_is_no_row_and_not_for_null() -> None:
    got = answers(
        [(1, None), (2, 5), (3, 6)],
        "t: int, v: int?",
        lambda rows: rows.over(by="t").with_columns(
            before=dd.lag("v", default=0), ahead=dd.lead("v", 2, default=-1)
        ),
    )
    assert got == Counter([(1, None, 0, 6), (2, 5, None, -1), (3, 6, 5, -1)])


def test_keys_and_expressions_may_be_arguments() -> None:
    got = answers(
        [(1, 2), (1, 3)],
        "k: int, v: int",
        lambda rows: rows.over("k", by=col.v * -1).with_columns(k2=dd.first_value("k"), s=dd.sum(col.v * 10)),
    )
    assert got == Counter([(1, 3, 1, 30), (1, 2, 1, 50)])


def test_answers_may_have_any_names() -> None:
    """Those of columns that are computed on the way, too."""
    got = answers(
        [(1, 2), (2, 3)],
        "t: int, v: int",
        lambda rows: rows.over(by="t").with_columns(
            **{"col.v + 1": dd.sum(col.v + 1), "x": dd.lag("v", 1, 0), "x (there)": dd.lag("v", 1, 7)}
        ),
    )
    assert got == Counter([(1, 2, 3, 0, 7), (2, 3, 7, 2, 2)])


@pytest.mark.parametrize(
    "build, said",
    [
        (lambda r: r.over("x").with_columns(n=dd.row_number()), "x"),
        (lambda r: r.over("k", "k").with_columns(n=dd.row_number()), "twice"),
        (lambda r: r.over("k").with_columns(), "needs a function"),
        (lambda r: r.over("k").with_columns(k=dd.row_number()), "already"),
        (lambda r: r.over("k").with_columns(n=dd.collect("k")), "no function of a window"),
        (lambda r: r.over("k").with_columns(n=5), "no function of a window"),
        (
            lambda r: r.over("k").with_columns(n=dd.min("s")),
            "numbers and times.* In a text of dd.sql, min.s. OVER",
        ),
        (lambda r: r.over("k").with_columns(n=dd.sum("s")), "takes numbers"),
        (
            lambda r: r.over("k", by="s").range_between(-1, 0).with_columns(n=dd.count()),
            "one column of numbers",
        ),
        (lambda r: r.over("k", by="s").with_columns(n=dd.lag(5)), r"dd.lag\(5\) takes a column"),
        (lambda r: r.over("k", by="a").with_columns(n=dd.count()), "no order"),
        (lambda r: r.over("k").with_columns(n=dd.ntile(0)), "from 1 on, not 0"),
        (lambda r: r.over("k").with_columns(n=dd.lag("k", 1.5)), "a whole number, not 1.5"),
        (lambda r: r.over("k").rows_between("x", 0), "a whole number, not 'x'"),
        (lambda r: r.over("k").rows_between(-(2**63), 0), "a whole number of at most 62 bits, not -9223372"),
    ],
)
def test_refused_with_what_to_write(build: Callable[[dd.Collection], object], said: str) -> None:
    rows = dd.input(timely.Dataflow("queries"), "rows", "k: int, s: string, a: any")
    with pytest.raises((SchemaError, ExpressionError), match=said):
        build(rows)


def test_copies_of_a_row_have_one_order_in_windows_of_both_directions() -> None:
    """`nth_value` has different answers for the copies of a row, which are not in the order of the copies."""
    functions = [Call("n", "nth_value", "v", 2), Call("r", "row_number"), Call("s", "sum", "v")]

    def build(flow: timely.Dataflow) -> None:
        window = dd.input(flow, "rows", "k: int, t: int, v: int").over("k", by="t").rows_between(0, None)
        calls = [{call.name: function_of(call) for call in each} for each in (functions, functions[::2])]
        window.with_columns(**calls[0]).output("numbered")
        window.with_columns(**calls[1]).output("plain")

    steps = [(1, (0, 1, 5)), (1, (0, 1, 5)), (1, (0, 2, 3)), (1, (1, 1, 5)), (1, (0, 1, 5)), (1, (0, 1, 6))]
    steps += [(-1, (0, 1, 5)), (-1, (0, 1, 5)), (1, (1, 1, 5)), (-1, (0, 2, 3)), (1, (0, 1, 5))]
    with timely.connect(workers=2, embedded=True) as cluster:
        flow, there = cluster.install(build), Counter[tuple[int, ...]]()
        for diff, row in steps:
            there[row] += diff
            (flow.input("rows").insert if diff > 0 else flow.input("rows").remove)([row])
            flow.seal()
            rows = [dict(zip("ktv", each, strict=True)) for each in there.elements()]
            for name, calls in (("numbered", functions), ("plain", functions[::2])):
                expected = windowed(rows, ("k",), [By("t")], calls, ("rows", 0, None))
                held = flow.output(name).snapshot().to_pylist()
                assert sorted(map(str, held)) == sorted(map(str, expected)), (diff, row, name)
