"""Which words of a set are in use: the account against sets of Python."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from differential.kernels.rows.marking import SymbolMarking, bits_of, mark_words, met_and_not, slots_of

LEAST, MOST = -(2**63), 2**63 - 1
hashes = st.integers(LEAST, MOST).filter(bool)
some = st.one_of(
    hashes, st.integers(-20, 20).filter(bool), st.sampled_from([LEAST, MOST, 1 << 40, -(1 << 40)])
)


@given(st.sets(some, max_size=60), st.lists(some | st.integers(-3, 3), max_size=60), st.data())
def test_words_that_were_shown_are_in_use_and_no_others(
    table: set[int], others: list[int], data: st.DataObject
) -> None:
    of_table = data.draw(st.lists(st.sampled_from(sorted(table)), max_size=60)) if table else []
    words = data.draw(st.permutations([*others, *of_table]))
    marking = SymbolMarking(table)
    for part in (words[: len(words) // 2], words[len(words) // 2 :]):
        marking.add(np.array(part, np.int64))
    kept, gone = (set(part.tolist()) for part in marking.in_use_and_not())
    assert kept == table & set(words)
    assert gone == table - set(words)
    assert marking.words_shown == len(words)


@given(st.sets(some, max_size=20), some, some)
def test_ranges_are_asked_for(table: set[int], one: int, other: int) -> None:
    low, high = sorted((one, other))
    assert SymbolMarking(table).has_between(low, high) == any(low <= word <= high for word in table)


def test_arrays_of_any_shape_and_order_are_looked_at() -> None:
    words = np.arange(1, 13).reshape(3, 4) << 40
    marking = SymbolMarking({*words.reshape(-1).tolist(), 7})
    for part in (words[:1], words.T[2:], words[:, 1::2]):
        marking.add(part)
    _, gone = marking.in_use_and_not()
    assert sorted(gone.tolist()) == [7, 5 << 40, 9 << 40]


def test_the_kernels_keep_a_set_with_one_bucket_for_all() -> None:
    words = np.arange(1, 40) << 20
    slots = slots_of(words)
    mark_words(words[::2].copy(), slots, bits_of(words), 1)
    met, others = met_and_not(slots)
    assert sorted(met.tolist()) == words[::2].tolist()
    assert sorted(others.tolist()) == words[1::2].tolist()
