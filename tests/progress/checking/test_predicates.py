"""The predicates of progress tracking, on counts small enough to see.

definition_*   each against its formula, for every point of a small order and random counts
says_*         on an example that shows what it is for
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import product

from progress.checking.predicates import (
    STATEMENTS,
    frontier_of,
    merely_negative,
    negative_counts,
    not_upright,
    retained_rights,
    supports,
    total,
    unaccounted,
    unearned,
    unforeseen,
    unforeseen_positive,
    unheld,
    unheralded,
    unjustified,
    unjustified_with,
    violation,
)
from progress.errors import InternalError
from progress.graph.graph import ConnectorSpec, Graph, StageSpec
from progress.graph.pointstamp_order import Order, Pointstamp, PointstampOrder
from progress.times.path_summary import PathSummary
from progress.times.timestamp import ROOT

POINTS: list[Pointstamp] = list(product(range(3), range(3)))
ORDER = Order({(a, b): a[0] <= b[0] and a[1] <= b[1] for a in POINTS for b in POINTS})
"""Pairs of small numbers in their product order: partial, with a least element, and comparable ways round."""

Full = dict[Pointstamp, int]


def before(t: Pointstamp, strictly: bool = False) -> list[Pointstamp]:
    return [s for s in POINTS if ORDER[s, t] and not (strictly and s == t)]


def is_vacant(v: Full, t: Pointstamp) -> bool:
    return all(v[s] == 0 for s in before(t))


def is_nonpositive(v: Full, t: Pointstamp) -> bool:
    return all(v[s] <= 0 for s in before(t))


def is_supported(v: Full, t: Pointstamp) -> bool:
    return any(v[s] < 0 and is_nonpositive(v, s) for s in before(t, strictly=True))


def some(seed: int) -> Iterator[tuple[Full, Full, Full]]:
    """Three random counts over all points, many of them 0."""
    choice = random.Random(seed)

    def counts(low: int) -> Full:
        return {t: choice.choice([0, 0, 0, choice.randint(low, 2)]) for t in POINTS}

    for _ in range(300):
        yield counts(-2), counts(-2), counts(0)


def sparse(v: Full) -> Full:
    return {t: count for t, count in v.items() if count}


def test_definition_upright_is_that_every_increment_is_supported(seed: int) -> None:
    held = 0
    for v, _, _ in some(seed):
        expected = [t for t in POINTS if v[t] > 0 and not is_supported(v, t)]
        assert not_upright(sparse(v), ORDER) == expected, v
        held += not expected
    assert 0 < held < 300


def test_definition_supports_are_what_supported_asks_for(seed: int) -> None:
    for v, _, _ in some(seed):
        assert supports(sparse(v), ORDER) == [t for t in POINTS if v[t] < 0 and is_nonpositive(v, t)]


def test_definition_vacancy_is_handed_on(seed: int) -> None:
    """Some t is vacant in the earlier and not in the later counts iff a counterexample is found."""
    held = 0
    for later, earlier, _ in some(seed):
        broken = [t for t in POINTS if is_vacant(earlier, t) and not is_vacant(later, t)]
        assert bool(unforeseen(sparse(later), sparse(earlier), ORDER)) == bool(broken), (later, earlier)
        held += not broken
    assert 0 < held < 300


def test_definition_nonpositive_is_handed_on_and_is_vacant(seed: int) -> None:
    for later, view, _ in some(seed):
        broken = [t for t in POINTS if is_nonpositive(view, t) and not is_nonpositive(later, t)]
        assert bool(unforeseen_positive(sparse(later), sparse(view), ORDER)) == bool(broken)
        differ = [t for t in POINTS if is_nonpositive(view, t) != is_vacant(view, t)]
        assert bool(merely_negative(sparse(view), ORDER)) == bool(differ)


def test_definition_justified(seed: int) -> None:
    for v, w, caps in some(seed):
        expected = [
            t
            for t in POINTS
            if v[t] > 0
            and not is_supported(v, t)
            and not any(caps[s] > 0 for s in before(t, strictly=True))
            and not v[t] < caps[t]
        ]
        assert unjustified(sparse(caps), sparse(v), ORDER) == expected
        expected = [
            t
            for t in POINTS
            if v[t] > 0
            and not any(v[s] < 0 or w[s] < 0 or caps[s] > 0 for s in before(t, strictly=True))
            and not v[t] + w[t] < caps[t]
        ]
        assert unjustified_with(sparse(caps), sparse(v), sparse(w), ORDER) == expected


def test_definition_what_is_heard_of_comes_after_something_believed(seed: int) -> None:
    for payload, view, _ in some(seed):
        expected = [t for t in POINTS if payload[t] and not any(view[s] > 0 for s in before(t))]
        assert unheralded(sparse(payload), sparse(view), ORDER) == expected


def test_definition_upright_without_what_is_kept_is_justified_by_what_is_owned(seed: int) -> None:
    """The A's are the stricter ones: what is upright by holds is justified by all that is owned."""
    for v, _, caps in some(seed):
        kept = retained_rights(caps, v, stages=2)
        assert set(unjustified(caps, sparse(v), ORDER)) <= set(not_upright(sparse(v), ORDER, kept))


