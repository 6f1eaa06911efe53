"""Symbols: values as 64-bit words that mean the same on every worker.

law_*        interning and looking up; equal bytes, equal word
travel_*     entries reach a peer before rows, once
collision_*  two values with one word are found where they meet
"""

from __future__ import annotations

import datetime as dt
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from differential.errors import SchemaError, SymbolCollisionError, UnknownSymbolError
from differential.symbols import SymbolEntries, SymbolTable, pack, symbol_word, unpack

EAST = dt.timezone(dt.timedelta(hours=1))

scalars = st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.text() | st.binary()
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3).map(tuple) | st.dictionaries(st.text(), inner, max_size=3),
)


@given(st.lists(values, max_size=10))
def test_law_what_was_interned_is_looked_up(given_values: list[object]) -> None:
    table = SymbolTable()
    words = table.intern(given_values)
    assert table.lookup(words) == given_values
    assert [table.lookup_one(word) for word in words.tolist()] == given_values
    assert np.array_equal(table.intern(given_values), words)
    assert table.payloads(words) == [pack(value) for value in given_values]
    table.check_invariants()


def test_law_equal_values_of_different_types_are_different_symbols() -> None:
    different = [1, 1.0, True, "1", b"1", (1,), None, 0, False, "", b"", (), {}]
    assert len(set(SymbolTable().intern(different).tolist())) == len(different)


def test_law_equal_values_are_one_symbol_however_they_are_written() -> None:
    table = SymbolTable()
    pairs: list[tuple[object, object]] = [
        ({"a": 1, "b": {"c": 2, "d": 3}}, {"b": {"d": 3, "c": 2}, "a": 1}),
        ([1, [2]], (1, (2,))),
        (np.int64(5), 5),
        (np.str_("x"), "x"),
        (-0.0, 0.0),
        (float("nan"), -float("nan")),
        (
            dt.datetime(2020, 1, 1, 1, tzinfo=EAST),
            dt.datetime(2020, 1, 1, tzinfo=dt.UTC),
        ),
    ]
    for left, right in pairs:
        assert table.intern_one(left) == table.intern_one(right), (left, right)
    table.check_invariants()


def test_law_a_word_is_the_same_in_every_process_and_never_zero() -> None:
    code = (
        "from differential.symbols import *; print(*map(symbol_word, map(pack, ['Grüße', {'a': (1, None)}])))"
    )
    root = Path(__file__).resolve().parents[2]
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=root)
    assert run.stdout.split() == [str(symbol_word(pack("Grüße"))), str(symbol_word(pack({"a": [1, None]})))]
    assert unpack(pack({"a": [1, None]})) == {"a": (1, None)}


@pytest.mark.parametrize("value", [object(), 2**64, {1, 2}, dt.datetime(2020, 1, 1), "\ud800"])
def test_law_what_msgpack_cannot_hold_is_refused(value: object) -> None:
    with pytest.raises(SchemaError, match="cannot be stored"):
        SymbolTable().intern([value])


@given(st.lists(st.lists(scalars, max_size=6), max_size=6))
def test_travel_a_peer_can_look_up_all_it_gets_and_gets_no_entry_twice(batches: list[list[object]]) -> None:
    sender, receiver = SymbolTable(), SymbolTable()
    told: set[int] = set()
    for batch in batches:
        words = sender.intern(batch)
        entries = SymbolEntries.from_bytes(sender.delta_for(1, np.stack([words, words])).to_bytes())
        assert not told & set(entries.words)
        told |= set(entries.words)
        receiver.learn(entries, peer=0)
        assert receiver.lookup(words) == batch
        assert len(receiver.delta_for(0, words)) == 0, "what a peer has sent is not sent back"
        assert not sender.delta_for(1, words)
    sender.check_invariants()
    receiver.check_invariants()


def test_travel_each_peer_is_told_by_itself_and_null_has_no_entry() -> None:
    table = SymbolTable()
    words = table.intern(["a", "b"])
    assert len(table.delta_for(1, words)) == 2
    assert len(table.delta_for(2, words[:1])) == 1
    assert len(table.delta_for(2, words)) == 1
    assert not table.delta_for(3, np.zeros(4, dtype=np.int64))


def test_travel_many_words_are_searched_for_the_few_new_ones() -> None:
    table = SymbolTable()
    words = table.intern_strings([f"s{i}" for i in range(5000)])
    assert len(table.delta_for(1, np.repeat(words, 3))) == 5000
    more = table.intern_strings(["new"])
    assert table.delta_for(1, np.concatenate([words, more])).words == tuple(more.tolist())


def test_travel_a_word_without_an_entry_is_an_error_that_says_so() -> None:
    with pytest.raises(UnknownSymbolError, match="never told"):
        SymbolTable().lookup(np.array([5], dtype=np.int64))
    with pytest.raises(UnknownSymbolError):
        SymbolTable().delta_for(1, np.array([5], dtype=np.int64))


def _one_word(payload: bytes) -> int:
    return 7


def test_collision_two_values_with_one_word_are_named() -> None:
    table = SymbolTable(word_of=_one_word)
    table.intern(["first", "first"])
    with pytest.raises(SymbolCollisionError, match="'second' and 'first'"):
        table.intern(["second"])
    with pytest.raises(SymbolCollisionError, match=r"\(1, 2\)|\[1, 2\]"):
        table.intern([[1, 2]])
    with pytest.raises(SymbolCollisionError, match="'third' and 'first'"):
        table.learn(SymbolEntries((7,), (pack("third"),)))
    table.learn(SymbolEntries((7,), (pack("first"),)))
    assert table.lookup_one(7) == "first"
