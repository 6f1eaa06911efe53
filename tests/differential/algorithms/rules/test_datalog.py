"""algorithms/rules/datalog.py: all that follows by rules which may need one another, negation included.

meaning_*   random programs as facts come and go, against trying every value; then nothing stays
galen_*     the six rules of examples/galen.py as text give what they give there by hand
null_*      equals nothing
refused_*   what can never hold, or is empty for ever
"""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference.collection import Collection as Rows
from reference.collection import Row, collection
from reference.dataflow import Cluster
from reference.rules.plain import Literal, Rule, Term, follow_from, written
from strategies_collections import examples
from strategies_graphs import Course, courses, follow

import differential as dd
from differential import Collection, algorithms, col
from differential.errors import RuleError
from examples import galen
from timely.building.dataflow import Dataflow

WIDTHS = {"e": 2, "f": 1, "a": 2, "b": 2, "c": 1, "d": 2}
HEADS = ("a", "b", "c", "d")
SCHEMAS = {"e": "x: int, y: int", "f": "x: int", "a": "x: int, y: int"}
DERIVED = {"b": "x: int, y: int", "c": "x: int", "d": "x: int, y: int"}
LEVELS = {"e": -1, "f": -1, "a": 0, "b": 0, "c": 1, "d": 1}
"""Relations may ask those of their level and below, and negate those below."""


@st.composite
def rules(draw: st.DrawFn, head: str, *, begins: bool) -> Rule:
    """A safe rule for `head`; one that begins asks only what is below."""
    below = [name for name, level in LEVELS.items() if level < LEVELS[head]]
    asked = below if begins else [name for name, level in LEVELS.items() if level <= LEVELS[head]]
    terms = st.sampled_from(["x", "y", "z", "x", "y", "z", "_", 1])
    body: list[Literal] = []
    for name in draw(st.lists(st.sampled_from(asked), min_size=1, max_size=3)):
        body.append(("+", (name, draw(st.tuples(*[terms] * WIDTHS[name])))))
    names: set[Term] = {term for literal in body for term in literal[1][1] if isinstance(term, str)} - {"_"}
    known = st.sampled_from([*sorted(map(str, names)), 1] if names else [1, 2])
    if draw(st.booleans()):
        name = draw(st.sampled_from(below))
        body.append(("-", (name, draw(st.tuples(*[known | st.just("_")] * WIDTHS[name])))))
    if draw(st.integers(0, 3)) == 0:
        body.append((draw(st.sampled_from(["<", "<=", "!="])), draw(known), draw(known)))
    return (head, draw(st.tuples(*[known] * WIDTHS[head]))), body


@st.composite
def programs(draw: st.DrawFn) -> list[Rule]:
    """One rule that begins each relation, and up to two more; not all relations are always there."""
    found: list[Rule] = []
    for head in HEADS:
        found.append(draw(rules(head, begins=True)))
        found += [draw(rules(head, begins=False)) for _ in range(draw(st.integers(0, 2)))]
    return draw(st.permutations(found))


_numbers = st.integers(0, 3)
_pairs = st.tuples(_numbers, _numbers)


@examples(0.1)
@given(
    programs(),
    courses({"e": _pairs, "f": st.tuples(_numbers), "a": _pairs}, epochs_max=3, rows_max=6),
    st.integers(1, 3),
    st.integers(0, 2**20),
)
def test_meaning_of_programs_at_every_epoch(
    program: list[Rule], course: Course, workers: int, seed: int
) -> None:
    def build(e: Collection, f: Collection, a: Collection) -> Collection:
        found = algorithms.datalog(written(program), {"e": e, "f": f, "a": a, **DERIVED})
        assert set(found) == set(HEADS)
        parts = [found[n].select(kind=n, x=col.x, y=col.y if WIDTHS[n] == 2 else 0) for n in HEADS]
        return parts[0].concat(*parts[1:])

    def plain(e: Rows, f: Rows, a: Rows) -> Rows:
        rows = {"e": e, "f": f, "a": a}
        given = {name: {tuple(map(int, map(str, row))) for row in of} for name, of in rows.items()}
        facts = follow_from(program, given)
        return collection([(n, *row, *[0] * (2 - len(row))) for n in HEADS for row in facts[n]])

    follow(build, plain, SCHEMAS, course, workers, seed)


