"""node.py: when two operators are the same.

same_*     equal nodes have equal digests, wherever they were written
other_*    what differs has another digest, each field by itself
read_*     what is read of what a node writes
free_*     which variables a node depends on
"""

from __future__ import annotations

import contextlib
import dataclasses
import subprocess
import sys

import msgpack
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import differential as dd
from differential import col
from differential.aggregates import Aggregate
from differential.columns.schema import Schema
from differential.errors import SchemaError
from differential.operators.ordered.layout import SortDirection
from differential.operators.reducing.window_parts import Frame
from differential.plan import nodes as n
from differential.plan.functions import UserFunction
from differential.plan.nodes.node import Leaf
from differential.plan.sketching import Sketch
from differential.skew.running.schedule import ANNOUNCED
from differential.skew.running.steering import COUNTED
from timely import Vertex
from timely.own_files import ROOT

AB = n.Input(Schema.of("a: int, b: int"), "ab")
ABC = n.Input(Schema.of("a: int, b: int, c: int"), "abc")
CD = n.Input(Schema.of("c: int, d: int"), "cd")
FLOATS = n.Input(Schema.of("a: int, b: float?, c: float?"), "floats")
SAID = n.Input(ANNOUNCED, "routes")
THERE = n.Filter(AB, (col.a > 0) & (col.b > 0))
BC = n.Select(CD, (("b", col.c), ("c", col.d)))


def double(row: tuple[int, int]) -> tuple[int, int]:
    return row[0] * 2, row[1]


def triple(row: tuple[int, int]) -> tuple[int, int]:
    return row[0] * 3, row[1]


def loop(depth: int = 1, limit: int = 9, body: n.Node | None = None, stops: bool = False) -> n.LetRec:
    variable = n.Variable(AB.schema, depth, 0)
    inside = n.Distinct(n.Concat((variable, AB))) if body is None else body
    return n.LetRec("loop", depth, (AB,), (inside,), limit, stops=stops)


def sketched(stage: int = 0, output: int = 0, columns: str = "a: int", serial: int = 1) -> n.ByHand:
    sketch = Sketch(serial, "loop")
    for _ in range(2):
        sketch.source(AB, Vertex, "")
    return n.ByHand((AB,), sketch, stage, output, Schema.of(columns))


COUNTS = n.Input(COUNTED, "counts")

