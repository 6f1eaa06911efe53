"""circles.py: which joins become one join of all, and which must not.

meaning_*   the rows stay, whatever is joined with whatever
fires_*     what the rule is there for
guard_*     plans that stay as they are: each fails if its guard is removed
"""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st
from reference.collection import Collection as Rows
from reference.dataflow import Change, check_at_times
from reference.plan import meaning
from strategies_collections import examples, histories, repeat_until

import differential as dd
from differential import Collection, col
from differential.columns.schema import Schema
from differential.expressions.expression import ColumnRef
from differential.plan import nodes as n
from differential.plan.building import Plan
from differential.plan.improving import Improved, improve
from differential.plan.nodes import Node
from differential.plan.rewriting import beneath
from differential.plan.rules.circles import without_ears
from timely.building.dataflow import Dataflow


def _improved(plan: Plan) -> Improved:
    return improve(plan.roots, plan.add_rewritten, lambda node: plan.sites.get(node.digest, ()))


def _input(columns: str) -> Node:
    """Always the same collection, under these names."""
    given = n.Input(Schema.of("u: int, v: int, w: int"), "given")
    return n.Select(given, tuple((new, ColumnRef(old)) for new, old in zip(columns, "uvw", strict=False)))


def _other(columns: str) -> n.Input:
    """A collection of its own."""
    return n.Input(Schema.of(", ".join(f"{name}: int" for name in columns)), f"of {columns}")


def _after(*roots: Node) -> list[Node]:
    """All nodes of the plan after the rules."""
    plan = Plan(Dataflow("tested"))
    for node in beneath(roots):
        plan.add_rewritten(node, ())
    return list(beneath(improve(roots, plan.add_rewritten, lambda node: ()).roots))


def _joins(*roots: Node) -> list[int]:
    """How many are joined by each join after the rules."""
    return sorted(len(node.children) for node in _after(*roots) if isinstance(node, n.Join | n.JoinAll))


def _chain(*columns: str) -> Node:
    """Each joined to those before it by all names that they share."""
    found: Node = _input(columns[0])
    for names in columns[1:]:
        both = tuple((name, name) for name in names if name in found.schema.names)
        found = n.Join(found, _input(names), both)
    return found


# meaning_

_rows = st.dictionaries(
    st.tuples(st.integers(0, 2), st.integers(0, 2)), st.sampled_from([-2, -1, 1, 1, 2]), max_size=6
).map(Counter)


@st.composite
def _queries(draw: st.DrawFn) -> Node:
    """Joins of three to six pairs of columns from two inputs, in trees of any form, names moved between."""
    names = st.sampled_from(["ab", "bc", "ca", "cd", "da", "ac"])
    trees: list[Node] = []
    for number, letters in enumerate(draw(st.lists(names, min_size=3, max_size=6))):
        source = n.Input(Schema.of("k: int, v: int"), draw(st.sampled_from(["one", "other"])))
        columns = tuple(
            (f"{letter}{number}", ColumnRef(old)) for letter, old in zip(letters, "kv", strict=True)
        )
        trees.append(n.Select(source, columns))
    while len(trees) > 1:
        right = trees.pop(draw(st.integers(0, len(trees) - 1)))
        left = trees.pop(draw(st.integers(0, len(trees) - 1)))
        pairs = [(a, b) for a in left.schema.names for b in right.schema.names if a[0] == b[0]]
        all_of_left = list({a: (a, b) for a, b in pairs}.values())
        some = st.lists(st.sampled_from(pairs or [("", "")]), min_size=1, unique_by=lambda pair: pair[0])
        on = draw(st.one_of(st.just(all_of_left), st.just(all_of_left), some)) if pairs else []
        joined: Node = n.Join(left, right, tuple(on))
        if draw(st.booleans()):
            order = draw(st.permutations(joined.schema.names))
            fewer = order[: draw(st.integers(1, len(order)))]
            joined = n.Select(joined, tuple((name, ColumnRef(name)) for name in fewer))
        trees.append(joined)
    return n.Output(trees[0], "out")