GALEN = """
    p(x,z)   :- p(x,y), p(y,z).
    q(x,r,z) :- p(x,y), q(y,r,z).
    p(x,z)   :- p(y,w), u(w,r,z), q(x,r,y).
    p(x,z)   :- c(y,w,z), p(x,w), p(x,y).
    q(x,q,z) :- q(x,r,z), s(r,q).
    q(x,e,o) :- q(x,y,z), r(y,u,e), q(z,u,o).
"""


def test_galen_as_text_is_galen_by_hand(seed: int) -> None:
    def both(flow: Dataflow) -> None:
        inputs = {name: dd.input(flow, name, schema) for name, schema in galen.SCHEMAS.items()}
        by_hand = galen.derived(*inputs.values())
        # The file has u(r, z, w) and c(y, z, w) for what the rules call u(w, r, z) and c(y, w, z): by place.
        for name, rows in algorithms.datalog(GALEN, inputs).items():
            rows.output(name)
            by_hand[name].output(f"{name} by hand")

    choice = random.Random(seed)
    cluster = Cluster(both, 2, seed)
    there: list[tuple[str, Row]] = []
    sizes = []
    for epoch in range(3):
        for number in range(60 if epoch == 0 else 5):
            name = choice.choice("ppqqrcus")
            width = len(galen.SCHEMAS[name].split(","))
            there.append((name, tuple(choice.randrange(12) for _ in range(width))))
            cluster.change(name, [(there[-1][1], 1)], worker=number % 2)
        for _ in range(10 * (epoch > 0)):
            name, row = there.pop(choice.randrange(len(there)))
            cluster.change(name, [(row, -1)])
        cluster.seal()
        cluster.run()
        for name in ("p", "q"):
            assert cluster.snapshot(name) == cluster.snapshot(f"{name} by hand")
        sizes.append(len(cluster.snapshot("p")) + len(cluster.snapshot("q")))
    assert min(sizes) > len(there), "the rules have found something"


def _found(text: str, **given: list[Row]) -> dict[str, Rows]:
    def build(flow: Dataflow) -> None:
        inputs = {name: dd.input(flow, name, "a: int?, b: int?") for name in given}
        relations = {**inputs, "found": "a: int?", "other": "a: int?"}
        for name, rows in algorithms.datalog(text, relations).items():
            rows.output(name)

    cluster = Cluster(build)
    for name, rows in given.items():
        cluster.change(name, [(row, 1) for row in rows])
    cluster.seal()
    cluster.run()
    return {name: cluster.snapshot(name) for name in ("found", "other")}


def test_null_equals_nothing() -> None:
    found = _found(
        "found(x) :- e(x, x). found(y) :- e(x, y), f(x, _). other(x) :- e(x, _), not f(x, _).",
        e=[(None, None), (1, 1), (None, 5), (2, None)],
        f=[(None, 3), (2, 2)],
    )
    assert found == {"found": collection([(1,), (None,)]), "other": collection([(1,), (None,)])}


def test_given_facts_of_a_derived_relation_are_among_what_is_found() -> None:
    found = _found("e(x, y) :- e(y, x). found(x) :- e(x, 1). other(x) :- found(x).", e=[(1, 2), (1, 2)])
    assert found == {"found": collection([(2,)]), "other": collection([(2,)])}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("b(x, y) :- b(y, x), e(x, y).", "no fact of b can ever be found"),
        ("b(x, y) :- c(x), e(x, y). c(x) :- b(x, _).", "no fact of b or c can ever be found"),
        ("c(x) :- e(x, _), not b(x, x).", "'b' has columns, but no facts, and it is the head of no rule"),
        ("c(x) :- e(x, _), not c(x).", "not c(x) cannot be decided"),
        ("c(z) :- e(x, _).", "unsafe: 'z'"),
    ],
)
def test_refused_with_the_rule_and_the_line_of_the_program(text: str, said: str) -> None:
    edges = dd.input(Dataflow("rules"), "e", "x: int, y: int")
    with pytest.raises(RuleError) as caught:
        algorithms.datalog(text, {"e": edges, **DERIVED})
    assert said in str(caught.value) and "rule 1" in str(caught.value)
    assert "test_datalog.py" in str(caught.value)
