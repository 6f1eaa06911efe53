"""building.py: one node for what is written twice, loops no deeper than they depend on.

once_*     equal nodes, all their lines; functions
effect_*   what is looked at happens, also if nothing comes of it
loop_*     in which loop something is computed
refused_*  collections that leave a loop by themselves
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

import differential as dd
from differential import Collection, col
from differential.plan.building import Plan
from differential.plan.nodes import LeaveLoop, LetRec, Node
from differential.plan.rewriting import beneath
from progress.errors import GraphError
from timely.building.dataflow import Dataflow


def flow_with_edges() -> tuple[Dataflow, Collection]:
    flow = Dataflow("tested")
    return flow, dd.input(flow, "edges", "src: int, dst: int")


def loops_beneath(node: Node) -> dict[str, LetRec]:
    return {found.name: found for found in beneath([node]) if isinstance(found, LetRec)}


def test_once_equal_nodes_are_one_and_all_their_lines_are_kept() -> None:
    flow, edges = flow_with_edges()
    written = [edges.filter(col.src > 1).group_by("src").agg(n=dd.count()) for _ in range(1)]
    again = edges.filter(col.src > 1).group_by("src").agg(n=dd.count())
    assert written[0].node is again.node
    lines = {site.line for site in Plan.of(flow).sites[again.node.digest]}
    assert len(lines) == 2
    Plan.of(flow).check_invariants()


def shift(by: int) -> Callable[[tuple[int, int]], tuple[int, int]]:
    return lambda row: (row[0], row[1] + by)


def test_once_functions_that_do_the_same_are_one() -> None:
    _, edges = flow_with_edges()
    assert edges.map(shift(1)).node is edges.map(shift(1)).node
    assert edges.map(shift(1)).node is not edges.map(shift(2)).node


def test_once_functions_over_what_can_change_are_themselves_only() -> None:
    _, edges = flow_with_edges()

    def over(seen: list[int]) -> Callable[[tuple[int, int]], tuple[int, int]]:
        return lambda row: (row[0], row[1] + len(seen))

    one, other = over([]), over([])
    assert edges.map(one).node is edges.map(one).node
    assert edges.map(one).node is not edges.map(other).node


def test_effect_each_look_is_its_own_and_is_a_root() -> None:
    flow, edges = flow_with_edges()
    look = print
    edges.inspect(look)
    edges.inspect(look)
    plan = Plan.of(flow)
    assert len(plan.roots) == len({root.digest for root in plan.roots}) == 2


def test_effect_in_a_loop_is_the_loops_and_the_loop_is_a_root() -> None:
    flow, edges = flow_with_edges()
    edges.iterate(lambda x: x.inspect(print).distinct(), name="looked at")
    plan = Plan.of(flow)
    (root,) = plan.roots
    assert isinstance(root, LetRec) and [effect.kind for effect in root.effects] == ["inspect"]
    plan.check_invariants()


def test_loop_what_does_not_depend_on_the_variable_is_outside() -> None:
    _, edges = flow_with_edges()
    outside: list[Collection] = []

    def body(x: Collection) -> Collection:
        outside.append(edges.select(node=col.dst).distinct())
        return x.join(outside[0].select(src=col.node), on="src").select("src", "dst").distinct()

    result = edges.iterate(body)
    assert outside[0].place == () and not outside[0].node.free and result.place == ()
    outside[0].output("may be used outside, too")


def test_loop_in_a_loop_that_does_not_depend_on_it_is_beside_it() -> None:
    flow, edges = flow_with_edges()

    def body(x: Collection) -> Collection:
        alone = edges.iterate(lambda y: y.concat(edges).distinct(), name="alone")
        alone.output("an output needs the root")
        within = x.iterate(lambda y: y.concat(x).distinct(), name="within")
        return within.concat(alone).distinct()

    result = edges.iterate(body, name="around")
    loops = loops_beneath(result.node)
    assert {name: loop.depth for name, loop in loops.items()} == {"alone": 1, "around": 1, "within": 2}
    assert not loops["alone"].free and loops["within"].free == {1}
    Plan.of(flow).check_invariants()


def test_loop_in_a_loop_in_a_loop_follows_what_it_depends_on() -> None:
    """The middle one depends on nothing around it, so both it and the one inside it come one level up."""
    _, edges = flow_with_edges()

    def middle(y: Collection) -> Collection:
        return y.iterate(lambda z: z.concat(y).distinct(), name="inner")

    def body(x: Collection) -> Collection:
        return x.concat(edges.iterate(middle, name="middle")).distinct()

    loops = loops_beneath(edges.iterate(body, name="outer").node)
    assert {name: loop.depth for name, loop in loops.items()} == {"inner": 2, "middle": 1, "outer": 1}
    same = edges.iterate(middle, name="middle")
    assert isinstance(same.node, LeaveLoop) and same.node.loop is loops["middle"], "equal loops are one"


def test_loop_that_is_used_in_another_that_comes_one_level_up_stays_as_it_is() -> None:
    """What it calls its variables by is its own: the number that is given away may be among them."""
    flow, edges = flow_with_edges()

    def apart(y: Collection) -> Collection:
        return y.iterate(lambda z: z.select(src=col.dst, dst=col.src).concat(y), name="inner", times=1)

    twice = edges.iterate(apart, name="apart", times=1)
    kept = loops_beneath(twice.node)
    result = edges.iterate(
        lambda x: x.concat(edges.iterate(lambda y: y.concat(twice), name="alone", times=1)),
        name="around",
        times=1,
    )
    loops = loops_beneath(result.node)
    assert {name: loop.depth for name, loop in loops.items()} == {
        "around": 1,
        "alone": 1,
        "apart": 1,
        "inner": 2,
    }
    assert loops["inner"] is kept["inner"] and loops["apart"] is kept["apart"]
    Plan.of(flow).check_invariants()


def test_loop_of_another_limit_is_another_loop() -> None:
    _, edges = flow_with_edges()
    first, second = (edges.iterate(lambda x: x.distinct(), iterations_max=n) for n in (5, 6))
    assert first.node is not second.node


def test_refused_a_variable_outside_of_its_loop() -> None:
    _, edges = flow_with_edges()
    escaped: list[Collection] = []

    def body(x: Collection) -> Collection:
        escaped.append(x.distinct())
        return escaped[0]

    edges.iterate(body, name="first")
    with pytest.raises(GraphError, match=r"'tested / first' is used in 'tested / second', which is not"):
        edges.iterate(lambda x: x.concat(escaped[0]), name="second")
    with pytest.raises(GraphError, match="only what `iterate` returns leaves a loop"):
        escaped[0].output("escaped")


def test_refused_a_stage_by_hand_inside_a_loop_of_a_plan() -> None:
    _, edges = flow_with_edges()
    with pytest.raises(GraphError, match=r"cannot be fed inside 'tested / loop'.*with inspect"):
        edges.iterate(lambda x: [x.feeds(), x][1], name="loop")  # type: ignore[return-value]


def test_refused_two_outputs_of_one_name() -> None:
    _, edges = flow_with_edges()
    edges.output("twice")
    with pytest.raises(GraphError, match="already has an output 'twice'"):
        edges.distinct().output("twice")
