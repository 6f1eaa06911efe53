"""Symbols: values as 64-bit words that mean the same on every worker.

law_*        interning and looking up; equal bytes, equal word
travel_*     entries reach a peer before rows, once, whatever becomes of the messages
collision_*  two values with one word are found where they meet
forgotten_*  what is not in use goes, and is as if it had never been
"""

from __future__ import annotations

import datetime as dt
import random
import sys
from decimal import Decimal

import msgpack
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from differential.columns.symbols.entries import SymbolEntries
from differential.columns.symbols.packing import pack, symbol_word
from differential.columns.symbols.table import SymbolTable, _distinct
from differential.errors import SchemaError, SymbolCollisionError, UnknownSymbolError
from differential.thresholds import SET_WORDS_MAX

EAST = dt.timezone(dt.timedelta(hours=1))

plain = st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.text() | st.binary()
scalars = plain | st.dates() | st.decimals(allow_nan=False, allow_infinity=False)
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


@pytest.mark.parametrize("kind", [str, tuple])
def test_law_workers_in_several_threads_may_enter_a_value_at_once(kind: type) -> None:
    """What others enter between a look and the entry is the same value, not another with the same word."""

    def value(number: int) -> object:
        return str(number) if kind is str else (number,)

    others: list[object] = []

    def word_of(payload: bytes) -> int:
        if others:  # in the middle of entering it: another thread does so
            table.intern_one(others.pop())
        return symbol_word(payload)

    table = SymbolTable(word_of)
    words = []
    for number in range(5):
        others.append(value(number))
        words.append(table.intern_one(value(number)))
    assert table.lookup(np.array(words)) == [value(number) for number in range(5)]
    table.check_invariants()


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


@given(st.lists(st.lists(scalars, max_size=6), max_size=6))
def test_travel_a_peer_can_look_up_all_it_gets_and_gets_no_entry_twice(batches: list[list[object]]) -> None:
    sender, receiver = SymbolTable(), SymbolTable()
    told: set[int] = set()
    for batch in batches:
        words = sender.intern(batch)
        entries = SymbolEntries.from_bytes(
            sender.delta_for(1, np.stack([words, words])).to_bytes(), 0, words.shape[0]
        )
        sender.on_sent(1)
        assert not told & set(entries.words)
        told |= set(entries.words)
        receiver.learn(entries, peer=0)
        assert receiver.lookup(words) == batch
        assert len(receiver.delta_for(0, words)) == 0, "what a peer has sent is not sent back"
        assert not sender.delta_for(1, words)
    sender.check_invariants()
    receiver.check_invariants()


@pytest.mark.parametrize(
    "value",
    [
        msgpack.Timestamp(1, 5),
        [msgpack.Timestamp(-1, 999)],
        {"at": msgpack.Timestamp(2, 1_000)},
        dt.datetime(1, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=14))),
        dt.datetime(1, 1, 1, tzinfo=dt.UTC),
        dt.datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=dt.UTC),
        dt.datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=dt.timezone(dt.timedelta(microseconds=1))),
        msgpack.ExtType(5, b"x"),
        msgpack.ExtType(1, b"four"),
        dt.date(1, 1, 1),
        [dt.date(9999, 12, 31), Decimal("-0.00"), Decimal("1E+400")],
        Decimal("NaN"),
    ],
    ids=repr,
)
def test_travel_what_is_not_refused_at_once_is_no_error_of_the_peer(value: object) -> None:
    """A worker that sent what another takes for malformed would end the whole cluster."""
    sender, receiver = SymbolTable(), SymbolTable()
    try:
        word = sender.intern_one(value)
    except SchemaError:
        return
    receiver.learn(sender.delta_for(1, np.array([word])), 0)
    assert receiver.payloads(np.array([word])) == [pack(value)]


def test_travel_each_peer_is_told_by_itself_and_null_has_no_entry() -> None:
    table = SymbolTable()
    words = table.intern(["a", "b"])
    for peer, asked, told in [(1, words, 2), (2, words[:1], 1), (2, words, 1), (2, words, 0)]:
        assert len(table.delta_for(peer, asked)) == told
        table.on_sent(peer)
    assert not table.delta_for(3, np.zeros(4, dtype=np.int64))


def test_travel_many_words_are_searched_for_the_few_new_ones() -> None:
    table = SymbolTable()
    words = table.intern_strings([f"s{i}" for i in range(5000)])
    assert len(table.delta_for(1, np.repeat(words, 3))) == 5000
    table.on_sent(1)
    more = table.intern_strings(["new"])
    assert table.delta_for(1, np.concatenate([words, more])).words == tuple(more.tolist())


