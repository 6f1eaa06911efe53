"""gathered.py: what waits is what came, whatever happens to times and symbols meanwhile. How a join uses it:
test_join_vertex.py."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference.words import Row, as_words, rows_of
from words_seen import Seen

from differential.columns.packed.block import Block
from differential.columns.packed.parts import Part, words_in
from differential.operators.waiting import gathered as module
from differential.operators.waiting.gathered import Gathered
from progress.times.anchor import Rebase
from timely.dictionaries import Mark

TIME = 1 << 40

value = st.integers(-3, 3)
a_part = st.tuples(
    st.integers(0, 1),
    st.booleans(),
    st.lists(st.tuples(value, value, st.just(TIME), st.sampled_from([1, 2, -1])), min_size=1, max_size=9),
)
some_parts = st.lists(a_part, min_size=1, max_size=6)


def gathered(given_parts: list[tuple[int, bool, list[Row]]]) -> Gathered:
    """Parts: the port, whether it is packed, and rows."""
    made = Gathered()
    for port, is_packed, rows in given_parts:
        words = as_words(rows, 4)
        made.add(port, [Block(words) if is_packed else words])
        made.words.add(TIME)
    return made


def taken(found: Gathered, port: int) -> Counter[Row]:
    return Counter(row for words in words_in(found.take(port)) for row in rows_of(words))


@given(some_parts)
def test_what_is_taken_is_what_came_at_the_port(given_parts: list[tuple[int, bool, list[Row]]]) -> None:
    found = gathered(given_parts)
    for port in sorted({port for port, *_ in given_parts}):
        assert found and found.words == {TIME}
        wanted = Counter(row for at, _, rows in given_parts for row in rows if at == port)
        assert found.sizes()[port] == wanted.total()
        assert taken(found, port) == wanted
    assert not found and not found.words and found.rows == found.bytes == 0


@given(some_parts)
def test_what_waits_is_the_same_later_when_words_count_from_a_later_epoch(
    given_parts: list[tuple[int, bool, list[Row]]],
) -> None:
    found = gathered(given_parts)
    found.rebase(Rebase(1, 40))
    assert found.words == {0}
    for port in found.sizes():
        wanted = Counter(
            (a, b, 0, diff) for at, _, rows in given_parts for a, b, _, diff in rows if at == port
        )
        assert taken(found, port) == wanted


@given(some_parts)
def test_all_words_of_what_waits_are_shown(given_parts: list[tuple[int, bool, list[Row]]]) -> None:
    seen = Seen()
    gathered(given_parts).symbols(Mark([seen]))
    assert seen.words == {word for *_, rows in given_parts for row in rows for word in row[:2]}


@pytest.mark.parametrize(("limit", "enough"), [("GATHERED_ROWS_MAX", 6), ("GATHERED_BYTES_MAX", 6 * 4 * 8)])
def test_no_more_waits_than_is_enough(monkeypatch: pytest.MonkeyPatch, limit: str, enough: int) -> None:
    monkeypatch.setattr(module, limit, enough)
    found = Gathered()
    part: list[Part] = [np.zeros((4, 3), np.int64)]
    found.add(0, part)
    assert not found.are_enough
    found.add(1, part)
    assert found.are_enough
    found.take(0)
    found.take(1)
    assert not found.are_enough
