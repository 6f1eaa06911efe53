"""encoding.py: plans as bytes.

law_*        back and forth is the same plan; the same bytes in every process
identity_*   what a query's identity depends on
refused_*    bytes that are no plan, and plans that cannot travel
"""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Callable
from typing import cast

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies_collections import examples
from strategies_plans import draw_collection, read_twice

import differential as dd
from differential import Collection, col
from differential.errors import SchemaError
from differential.plan import decoding, encoding
from differential.plan import nodes as n
from differential.plan.building import Plan
from differential.plan.decoding import decode_plan
from differential.plan.encoding import encode_plan, query_identity
from differential.plan.rewriting import beneath
from progress.errors import TimelyError
from timely.building.dataflow import Dataflow
from timely.errors import MisuseError
from timely.own_files import ROOT


def doubled(row: tuple[int, int]) -> tuple[int, int]:
    return row[0] * 2, row[1]


def everything(flow: Dataflow) -> None:
    """Each kind of node."""
    edges = dd.input(flow, "edges", "src: int, dst: int")
    names = dd.input(flow, "names", "node: int, name: string?")
    joined = edges.filter(col.src > 1).join(names, on={"src": "node"})
    names.filter(col.name.is_not_null()).output("named")
    joined.select("src", text=col.name.fill_null("none")).distinct().output("joined")
    edges.window("src", dd.sliding(4, 3)).window("dst", dd.tumbling(2), start="s", end="e").output("windows")
    edges.window("dst", dd.session(2, by="src")).output("sessions")
    edges.asof_join(edges, on="src", left_time="dst", tolerance=5).output("nearest")
    for balance in (dd.Balance("matrix", units=4, shares=1), dd.Balance("JB6", units=8, groups=2)):
        edges.join(names, on={"src": "node"}, balance=balance).output(f"spread by {balance.scheme}")
    routed = dd.Routed(dd.Balance("D-JB", units=8), dd.announcements(flow), lead=1)
    moving = edges.join(names, on={"src": "node"}, balance=routed)
    moving.output("moving")
    dd.loads(moving.select("src")).output("loads")
    there, back = edges.select(a=col.src, b=col.dst), edges.select(b=col.src, a=col.dst)
    dd.join_all([there, back], on=["a", "b"]).output("both ways")
    dd.join_all([there, back, there.select(a=col.b)], ["a", "b"], candidates="fewest").output("fewest")
    edges.during(col.src, None).split_late("dst", 1, clock=dd.clock(0, 2))[1].output("late")
    dd.input(flow, "values", "id: int, value: string", key="id", mode="upsert").output("values")
    dd.checked_input(flow, "checked", "id: int")[1].output("refused")
    edges.map(doubled).flat_map(lambda row: [row, row]).consolidate().negate().output("mapped")
    edges.group_by("src").agg(n=dd.count(), top=dd.max("dst")).output("counted")
    edges.group_by("src").reduce(lambda key, rows: [len(rows)], "n: int").output("reduced")

    def outer(x: Collection) -> Collection:
        return (
            x.iterate(lambda y: y.concat(x).inspect(print).distinct(), name="inner").concat(edges).distinct()
        )

    edges.iterate(outer, name="outer", iterations_max=50).output("looped")
    edges.iterate(lambda x: x.concat(edges), times=3).output("three times")
    dd.iterate({"a": edges, "b": "src: int, dst: int"}, lambda a, b: {"a": b.concat(edges), "b": a}, times=4)[
        "b"
    ].output("two at once")
    edges.prioritized_iterate(lambda x, own: x.concat(own).distinct(), priority="src").output("by priority")


def plan_of(build: Callable[[Dataflow], None] = everything) -> Plan:
    flow = Dataflow("tested")
    build(flow)
    return Plan.of(flow)


def decoded(packed: bytes, is_trusted: bool = True) -> tuple[Plan, list[n.Node]]:
    flow = Dataflow("again")
    plan = Plan.of(flow)
    roots = decode_plan(packed, plan, lambda node: plan.leaf(node, flow.input(node.name)), is_trusted)
    return plan, roots


