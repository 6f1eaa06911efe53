"""Open times: a set of times that knows its minimal ones, and which are complete.

law_*    against a set of words that is looked through
scale_*  with very many times nobody looks at all of them
"""

from __future__ import annotations

import random

import numpy as np
import pytest

from progress.times import open_times
from progress.times.open_times import OpenTimes
from progress.times.time_words import TimeCode, TimeLayout
from progress.times.timestamp import ROOT, TimeShape
from progress.times.word_antichain import minimal_words

DEEPER = [ROOT, ROOT.loop(), ROOT.loop().loop(), ROOT.loop().loop().loop()]
SHAPES = [*DEEPER, ROOT.prioritized_loop()]


def code_of(shape: TimeShape) -> TimeCode:
    return TimeCode(TimeLayout.default(shape.levels), shape)


def beyond(words: set[int], word: int, guards: int) -> bool:
    """Whether one of `words` is ≤ `word`."""
    return any(((word | guards) - other) & guards == guards for other in words)


def minimal(words: set[int], guards: int) -> list[int]:
    return sorted(word for word in words if not beyond(words - {word}, word, guards))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_law_it_does_as_a_set_that_is_looked_through(
    shape: TimeShape, seed: int, effort: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_times, "BLOCK_MAX", 8)
    code = code_of(shape)
    for trial in range(6 * effort):
        rng = random.Random(f"{seed} {shape} {trial}")
        largest = rng.choice((3, 12))

        def some(count: int, rng: random.Random = rng, largest: int = largest) -> list[int]:
            return [
                code.pack(tuple(rng.randint(0, largest) for _ in range(shape.coordinates)))
                for _ in range(count)
            ]

        known = set(some(rng.randint(0, 40)))
        times = OpenTimes(code.guards, known)
        for _ in range(60):
            choice = rng.random()
            if choice < 0.5:
                for word in some(rng.randint(1, 6)):
                    times.add(word)
                    known.add(word)
            elif choice < 0.8:
                for word in [*rng.sample(sorted(known), min(len(known), 4)), *some(1)]:
                    times.discard(word)
                    known.discard(word)
            elif choice < 0.97 or not known:
                frontier = minimal(set(some(rng.randint(1, 3))), code.guards)
                complete = {word for word in known if not beyond(set(frontier), word, code.guards)}
                assert times.take_complete(np.array(frontier)) == sorted(complete)
                known -= complete
            else:
                assert times.first() == min(known)
                assert times.take_complete(np.empty(0, np.int64)) == sorted(known)
                known.clear()
            times.check_invariants()
            assert len(times) == len(known)
            assert times.elements() == sorted(known)
            for word in some(3):
                assert times.has_before(word) == beyond(known, word, code.guards)
            assert times.minimal().tolist() == minimal(known, code.guards)
            times.check_invariants()


def test_law_the_minimal_ones_are_the_same_array_until_something_changes() -> None:
    times = OpenTimes(code_of(ROOT.loop()).guards, [5, 9])
    assert times.minimal() is times.minimal()
    before = times.minimal()
    times.discard(1)
    times.add(9)
    assert times.minimal() is before and len(times) == 2


@pytest.mark.parametrize("shape", [ROOT, ROOT.loop()], ids=str)
def test_scale_one_time_after_the_other_looks_at_a_few_blocks_only(
    shape: TimeShape, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = code_of(shape)
    words = [code.pack((epoch, *[0] * (shape.coordinates - 1))) for epoch in range(20_001)]
    times = OpenTimes(code.guards, words)
    looked_at = 0

    def counted(words: np.typing.NDArray[np.int64], guards: int) -> np.typing.NDArray[np.int64]:
        nonlocal looked_at
        looked_at += len(words)
        found: np.typing.NDArray[np.int64] = minimal_words(words, guards)
        return found

    assert times.minimal().tolist() == words[:1]
    monkeypatch.setattr(open_times, "minimal_words", counted)
    for before, after in zip(words[:2000], words[1:2001], strict=True):
        assert times.take_complete(np.array([after])) == [before]
        assert times.minimal().tolist() == [after]
    assert looked_at <= 2000 * open_times.BLOCK_MAX