MAKERS = {
    "input": lambda: n.Input(Schema.of("a: int, b: int"), "ab"),
    "stream": lambda: n.FromStream(Schema.of("a: int"), 3),
    "variable": lambda: n.Variable(Schema.of("a: int"), 2, 1),
    "select": lambda: n.Select(AB, (("x", col.a + 1),)),
    "filter": lambda: n.Filter(AB, col.a > 1),
    "negate": lambda: n.Negate(AB),
    "not_null": lambda: n.NotNull(THERE, ("a",)),
    "map": lambda: n.Apply(AB, "map", UserFunction.of(double), AB.schema),
    "concat": lambda: n.Concat((AB, n.Negate(AB))),
    "join": lambda: n.Join(AB, CD, (("a", "c"),)),
    "half join": lambda: n.HalfJoin(AB, CD, (("a", "c"),)),
    "steered": lambda: n.Steered(COUNTS, dd.Balance("hash", units=4)),
    "bounded": lambda: n.Bounded(AB, CD, "a", ((">", "c"), ("<=", "d"))),
    "place": lambda: n.PlaceOnUnits(AB, ("a",), 0, "kept", dd.Balance("JB", units=4)),
    "spread": lambda: n.Spread(AB, CD, SAID, (("a", "c"),), False, dd.Balance("JB", units=4), 2),
    "spread loads": lambda: n.SpreadLoads(
        n.Spread(AB, CD, SAID, (("a", "c"),), False, dd.Balance("JB", units=4), 2)
    ),
    "join_all": lambda: n.JoinAll((AB, BC), ("b",)),
    "reduce": lambda: n.Reduce(AB, ("a",), (("low", dd.min("b")), ("top", dd.max("b")))),
    "accumulate": lambda: n.Accumulate(
        (AB, n.Negate(AB)), ("a",), 1, (n.AddedColumn("n", 0, dd.count()), n.AddedColumn("x", 1, dd.sum("b")))
    ),
    "reduce_function": lambda: n.ReduceFunction(AB, ("a",), UserFunction.of(double), Schema.of("x: int")),
    "top_k": lambda: n.TopK(AB, ("a",), (n.OrderBy("b"),), 3),
    "distinct": lambda: n.Distinct(AB),
    "keys": lambda: n.Keys(AB, ("a",)),
    "weigh": lambda: n.Weigh(AB, "a"),
    "delay": lambda: n.Delay(AB, 2),
    "provided": lambda: n.Provided(AB, n.AssertEmpty(AB, "nothing is there")),
    "assert_empty": lambda: n.AssertEmpty(AB, "nothing is there"),
    "guarded": lambda: n.Guarded(AB, (n.Apply(AB, "map", UserFunction.of(double), AB.schema),), "good"),
    "answered": lambda: n.Answered(
        n.ReduceFunction(AB, ("a",), UserFunction.of(double), Schema.of("x: int"), collects=True),
        "reduce(double)",
    ),
    "consolidate": lambda: n.Consolidate(AB),
    "arrange": lambda: n.Arrange(AB, ("a",)),
    "slide": lambda: n.Slide(AB, "b", (5, 2, 0), ("start", "end")),
    "during": lambda: n.During(n.Select(AB, (("a", col.a), ("x", col.b), ("y", col.b + 1)))),
    "on_time": lambda: n.OnTime(AB, "on time"),
    "sweep": lambda: n.Sweep(ABC, ("a",), "nearest", (0, 0, -1, 0, 1, 0), Schema.of("x: int")),
    "inspect": lambda: n.Inspect(AB, UserFunction.of(double), 0),
    "into stream": lambda: n.IntoStream(AB, 0),
    "by hand": sketched,
    "output": lambda: n.Output(AB, "out"),
    "export": lambda: n.Export(AB, "out", ("a",)),
    "import": lambda: n.Import(AB.schema, "owner", "out"),
    "loop": loop,
    "one row": lambda: n.OneRow(),
    "group values": lambda: n.GroupValues(
        ABC, ("a",), "c", (n.OrderBy("b"),), (n.GroupCall("x", "collect"),)
    ),
    "window": lambda: n.OverWindow(ABC, ("a",), (n.OrderBy("b"),), (n.WindowCall("x", "lag", "c", 1),)),
    "constant": lambda: n.ConstantRows.of(pa.table({"a": [1, 2], "b": [3, 3]}), AB.schema),
    "empty": lambda: n.Empty(Schema.of("a: int, b: int")),
    "by priority": lambda: n.ByPriority(AB, col.b, 1),
    "leave": lambda: n.LeaveLoop(loop(), 0),
}


@pytest.mark.parametrize("name", MAKERS)
def test_same_twice_the_same_node(name: str) -> None:
    first, second = MAKERS[name](), MAKERS[name]()
    assert first is not second and first.digest == second.digest
    assert first.with_children(first.children) is first
    rebuilt = first.with_children(second.children)
    assert rebuilt.digest == first.digest and rebuilt.schema == first.schema


def test_same_in_another_process() -> None:
    code = "from test_node import MAKERS; print(*(make().digest.hex() for make in MAKERS.values()))"
    path = f"{ROOT}:{ROOT / 'tests'}:{ROOT / 'tests/differential/plan/nodes'}"
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PYTHONPATH": path}
    )
    assert run.stdout.split() == [make().digest.hex() for make in MAKERS.values()]


def test_other_all_kinds_differ() -> None:
    digests = [make().digest for make in MAKERS.values()]
    assert len(set(digests)) == len(digests)
    kinds = {kind.kind for kind in _concrete(n.Node)}
    assert {make().kind for make in MAKERS.values()} == kinds, "every kind is tested here"


def _concrete(base: type[n.Node]) -> list[type[n.Node]]:
    found = []
    for kind in base.__subclasses__():
        found += ([kind] if "kind" in vars(kind) else []) + _concrete(kind)
    return found


ONE_B = n.ConstantRows.of(pa.table({"b": [1]}), Schema.of("b: int"))