def test_travel_what_was_not_sent_is_offered_again() -> None:
    table = SymbolTable()
    a, b = (table.intern([value]) for value in ("a", "b"))
    assert table.delta_for(1, a).words == table.delta_for(1, a).words == tuple(a.tolist())
    assert table.delta_for(1, b).words == tuple(b.tolist())
    table.on_sent(1)
    assert not table.delta_for(1, b), "the last that was offered is what was sent"
    assert table.delta_for(1, a), "what was offered before it was not"
    with pytest.raises(UnknownSymbolError):
        table.delta_for(1, np.array([5], dtype=np.int64))
    table.on_sent(1)
    assert table.delta_for(1, a), "an offer that failed leaves nothing to be noted as sent"


@given(
    st.lists(
        st.tuples(
            st.integers(0, 2),
            st.integers(1, 2),
            st.lists(st.sampled_from(["", "a", "b", "c", b"a", 1, (1, "a")]), max_size=4),
            st.sampled_from(["arrives", "arrives", "its dataflow is gone", "send fails"]),
        ),
        max_size=40,
    )
)
def test_travel_whatever_is_dropped_or_fails_every_row_that_arrives_can_be_read(
    messages: list[tuple[int, int, list[object], str]],
) -> None:
    tables = [SymbolTable() for _ in range(3)]
    for sender, step, rows, fate in messages:
        receiver = (sender + step) % 3
        words = tables[sender].intern(rows)
        frame = tables[sender].delta_for(receiver, words).to_bytes()
        if fate == "send fails":
            continue
        tables[sender].on_sent(receiver)
        # A dataflow that is gone drops the rows, not what came with them.
        tables[receiver].learn(SymbolEntries.from_bytes(frame, sender, words.shape[0]), sender)
        if fate == "arrives":
            assert tables[receiver].lookup(words) == rows
            assert not tables[receiver].delta_for(sender, words)
    for table in tables:
        table.check_invariants()


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
    with pytest.raises(SymbolCollisionError, match=r"\[1, 2\] and 'first'"):
        table.intern([[1, 2]])
    with pytest.raises(SymbolCollisionError, match="'third' and 'first'"):
        table.learn(SymbolEntries((7,), (pack("third"),)), 1)
    table.learn(SymbolEntries((7,), (pack("first"),)), 1)
    assert table.lookup_one(7) == "first"


def test_collision_the_other_entries_of_the_message_are_learned_all_the_same() -> None:
    table = SymbolTable(word_of=_by_length)
    table.intern(["a"])
    entries = SymbolEntries((3, 2, 4), (pack("bb"), pack("b"), pack("ccc")))
    with pytest.raises(SymbolCollisionError, match="'b' and 'a'"):
        table.learn(entries, 1)
    assert table.lookup(np.array([2, 3, 4])) == ["a", "bb", "ccc"]


def _by_length(payload: bytes) -> int:
    return len(payload)


# forgotten_


@given(st.lists(values, max_size=12), st.data())
def test_forgotten_is_what_is_neither_in_use_nor_pinned_nor_noted(
    given_values: list[object], data: st.DataObject
) -> None:
    table = SymbolTable()
    words = table.intern(given_values).tolist()
    chosen = st.lists(st.sampled_from(words), max_size=4) if words else st.just([])
    used, pinned, told = (data.draw(chosen) for _ in range(3))
    for peer in (1, -2):  # a worker, and the segment of a log
        table.delta_for(peer, np.array(words, np.int64))
        table.on_sent(peer)
    for word in pinned:
        table.pin(word)
    table.begin()
    table.delta_for(2, np.array(told, np.int64))
    table.on_sent(2)
    marking = table.marking()
    marking.add(np.array(used, np.int64))
    rest = {*used, *pinned, *told}
    assert table.forget(marking) == len(set(words) - rest)
    table.check_invariants()
    assert table._values.keys() == rest
    again = table.intern(given_values)
    assert again.tolist() == words and table.lookup(again) == given_values
    for peer in (1, -2):
        said = set(table.delta_for(peer, again).words)
        assert said == set(words) - rest, "what is known there is not said again"


def test_forgotten_belief_of_a_peer_makes_what_it_needs_be_told_again() -> None:
    table = SymbolTable()
    words = table.intern(["a", "b"])
    table.delta_for(1, words)
    table.on_sent(1)
    assert not table.delta_for(1, words)
    table.withdraw(1)
    assert set(table.delta_for(1, words).words) == set(words.tolist())


