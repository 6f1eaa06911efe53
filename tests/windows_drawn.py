"""Windows, drawn at random, and the dataflows that have them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import get_args

from hypothesis import strategies as st
from reference.ordered_windows import By, Call

import differential as dd
import timely
from differential import col
from differential.collections.in_order.windows import Windowed, WindowFunction
from differential.expressions.expression import Ordering
from differential.operators.reducing.window_parts import WindowKind

COLUMNS = "k: int, t: int?, v: int?, w: float, note: string?"
NAMES = ("k", "t", "v", "w", "note")

Frame = tuple[str, int | None, int | None]

kinds = st.sampled_from(get_args(WindowKind))
bounds = st.one_of(st.none(), st.integers(-2, 2))
orders = st.lists(
    st.builds(By, st.sampled_from(["t", "v", "note", "w"]), st.booleans(), st.booleans()),
    max_size=2,
    unique_by=lambda by: by.column,
)
row = st.tuples(
    st.integers(0, 1),
    st.one_of(st.none(), st.integers(-2, 3)),
    st.one_of(st.none(), st.integers(-2, 3)),
    st.sampled_from([0.5, -1.25, 3.0]),
    st.sampled_from(
        [
            "a",
            "b",
            "ä long text that goes on for more than one word 1",
            "ä long text that goes on for more than one word 2",
        ]
    ),
)


@st.composite
def calls(draw: st.DrawFn, columns: Sequence[str] = ("t", "v", "w")) -> tuple[Call, ...]:
    """One to three functions, the aggregates of these columns."""
    out = []
    for number in range(draw(st.integers(1, 3))):
        kind = draw(kinds)
        column = None
        if kind in ("lag", "first_value", "last_value", "nth_value"):
            column = draw(st.sampled_from([*columns, "note"] if "w" in columns else columns))
        elif kind in ("sum", "avg", "min", "max") or (kind == "count" and draw(st.booleans())):
            column = draw(st.sampled_from(columns))
        amount = draw(st.integers(1, 3)) if kind in ("ntile", "nth_value") else draw(st.integers(-2, 2))
        out.append(Call(f"x{number}", kind, column, amount if kind in ("ntile", "nth_value", "lag") else 0))
    return tuple(out)


@st.composite
def frames(draw: st.DrawFn, order: Sequence[By]) -> Frame:
    unit = draw(st.sampled_from(["rows", "range", "groups"]))
    start, stop = draw(bounds), draw(bounds)
    if unit == "range" and (len(order) != 1 or order[0].column not in ("t", "v")):
        start, stop = draw(st.sampled_from([None, 0])), draw(st.sampled_from([None, 0]))
    return unit, start, stop


def function_of(call: Call) -> WindowFunction | dd.Aggregate:
    if call.kind == "count":
        return dd.count(call.column)
    if call.kind in ("sum", "avg", "min", "max"):
        assert call.column is not None
        return {"sum": dd.sum, "avg": dd.avg, "min": dd.min, "max": dd.max}[call.kind](call.column)
    return WindowFunction(call.kind, call.column, call.amount)  # type: ignore[arg-type]


def ordering(by: By) -> Ordering:
    column = col(by.column)
    return column.desc(nulls_last=by.nulls_last) if by.descending else column.asc(nulls_last=by.nulls_last)


def framed(window: Windowed[dd.Collection], frame: Frame) -> Windowed[dd.Collection]:
    """The window with this frame."""
    unit, start, stop = frame
    between: Windowed[dd.Collection] = getattr(window, f"{unit}_between")(start, stop)
    return between


def query(
    keys: Sequence[str], order: Sequence[By], functions: Sequence[Call], frame: Frame
) -> Callable[[timely.Dataflow], None]:
    def build(flow: timely.Dataflow) -> None:
        rows = dd.input(flow, "rows", COLUMNS)
        by = [ordering(each) for each in order]
        window = rows.over(*keys, by=by) if by else rows.over(*keys)
        window = framed(window, frame)
        window.with_columns(**{call.name: function_of(call) for call in functions}).output("out")

    return build


def held(flow: timely.Flow, output: str = "out") -> Counter[tuple[object, ...]]:
    return Counter(tuple(row.values()) for row in flow.output(output).snapshot().to_pylist())


def held_changes(flow: timely.Flow) -> Counter[tuple[object, ...]]:
    """What all changes add up to: a snapshot would do, too, but for what the changes themselves are."""
    held: Counter[tuple[object, ...]] = Counter()
    for change in flow.output("out").changes(start=0).to_pylist():
        *values, _, diff = change.values()
        held[tuple(values)] += diff
    return +held