CHANGED = [
    n.GroupValues(ABC, (), "c", (n.OrderBy("b"),), (n.GroupCall("x", "collect"),)),
    n.GroupValues(ABC, ("a",), "b", (n.OrderBy("c"),), (n.GroupCall("x", "collect"),)),
    n.GroupValues(ABC, ("a",), "c", (), (n.GroupCall("x", "collect"),)),
    n.GroupValues(ABC, ("a",), "c", (n.OrderBy("b"),), (n.GroupCall("y", "collect"),)),
    n.GroupValues(ABC, ("a",), "c", (n.OrderBy("b"),), (n.GroupCall("x", "collect_set"),)),
    n.GroupValues(ABC, ("a",), "c", (), (n.GroupCall("x", "percentile", 0.5),)),
    n.GroupValues(ABC, ("a",), "c", (), (n.GroupCall("x", "percentile", 0.25),)),
    n.Accumulate((FLOATS,), ("a",), 1, (n.AddedColumn("x", 0, Aggregate("covar_pop", "b", second="c")),)),
    n.Accumulate((FLOATS,), ("a",), 1, (n.AddedColumn("x", 0, Aggregate("covar_pop", "c", second="b")),)),
    n.OverWindow(ABC, (), (n.OrderBy("b"),), (n.WindowCall("x", "lag", "c", 1),)),
    n.OverWindow(ABC, ("a",), (n.OrderBy("c"),), (n.WindowCall("x", "lag", "c", 1),)),
    n.OverWindow(ABC, ("a",), (n.OrderBy("b"),), (n.WindowCall("x", "lag", "c", 2),)),
    n.OverWindow(ABC, ("a",), (n.OrderBy("b"),), (n.WindowCall("x", "lag", "c", 1),), Frame("rows", -1, 0)),
    n.Steered(COUNTS, dd.Balance("hash", units=5)),
    n.Bounded(AB, CD, "b", ((">", "c"), ("<=", "d"))),
    n.Bounded(AB, CD, "a", ((">", "c"), ("<", "d"))),
    n.Bounded(AB, CD, "a", ((">", "c"),)),
    n.ConstantRows.of(pa.table({"a": [1, 2], "b": [3, 4]}), AB.schema),
    n.ConstantRows.of(pa.table({"x": [1, 2], "b": [3, 3]}), Schema.of("x: int, b: int")),
    n.Input(Schema.of("a: int, b: int"), "other"),
    n.Input(Schema.of("a: int, b: int?"), "ab"),
    n.Input(Schema.of("a: int, b: int"), "ab", "upsert", ("a",)),
    n.Input(Schema.of("a: int, b: int"), "ab", "upsert", ("a", "b")),
    n.Input(Schema.of("a: int, b: int"), "ab", defaults=ONE_B),
    n.Input(Schema.of("a: int, b: int"), "ab", "upsert", ("a",), defaults=ONE_B),
    n.Input(Schema.of("b: int"), "ab", "append", (), ("a", "b"), ONE_B),
    n.Input(Schema.of("a: int, b: bool"), "ab", "checked"),
    n.Slide(AB, "a", (5, 2, 0), ("start", "end")),
    n.Slide(AB, "b", (5, 2, 1), ("start", "end")),
    n.Slide(AB, "b", (5, 2, 0), ("start", "stop")),
    n.OnTime(AB, "late"),
    n.Sweep(ABC, ("b",), "nearest", (0, 0, -1, 0, 1, 0), Schema.of("x: int")),
    n.Sweep(ABC, ("a",), "nearest", (0, 1, -1, 0, 1, 0), Schema.of("x: int")),
    n.Sweep(ABC, ("a",), "sessions", (0, 0, -1, 0, 1, 0), Schema.of("x: int")),
    n.Sweep(ABC, ("a",), "nearest", (0, 0, -1, 0, 1, 0), Schema.of("y: int")),
    n.Select(AB, (("y", col.a + 1),)),
    n.Select(AB, (("x", col.a + 2),)),
    n.Select(AB, (("x", col.a + 1.0),)),
    n.Select(CD, (("x", col.c + 1),)),
    n.Filter(AB, col.a >= 1),
    n.NotNull(THERE, ("b",)),
    n.Apply(AB, "map", UserFunction.of(triple), AB.schema),
    n.Apply(AB, "flat_map", UserFunction.of(double), AB.schema),
    n.Concat((n.Negate(AB), AB)),
    n.Join(AB, CD, (("b", "c"),)),
    n.Join(AB, CD, (("a", "c"),), null_safe=True),
    n.HalfJoin(AB, CD, (("a", "c"),), probing=1),
    n.HalfJoin(AB, CD, (("a", "c"),), null_safe=True),
    n.HalfJoin(AB, CD, (("b", "c"),)),
    n.Spread(AB, CD, SAID, (("b", "c"),), False, dd.Balance("JB", units=4), 2),
    n.Spread(AB, CD, SAID, (("a", "c"),), True, dd.Balance("JB", units=4), 2),
    n.Spread(AB, CD, SAID, (("a", "c"),), False, dd.Balance("JB", units=5), 2),
    n.Spread(AB, CD, SAID, (("a", "c"),), False, dd.Balance("JB", units=4), 3),
    n.PlaceOnUnits(AB, ("b",), 0, "kept", dd.Balance("JB", units=4)),
    n.PlaceOnUnits(AB, ("a",), 1, "kept", dd.Balance("JB", units=4)),
    n.PlaceOnUnits(AB, ("a",), 0, "probing", dd.Balance("JB", units=4)),
    n.PlaceOnUnits(AB, ("a",), 0, "kept", dd.Balance("JB", units=5)),
    n.PlaceOnUnits(AB, ("a",), 0, "kept", dd.Balance("D-JB", units=4)),
    n.PlaceOnUnits(AB, ("a",), 0, "kept", dd.Balance("JB", units=4, groups=2)),
    n.JoinAll((BC, AB), ("b",)),
    n.JoinAll((AB, BC), ("b",), fewest=True),
    n.JoinAll((AB, AB), ("a", "b")),
    n.Keys(AB, ("b",)),
    n.Keys(AB, ("b", "a")),
    n.Weigh(AB, "b"),
    n.Delay(AB, 3),
    n.Delay(AB, 2, UserFunction.of(double)),
    n.AssertEmpty(AB, "nothing else"),
    n.Guarded(AB, (n.Apply(AB, "map", UserFunction.of(double), AB.schema),), "errors"),
    n.Guarded(AB, (n.Apply(AB, "map", UserFunction.of(triple), AB.schema),), "good"),
    n.ReduceFunction(AB, ("a",), UserFunction.of(double), Schema.of("x: int"), collects=True),
    n.Reduce(AB, ("a",), (("low", dd.min("b")), ("top", dd.min("b")))),
    n.Reduce(AB, ("b",), (("low", dd.min("a")), ("top", Aggregate("max", "a")))),
    n.Accumulate((AB,), ("a",), 1, (n.AddedColumn("n", 0, dd.count()), n.AddedColumn("x", 0, dd.sum("b")))),
    n.Accumulate(
        (AB, AB), ("a",), 1, (n.AddedColumn("n", 0, dd.count()), n.AddedColumn("x", 1, dd.sum("b")))
    ),
    n.Accumulate(
        (AB, AB), ("a",), 2, (n.AddedColumn("n", 0, dd.count()), n.AddedColumn("x", 1, dd.sum("b")))
    ),
    n.Accumulate(
        (AB, AB), ("a",), 1, (n.AddedColumn("n", 0, dd.count()), n.AddedColumn("x", 1, dd.avg("b")))
    ),
    n.ReduceFunction(AB, ("a",), UserFunction.of(triple), Schema.of("x: int")),
    n.TopK(AB, (), (n.OrderBy("b"),), 3),
    n.TopK(AB, ("a",), (), 3),
    n.TopK(AB, ("a",), (n.OrderBy("b", SortDirection(descending=True)),), 3),
    n.TopK(AB, ("a",), (n.OrderBy("b", SortDirection(nulls_last=True)),), 3),
    n.TopK(AB, ("a",), (n.OrderBy("b"),), 4),
    n.TopK(AB, ("a",), (n.OrderBy("b"),), 3, 1),
    n.TopK(AB, ("a",), (n.OrderBy("b"),), 3, 0, ("r", "rank")),
    n.TopK(AB, ("a",), (n.OrderBy("b"),), 3, 0, ("r", "dense")),
    n.TopK(AB, ("a",), (n.OrderBy("b"),), 3, 0, ("s", "rank")),
    n.TopK(AB, ("a",), (n.OrderBy("b"),), 3, ties=True),
    n.Inspect(AB, UserFunction.of(double), 1),
    n.IntoStream(AB, 1),
    sketched(stage=1),
    sketched(output=-1),
    sketched(columns="b: int"),
    sketched(serial=2),
    n.Output(AB, "other"),
    n.Export(AB, "other", ("a",)),
    n.Export(AB, "out", ("a", "b")),
    n.Import(AB.schema, 0, "out"),
    n.Import(AB.schema, "owner", "other"),
    n.Import(Schema.of("b: int, a: int"), "owner", "out"),
    n.Variable(Schema.of("a: int"), 1, 1),
    n.Variable(Schema.of("a: int"), 2, 0),
    n.FromStream(Schema.of("a: int"), 4),
    loop(limit=8),
    loop(stops=True),
    n.Empty(Schema.of("a: int")),
    n.ByPriority(AB, col.a, 1),
    n.ByPriority(AB, col.b, 2),
    loop(body=n.Distinct(n.Variable(AB.schema, 1, 0))),
    n.Arrange(AB, ("b",)),
]
"""Each differs in one field from one that `MAKERS` makes."""


