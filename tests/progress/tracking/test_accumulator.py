"""What a group of workers holds back, and what of that presses."""

from __future__ import annotations

import random
from collections import Counter

from progress.tracking.accumulator import HELD_COUNT_MAX, Accumulator, minus

STAGES = 2


def test_what_is_taken_and_what_is_held_add_up_to_what_was_added(seed: int) -> None:
    rng = random.Random(seed)
    held = Accumulator(STAGES, [(0, 0, 3)])
    added: Counter[tuple[int, int]] = Counter()
    taken: Counter[tuple[int, int]] = Counter()
    for _ in range(200):
        changes = [(rng.randrange(4), rng.randrange(3), rng.choice((-1, 1, 2))) for _ in range(3)]
        held.add(changes)
        for location, word, delta in changes:
            added[location, word] += delta
        if rng.random() < 0.2:
            signs = []
            for location, word, delta in held.take():
                taken[location, word] += delta
                signs.append(delta > 0)
            assert signs == sorted(signs, reverse=True), "increments first"
        held.check_invariants()
        here = {point: count for point in added if (count := added[point] - taken[point])}
        assert held.held == here
        rights = added + Counter({(0, 0): 3}) if added[0, 0] > -3 else None
        assert rights is None or held.own.get((0, 0), 0) == added[0, 0] + 3


def test_a_group_that_still_has_a_right_at_a_time_need_not_say_that_others_were_given_up() -> None:
    held = Accumulator(STAGES, [(0, 5, 3)])
    held.add([(0, 5, -1)])
    held.add([(0, 5, -1)])
    assert held.candidates() == []
    held.add([(0, 5, -1)])
    assert held.candidates() == [(0, 5)]


def test_rights_of_a_group_are_known_at_stages_and_not_at_connectors_where_messages_come_and_go() -> None:
    held = Accumulator(STAGES, [])
    held.add([(STAGES, 5, 2), (1, 5, 2)])
    held.take()
    held.add([(STAGES, 5, -1), (1, 5, -1)])
    assert held.candidates() == [(STAGES, 5)]


def test_increments_alone_never_press_and_too_many_pointstamps_do() -> None:
    held = Accumulator(STAGES, [])
    held.add([(STAGES, word, 1) for word in range(HELD_COUNT_MAX)])
    assert held.candidates() == [] and not held.is_full
    held.add([(STAGES, HELD_COUNT_MAX, 1)])
    assert held.is_full


def test_what_comes_back_is_taken_off() -> None:
    own = [[(0, 1, -1), (2, 1, 1)], [(0, 1, 4)]]
    assert minus([(0, 1, 3), (2, 1, 5), (3, 0, 1)], own) == [(2, 1, 4), (3, 0, 1)]
    assert minus([], [[(2, 1, 1), (3, 1, -1)]]) == [(3, 1, 1), (2, 1, -1)]
