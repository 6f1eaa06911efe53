"""stretches.py: changes of a window follow from the stretches that they touch, whatever these are."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference.ordered_windows import By, windowed
from strategies_collections import examples
from windows_drawn import NAMES, calls, frames, held_changes, query

import timely
from differential.operators.reducing import stretches

BY = st.builds(By, st.sampled_from(["t", "v", "w"]), st.booleans(), st.booleans())


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Marks and stretches of a few rows, so that groups of some dozens have many."""
    monkeypatch.setattr(stretches, "MARK_ROWS", 3)
    monkeypatch.setattr(stretches, "LIMITS", (1, 5, 1 << 62))


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("keys", [(), ("k",)])
def test_law_the_stretches_of_changes_decide(keys: tuple[str, ...]) -> None:
    @examples(1)
    @given(st.data())
    def holds(data: st.DataObject) -> None:
        order = data.draw(st.lists(BY, max_size=2, min_size=1, unique_by=lambda by: by.column))
        frame = data.draw(frames(order))
        functions = data.draw(calls())
        rng = random.Random(data.draw(st.integers(0, 1 << 30)))
        numbers = [None, *range(-9, 9)]

        def some(count: int) -> list[tuple[object, ...]]:
            return [
                (rng.randrange(2), rng.choice(numbers), rng.choice(numbers), rng.randrange(9) / 2, "a")
                for _ in range(count)
            ]

        there = Counter(some(40))
        with timely.connect(workers=1, embedded=True) as cluster:
            flow = cluster.install(query(keys, order, functions, frame))
            flow.input("rows").insert(list(there.elements()))
            flow.seal(wait=True)
            for turn in range(8):
                come = some(rng.randrange(3)) + rng.choices(list(there), k=rng.randrange(2))
                go = rng.sample(sorted(there, key=repr), rng.randrange(3)) + some(rng.randrange(2))
                flow.input("rows").insert(come)
                flow.input("rows").remove(go)  # some are not there, and then less than once
                there.update(come)
                there.subtract(go)
                flow.seal(wait=turn % 3 > 0)  # some epochs come together
                if turn % 3 == 0:
                    continue
                rows = [dict(zip(NAMES, each, strict=True)) for each in there.elements()]
                expected = windowed(rows, keys, order, functions, frame)
                assert held_changes(flow) == Counter(tuple(each.values()) for each in expected)

    holds()