@pytest.mark.parametrize("other", CHANGED, ids=repr)
def test_other_each_field_counts(other: n.Node) -> None:
    assert other.digest not in {make().digest for make in MAKERS.values()}


STAY = (n.FromStream, n.IntoStream, n.Answered, n.ByHand)
"""They do not travel."""

NOT_READ = n.Sweep(ABC, ("a",), "sessions", (0, 0, -1, 0, 1, 0), Schema.of("x: int"))


def reads(node: n.Node, data: list[object] | None = None) -> n.Node | None:
    """What is read of `data`, or of what a node has written."""
    functions = {repr(each.identity): each for each in (UserFunction.of(double), UserFunction.of(triple))}
    sent = msgpack.unpackb(msgpack.packb(node.data() if data is None else data), strict_map_key=False)
    return type(node).read(sent, node.children, lambda identity: functions[repr(identity)])


@pytest.mark.parametrize("node", [*(make() for make in MAKERS.values()), *CHANGED], ids=repr)
def test_read_is_what_was_written(node: n.Node) -> None:
    again = reads(node)
    if isinstance(node, STAY) or node.digest == NOT_READ.digest:
        assert again is None
        return
    assert again is not None and type(again) is type(node) and again is not node
    assert again.digest == node.digest and again.schema == node.schema