def test_meaning_of_joins_of_any_form() -> None:
    sizes: Counter[int] = Counter()

    @examples(4)
    @given(_queries(), _rows, _rows)
    def holds(query: Node, one: Rows, other: Rows) -> None:
        after = _after(query)
        sizes.update(len(node.children) for node in after if isinstance(node, n.JoinAll))
        inputs = {"one": one, "other": other}
        assert after[-1].schema == query.schema
        assert meaning(after[-1], inputs) == meaning(query, inputs)

    repeat_until(lambda: len(sizes) > 1 and sizes.total() > 5, holds)
    assert len(sizes) > 1 and sizes.total() > 5, sizes


def test_meaning_where_a_key_of_the_right_is_called_as_another_column_of_the_left() -> None:
    ways = n.Join(_input("ab"), _input("bc"), (("a", "b"),))
    query = n.Join(ways, _other("xy"), (("b", "x"), ("c", "y")))
    (closed,) = [node for node in _after(query) if isinstance(node, n.JoinAll)]
    assert len(closed.parts) == 3
    inputs = {
        "given": Counter({(1, 2, 0): 1, (1, 1, 0): 2, (1, 3, 0): 1}),
        "of xy": Counter({(2, 3): 1, (1, 3): 3}),
    }
    wanted = meaning(query, inputs)
    assert len(wanted) == 2 and meaning(_after(query)[-1], inputs) == wanted


def test_meaning_at_every_time() -> None:
    """Triangles by a chain, run: with retractions, several workers, partially ordered times."""

    def chain(ab: Collection, bc: Collection) -> Collection:
        ac = ab
        ways = ab.select(a=col.k, b=col.v).join(bc.select(b=col.k, c=col.v), on="b")
        return ways.join(ac.select(a=col.k, c=col.v), on=["a", "c"]).select("a", "b", "c")

    def plain(ab: Rows, bc: Rows) -> Rows:
        found: Rows = Counter()
        for (a, b), times in ab.items():
            for (b2, c), more in bc.items():
                found[a, b, c] += times * more * ab[a, c] if b == b2 else 0
        return Counter({row: times for row, times in found.items() if times})

    @examples(0.3)
    @given(histories(2), histories(2), st.integers(1, 3), st.integers(0, 2**20))
    def holds(ab: list[Change], bc: list[Change], workers: int, seed: int) -> None:
        check_at_times(chain, plain, [ab, bc], depth=2, workers=workers, seed=seed)

    holds()


def test_ears_come_off_until_none_is_left() -> None:
    assert not without_ears([{1, 2}]) and not without_ears([{1, 2}, {2, 3}, {3, 4}])
    assert not without_ears([{1, 2}, {2, 1}]), "equal in both columns is no circle"
    assert len(without_ears([{1, 2}, {2, 3}, {1, 3}])) == 3
    assert not without_ears([{1, 2}, {2, 3}, {1, 3}, {1, 2, 3}]), "one holds all that the others share"
    left = without_ears([{1, 9}, {1, 2}, {2, 3}, {3, 4}, {4, 1}, {4, 5}, {5, 6}])
    assert left == [{1, 2}, {2, 3}, {3, 4}, {4, 1}]


# fires_


def test_fires_triangles_and_longer_circles_are_joined_at_once() -> None:
    assert _joins(_chain("ab", "bc", "ac")) == [3]
    assert _joins(_chain("ab", "bc", "cd", "da")) == [4]
    assert _joins(_chain("ab", "bc", "ac", "cd", "ad", "bd")) == [6], "all pairs of four"


def test_fires_an_ear_is_joined_to_the_circle() -> None:
    assert _joins(_chain("ab", "bc", "ac", "ax")) == [2, 3]
    assert _joins(_chain("ab", "bc", "ac", "cx", "xy", "ya")) == [6], "another circle, over one of its edges"


def test_fires_as_users_write_it_and_says_so() -> None:
    flow = Dataflow("tested")
    edges = dd.input(flow, "edges", "src: int, dst: int")
    ways = edges.join(edges.select(dst=col.src, end=col.dst), on="dst")
    found = ways.join(edges, on={"end": "src", "src": "dst"})
    text = found.explain()
    assert "after the rules: joins in a circle at once ==" in text
    assert "join of 3 on" in text and "the fewest candidates first" in text
    assert found.schema.names == ("end", "src", "dst")


