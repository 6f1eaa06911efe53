"""windows.py: where the functions of a window find their columns in the layout of the order."""

from __future__ import annotations

from differential.columns.schema import Schema
from differential.operators.ordered.layout import SortDirection
from differential.operators.ordered.windows import WindowOrder
from differential.operators.reducing.window_parts import Frame, WindowPart

SCHEMA = Schema.of("k: int, t: int?, name: string, v: float?")
LAG = WindowPart("lag", amount=1)


def of(*directions: SortDirection) -> WindowOrder:
    functions = tuple((LAG, column) for column in ("t", "name", "v"))
    return WindowOrder(SCHEMA, 1, directions, 1 << 62, functions=functions, frame=Frame())


def test_columns_are_found_behind_the_key() -> None:
    functions = of(SortDirection()).aggregate()
    assert [(part.flag, part.value) for part in functions.parts] == [(0, 1), (-1, 2), (3, 4)]
    assert functions.by == (0, 1) and functions.ordered == 2 and functions.words == 5 + 6


def test_columns_of_a_descending_order_are_inverted_but_symbols_are_not() -> None:
    functions = of(SortDirection(True), SortDirection(True)).aggregate()
    t, name, v = functions.parts
    assert t.inverted and not name.inverted and not v.inverted
    assert functions.symbols and name.value == functions.symbols[0][0], "behind the beginning of the text"
    assert functions.by == (-1, -1), "there are two"


def test_windows_whose_frames_end_with_the_group_are_turned_round() -> None:
    calls = (
        (WindowPart("sum"), "v"), (WindowPart("last_value"), "name"), (WindowPart("lag", amount=2), "v"),
    )  # fmt: skip
    frame = Frame("rows", -3, None)
    directions = (SortDirection(),)
    order = WindowOrder(SCHEMA, 1, directions, 1 << 62, functions=calls, frame=frame)
    functions = order.aggregate()
    assert order.is_turned and functions.frame == Frame("rows", None, 3)
    assert [part.kind for part in functions.parts] == ["sum", "first_value", "lag"]
    assert functions.parts[2].amount == -2
    assert all(word.inverted for word in order.layout), "names, which are no part of the order, too"
    calls = ((WindowPart("max"), "v"), (WindowPart("first_value"), "name"))
    order = WindowOrder(SCHEMA, 1, directions, 1 << 62, functions=calls, frame=frame)
    assert [part.kind for part in order.aggregate().parts] == ["max", "last_value"]
    for other in ("row_number", "nth_value", "ntile", "rank"):
        parts = ((WindowPart("sum"), "v"), (WindowPart(other, amount=1), None))
        assert not WindowOrder(SCHEMA, 1, directions, 1 << 62, functions=parts, frame=frame).is_turned
    for ends in (Frame("rows", None, None), Frame("rows", -3, 3)):
        assert not WindowOrder(SCHEMA, 1, directions, 1 << 62, functions=calls, frame=ends).is_turned


def test_descriptions_tell_windows_apart() -> None:
    assert of(SortDirection()).describe() != of(SortDirection(True)).describe()
    assert of(SortDirection()).added == 6
