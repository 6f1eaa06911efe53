"""algorithms/rules/bodies.py: the body of one rule as joins, against trying every value.

meaning_*   one rule of every form, as facts come and go
plan_*      in which order atoms are met, and what is kept of them
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference.collection import Collection as Rows
from reference.collection import collection
from reference.rules.plain import Literal, Rule, follow_from, written
from strategies_collections import examples
from strategies_graphs import Course, courses, follow

import differential as dd
from differential import Collection
from differential.algorithms.rules.bodies import derived
from differential.algorithms.rules.syntax import parse
from timely.building.dataflow import Dataflow

SCHEMAS = {"e": "a: int, b: int", "f": "c: int"}
HEAD = dd.Schema.of("x: int, y: int")

_numbers = st.integers(0, 3)
_terms = st.sampled_from(["x", "y", "z", "x", "y", "z", "_", 1, 2])


@st.composite
def bodies(draw: st.DrawFn) -> Rule:
    """A safe rule for d(…, …) over e and f: one to three atoms, up to two conditions."""
    body: list[Literal] = []
    for relation, width in draw(st.lists(st.sampled_from([("e", 2), ("f", 1)]), min_size=1, max_size=3)):
        body.append(("+", (relation, draw(st.tuples(*[_terms] * width)))))
    names = {term for literal in body for term in literal[1][1] if isinstance(term, str)} - {"_"}
    known = st.sampled_from([*sorted(names), 1, 2])
    for _ in range(draw(st.integers(0, 2))):
        kind = draw(st.sampled_from(["e", "f", "<", "<=", "=", "!="]))
        if kind in SCHEMAS:
            width = 2 if kind == "e" else 1
            body.append(("-", (kind, draw(st.tuples(*[known | st.just("_")] * width)))))
        else:
            body.append((kind, draw(known), draw(known)))
    return ("d", draw(st.tuples(known, known))), draw(st.permutations(body))


@examples(0.15)
@given(
    bodies(),
    courses({"e": st.tuples(_numbers, _numbers), "f": st.tuples(_numbers)}, epochs_max=3, rows_max=9),
    st.integers(1, 3),
    st.integers(0, 2**20),
)
def test_meaning_of_a_body_at_every_epoch(body: Rule, course: Course, workers: int, seed: int) -> None:
    (rule,) = parse(written([body]))

    def build(e: Collection, f: Collection) -> Collection:
        return derived(rule, {"e": e, "f": f}, HEAD).distinct()

    def plain(e: Rows, f: Rows) -> Rows:
        given = {
            name: {tuple(map(int, map(str, row))) for row in rows} for name, rows in (("e", e), ("f", f))
        }
        return collection(dict.fromkeys(follow_from([body], given)["d"], 1))

    follow(build, plain, SCHEMAS, course, workers, seed)


def _plan(text: str) -> str:
    flow = Dataflow("rules")
    relations = {name: dd.input(flow, name, schema) for name, schema in SCHEMAS.items()}
    (rule,) = parse(text)
    return derived(rule, relations, HEAD).explain()


def test_plan_has_no_join_of_all_with_all_where_atoms_are_connected() -> None:
    together = _plan("d(x, y) :- e(x, z), f(y), e(z, y).")
    assert "join on" in together and "(nothing)" not in together
    assert "(nothing)" in _plan("d(x, y) :- e(x, x), f(y).")


@pytest.mark.parametrize(
    ("text", "semi"),
    [
        ("d(x, y) :- e(x, y), f(x).", False),
        ("d(x, y) :- e(x, y), e(y, x).", False),
        ("d(x, y) :- e(x, y), e(x, _).", True),
        ("d(x, y) :- e(x, y), e(y, z).", True),
        ("d(x, z) :- e(x, y), e(y, z).", False),
    ],
)
def test_plan_asks_only_whether_where_nothing_is_added(text: str, semi: bool) -> None:
    """An atom whose values nobody needs is one of many: how many of them there are must not matter."""
    assert ("keys " in _plan(text)) == semi