def test_law_back_and_forth_is_the_same_plan() -> None:
    plan = plan_of()
    packed = encode_plan(plan, plan.roots)
    again, roots = decoded(packed)
    assert [root.digest for root in roots] == [root.digest for root in plan.roots]
    assert query_identity(roots) == query_identity(plan.roots)
    assert {digest: again.sites[digest] for digest in again.nodes} == {
        digest: plan.sites[digest] for digest in again.nodes
    }
    assert encode_plan(again, roots) == packed
    again.check_invariants()


@examples(4)
@given(st.data())
def test_law_random_plans_go_back_and_forth(data: st.DataObject) -> None:
    flow = Dataflow("tested")
    inputs = [dd.input(flow, "ab", "a: int, b: int"), dd.input(flow, "cd", "c: int, d: int?")]
    for number in range(data.draw(st.integers(1, 3))):
        draw_collection(data.draw, inputs, read_twice).output(f"out {number}")
    plan = Plan.of(flow)
    _, roots = decoded(encode_plan(plan, plan.roots))
    assert [root.digest for root in roots] == [root.digest for root in plan.roots]
    for here, there in zip(beneath(plan.roots), beneath(roots), strict=True):
        assert (type(here), here.digest, here.schema) == (type(there), there.digest, there.schema)


def test_law_every_operator_that_travels_is_known_by_its_kind() -> None:
    named = {node.kind: node for node in vars(n).values() if isinstance(node, type) and "kind" in vars(node)}
    assert named == decoding._KINDS
    everywhere = {kind.kind for kind in _operators(n.Node)}
    assert set(named) == everywhere, "each is offered by `plan/nodes/__init__.py`, under a kind of its own"
    assert len(everywhere) == len(_operators(n.Node))


def _operators(base: type[n.Node]) -> list[type[n.Node]]:
    below = [kind for each in base.__subclasses__() for kind in [each, *_operators(each)]]
    return [kind for kind in below if "kind" in vars(kind)]


def test_law_the_bytes_are_the_same_in_every_process() -> None:
    code = "from test_encoding import *; p = plan_of(); print(encode_plan(p, p.roots).hex())"
    path = f"{ROOT}:{ROOT / 'tests'}:{ROOT / 'tests/differential/plan'}"
    run = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": path, "PYTHONHASHSEED": "7"},
    )
    plan = plan_of()
    theirs, ours = (
        cast("list[object]", msgpack.unpackb(packed, strict_map_key=False))
        for packed in (bytes.fromhex(run.stdout), encode_plan(plan, plan.roots))
    )
    assert theirs[:3] == ours[:3], "nodes and roots; the functions' modules have other names there"


def identity(build: Callable[[Dataflow], None]) -> str:
    return query_identity(plan_of(build).roots)


def one_query(flow: Dataflow, above: int = 1, name: str = "out", limit: int = 9) -> None:
    edges = dd.input(flow, "edges", "src: int, dst: int")
    edges.filter(col.src > above).iterate(lambda x: x.distinct(), iterations_max=limit).output(name)


def same_query_elsewhere(flow: Dataflow) -> None:
    # In other lines, with another name for what is named here only.
    links = dd.input(flow, "edges", "src: int, dst: int")

    chosen = links.filter(col.src > 1)
    links.distinct()  # nobody asks for it

    def go_on(y: Collection) -> Collection:
        return y.distinct()

    chosen.iterate(go_on, iterations_max=9).output("out")


def test_identity_holds_still_while_lines_move() -> None:
    assert identity(one_query) == identity(same_query_elsewhere)


def test_identity_changes_with_names_constants_limits_and_functions() -> None:
    others = [
        lambda flow: one_query(flow, above=2),
        lambda flow: one_query(flow, name="other"),
        lambda flow: one_query(flow, limit=8),
    ]
    found = {identity(build) for build in (one_query, *others)}
    assert len(found) == 4
    mapped = [
        lambda flow, by=by: dd.input(flow, "i", "a: int").map(lambda row: (row[0] + by,)).output("o")
        for by in (1, 2)
    ]
    assert len({identity(build) for build in mapped}) == 2  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", range(20))