@pytest.mark.parametrize("name", MAKERS)
def test_read_is_nothing_of_more_fields_or_other_children(name: str) -> None:
    node = MAKERS[name]()
    for odd in ([*node.data(), 7.5], [7.5, *node.data()]):
        with contextlib.suppress(SchemaError):
            assert reads(node, odd) is None
    for children in ((), (AB,) * 9):
        if not isinstance(node, Leaf | n.Concat | n.JoinAll | n.Accumulate | n.LetRec):
            assert type(node).read(node.data(), children, lambda identity: UserFunction.of(double)) is None


def test_read_every_field_that_is_a_function_or_an_expression_is_named() -> None:
    """What a plan may hold is counted, and functions are sent, by these."""
    for node in (make() for make in MAKERS.values()):
        fields = [getattr(node, field.name) for field in dataclasses.fields(node)]
        assert [each for each in fields if isinstance(each, UserFunction)] in ([], list(node.functions))
        assert all(each in node.expressions for each in fields if isinstance(each, dd.Expr))
    select = MAKERS["select"]()
    assert [expr.describe() for expr in select.expressions] == ["col.a + 1"]
    assert [each.name for each in MAKERS["guarded"]().functions] == ["double"]


def test_same_names_with_colons_are_not_taken_for_types() -> None:
    odd = Schema((*Schema.of("x: int").columns, dd.Column("y: int, z", dd.integer)))
    even = Schema.of("x: int, y: int, z: int")
    assert n.Input(odd, "i").digest != n.Input(even, "i").digest


def test_free_is_what_no_loop_beneath_binds() -> None:
    variable = n.Variable(AB.schema, 1, 0)
    assert variable.free == {1} and n.Negate(variable).free == {1} and AB.free == frozenset()
    assert loop().free == frozenset() and n.LeaveLoop(loop(), 0).free == frozenset()
    assert n.ByPriority(variable, col.a, 2).free == {1, 2}
    inner = loop(2, body=n.Distinct(n.Concat((n.Variable(AB.schema, 2, 0), variable))))
    assert inner.free == {1}
    assert n.LetRec("outer", 1, (AB,), (n.LeaveLoop(inner, 0),), 9).free == frozenset()
    assert n.LetRec("outer", 1, (variable,), (AB,), 9).free == {1}, "what it begins with is outside of it"


@given(st.integers(1, 60))
def test_same_is_told_without_walking_through_what_is_shared(doublings: int) -> None:
    node: n.Node = AB
    again: n.Node = n.Input(AB.schema, "ab")
    for _ in range(doublings):
        node, again = n.Concat((node, node)), n.Concat((again, again))
    assert node.digest == again.digest
