"""rewriting.py: every node once, children first, however deep a plan is."""

from __future__ import annotations

from differential import col
from differential.columns.schema import Schema
from differential.plan.nodes import Concat, Filter, Input, Negate, Node
from differential.plan.rewriting import beneath, rewrite

AB = Input(Schema.of("a: int, b: int"), "ab")


def chain(length: int) -> list[Node]:
    nodes: list[Node] = [AB]
    for _ in range(length):
        nodes.append(Negate(nodes[-1]))
        assert nodes[-1].digest and not nodes[-1].free and nodes[-1].schema
    return nodes


def test_every_node_comes_once_and_after_its_children() -> None:
    shared = Negate(AB)
    top = Concat((shared, Filter(shared, col.a > 1), AB))
    found = list(beneath([top, shared]))
    assert [node.kind for node in found] == ["input", "negate", "filter", "concat"]


def test_depth_is_no_limit() -> None:
    nodes = chain(5_000)
    assert list(beneath([nodes[-1]])) == nodes
    (same,) = rewrite([nodes[-1]], lambda node, children: node.with_children(children))
    assert same is nodes[-1]


def test_rewriting_twice_negated_away() -> None:
    def visit(node: Node, children: tuple[Node, ...]) -> Node:
        made = node.with_children(children)
        is_twice = isinstance(made, Negate) and isinstance(made.source, Negate)
        return made.source.children[0] if is_twice else made

    roots = [chain(length)[-1] for length in (4, 5)]
    even, odd = rewrite(roots, visit)
    assert even is AB and odd.digest == Negate(AB).digest