def test_refused_bytes_that_are_no_plan(seed: int) -> None:
    """Whatever is changed: a plan that reads well, or an error that says that it is none."""
    plan = plan_of()
    packed = encode_plan(plan, plan.roots)
    rng = random.Random(seed)
    for _ in range(75):
        spoilt = msgpack.unpackb(packed, strict_map_key=False)
        _spoil(spoilt, rng)
        try:
            decoded(msgpack.packb(spoilt))
        except TimelyError:
            continue


def _spoil(data: object, rng: random.Random) -> None:
    """Change one value somewhere within."""
    here = data
    while isinstance(here, list) and here:
        place = rng.randrange(len(here))
        if isinstance(here[place], list) and here[place] and rng.random() < 0.85:
            here = here[place]
            continue
        here[place] = rng.choice([None, -1, 0, 1, 2**40, "x", "distinct", b"", [], [1], True, 1.5, {}])
        return


NO_FUNCTIONS: list[object] = [[], []]


@pytest.mark.parametrize(
    ("packed", "why"),
    [
        (b"", "not msgpack"),
        (b"\xc1", "not msgpack"),
        (msgpack.packb([2, [], [], [[], []], []]), "version 2; this release reads 1"),
        (msgpack.packb([1]), "no plan"),
        (msgpack.packb({}), "no plan"),
        (msgpack.packb([1, [], [], [], []]), "no functions of a plan"),
        (msgpack.packb([1, [], [], NO_FUNCTIONS, []]), "asks for nothing"),
        (msgpack.packb([1, [["variable", [[["a", "int"]], 1, 0], []]], [0], NO_FUNCTIONS, []]), "inside a"),
        (msgpack.packb([1, [["negate", [], [0]]], [0], NO_FUNCTIONS, []]), "does not come before it"),
        (
            msgpack.packb([1, [["from_stream", [[["a", "int"]], 0], []]], [0], NO_FUNCTIONS, []]),
            "no operator",
        ),
    ],
)
def test_refused_plans_say_why(packed: bytes, why: str) -> None:
    with pytest.raises(SchemaError, match=why):
        decoded(packed)


def test_refused_functions_of_strangers() -> None:
    plan = plan_of()
    with pytest.raises(MisuseError, match="not started with"):
        decoded(encode_plan(plan, plan.roots), is_trusted=False)


def test_law_without_functions_anybody_may_ask() -> None:
    plan = plan_of(one_query)
    _, roots = decoded(encode_plan(plan, plan.roots), is_trusted=False)
    assert query_identity(roots) == identity(one_query)


def test_refused_more_than_the_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plan_of()
    packed = encode_plan(plan, plan.roots)
    monkeypatch.setattr(encoding, "PLAN_BYTES_MAX", len(packed) - 1)
    with pytest.raises(MisuseError, match=r"bytes; up to"):
        encode_plan(plan, plan.roots)
    with pytest.raises(SchemaError, match="a plan of"):
        decoded(packed)
    monkeypatch.setattr(encoding, "NODES_MAX", 5)
    with pytest.raises(MisuseError, match="operators; up to 5"):
        encode_plan(plan, plan.roots)


def test_refused_expressions_that_are_too_large_in_all(monkeypatch: pytest.MonkeyPatch) -> None:
    def build(flow: Dataflow) -> None:
        rows = dd.input(flow, "rows", "a: int").filter(col.a > 1)  # of size 3
        rows.select(a=col.a + col.a, b=col.a).output("out")  # of 3 and 1

    plan = plan_of(build)
    monkeypatch.setattr(encoding, "EXPRESSIONS_MAX", 7)
    packed = encode_plan(plan, plan.roots)
    assert decoded(packed)
    monkeypatch.setattr(encoding, "EXPRESSIONS_MAX", 6)
    with pytest.raises(MisuseError, match="expressions of 7 operators; up to 6"):
        encode_plan(plan, plan.roots)
    with pytest.raises(SchemaError, match="expressions of more than 6 operators"):
        decoded(packed)


