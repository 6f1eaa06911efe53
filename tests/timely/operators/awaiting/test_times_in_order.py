"""Times in order: the front is enough to know whether some time is at or before another."""

from __future__ import annotations

import random
from collections import Counter

from progress.times.timestamp import Timestamp
from timely.operators.awaiting.times_in_order import TimesInOrder


def less_equal(one: Timestamp, other: Timestamp) -> bool:
    return all(a <= b for a, b in zip(one, other, strict=True))


def test_times_come_and_go_as_in_a_counter(seed: int) -> None:
    chance = random.Random(seed)
    times, plainly = TimesInOrder(), Counter[Timestamp]()
    for _ in range(300):
        time = chance.randrange(5), chance.randrange(5)
        if chance.random() < 0.6:
            times.add(time)
            plainly[time] += 1
        else:
            times.discard(time)
            plainly[time] = max(0, plainly[time] - 1)
        assert list(times) == sorted(plainly.elements())
        asked = chance.randrange(5), chance.randrange(5)
        assert (asked in times) == (plainly[asked] > 0)
        assert times.has_up_to(asked, less_equal) == any(less_equal(one, asked) for one in plainly.elements())
