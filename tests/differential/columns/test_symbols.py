"""Symbols: values as 64-bit words that mean the same on every worker.

law_*        interning and looking up; equal bytes, equal word
travel_*     entries reach a peer before rows, once, whatever becomes of the messages
refusing_*   entries that no sender of ours makes
collision_*  two values with one word are found where they meet
forgotten_*  what is not in use goes, and is as if it had never been
"""

from __future__ import annotations

import datetime as dt
import subprocess
import sys
from decimal import Decimal

import msgpack
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from differential.columns.symbols import SymbolEntries, SymbolTable, pack, symbol_word, unpack
from differential.errors import SchemaError, SymbolCollisionError, UnknownSymbolError
from timely.errors import PeerError
from timely.limits import NESTING_LEVELS_MAX
from timely.own_files import ROOT

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
        "from differential.columns.symbols import *; "
        "print(*map(symbol_word, map(pack, ['Grüße', {'a': (1, None)}])))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert run.stdout.split() == [str(symbol_word(pack("Grüße"))), str(symbol_word(pack({"a": [1, None]})))]
    assert unpack(pack({"a": [1, None]})) == {"a": (1, None)}


@pytest.mark.parametrize("value", [object(), 2**64, {1, 2}, dt.datetime(2020, 1, 1), "\ud800"])
def test_law_what_msgpack_cannot_hold_is_refused(value: object) -> None:
    with pytest.raises(SchemaError, match="cannot be stored"):
        SymbolTable().intern([value])


@pytest.mark.parametrize(
    "payload",
    [
        msgpack.packb(msgpack.ExtType(1, b"\x7f\xff\xff\xff")),
        msgpack.packb(msgpack.ExtType(1, b"")),
        msgpack.packb(msgpack.ExtType(2, b"1.5 ")),
        msgpack.packb(msgpack.ExtType(2, b"nan")),
        msgpack.packb(msgpack.ExtType(2, "é".encode())),
        msgpack.packb([msgpack.ExtType(7, b"")]),
    ],
)
def test_travel_what_no_worker_sends_is_an_error_of_the_peer(payload: bytes) -> None:
    with pytest.raises(PeerError):
        SymbolTable().learn(SymbolEntries((symbol_word(payload),), (payload,)), peer=1)


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


def entries_of(*payloads: bytes) -> bytes:
    """Entries with the right words for any bytes."""
    return SymbolEntries(tuple(map(symbol_word, payloads)), payloads).to_bytes()


WORD = symbol_word(pack("a"))

MALFORMED = {
    "nothing": b"",
    "not msgpack": b"\xc1",
    "cut off": entries_of(pack("a"))[:-1],
    "something behind": entries_of(pack("a")) + b"\0",
    "a nested bomb": b"\x91" * 500_000,
    "a length that is not there": b"\x92\xdd\xff\xff\xff\xff",
    "a map as a key": b"\x81\x80\x01",
    "a number": msgpack.packb(7),
    "one list": msgpack.packb([[WORD]]),
    "no lists": msgpack.packb([WORD, pack("a")]),
    "unequal lists": msgpack.packb([[WORD], []]),
    "too many": entries_of(pack("a"), pack("b"), pack("c")),
    "a word that is text": msgpack.packb([["a"], [pack("a")]]),
    "a word that is true": msgpack.packb([[True], [pack("a")]]),
    "a word of 65 bits": msgpack.packb([[2**63], [pack("a")]]),
    "a value that is text": msgpack.packb([[WORD], ["a"]]),
    "another word": msgpack.packb([[WORD + 1], [pack("a")]]),
    "null's word": msgpack.packb([[0], [pack("a")]]),
    "a value that is not msgpack": entries_of(b"\xc1"),
    "two values": entries_of(pack("a") + pack("a")),
    "a value in a long form": entries_of(b"\xd9\x01a"),
    "a map in another order": entries_of(b"\x82\xa1b\x01\xa1a\x01"),
    "a map as a key in a value": entries_of(b"\x81\x80\x01"),
    "a date beyond all years": entries_of(b"\xc7\x0c\xff\0\0\0\0\x7f" + b"\xff" * 7),
    "an extension": entries_of(b"\xd4\x05\0"),
    "text that is not UTF-8": entries_of(b"\xa1\xff"),
    "a value nested deep": entries_of(b"\x91" * 101 + b"\xc0"),
    "a value nested very deep": entries_of(b"\x91" * 100_000 + b"\xc0"),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_refusing_malformed_entries_as_an_error_of_the_peer(name: str) -> None:
    table = SymbolTable()
    with pytest.raises(PeerError, match="worker 3 sent"):
        table.learn(SymbolEntries.from_bytes(MALFORMED[name], 3, 2), 3)
    assert len(table) == 0
    table.check_invariants()


@given(st.binary(max_size=60), st.integers(0, 60), st.integers(0, 255))
def test_refusing_random_bytes_in_any_place_as_an_error_of_the_peer(junk: bytes, at: int, byte: int) -> None:
    good = bytearray(entries_of(pack("a"), pack((1, {"b": 2.5}))))
    good[at % len(good)] = byte
    for frame in (junk, bytes(good)):
        table = SymbolTable()
        try:
            table.learn(SymbolEntries.from_bytes(frame, 3, 2), 3)
        except PeerError:
            pass
        table.check_invariants()


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


def test_law_values_nested_deeper_than_the_limit_are_refused_by_all_who_pack() -> None:
    value: object = "x"
    for _ in range(NESTING_LEVELS_MAX):
        value = [value]
    table = SymbolTable()
    assert table.lookup_one(table.intern_one({"a": "b"})) == {"a": "b"}
    assert table.payloads(table.intern([value])) == [pack(value)]
    for deeper in (value, {"a": value}, {"a": (value, 1)}):
        with pytest.raises(
            SchemaError, match=f"cannot be stored: it is nested more than {NESTING_LEVELS_MAX} deep"
        ):
            pack([deeper])
    for _ in range(100_000):
        value = [value]
    with pytest.raises(SchemaError, match="a list that is nested too deep to be shown"):
        table.intern([value])


# forgotten_


@given(st.lists(values, max_size=12), st.data())
def test_forgotten_is_what_is_neither_in_use_nor_pinned_nor_noted(
    given_values: list[object], data: st.DataObject
) -> None:
    table = SymbolTable()
    words = table.intern(given_values).tolist()
    chosen = st.lists(st.sampled_from(words), max_size=4) if words else st.just([])
    used, pinned, told = (data.draw(chosen) for _ in range(3))
    table.delta_for(1, np.array(words, np.int64))
    table.on_sent(1)
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
    assert set(table.delta_for(1, again).words) == set(words) - rest, "what is known there is not said again"


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
    assert table.report() == {"entries": 6, "forgotten": 1, "passes": 1, "full_at": 12}


def test_forgotten_is_looked_for_seldom_where_looking_costs_much() -> None:
    table = SymbolTable(full_from=4)
    words = table.intern(["a", "b", "c", "d"])
    marking = table.marking()
    marking.add(np.resize(words, 64 * 100))
    table.forget(marking)
    assert table.report()["full_at"] == 104