def test_refused_stages_that_were_written_by_hand() -> None:
    def by_hand(flow: Dataflow) -> None:
        dd.from_stream(flow, flow.input("x"), "a: int").output("out")

    plan = plan_of(by_hand)
    with pytest.raises(MisuseError, match=r"written by hand \(.*test_encoding.py"):
        encode_plan(plan, plan.roots)


def test_law_a_loop_beside_another_one_may_be_read_in_it() -> None:
    def build(flow: Dataflow) -> None:
        edges = dd.input(flow, "edges", "src: int, dst: int")
        alone = edges.select(a=col.src).iterate(lambda y: y.distinct(), name="alone", iterations_max=3)
        edges.iterate(
            lambda x: x.join(alone.select(src=col.a), on="src").select("src", "dst").distinct(), name="around"
        ).output("out")

    plan = plan_of(build)
    _, roots = decoded(encode_plan(plan, plan.roots), is_trusted=False)
    assert [root.digest for root in roots] == [root.digest for root in plan.roots]


SCHEMA = [["a", "int"]]
INPUT = ["input", [SCHEMA, "i"], []]
DOUBLED = [["col", "a"], *(["+", None, n, n] for n in range(20))]


NULLABLE = ["input", [[["a", "int?"]], "i"], []]


def loop_of(variable: list[object], limit: int = 9) -> list[object]:
    return [INPUT, variable, ["distinct", [], [1]], ["loop", [1, 1, limit, "l"], [0, 2]], ["leave", [0], [3]]]


@pytest.mark.parametrize(
    "entries",
    [
        [INPUT, ["select", [["x", DOUBLED]], [0]]],
        [INPUT, *(["filter", [[*DOUBLED[:15], ["==", None, 14, 14]]], [n]] for n in range(20))],
        [INPUT, *(["concat", [], [n, n]] for n in range(20))],
        [INPUT, ["select", [], [0]]],
        [INPUT, ["filter", [[["col", "a"], ["==", None, 0]]], [0]]],
        [INPUT, ["select", [["x", [["col", "a"], ["cast", None, 0]]]], [0]]],
        [INPUT, ["select", [["x", [["lit", "int", 2**64 - 1]]]], [0]]],
        [INPUT, ["select", [["x", [["lit", "timestamp", 2**62]]]], [0]]],
        [INPUT, ["select", [["x", [["lit", "any", b"cos"]]]], [0]]],
        [INPUT, ["filter", [[["col", "a"], ["is_in", None, 0]]], [0]]],
        [INPUT, ["filter", [[["col", "a"], *(["negative", None, n] for n in range(9_000))]], [0]]],
        [INPUT, ["reduce", [["a"], []], [0]]],
        [INPUT, ["loop", [1, 1, 9, "l"], [0, 0]], ["distinct", [], [1]]],
        loop_of(["variable", [SCHEMA, 1, 5], []]),
        loop_of(["variable", [[["zz", "string"]], 1, 0], []]),
        loop_of(["variable", [SCHEMA, 1, 0], []], limit=2**63),
        [INPUT, ["loop", [1, 1, 9, "l", False], [0, 0]], ["leave", [0], [1]]],
        [INPUT, ["by_priority", [[["col", "a"]], 1], [0]]],
        [INPUT, ["by_priority", [[["col", "a"]], 0], [0]]],
        loop_of(["by_priority", [[["col", "b"]], 1], [0]]),
        [NULLABLE, ["not_null", ["a"], [0]]],
        [NULLABLE, ["filter", [[["col", "a"], ["is_null", None, 0]]], [0]], ["not_null", ["a"], [1]]],
    ],
    ids=lambda entries: str(entries[1])[:40],
)
def test_refused_plans_that_would_cost_too_much_or_are_none(entries: list[object]) -> None:
    asked = [[*entries, ["output", ["o"], [len(entries) - 1]]], [len(entries)]]
    packed = msgpack.packb([1, *asked, NO_FUNCTIONS, []])
    with pytest.raises(TimelyError):
        decoded(packed)
