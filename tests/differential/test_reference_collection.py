"""The reference of `reference/collection.py` is itself the definition; here is what keeps it honest.

law_*       differences are unique and accumulate to what they should
example_*   each operator on a collection small enough to check by eye
"""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import collection as plain

from progress.times.timestamp import ROOT

histories = st.lists(
    st.tuples(
        st.tuples(st.integers(0, 2), st.integers(0, 2)),
        st.tuples(st.integers(0, 2), st.integers(0, 2)),
        st.integers(-2, 2),
    ),
    max_size=7,
).map(plain.history)


@given(histories)
def test_law_differences_accumulate_to_the_plain_function_everywhere(one: plain.History) -> None:
    def body(rows: plain.Collection) -> plain.Collection:
        return plain.aggregate(rows, [("count", 0), ("sum", 0)])

    output = plain.difference(body)(one)
    plain.assert_same_meaning(output, body, one)
    for time in [(t, i) for t in range(4) for i in range(4)]:
        assert plain.accumulated_at(output, time) == body(plain.accumulated_at(one, time)), (
            "also between the times"
        )


@given(histories)
def test_law_the_differences_of_the_identity_are_the_input(one: plain.History) -> None:
    assert plain.difference(plain.consolidate)(one) == one


@given(histories, histories)
def test_law_join_and_concat_are_bilinear_and_linear(left: plain.History, right: plain.History) -> None:
    joined = plain.difference(plain.join)(left, right)
    pairs = [
        ((*a, *b[1:]), plain.product_lub(s, t), m * n)
        for s, rows in left.items()
        for a, m in rows.items()
        for t, others in right.items()
        for b, n in others.items()
        if a[:1] == b[:1]
    ]
    assert joined == plain.history(pairs)


def test_law_assert_same_meaning_notices_a_missing_correction() -> None:
    # Two changes at incomparable times, one row that is there twice at their least upper bound.
    source = plain.history([((1,), (0, 1), 1), ((1,), (1, 0), 1)])
    output = plain.difference(plain.distinct)(source)
    assert output[1, 1] == Counter({(1,): -1})
    del output[1, 1]
    with pytest.raises(AssertionError, match=r"at \(1, 1\)"):
        plain.assert_same_meaning(output, plain.distinct, source)


def test_law_a_lexicographic_order_needs_no_correction() -> None:
    source = plain.history([((1,), (0, 1), 1), ((1,), (1, 0), 1)])
    output = plain.difference(plain.distinct, less_equal=lambda a, b: a <= b, lub=max)(source)
    assert output == plain.history([((1,), (0, 1), 1)])


def test_example_operators() -> None:
    rows = plain.collection({("a", 1): 2, ("a", 2): -1, ("b", 3): 1, ("c", 4): 0, ("d", 5): -1})
    assert plain.distinct(rows) == Counter({("a", 1): 1, ("b", 3): 1})
    assert plain.negate(plain.negate(rows)) == rows
    assert plain.concat(rows, plain.negate(rows)) == Counter()
    assert plain.aggregate(rows, [("count", 0), ("sum", 0)]) == Counter(
        {("a", 1, 0): 1, ("b", 1, 3): 1, ("d", -1, -5): 1}
    )
    assert plain.aggregate(rows, [("min", 0), ("max", 0)]) == Counter({("a", 1, 1): 1, ("b", 3, 3): 1})
    assert plain.aggregate(rows, [("count", 0)], keys=0) == Counter({(1,): 1})
    assert plain.aggregate_all(rows, [("count", 0)]) == Counter({(1,): 1})
    assert not plain.aggregate(Counter(), [("count", 0)], keys=0)
    assert plain.aggregate_all(Counter(), [("count", 0), ("sum", 0)]) == Counter({(0, None): 1})
    assert plain.join(rows, rows) == Counter(
        {("a", 1, 1): 4, ("a", 1, 2): -2, ("a", 2, 1): -2, ("a", 2, 2): 1, ("b", 3, 3): 1, ("d", 5, 5): 1}
    )
    assert plain.reduce(rows, lambda key, group: {("n",): len(group)}) == Counter(
        {("a", "n"): 2, ("b", "n"): 1, ("d", "n"): 1}
    )


def test_example_loops_nest() -> None:
    edges = plain.collection([(1, 2), (2, 3), (3, 1), (5, 6)])

    def reach(roots: plain.Collection) -> plain.Collection:
        def step(reached: plain.Collection) -> plain.Collection:
            following = plain.map_rows(plain.join(reached, edges), lambda row: row[1:])
            return plain.distinct(plain.concat(reached, following))

        return plain.iterate(roots, step)

    assert set(reach(plain.collection([(1,)]))) == {(1,), (2,), (3,)}
    assert plain.iterate(plain.collection([(5,)]), reach) == plain.collection([(5,), (6,)])
    with pytest.raises(AssertionError, match="no fixed point"):
        plain.iterate(plain.collection([(1,)]), lambda rows: plain.concat(rows, rows), rounds_max=5)
    rounds = plain.iterate_rounds(plain.collection([(1,)]), lambda rows: plain.concat(rows, rows), 3)
    assert [rows[1,] for rows in rounds] == [1, 2, 4, 8]


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(0, 2)), max_size=5))
def test_law_the_closure_agrees_with_the_orders_of_progress(times: list[tuple[int, int, int]]) -> None:
    nested = ROOT.loop().loop()
    closed = plain.closure(times, nested.lub)
    assert closed == plain.closure(times)
    assert all(nested.lub(a, b) in closed for a in closed for b in closed)
