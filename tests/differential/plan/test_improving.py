"""improving.py: whatever the rules do, the meaning stays.

law_*      random plans, before and after, against an interpreter
guard_*    plans on which a rule must not fire, with random rows: each fails if its guard is removed
fires_*    what rules are there for
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference.collection import Collection as Rows
from reference.expressions import NoValue
from reference.plan import DidNotEnd, meaning
from strategies_collections import examples, repeat_until
from strategies_plans import draw_collection, least, read_twice

import differential as dd
from differential import Collection, col, lit
from differential.plan.building import Plan
from differential.plan.improving import Improved, improve
from differential.plan.nodes import Join, NotNull
from differential.plan.rewriting import beneath
from timely.building.dataflow import Dataflow

INPUTS = {"ab": "a: int, b: int", "cd": "c: int, d: int?"}

rows = st.dictionaries(
    st.tuples(st.integers(-1, 2), st.integers(-1, 2)), st.sampled_from([-2, -1, 1, 1, 2]), max_size=6
).map(Counter)
rows_with_nulls = st.dictionaries(
    st.tuples(st.integers(-1, 2), st.one_of(st.none(), st.integers(-1, 2))),
    st.sampled_from([-1, 1, 1, 2]),
    max_size=6,
).map(Counter)


def improved(plan: Plan) -> Improved:
    return improve(plan.roots, plan.add_rewritten, lambda node: plan.sites.get(node.digest, ()))


def outcome(compute: Callable[[], Rows]) -> Rows | None:
    """The rows, or None where a dataflow would end with an error."""
    try:
        return compute()
    except (NoValue, DidNotEnd):
        return None


def test_law_the_meaning_stays_and_no_error_appears() -> None:
    fired: Counter[str] = Counter()

    @examples(12)
    @given(st.data(), rows, rows_with_nulls)
    def holds(data: st.DataObject, ab: Rows, cd: Rows) -> None:
        fired.update(_check_random(data, ab, cd))

    tried = {
        "distinct away",
        "filter pushed",
        "columns dropped",
        "columns of inputs left out",
        "loop result consolidated",
        "rows between bounds",
    }
    repeat_until(lambda: tried <= set(fired), holds)
    others = {"joins in a circle at once", "row numbers to first rows", "many terms summed"}
    assert set(fired) - others == tried, "all rules but these three were tried"


def _check_random(data: st.DataObject, ab: Rows, cd: Rows) -> Counter[str]:
    """Draw a plan, check it, and say which rules have fired."""
    flow = Dataflow("tested")
    inputs = [dd.input(flow, name, schema) for name, schema in INPUTS.items()]
    for number in range(data.draw(st.integers(1, 2))):
        draw_collection(data.draw, inputs, read_twice).output(f"out {number}")
    plan = Plan.of(flow)
    better = improved(plan)
    plan.check_invariants()
    given_rows = {"ab": ab, "cd": cd}
    for before, after in zip(plan.roots, better.roots, strict=True):
        assert before.schema == after.schema
        wanted = outcome(lambda before=before: meaning(before, given_rows))  # type: ignore[misc]
        if wanted is not None:
            assert meaning(after, given_rows) == wanted, (before, after)
    again = improve(better.roots, plan.add_rewritten, lambda node: plan.sites.get(node.digest, ()))
    assert [root.digest for root in again.roots] == [root.digest for root in better.roots], "once is enough"
    return better.fired


BUILDS: dict[str, Callable[[Collection, Collection], Collection]] = {
    "a part that can raise is not pushed into a join": lambda ab, cd: ab.join(
        cd.select(a=col.c, e=col.c), on="a"
    ).filter(lit(6) // col.b > 1),
    "nor one of keys": lambda ab, cd: ab.join(cd.select(a=col.c, e=col.c), on="a").filter(
        lit(6) // col.a > 1
    ),
    "a part that can raise is not pushed past distinct": lambda ab, cd: ab.distinct().filter(
        lit(6) // col.a > 1
    ),
    "nor past a reduce": lambda ab, cd: (
        ab.group_by("a").agg(lo=dd.min("b")).filter((lit(6) // col.a > 1) & (col.a < 9))
    ),
    "a part that reads both sides stays": lambda ab, cd: ab.join(
        cd.select(a=col.c, e=col.c + 0), on="a"
    ).filter((col.b < col.e) & (col.b > -1) & (col.e > -1)),
    "keys have other names on the right": lambda ab, cd: ab.join(
        cd.select(e=lit(1), c=col.c), on={"b": "c"}
    ).filter((col.b > 0) & (col.e == 1)),
    "a part that reads an aggregate stays": lambda ab, cd: (
        ab.group_by("a").agg(n=dd.count()).filter((col.n > 1) & (col.a > -1))
    ),
    "what a function of a group gives is no set": lambda ab, cd: (
        ab.group_by("a").reduce(least, "w: int").distinct()
    ),
    "a join is a set if both sides are": lambda ab, cd: (
        ab.distinct().join(cd.select(a=col.c), on="a").distinct()
    ),
    "and the other way round": lambda ab, cd: cd.select(a=col.c).join(ab.distinct(), on="a").distinct(),
    "rows that differ in a column that goes are one": lambda ab, cd: ab.distinct().select("a").distinct(),
    "nor is a column that is there twice all of them": lambda ab, cd: (
        ab.distinct().select(x=col.a, y=col.a).distinct()
    ),
    "an input is no set": lambda ab, cd: ab.filter(col.a > 0).distinct(),
    "the columns of a condition are kept": lambda ab, cd: (
        ab.join(cd.select(a=col.c, e=col.c + 0, f=col.c + 1), on="a").filter(col.e < col.b).select("f")
    ),
    "what two readers need is kept": lambda ab, cd: _read_by_two(
        ab.join(cd.select(a=col.c, e=col.c), on="a")
    ),
    "columns under a distinct are kept": lambda ab, cd: (
        ab.join(cd.select(a=col.c, e=col.c + 0), on="a").distinct().select("b")
    ),
    "columns that a function sees are kept": lambda ab, cd: (
        ab.join(cd.select(a=col.c, e=col.c), on="a").group_by("a").reduce(widths, "w: int").select("w")
    ),
    "a cross join that needs no column of a side takes what another reader leaves": lambda ab, cd: (
        _crossed_twice(ab, cd.select(e=col.c + 1, f=col.d))
    ),
    "and so does one of which neither side needs a column": lambda ab, cd: _crossed_for_one(
        ab.select(a=col.a + 1, b=col.b), cd.select(e=col.c + 1, f=col.d)
    ),
    "sums of what was narrowed still agree": lambda ab, cd: (
        ab.join(cd.select(a=col.c, e=col.c), on="a").concat(ab.select(a=col.a, b=col.b, e=col.b)).select("e")
    ),
}


NOT_NULL: dict[str, Callable[[Collection, Collection], Collection]] = {
    "a filter goes past what another one says, and stays above it": lambda ab, cd: cd.filter(
        col.d > 0
    ).filter(col.d < 2),
    "and so does what asks for nulls": lambda ab, cd: cd.filter(col.d > 0).filter(
        col.d.is_null() | (col.c > 0)
    ),
    "what was said stays above an operator that its filter goes past": lambda ab, cd: (
        cd.distinct().filter(col.d.is_not_null()).with_columns(d=col.d + 1)
    ),
    "above a join, one side of which has the filter": lambda ab, cd: (
        ab.join(cd, on={"a": "c"}).filter((col.d > 0) & (col.b > col.d)).select("d")
    ),
    "above a join by what may be null": lambda ab, cd: (
        cd.join(ab.select(d=col.a, e=col.b), on="d", null_safe=True).filter(col.d < 2).filter(col.e > 0)
    ),
    "above sums, by a key that may be null": lambda ab, cd: (
        cd.group_by("d").agg(n=dd.count()).filter(col.d > 0).join(ab.select(d=col.a), on="d")
    ),
    "above a sum of collections": lambda ab, cd: (
        cd.concat(cd.negate(), cd.select(c=lit(1), d=lit(None, "int"))).filter(~(col.d < 1)).filter(col.d < 9)
    ),
    "a column that goes takes with it what is said of it": lambda ab, cd: (
        cd.filter(col.d > 0).join(ab.select(c=col.a), on="c").select("c")
    ),
    "what was said keeps a set one": lambda ab, cd: cd.distinct().filter(col.d > 0).distinct(),
    "in a loop": lambda ab, cd: (
        cd.filter(col.d > 0).iterate(lambda x: x.concat(cd.filter(col.d < 1)).distinct()).filter(col.d < 2)
    ),
}


@pytest.mark.parametrize("name", NOT_NULL)
def test_guard_what_a_filter_says_of_nulls_is_said_behind_it(name: str) -> None:
    """The interpreter looks whether it is so."""

    @examples(2)
    @given(rows, rows_with_nulls)
    def holds(ab: Rows, cd: Rows) -> None:
        flow = Dataflow("tested")
        tables = [dd.input(flow, name, schema) for name, schema in INPUTS.items()]
        NOT_NULL[name](*tables).output("out")
        plan = Plan.of(flow)
        (before,), (after,) = plan.roots, improved(plan).roots
        assert before.schema == after.schema
        assert any(isinstance(node, NotNull) for node in beneath([before]))
        assert meaning(after, {"ab": ab, "cd": cd}) == meaning(before, {"ab": ab, "cd": cd})

    holds()


def test_fires_filters_go_past_what_is_said_of_nulls() -> None:
    found = kinds_beneath(lambda ab, cd: cd.distinct().filter(col.d > 0).filter(col.c > 0))
    assert found == "input filter filter distinct not_null output"
    one_way = kinds_beneath(
        lambda ab, cd: ab.select(c=col.a).join(cd, on="c").filter(col.d > 0).filter(col.d < 9).consolidate()
    )
    assert one_way == "input select input filter filter join not_null consolidate output"
    dropped = kinds_beneath(lambda ab, cd: cd.filter(col.d > 0).join(ab.select(c=col.a), on="c").select("c"))
    assert "not_null" not in dropped
    one_set = kinds_beneath(lambda ab, cd: cd.distinct().filter(col.d > 0).distinct())
    assert one_set == "input filter distinct not_null output"


def _read_by_two(joined: Collection) -> Collection:
    return joined.select(x=col.b).concat(joined.select(x=col.e))


def _crossed_twice(ab: Collection, ef: Collection) -> Collection:
    one, other = ab.cross_join(ef).select(x=col.b), ab.cross_join(ef.arrange("f")).select(x=col.f)
    return one.concat(other, ef.select(x=col.f))


def _crossed_for_one(ab: Collection, ef: Collection) -> Collection:
    ones = ab.cross_join(ef).select(x=lit(1))
    return ones.concat(ab.select(x=col.b), ef.select(x=col.f))


def widths(key: object, group: list[tuple[tuple[object, ...], int]]) -> list[tuple[int]]:
    del key
    return sorted({(len(row),) for row, _ in group})


@pytest.mark.parametrize("name", BUILDS)
def test_guard_the_meaning_stays_and_no_error_appears(name: str) -> None:
    @examples(2)
    @given(rows, rows)
    def holds(ab: Rows, cd: Rows) -> None:
        flow = Dataflow("tested")
        tables = [dd.input(flow, names, ": int, ".join(names) + ": int") for names in ("ab", "cd")]
        BUILDS[name](*tables).output("out")
        plan = Plan.of(flow)
        (before,), (after,) = plan.roots, improved(plan).roots
        wanted = outcome(lambda: meaning(before, {"ab": ab, "cd": cd}))
        if wanted is not None:
            assert meaning(after, {"ab": ab, "cd": cd}) == wanted

    holds()


def kinds_beneath(build: Callable[[Collection, Collection], Collection]) -> str:
    """The operators of the improved plan, from the inputs to the output."""
    flow = Dataflow("tested")
    tables = [dd.input(flow, name, schema) for name, schema in INPUTS.items()]
    build(*tables).output("out")
    return " ".join(node.kind for node in beneath(improved(Plan.of(flow)).roots))


def test_fires_filters_reach_the_inputs() -> None:
    past_rows = kinds_beneath(
        lambda ab, cd: ab.distinct().negate().select(x=col.a, y=col.b).filter(col.x > 1)
    )
    assert past_rows == "input filter distinct negate select output"
    both_sides = kinds_beneath(
        lambda ab, cd: ab.join(cd.select(a=col.c), on="a").filter((col.a > 0) & (col.b > 0)).consolidate()
    )
    assert both_sides == "input filter input filter select join consolidate output"
    keys = kinds_beneath(lambda ab, cd: ab.group_by("a").agg(n=dd.count()).filter(col.a > 0))
    assert keys == "input filter accumulate output"


def test_guard_what_others_read_too_is_made_once() -> None:
    def build(ab: Collection, cd: Collection) -> Collection:
        shared = ab.distinct()
        return shared.filter(col.a > 1).concat(shared.filter(col.b > 1))

    assert kinds_beneath(build).split().count("distinct") == 1


def test_guard_computed_columns_are_computed_once() -> None:
    found = kinds_beneath(lambda ab, cd: ab.select(x=col.a * 2, y=col.b).filter((col.x > 1) & (col.y > 1)))
    assert found == "input filter select filter output"


def test_fires_distinct_of_a_set_goes() -> None:
    found = kinds_beneath(lambda ab, cd: ab.group_by("a").agg(n=dd.count()).distinct().distinct())
    assert found == "input accumulate output"


def test_fires_columns_are_dropped_before_a_join() -> None:
    flow = Dataflow("tested")
    ab = dd.input(flow, "ab", "a: int, b: int, more: int, extra: string")
    ac = dd.input(flow, "ac", "a: int, c: int, other: string")
    ab.select("a", "b", "more").join(ac, on="a").select("b").output("out")
    joins = [node for node in beneath(improved(Plan.of(flow)).roots) if isinstance(node, Join)]
    assert [(str(join.left.schema), str(join.right.schema)) for join in joins] == [
        ("a: int, b: int", "a: int")
    ]


def test_guard_what_goes_round_is_consolidated_without_its_distinct() -> None:
    """A join of two sets is a set, but its changes are not summed: they would go round for ever."""
    looped = kinds_beneath(
        lambda ab, cd: ab.distinct().iterate(
            lambda x: (
                x.distinct().join(ab.distinct().select(b=col.b, a2=col.a), on="b").distinct().select("a", "b")
            )
        )
    )
    assert looped.count("consolidate") == 1
    outside = kinds_beneath(
        lambda ab, cd: ab.distinct().join(ab.distinct().select(b=col.b, c=col.a), on="b").distinct()
    )
    assert "consolidate" not in outside
