"""Piles: rows of one time that wait add up to what came, however much of it was packed and summed
meanwhile."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference.words import Row, as_words, rows_of
from words_seen import Seen

from differential.columns.overflow import show_words
from differential.columns.packed import parts as parts_module
from differential.columns.packed.block import Block
from differential.columns.packed.parts import words_in
from differential.errors import MultiplicityOverflowError
from differential.kernels.rows import sort
from differential.operators.waiting import pile as piles
from differential.operators.waiting.pile import Pile
from progress.times.anchor import Rebase
from timely.dictionaries import Mark

TIME = 1 << 40

narrow, wide = st.integers(-3, 3), st.integers(-(2**63), 2**63 - 1)


def parts(value: st.SearchStrategy[int]) -> st.SearchStrategy[list[list[Row]]]:
    row = st.tuples(value, value, st.just(TIME), st.sampled_from([1, 2, -1]))
    return st.lists(st.lists(row, min_size=1, max_size=9), min_size=1, max_size=12)


def summed(rows: list[Row]) -> Counter[Row]:
    found: Counter[Row] = Counter()
    for *row, diff in rows:
        found[tuple(row)] += diff
    return Counter({row: diff for row, diff in found.items() if diff})


def piled(given_parts: list[list[Row]]) -> Pile:
    """Some come packed."""
    pile = Pile(4)
    for number, part in enumerate(given_parts):
        words = as_words(part, 4)
        pile.add(Block(words) if number % 3 == 1 else words, show_words)
        pile.check_invariants(TIME)
    return pile


@pytest.fixture(params=[0, 4, 1 << 17], ids=["packed at once", "packed soon", "never packed"])
def _limits(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(piles, "PILE_LOOSE_ROWS_MAX", request.param)
    monkeypatch.setattr(piles, "PILE_SUMMED_ROWS_MIN", 8)
    monkeypatch.setattr(piles, "PACKED_ROWS", 3)
    monkeypatch.setattr(parts_module, "PACKED_ROWS", 3)
    monkeypatch.setattr(sort, "MANY_ROWS", 4)


@pytest.mark.usefixtures("_limits")
class TestWhatIsTaken:
    @given(st.one_of(parts(narrow), parts(wide)))
    def test_adds_up_to_what_came(self, given_parts: list[list[Row]]) -> None:
        pile = piled(given_parts)
        arrays = list(words_in(pile.take()))
        assert all(words.shape[1] for words in arrays), "who sorts them wants none without rows"
        taken = [row for words in arrays for row in rows_of(words)]
        assert summed(taken) == summed([row for part in given_parts for row in part])
        assert pile.rows == 0 and pile.take() == []

    @given(st.one_of(parts(narrow), parts(wide)))
    def test_is_the_same_later_when_words_count_from_a_later_epoch(
        self, given_parts: list[list[Row]]
    ) -> None:
        by = Rebase(1, 40)
        moved = piled(given_parts).rebased(by.rows)
        moved.check_invariants(0)
        taken = [row for words in words_in(moved.take()) for row in rows_of(words)]
        wanted = [(a, b, 0, diff) for part in given_parts for a, b, _, diff in part]
        assert summed(taken) == summed(wanted)


@pytest.mark.usefixtures("_limits")
@given(st.one_of(parts(narrow), parts(wide)))
def test_all_words_of_what_waits_are_shown(given_parts: list[list[Row]]) -> None:
    """Else what they stand for would be forgotten before the rows are taken. What has cancelled may be."""
    seen, pile = Seen(), piled(given_parts)
    pile.symbols(Mark([seen]))
    waiting = {word for words in words_in(pile.take()) for row in rows_of(words) for word in row[:2]}
    assert waiting <= seen.words <= {word for part in given_parts for row in part for word in row[:2]}


def test_a_part_that_comes_alone_is_given_back_as_it_is() -> None:
    words = as_words([(3, 1, TIME, 1), (1, 1, TIME, 1)], 4)
    pile = Pile(4)
    pile.add(words, show_words)
    (taken,) = pile.take()
    assert taken is words


def test_what_comes_packed_stays_so_and_is_no_copy() -> None:
    block = Block(as_words([(3, 1, TIME, 1), (1, 1, TIME, 1)], 4))
    pile = Pile(4)
    pile.add(block, show_words)
    assert pile.rows == 2
    (taken,) = pile.take()
    assert taken is block


@pytest.mark.parametrize("is_packed", [False, True])
def test_what_is_equal_becomes_one_while_it_waits(is_packed: bool) -> None:
    """Ten rows of each key: never more than a few times the keys are there, and these in a few bytes each."""
    keys = 1 << 17
    rng = np.random.default_rng(7)
    pile, most = Pile(3), 0
    for _ in range(20):
        part = np.stack([rng.integers(0, keys, 1 << 17), np.full(1 << 17, TIME), np.ones(1 << 17, np.int64)])
        pile.add(Block(part) if is_packed else part, show_words)
        most = max(most, sum(block.bytes for block in pile._blocks))
    assert pile.rows < 20 * (1 << 17) // 2
    assert most <= 5 * (piles.PILE_SUMMED_ROWS_MIN + 3 * keys)
    assert sum(int(words[-1].sum()) for words in words_in(pile.take())) == 20 * (1 << 17)


def test_a_sum_that_leaves_64_bits_is_told_with_its_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(piles, "PILE_LOOSE_ROWS_MAX", 0)
    monkeypatch.setattr(piles, "PILE_SUMMED_ROWS_MIN", 5)
    pile = Pile(3)
    pile._sum_at = 5
    for key in (5, 6, 5):
        pile.add(as_words([(key, TIME, 2**62), (key, TIME, 2**62 - 1)], 3), show_words)
    with pytest.raises(MultiplicityOverflowError, match="5"):
        pile.add(as_words([(7, TIME, 1)], 3), show_words)


@pytest.mark.parametrize("far", [0, 1], ids=["packed into words", "too wide for that"])
def test_a_sum_that_leaves_64_bits_while_rows_wait_is_told_with_its_row(
    far: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(piles, "PILE_LOOSE_ROWS_MAX", 0)
    monkeypatch.setattr(piles, "PILE_SUMMED_ROWS_MIN", 3)
    pile, row = Pile(4), as_words([(5, far * 2**62, TIME, 2**62)], 4)
    pile.add(as_words([(-far * 2**62, 0, TIME, 1)], 4), show_words)
    pile.add(row, show_words)
    pile.add(row, show_words)
    with pytest.raises(MultiplicityOverflowError, match=rf"\(5, {far * 2**62}\)"):
        pile.add(row, show_words)