def test_says_a_message_sent_under_a_hold_is_upright_if_the_hold_is_named() -> None:
    hold, message = (1, 0), (2, 0)
    assert not_upright({message: 1}, ORDER) == [message]
    assert not_upright({message: 1}, ORDER, retained_rights({hold: 1}, {message: 1}, 2)) == []
    assert not_upright({message: 1, hold: -1}, ORDER) == []
    assert retained_rights({hold: 1}, {message: 1}, stages=1) == [], "a message in an inbox is never kept"
    new = {hold: 1, message: 1}
    assert retained_rights({hold: 1}, new, 2) == [], "a hold that nobody knows of supports nothing"
    assert not_upright(new, ORDER, retained_rights({hold: 2}, new, 2)) == []


def test_says_sums_drop_zeros_and_equations_name_where_they_fail() -> None:
    assert total({(0, 0): 1, (0, 1): 2}, {(0, 0): -1}) == {(0, 1): 2}
    assert unaccounted({(0, 0): 2}, {(0, 0): 1}, {(0, 0): 1}) == []
    assert unaccounted({(0, 0): 2}, {(0, 0): 1}, {(1, 0): 1}) == [(0, 0), (1, 0)]
    assert negative_counts({(0, 0): 1, (1, 1): -1}) == [(1, 1)]


def test_says_a_right_may_be_doubled_and_a_message_must_lie_beyond_what_it_is_sent_by() -> None:
    owned = {(1, 1): 1}

    def is_message(t: Pointstamp) -> bool:
        return t[0] == 1

    assert unearned({(1, 1): 1}, owned, lambda t: False, ORDER) == []
    assert unearned({(1, 1): 1}, owned, is_message, ORDER) == [(1, 1)]
    assert unearned({(1, 2): 1, (0, 1): 1, (0, 0): -1}, owned, is_message, ORDER) == [(0, 1)]


def a_loop() -> PointstampOrder:
    inner = ROOT.loop()
    return PointstampOrder(
        Graph(
            [StageSpec("input", ROOT, 0, 1), StageSpec("body", inner, 2, 1)],
            [
                ConnectorSpec(0, 0, 1, 0, PathSummary.enter(ROOT, inner)),
                ConnectorSpec(1, 0, 1, 1, PathSummary.feedback(inner)),
            ],
        )
    )


def test_says_frontiers_are_the_earliest_times_that_can_still_come() -> None:
    order = a_loop()
    epoch, inner = order.graph.codes[0], order.graph.codes[1]
    positive = [(0, epoch.pack((1,))), (2, inner.pack((0, 3)))]
    assert frontier_of(positive, (2,), order) == [(0, 3), (1, 0)]
    assert frontier_of(positive, (3,), order) == [(0, 4), (1, 1)]
    assert frontier_of(positive, (2, 3), order) == [(0, 3), (1, 0)]
    assert unheld(positive, (3,), [(0, 4), (1, 1)], order) == []
    assert unheld(positive, (3,), [(0, 5), (1, 1)], order) == [positive[1]]
    assert unheld(positive, (3,), [], order) == sorted(positive)


def test_says_a_violation_names_predicate_place_pointstamps_and_what_happened() -> None:
    order = a_loop()
    points = [(0, order.graph.codes[0].pack((epoch,))) for epoch in range(5)]
    error = violation("A2", "at worker 1 of 2", points, order, ["one", "two"])
    assert isinstance(error, InternalError)
    assert str(error) == (
        f"progress predicate A2 does not hold at worker 1 of 2: {STATEMENTS['A2']}. It fails at 'input' "
        "(stage 0) at (0,) · 'input' (stage 0) at (1,) · 'input' (stage 0) at (2,) and 2 more.\n"
        "  last events: one · two"
    )
