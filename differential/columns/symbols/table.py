"""Which value does a word of a row stand for, and which peer knows it, too?

A *symbol* is a value (a string, bytes or another one) that stands in a row as a word, the hash of its bytes
(`packing.py`). The order of words is the order of hashes, so nothing that needs the order of values (`min`,
`max`, `<`) is defined on them; `ColumnType.is_ordered` says so.

Each worker has one `SymbolTable`. Rows travel as words; the entries that a peer has not got travel along,
once. A sender says what is new when the message leaves, and notes it once the message has left; a receiver
learns of it on receipt, whether it has the dataflow of the message or not. So what a worker holds to be known
at a peer is known there, or on its way in front of whatever is sent next, and it makes no difference which
dataflow's rows brought it, or what became of them.

    sender      entries = table.delta_for(peer, words)      # with the frames of the message
                table.on_sent(peer)                         # when they were handed to the transport
    receiver    table.learn(entries, peer)                  # before the rows are looked at

Two values with one hash raise SymbolCollisionError where they first meet: wrong answers are worse than
none. At ten million values that has a chance of one in 370,000.

A table grows by about 200 bytes and the value for each different value that comes, and forgets those that
nothing refers to any more: when there are many entries, or values of many bytes, all that holds words on the
worker is asked, and what is in none of it goes (`kernels/rows/marking.py`; who is asked, and when:
`timely/running/forgetting.py`). A value that comes again has the word that it had. Between workers this needs
care, for a peer that believes a word to be known here sends rows without its entry:

    forgetting  tell all peers to believe nothing; they `withdraw` what they believe, and answer
                from before that on, until the end, what is told and what is learned is noted: `begin`
                once all have answered: what is neither in use nor noted goes: `forget`

What is told counts, for who learns an entry believes it to be known where it came from.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from sys import getsizeof
from typing import Protocol, TypeVar

import numpy as np

from differential.columns.column_types import Int64s
from differential.columns.symbols.entries import SymbolEntries
from differential.columns.symbols.packing import pack, symbol_word, unpack
from differential.errors import SchemaError, SymbolCollisionError, UnknownSymbolError, shown
from differential.kernels.rows.marking import SymbolMarking
from differential.thresholds import SET_WORDS_MAX
from timely.dictionaries import Marking
from timely.errors import PeerError
from timely.limits import SYMBOLS_BYTES_MIN, SYMBOLS_COUNT_MIN
from timely.wire.arrow import int64_array, numbers_of
from timely.wire.batch import UNPACK_ERRORS

__all__ = ["Forgetful", "SymbolTable"]

K = TypeVar("K")
V = TypeVar("V")

_BYTES_PER_WORD = 8
"""New values may take as much memory as the words that are looked at for what is in use."""

_WORDS_PER_ENTRY = 64
"""So many words are looked at in the time in which one entry is made."""


class _Packed(bytes):
    """The msgpack bytes of a value that is neither text nor bytes."""

    __slots__ = ()


class Forgetful(Protocol):
    """What keeps something for each of many values."""

    def forget(self, words: Sequence[int], values: Sequence[str | bytes]) -> None:
        """These words are in use nowhere; their values are text, bytes, or packed."""
        ...


class SymbolTable:
    """The symbols that one worker has seen, and which of them each of its peers has.

    Invariants (`check_invariants`): every word is the hash of its value, none is 0, and what a peer is said
    to have is in the table, and so is what is pinned. Strings and bytes are kept as they are and found
    without hashing them again; other values are kept packed, because equal bytes, not `==`, decide whether
    they are the same (1 == True).
    """

    def __init__(
        self,
        word_of: Callable[[bytes], int] = symbol_word,
        full_from: int = SYMBOLS_COUNT_MIN,
        bytes_from: int = SYMBOLS_BYTES_MIN,
    ) -> None:
        """An empty table. `word_of` maps msgpack bytes to a word; only tests replace it.

        From `full_from` entries on, or values of `bytes_from` bytes, it is worth looking for what may be
        forgotten.
        """
        self._word_of = word_of
        self._full_from = full_from
        self._full_at = full_from
        self._bytes_from = bytes_from
        self._bytes_full_at = bytes_from
        self._bytes = 0
        """About how much memory the values take: threads that enter values at one moment may miss one."""
        self._pinned: set[int] = set()
        self._noted: set[int] | None = None
        self._forgotten = 0
        self._passes = 0
        self.beside: dict[type, Forgetful] = {}
        """What others keep for each value, by what it is, and forget along with the value."""
        self._values: dict[int, str | bytes] = {}
        self._words: dict[str | bytes, int] = {}
        self._has: dict[int, set[int]] = {}
        self._leaving: dict[int, set[int]] = {}

    def __len__(self) -> int:
        return len(self._values)

    def __contains__(self, word: int) -> bool:
        return word in self._values

    def intern(self, values: Sequence[object]) -> Int64s:
        """The words of `values` (int64[n]), entering those that are new.

        Raises SchemaError for a value that msgpack cannot hold, SymbolCollisionError if two have one word.
        """
        words = [self.intern_one(value) for value in values]
        return np.array(words, dtype=np.int64)

    def intern_strings(self, values: Sequence[str | bytes]) -> Int64s:
        """`intern` for text or bytes only, at the cost of a dictionary lookup for each one already known."""
        known = self._words.get
        words = [known(value) for value in values]
        if None in words:
            words = [
                self.intern_one(value) if word is None else word
                for value, word in zip(values, words, strict=True)
            ]
        return np.array(words, dtype=np.int64)

    def intern_one(self, value: object) -> int:
        """The word of one value, entering it if it is new; raises as `intern` does."""
        if type(value) is str or type(value) is bytes:
            known = self._words.get(value)
            if known is not None:
                return known
            word = self._word_of(pack(value))
            self._enter(word, value)
            return word
        payload = pack(value)
        word = self._word_of(payload)
        if word not in self._values:
            # A numpy string or a subclass of str packs to plain text, and must be entered as such.
            self._enter_payload(word, payload, unpack(payload))
        elif self._payload(word) != payload:
            raise self._collision(word, value)
        return word

    def lookup(self, words: Int64s) -> list[object]:
        """The values of `words` (int64[n]), in order.

        Raises UnknownSymbolError for a word that was never interned or learned.
        """
        values = self._values
        try:
            found = [values[word] for word in words.tolist()]
        except KeyError as missing:
            raise self._unknown(missing.args[0]) from None
        return [unpack(value) if type(value) is _Packed else value for value in found]

    def lookup_one(self, word: int) -> object:
        """The value of one word; raises as `lookup` does."""
        value = self._values.get(word)
        if value is None:
            raise self._unknown(word)
        return unpack(value) if type(value) is _Packed else value

    def payloads(self, words: Int64s) -> list[bytes]:
        """The msgpack bytes of `words`; raises as `lookup` does."""
        return [self._payload(word) for word in words.tolist()]

    def pin_one(self, value: object) -> int:
        """`intern_one` for a constant of the program: it is never forgotten."""
        word = self.intern_one(value)
        self._pinned.add(word)
        return word

    def pin(self, word: int) -> None:
        """Never forget a word of the table, or 0."""
        if word:
            assert word in self._values, "what is pinned is known"
            self._pinned.add(word)

    def delta_for(self, peer: int, words: Int64s) -> SymbolEntries:
        """The entries among `words` (any shape) that `peer` has not got.

        Whoever calls this sends them in one message with the rows and then calls `on_sent`. If that fails,
        `peer` has not got them, and the next call gives them again. Word 0 (null) has no entry.
        """
        self._leaving.pop(peer, None)
        new = _distinct(words)
        new -= self._has.setdefault(peer, set())
        new.discard(0)
        if not new:
            return SymbolEntries()
        entries = SymbolEntries(tuple(new), tuple(self._payload(word) for word in new))
        self._leaving[peer] = new
        return entries

    def on_sent(self, peer: int) -> None:
        """What the last `delta_for` gave for `peer` is on its way: from now on `peer` counts as having it."""
        told = self._leaving.pop(peer, set())
        self._has.setdefault(peer, set()).update(told)
        if self._noted is not None:
            self._noted |= told

    def learn(self, entries: SymbolEntries, peer: int) -> None:
        """Enter what `peer` has sent; it will not be sent the same entries back.

        Raises SymbolCollisionError if an entry's word stands for another value here, and PeerError for a word
        that is not the hash of its bytes, or bytes that `pack` does not make. The other entries are learned
        all the same: `peer` will not send them again.
        """
        failure: SymbolCollisionError | None = None
        for word, payload in zip(entries.words, entries.payloads, strict=True):
            if word not in self._values:
                self._enter_payload(word, payload, self._checked(word, payload, peer))
            elif self._payload(word) != payload:
                failure = self._collision(word, self._checked(word, payload, peer))
        self._has.setdefault(peer, set()).update(entries.words)
        if self._noted is not None:
            self._noted.update(entries.words)
        if failure is not None:
            raise failure

    # Forgetting; see `timely/dictionaries.py`.

    @property
    def is_full(self) -> bool:
        """Whether it has twice as many entries, or bytes of values, as were in use when that was last found
        out, and not few.
        """
        return len(self._values) >= self._full_at or self._bytes >= self._bytes_full_at

    def withdraw(self, peer: int) -> None:
        """`peer` may have forgotten all that it had: what it needs is told again."""
        self._has.pop(peer, None)

    def begin(self) -> None:
        """From now on note what is told and learned."""
        self._noted = set()

    def marking(self) -> SymbolMarking:
        """What is pinned or was noted is in use; nothing else yet. Cost: some 20 ns for each entry."""
        marking = SymbolMarking(self._values)
        for words in (self._pinned, self._noted or ()):
            marking.add(np.fromiter(words, np.int64, len(words)))
        return marking

    def forget(self, marking: Marking) -> int:
        """Forget what is not in use, also of what peers are said to have; returns how many entries that were.

        Requires: nothing was entered since `marking` was made. Cost: some 0.3 µs for each that goes.
        """
        assert isinstance(marking, SymbolMarking), "the account that this table gave"
        kept, gone = marking.in_use_and_not()
        assert kept.shape[0] + gone.shape[0] == len(self._values)
        words = gone.tolist()
        values = list(map(self._values.pop, words))
        _consume(map(self._words.pop, [value for value in values if type(value) is not _Packed]))
        for has in self._has.values():
            has.difference_update(words)
        for other in self.beside.values():
            other.forget(words, values)
        if kept.shape[0] < gone.shape[0]:
            self._shrink()
            self._bytes = sum(map(getsizeof, self._values.values()))
        else:
            self._bytes = max(0, self._bytes - sum(map(getsizeof, values)))
        # What looking costs should be little beside entering what has come since the last time.
        self._full_at = max(
            self._full_from,
            2 * len(self._values),
            len(self._values) + marking.words_shown // _WORDS_PER_ENTRY,
        )
        self._bytes_full_at = max(
            self._bytes_from, 2 * self._bytes, self._bytes + marking.words_shown * _BYTES_PER_WORD
        )
        self._noted = None
        self._forgotten += len(words)
        self._passes += 1
        return len(words)

    def give_up(self) -> None:
        """Nobody could say what is in use: try again when there is twice as much."""
        self._noted = None
        self._full_at = max(self._full_from, 2 * len(self._values))
        self._bytes_full_at = max(self._bytes_from, 2 * self._bytes)

    def report(self) -> dict[str, int]:
        """How many entries there are, of how many bytes, and how often how many were forgotten."""
        return {
            "entries": len(self._values),
            "bytes": self._bytes,
            "forgotten": self._forgotten,
            "passes": self._passes,
            "full_at": self._full_at,
            "bytes_full_at": self._bytes_full_at,
        }

    def _shrink(self) -> None:
        """Give back the memory of what is gone: dictionaries and sets keep their size otherwise."""
        _rebuild(self._values)
        _rebuild(self._words)
        for peer, has in self._has.items():
            self._has[peer] = has.copy()

    def check_invariants(self) -> None:
        """Assert what the class promises; costs a hash for every entry."""
        assert 0 not in self._values
        for word, value in self._values.items():
            assert self._word_of(self._payload(word)) == word
            if type(value) is not _Packed:
                assert self._words[value] == word
        assert len(self._words) == sum(type(value) is not _Packed for value in self._values.values())
        for has in (*self._has.values(), self._pinned):
            assert has <= self._values.keys()

    def _payload(self, word: int) -> bytes:
        value = self._values.get(word)
        if value is None:
            raise self._unknown(word)
        return bytes(value) if type(value) is _Packed else pack(value)

    def _checked(self, word: int, payload: bytes, peer: int) -> object:
        """The value of an entry that came from outside."""
        if self._word_of(payload) != word:
            raise PeerError(f"worker {peer} sent the symbol {word:#x} with a value that has another hash")
        try:
            value = unpack(payload)
            # Bytes that are not as `pack` makes them would be a second word for a value that has one.
            if pack(value) == payload:
                return value
        except (*UNPACK_ERRORS, SchemaError) as error:
            raise PeerError(
                f"worker {peer} sent the symbol {word:#x} without a value: {type(error).__name__}: {error}"
            ) from error
        raise PeerError(f"worker {peer} sent the symbol {word:#x} with a value in a form that is not ours")

    def _enter_payload(self, word: int, payload: bytes, value: object) -> None:
        if isinstance(value, str | bytes):
            self._enter(word, value)
        else:
            self._values[word] = packed = _Packed(payload)
            self._bytes += getsizeof(packed)

    def _enter(self, word: int, value: str | bytes) -> None:
        # In one step: another worker of this process, in its thread, may enter the same value now.
        known = self._values.setdefault(word, value)
        if type(known) is not type(value) or known != value:
            raise self._collision(word, value)
        self._words[value] = word
        self._bytes += getsizeof(value)

    def _collision(self, word: int, value: object) -> SymbolCollisionError:
        return SymbolCollisionError(
            f"{shown(value)} and {shown(self.lookup_one(word))} have one 64-bit hash ({word:#x}).\n"
            "  Rows that hold them could not be told apart, so the dataflow stops. Change one of them."
        )

    def _unknown(self, word: int) -> UnknownSymbolError:
        return UnknownSymbolError(
            f"word {word:#x} stands for a value that this worker was never told; it knows {len(self)}.\n"
            "  Its entry should have arrived before the first row that holds it."
        )


def _consume(steps: Iterable[object]) -> None:
    """Take all steps, and keep nothing of them; a loop without Python in it."""
    deque(steps, maxlen=0)


def _rebuild(mapping: dict[K, V]) -> None:
    """Give back memory that was for more."""
    rest = mapping.copy()
    mapping.clear()
    mapping.update(rest)


def _distinct(words: Int64s) -> set[int]:
    """The different words; a set for few, Arrow's hash table for many."""
    flat = words.ravel()
    if flat.size > SET_WORDS_MAX:
        flat = numbers_of(int64_array(flat).unique(), np.int64)
    return set(flat.tolist())