# guard_


def test_guard_a_chain_stays_a_chain() -> None:
    assert _joins(_chain("ab", "bc", "cd", "de")) == [2, 2, 2]
    assert _joins(_chain("xa", "xb", "xc")) == [2, 2]


def test_guard_different_collections_are_joined_along_keys() -> None:
    def around(*parts: Node) -> Node:
        ways = n.Join(parts[0], parts[1], (("b", "b"),))
        return n.Join(ways, parts[2], (("a", "a"), ("c", "c")))

    assert _joins(around(_other("ab"), _other("bc"), _other("ac"))) == [2, 2]
    assert _joins(around(_input("ab"), _other("bc"), _input("ac"))) == [3]
    with_ear = n.Join(around(_other("ab"), _other("bc"), _input("ac")), _input("ax"), (("a", "a"),))
    assert _joins(with_ear) == [2, 2, 2], "it is the circle that counts"


def test_guard_what_others_read_is_kept_anyway() -> None:
    ways = n.Join(_input("ab"), _input("bc"), (("b", "b"),))
    closed = n.Join(ways, _input("ac"), (("a", "a"), ("c", "c")))
    assert _joins(n.Output(closed, "closed"), n.Output(n.Distinct(ways), "ways")) == [2, 2]


def test_guard_what_somebody_asked_to_keep_is_kept() -> None:
    ways = n.Join(_input("ab"), _input("bc"), (("b", "b"),))
    for kept in (n.Arrange(ways, ("a", "c")), n.Consolidate(ways)):
        assert _joins(n.Join(kept, _input("ac"), (("a", "a"), ("c", "c")))) == [2, 2]
    by_hand = n.Arrange(_input("ac"), ("a",))
    assert _joins(n.Join(ways, by_hand, (("a", "a"), ("c", "c")))) == [2, 2]


def test_guard_null_equals_null_where_it_was_to() -> None:
    ways = n.Join(_input("ab"), _input("bc"), (("b", "b"),), null_safe=True)
    assert _joins(n.Join(ways, _input("ac"), (("a", "a"), ("c", "c")))) == [2, 2]
    closed = n.Join(_chain("ab", "bc"), _input("ac"), (("a", "a"), ("c", "c")), null_safe=True)
    assert _joins(closed) == [2, 2]


def test_guard_in_loops_rows_do_not_wait_for_earlier_epochs() -> None:
    ways = n.Join(n.Variable(Schema.of("a: int, b: int"), 1, 0), _input("bc"), (("b", "b"),))
    closed = n.Join(ways, _input("ac"), (("a", "a"), ("c", "c")))
    assert _joins(closed) == [2, 2]


def test_guard_two_columns_of_one_part_that_are_to_be_equal() -> None:
    ways = n.Join(_input("abx"), _input("bc"), (("b", "b"), ("x", "b")))
    assert _joins(n.Join(ways, _input("ac"), (("a", "a"), ("c", "c")))) == [2, 2]


def test_guard_columns_of_other_types_stay_apart() -> None:
    """A column that may be null in one part, joined as a key that is not null any more."""
    nullable = n.Input(Schema.of("a: int, b: int?"), "of ab?")
    bc = n.Select(nullable, (("b", ColumnRef("b")), ("c", ColumnRef("a"))))
    ways = n.Join(nullable, bc, (("b", "b"),))
    closed = n.Join(ways, _input("abc"), (("a", "a"), ("b", "b"), ("c", "c")))
    assert _joins(closed) == [2, 2]
    again = n.Join(
        n.Join(ways, _input("bd"), (("b", "b"),)), _input("cda"), (("c", "c"), ("d", "d"), ("a", "a"))
    )
    assert _joins(again) == [2, 2, 2]


def test_guard_more_than_six_are_too_many_stages() -> None:
    assert _joins(_chain("ab", "bc", "cd", "de", "ef", "fa")) == [6]
    assert _joins(_chain("ab", "bc", "cd", "de", "ef", "fg", "ga")) == [2] * 6