def test_forgotten_words_that_were_learned_since_the_beginning_are_none() -> None:
    table, other = SymbolTable(), SymbolTable()
    table.intern(["a", "b"])
    table.begin()
    table.learn(other.delta_for(0, other.intern(["b", "c"])), 1)
    table.forget(table.marking())
    assert sorted(map(str, table.lookup(np.array(list(table._values))))) == ["b", "c"]
    assert table.forget(table.marking()) == 2, "what was noted counts once"


def test_forgotten_is_looked_for_at_twice_of_what_was_left() -> None:
    table = SymbolTable(full_from=4)
    words = table.intern(["a", "b", "c"])
    assert not table.is_full
    table.intern(["d"])
    assert table.is_full
    marking = table.marking()
    marking.add(words)
    assert table.forget(marking) == 1
    table.intern(["e", "f"])
    assert not table.is_full
    table.intern(["g"])
    assert table.is_full
    table.give_up()
    assert not table.is_full and len(table) == 6
    told = table.report()
    assert [told[name] for name in ("entries", "forgotten", "passes", "full_at")] == [6, 1, 1, 12]


def test_forgotten_is_looked_for_by_bytes_as_well_as_by_count() -> None:
    table = SymbolTable(bytes_from=10_000)
    large = [f"{number}" * 1_000 for number in range(9)]
    words = table.intern(large)
    assert not table.is_full and 9_000 < table.report()["bytes"] < 10_000
    table.intern([["a value that is packed", b"x" * 1_000]])
    assert table.is_full
    marking = table.marking()
    marking.add(words[:1])
    table.forget(marking)
    assert not table.is_full and table.report()["bytes"] == sys.getsizeof(large[0]), "one is left"
    table.intern(large)
    assert not table.is_full
    table.intern(["y" * 1_000])
    assert table.is_full
    table.give_up()
    assert not table.is_full, "until there is twice as much"
    table.intern(["z" * 11_000])
    assert table.is_full


def test_forgotten_bytes_are_looked_for_seldom_where_looking_costs_much() -> None:
    table = SymbolTable(bytes_from=100)
    words = table.intern(["a" * 1_000])
    marking = table.marking()
    marking.add(np.resize(words, 10_000))
    table.forget(marking)
    told = table.report()
    assert told["bytes_full_at"] == told["bytes"] + 8 * 10_000, "as much as the words that were looked at"
    table.check_invariants()


def test_bytes_follow_what_is_entered_learned_and_forgotten() -> None:
    """However values come in, and whether few of them go or most."""
    chance = random.Random(5)
    table, other = SymbolTable(), SymbolTable()
    for _ in range(200):
        values: list[object] = [chance.choice(["é", "a", b"b"]) * chance.randrange(50) for _ in range(3)]
        values.append([chance.randrange(9)])
        table.intern(values[:2])
        table.learn(other.delta_for(0, other.intern(values[2:])), 1)
        if chance.random() < 0.1:
            marking = table.marking()
            known = list(table._values)
            marking.add(np.array(chance.sample(known, chance.randrange(len(known))), np.int64))
            table.forget(marking)
        assert table.report()["bytes"] == sum(map(sys.getsizeof, table._values.values()))


def test_forgotten_is_looked_for_seldom_where_looking_costs_much() -> None:
    table = SymbolTable(full_from=4)
    words = table.intern(["a", "b", "c", "d"])
    marking = table.marking()
    marking.add(np.resize(words, 64 * 100))
    table.forget(marking)
    assert table.report()["full_at"] == 104


def test_forgotten_entries_give_their_memory_back() -> None:
    table = SymbolTable()
    words = table.intern([f"text {number}" for number in range(2_000)])
    table.delta_for(1, words)
    table.on_sent(1)

    def sizes() -> list[int]:
        return [sys.getsizeof(part) for part in (table._values, table._words, table._has[1])]

    before, marking = sizes(), table.marking()
    marking.add(words[:10])
    table.forget(marking)
    assert all(10 * after < size for after, size in zip(sizes(), before, strict=True))
    table.check_invariants()


def test_forgotten_is_what_was_noted_for_a_pass_that_was_given_up() -> None:
    table = SymbolTable()
    table.begin()
    table.delta_for(1, table.intern(["a"]))
    table.on_sent(1)
    table.give_up()
    table.delta_for(2, table.intern(["a"]))
    table.on_sent(2)
    assert table.forget(table.marking()) == 1


@pytest.mark.parametrize("count", [3, SET_WORDS_MAX + 2])
def test_different_words_of_many_are_all_of_them(count: int) -> None:
    assert _distinct(np.arange(count).reshape(1, -1)) == set(range(count))
