"""Entries of symbols as a frame: what no sender of ours makes is an error of the peer, before or when it is
learned.
"""

from __future__ import annotations

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from differential.columns.symbols.entries import SymbolEntries
from differential.columns.symbols.packing import pack, symbol_word
from differential.columns.symbols.table import SymbolTable
from timely.errors import PeerError


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
    "an extension in a list": entries_of(msgpack.packb([msgpack.ExtType(7, b"")])),
    "a date after the last": entries_of(msgpack.packb(msgpack.ExtType(1, b"\x7f\xff\xff\xff"))),
    "a date of no bytes": entries_of(msgpack.packb(msgpack.ExtType(1, b""))),
    "a decimal in another form": entries_of(msgpack.packb(msgpack.ExtType(2, b"1.5 "))),
    "a decimal that is no number": entries_of(msgpack.packb(msgpack.ExtType(2, b"nan"))),
    "a decimal that is no text": entries_of(msgpack.packb(msgpack.ExtType(2, "é".encode()))),
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
