"""Which value does a word of a row stand for, and which peers know it, too?

A *symbol* is a value (a string, bytes or another one) that stands in a row as a word, the hash of its bytes
(`packing.py`). The order of words is the order of hashes, so nothing that needs the order of values (`min`,
`max`, `<`) is defined on them; `ColumnType.is_ordered` says so.

Each worker has one `SymbolTable`. Rows travel as words; entries that a peer has not got travel along, once.
The sender finds the new entries when a message leaves, and marks them as known to the peer once the message
has left. The receiver learns them on receipt, whether it has the message's dataflow or not. So an entry that
a worker holds to be known to a peer is known there, or is on its way ahead of whatever is sent next. It makes
no difference which dataflow's rows brought it, or what became of these rows.

    sender      entries = table.delta_for(peer, words)      # with the frames of the message
                table.on_sent(peer)                         # when the transport has taken them
    receiver    table.learn(entries, peer)                  # before the rows are looked at

Two values with one hash raise SymbolCollisionError where they first meet: wrong answers are worse than none.
At ten million values a collision has a chance of one in 370,000.

A table grows by about 200 bytes and the value for each different value, and forgets values that nothing
refers to any more. When it has many entries, or values of many bytes, the worker asks everything on it that
holds words, and the table drops entries that nothing uses (`kernels/rows/marking.py`, and for the holders and
the moment `timely/running/forgetting.py`). A value that comes again gets the same word. Between workers this
needs care: a peer that believes a word to be known here sends rows without its entry.

    forgetting  call `begin`: from now on, until the end, the table notes what it sends and learns
                tell all peers to believe nothing; they `withdraw` what they believe, and reply
                once all have replied, call `forget`: entries that are neither in use nor noted go

Entries that were sent are noted, too: a peer that learns an entry believes it to be known where it came from.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from sys import getsizeof
from typing import Protocol, TypeVar

import numpy as np

from differential.columns.column_types import Int64s
from differential.columns.symbols.cold_texts import ColdTexts
from differential.columns.symbols.entries import SymbolEntries
from differential.columns.symbols.packing import pack, symbol_word, symbol_words, unpack
from differential.errors import SchemaError, SymbolCollisionError, UnknownSymbolError, shown
from differential.kernels.rows.marking import SymbolMarking
from differential.thresholds import SET_WORDS_MAX
from timely.dictionaries import Marking
from timely.errors import PeerError
from timely.limits import SYMBOLS_BYTES_MIN, SYMBOLS_COUNT_MIN
from timely.spilling.budget import SPILL
from timely.wire.arrow import int64_array, numbers_of
from timely.wire.batch import UNPACK_ERRORS

__all__ = ["Forgetful", "SymbolTable"]

K = TypeVar("K")
V = TypeVar("V")

_BYTES_PER_WORD = 8
"""New values may take as much memory as the words that are searched to find the values in use."""

_WORDS_PER_ENTRY = 64
"""Words that are searched in the time in which one entry is made."""

_SHARE = 4
"""Values in dictionaries may take 1 / `_SHARE` of the budget of a process that spills."""

_ENTRY_BYTES = 200
"""About the bytes that an entry takes in the dictionaries, besides its value."""

_RETURNING = 8
"""Of so many values that come, and are in files, one comes back to the dictionaries. A value that comes often
is back soon; values that come once more each do not move all others out."""

_MOVED = 1 << 16
"""Values that are moved to files at once."""


_TOGETHER = 8
"""So many new values are entered together."""


class _Packed(bytes):
    """The msgpack bytes of a value that is neither text nor bytes."""

    __slots__ = ()


class Forgetful(Protocol):
    """A component that keeps something for each of many values."""

    def forget(self, words: Sequence[int], values: Sequence[str | bytes]) -> None:
        """Drop everything about these words, which nothing uses; their values are text, bytes, or packed."""
        ...


class SymbolTable:
    """The symbols that one worker has seen, and which of them each of its peers has.

    Invariants (`check_invariants`): every word is the hash of its value, and none is 0. The table has every
    word that is pinned, and every word that a peer is believed to have. Strings and bytes are kept as they
    are, and looked up without hashing them again. Other values are kept packed, because equal bytes, not
    `==`, decide whether they are the same (1 == True).
    """

    _moving = threading.Lock()
    """Held while values go to files, or come from there."""

    def __init__(
        self,
        word_of: Callable[[bytes], int] = symbol_word,
        full_from: int = SYMBOLS_COUNT_MIN,
        bytes_from: int = SYMBOLS_BYTES_MIN,
    ) -> None:
        """Make an empty table. `word_of` maps msgpack bytes to a word; only tests replace it.

        From `full_from` entries on, or values of `bytes_from` bytes, it is worth looking for entries to
        forget.
        """
        self._word_of = word_of
        self._full_from = full_from
        self._full_at = full_from
        self._bytes_from = bytes_from
        self._bytes_full_at = bytes_from
        self._bytes = 0
        """About the bytes of memory that the values take.

        Threads that enter values at once may lose an addition.
        """
        self._pinned: set[int] = set()
        self._noted: set[int] | None = None
        self._forgotten = 0
        self._passes = 0
        self.beside: dict[type, Forgetful] = {}
        """Components that keep something for each value, by their type; they forget it along with the value.
        """
        self._values: dict[int, str | bytes] = {}
        self._words: dict[str | bytes, int] = {}
        self._has: dict[int, set[int]] = {}
        self._leaving: dict[int, set[int]] = {}
        self._asked = 0
        """How often values that came were in files."""
        self._cold = ColdTexts()
        """Values that a worker which spills has moved to files: they are in no dictionary."""

    def __len__(self) -> int:
        return len(self._values) + len(self._cold)

    def __contains__(self, word: int) -> bool:
        # The second look: another thread may move the value back from files in between.
        return word in self._values or self._is_cold(word) or word in self._values

    def intern(self, values: Sequence[object]) -> Int64s:
        """Return the words of `values` (int64[n]), entering new ones.

        Raises SchemaError for a value that msgpack cannot hold, SymbolCollisionError if two have one word.
        """
        words = [self.intern_one(value) for value in values]
        if SPILL.place is not None:
            self._cool(SPILL.place.memory)
        return np.array(words, dtype=np.int64)

    def intern_strings(self, values: Sequence[str | bytes]) -> Int64s:
        """`intern` for text or bytes only; a value that is in the table costs one dictionary lookup."""
        if len(values) > _MOVED and SPILL.place is not None:  # piece by piece, as each may move some to files
            pieces = [values[first : first + _MOVED] for first in range(0, len(values), _MOVED)]
            return np.concatenate([self.intern_strings(piece) for piece in pieces])
        words = list(map(self._words.get, values))
        if None not in words:
            return np.array(words, dtype=np.int64)
        if self._cold.bytes:
            cold = self._intern_beside_cold(
                value for value, word in zip(values, words, strict=True) if word is None
            )
            words = [cold[value] if word is None else word for value, word in zip(values, words, strict=True)]
            entered = np.array(words, dtype=np.int64)
        else:
            are_all_new = words.count(None) == len(words)
            new = (
                values if are_all_new else [v for v, word in zip(values, words, strict=True) if word is None]
            )
            different = list(dict.fromkeys(new))
            entered = self._intern_new(different)
            if len(different) < len(values):
                entered = np.array(list(map(self._words.__getitem__, values)), dtype=np.int64)
        if SPILL.place is not None:
            self._cool(SPILL.place.memory)
        return entered

    def _intern_new(self, values: list[str | bytes]) -> Int64s:
        """Return the words of different texts or bytes that are not in the table, and enter them."""
        if len(values) < _TOGETHER or self._word_of is not symbol_word or SPILL.place is not None:
            return np.array(list(map(self.intern_one, values)), np.int64)
        words = symbol_words(values)
        numbers = words.tolist()
        # `setdefault` is atomic: a worker in another thread of this process may enter the same values now.
        entered = list(map(self._values.setdefault, numbers, values))
        if entered != values or list(map(type, entered)) != list(map(type, values)):
            _consume(map(self.intern_one, values))  # which raises the error, and enters what is before it
        self._words.update(zip(values, numbers, strict=True))
        self._bytes += sum(map(getsizeof, values))
        return words

    def intern_one(self, value: object) -> int:
        """Return the word of one value, entering it if it is new; raises as `intern` does."""
        if type(value) is str or type(value) is bytes:
            entered = self._words.get(value)
            if entered is not None:
                return entered
            word = self._word_of(pack(value))
            self._enter(word, value)
            return word
        payload = pack(value)
        word = self._word_of(payload)
        if word not in self:
            # A numpy string or a subclass of str packs to plain text, and must be entered as such.
            self._enter_payload(word, payload, unpack(payload))
        elif self._payload(word) != payload:
            raise self._collision(word, value)
        return word

    def lookup(self, words: Int64s) -> list[object]:
        """Return the values of `words` (int64[n]), in order.

        Raises UnknownSymbolError for a word that was never interned or learned.
        """
        values = self._values
        try:
            stored = [values[word] for word in words.tolist()]
        except KeyError:
            stored = self._stored(words)
        return [unpack(value) if type(value) is _Packed else value for value in stored]

    def lookup_one(self, word: int) -> object:
        """Return the value of one word; raises as `lookup` does."""
        value = self._stored_one(word)
        return unpack(value) if type(value) is _Packed else value

    def payloads(self, words: Int64s) -> list[bytes]:
        """Return the msgpack bytes of `words`; raises as `lookup` does."""
        return [self._payload(word) for word in words.tolist()]

    def pin_one(self, value: object) -> int:
        """`intern_one` for a constant of the program: it is never forgotten."""
        word = self.intern_one(value)
        self._pinned.add(word)
        return word

    def pin(self, word: int) -> None:
        """Never forget a word of the table, or 0."""
        if word:
            assert word in self, "only a word of the table can be pinned"
            self._pinned.add(word)

    def delta_for(self, peer: int, words: Int64s) -> SymbolEntries:
        """Return the entries among `words` (any shape) that `peer` has not got.

        The caller sends them in one message with the rows, and then calls `on_sent`. If sending fails, `peer`
        has not got them, and the next call returns them again. Word 0 (null) has no entry.
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
        """Mark the entries of the last `delta_for` for `peer` as known to it: they are on their way."""
        sent = self._leaving.pop(peer, set())
        self._has.setdefault(peer, set()).update(sent)
        if self._noted is not None:
            self._noted |= sent

    def learn(self, entries: SymbolEntries, peer: int) -> None:
        """Enter the entries from `peer`; they will not be sent back to it.

        Raises SymbolCollisionError if an entry's word stands for another value here, and PeerError for a word
        that is not the hash of its bytes, or bytes that `pack` does not make. After a collision the other
        entries are learned all the same: `peer` will not send them again.
        """
        failure: SymbolCollisionError | None = None
        for word, payload in zip(entries.words, entries.payloads, strict=True):
            if word not in self:
                self._enter_payload(word, payload, self._checked(word, payload, peer))
            elif self._payload(word) != payload:
                failure = self._collision(word, self._checked(word, payload, peer))
        self._has.setdefault(peer, set()).update(entries.words)
        if self._noted is not None:
            self._noted.update(entries.words)
        if SPILL.place is not None:
            self._cool(SPILL.place.memory)
        if failure is not None:
            raise failure

    # Forgetting; see `timely/dictionaries.py`.

    @property
    def is_full(self) -> bool:
        """True if entries, or bytes of values, are twice what the last pass found in use, and not few.

        A pass that searched very many words raises these limits further (`forget`).
        """
        cold = self._cold
        if cold.bytes:
            return len(self) >= self._full_at or self._bytes + cold.bytes >= self._bytes_full_at
        return len(self._values) >= self._full_at or self._bytes >= self._bytes_full_at

    def withdraw(self, peer: int) -> None:
        """Believe nothing of `peer`, which may have forgotten everything; send entries again as needed."""
        self._has.pop(peer, None)

    def begin(self) -> None:
        """Start to note the words that are sent and learned."""
        self._noted = set()

    def marking(self) -> SymbolMarking:
        """Return an account with only pinned and noted words in use so far. Costs some 20 ns per entry."""
        if self._cold.bytes:
            hot = np.fromiter(self._values, np.int64, len(self._values))
            marking = SymbolMarking(np.concatenate([hot, self._cold.live_words()]))
        else:
            marking = SymbolMarking(self._values)
        for words in (self._pinned, self._noted or ()):
            marking.add(np.fromiter(words, np.int64, len(words)))
        return marking

    def forget(self, marking: Marking) -> int:
        """Forget entries that are not in use, here and in the lists of what peers have; return their number.

        Requires: nothing was entered since `marking` was made. Costs some 0.3 µs for each entry that goes.
        """
        assert isinstance(marking, SymbolMarking), "the account that this table gave"
        live, gone = marking.in_use_and_not()
        assert live.shape[0] + gone.shape[0] == len(self)
        words, (cold, texts) = gone.tolist(), self._cold.remove(gone)
        if cold:
            words = [word for word in words if word in self._values]
        values = list(map(self._values.pop, words))
        _consume(map(self._words.pop, [value for value in values if type(value) is not _Packed]))
        freed = sum(map(getsizeof, values))
        words += cold
        values += map(_value_of, texts)
        for has in self._has.values():
            has.difference_update(words)
        for other in self.beside.values():
            other.forget(words, values)
        if live.shape[0] < gone.shape[0]:
            self._shrink()
            self._bytes = sum(map(getsizeof, self._values.values()))
        else:
            self._bytes = max(0, self._bytes - freed)
        # The cost of a search should be small beside that of entering the values that came since the last.
        count, size = len(self), self._bytes + self._cold.bytes
        self._full_at = max(self._full_from, 2 * count, count + marking.words_shown // _WORDS_PER_ENTRY)
        self._bytes_full_at = max(self._bytes_from, 2 * size, size + marking.words_shown * _BYTES_PER_WORD)
        self._noted = None
        self._forgotten += len(words)
        self._passes += 1
        return len(words)

    def give_up(self) -> None:
        """End a pass without an answer about what is in use; try again when there is twice as much."""
        self._noted = None
        self._full_at = max(self._full_from, 2 * len(self))
        self._bytes_full_at = max(self._bytes_from, 2 * (self._bytes + self._cold.bytes))

    def report(self) -> dict[str, int]:
        """Return the number of entries, bytes of values, entries forgotten, and passes; and the limits."""
        return {
            "entries": len(self),
            "bytes": self._bytes + self._cold.bytes,
            "cold_entries": len(self._cold),
            "cold_bytes": self._cold.bytes,
            "forgotten": self._forgotten,
            "passes": self._passes,
            "full_at": self._full_at,
            "bytes_full_at": self._bytes_full_at,
        }

    def _shrink(self) -> None:
        """Give back the memory of entries that are gone: dictionaries and sets keep their size otherwise."""
        _rebuild(self._values)
        _rebuild(self._words)
        for peer, has in self._has.items():
            self._has[peer] = has.copy()

    def check_invariants(self) -> None:
        """Assert the invariants of the class; costs a hash for every entry."""
        assert 0 not in self._values
        for word, value in self._values.items():
            assert self._word_of(self._payload(word)) == word
            if type(value) is not _Packed:
                assert self._words[value] == word
        assert len(self._words) == sum(type(value) is not _Packed for value in self._values.values())
        cold = set(self._cold.live_words().tolist())
        assert not cold & self._values.keys()
        for word in cold:
            assert self._word_of(self._payload(word)) == word
        for has in (*self._has.values(), self._pinned):
            assert has <= self._values.keys() | cold

    # Values in files; see `cold_texts.py`.

    def leave_cold(self) -> None:
        """Drop all values that are in files: in a forked process their memory is empty."""
        self._cold.leave()
        self._pinned &= self._values.keys()
        for peer, has in self._has.items():
            self._has[peer] = has & self._values.keys()
        SymbolTable._moving = threading.Lock()  # another thread of the parent may have held it

    def _cool(self, memory: int) -> None:
        """Move the older values to files, if those in dictionaries take more than their share of `memory`.

        Each move leaves a quarter, so that values that are used again and again, which come back to the
        dictionaries each time, are rarely moved.
        """
        SPILL.besides = size = self._bytes + _ENTRY_BYTES * len(self._values)
        if size * _SHARE <= memory:
            return
        with self._moving:
            count = len(self._values) - len(self._values) // 4
            older = list(islice(self._values.items(), count))
            for first in range(0, count, _MOVED):
                piece = older[first : first + _MOVED]
                words = np.fromiter((word for word, _ in piece), np.int64, len(piece))
                self._cold.add(words, [_payload_of(value) for _, value in piece])
            # Threads look values up meanwhile: a value is in the one or the other at any moment.
            rest = dict(islice(self._values.items(), count, None))
            self._values = rest
            self._words = {value: word for word, value in rest.items() if type(value) is not _Packed}
            self._bytes = sum(map(getsizeof, rest.values()))
        SPILL.besides = self._bytes + _ENTRY_BYTES * len(rest)

    def _is_cold(self, word: int) -> bool:
        """Return True if the value of a word is in files, and not only its dead bytes."""
        if not self._cold.bytes:
            return False
        _, (is_live,) = self._cold.read(np.array([word], np.int64))
        return is_live

    def _cold_value(self, word: int) -> str | bytes | None:
        """Return a value that is, or was, in files."""
        if not self._cold.bytes:
            return None
        (text,) = self._cold.texts(np.array([word], np.int64))
        return None if text is None else _value_of(text)

    def _intern_beside_cold(self, values: Iterable[str | bytes]) -> dict[str | bytes, int]:
        """Enter values that are in no dictionary; return their words. Most of those that are in files stay
        there: see `_RETURNING`.
        """
        payloads = {value: pack(value) for value in values}
        new = {value: self._word_of(payload) for value, payload in payloads.items()}
        words = np.fromiter(new.values(), np.int64, len(new))
        with self._moving:
            back: list[int] = []
            texts, live = self._cold.read(words)
            for (value, word), text, is_live in zip(new.items(), texts, live, strict=True):
                if text is not None and text != payloads[value]:
                    raise self._collision(word, value)
                if is_live:
                    self._asked += 1
                    if self._asked % _RETURNING:
                        continue
                    back.append(word)
                self._put(word, value)
            self._cold.bury(np.array(back, np.int64))
        return new

    def _stored(self, words: Int64s) -> list[str | bytes]:
        """Return values as they are kept, of dictionaries and of files."""
        stored = [self._values.get(word) for word in words.tolist()]
        missing = [index for index, value in enumerate(stored) if value is None]
        for index, text in zip(missing, self._cold.texts(words[missing]), strict=True):
            stored[index] = self._stored_one(int(words[index])) if text is None else _value_of(text)
        return [value for value in stored if value is not None]

    def _stored_one(self, word: int) -> str | bytes:
        value = self._values.get(word)
        if value is None:
            value = self._cold_value(word)
        if value is None:  # another thread may have taken it out of its file meanwhile
            value = self._values.get(word)
        if value is None:
            raise self._unknown(word)
        return value

    def _payload(self, word: int) -> bytes:
        return _payload_of(self._stored_one(word))

    def _checked(self, word: int, payload: bytes, peer: int) -> object:
        """Return the value of another worker's entry; `PeerError` unless word and bytes belong together."""
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
            self._enter(word, _Packed(payload))

    def _enter(self, word: int, value: str | bytes) -> None:
        if SPILL.place is None and not self._cold.bytes:
            self._put(word, value)
            return
        with self._moving:
            cold = self._cold_value(word)
            if cold is not None and (type(cold) is not type(value) or cold != value):
                raise self._collision(word, value)
            self._put(word, value)
            self._cold.bury(np.array([word], np.int64))

    def _put(self, word: int, value: str | bytes) -> None:
        # `setdefault` is atomic: a worker in another thread of this process may enter the same value now.
        entered = self._values.setdefault(word, value)
        if type(entered) is not type(value) or entered != value:
            raise self._collision(word, value)
        if type(value) is not _Packed:
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


def _payload_of(value: str | bytes) -> bytes:
    return bytes(value) if type(value) is _Packed else pack(value)


def _value_of(payload: bytes) -> str | bytes:
    """Return a value in the form in which it is kept."""
    value = unpack(payload)
    return value if isinstance(value, str | bytes) else _Packed(payload)


def _consume(steps: Iterable[object]) -> None:
    """Take all steps and drop their results; a loop that runs outside of Python code."""
    deque(steps, maxlen=0)


def _rebuild(mapping: dict[K, V]) -> None:
    """Give back the memory of entries that are gone."""
    rest = mapping.copy()
    mapping.clear()
    mapping.update(rest)


def _distinct(words: Int64s) -> set[int]:
    """Return the different words; by a set for few, by Arrow's hash table for many."""
    flat = words.ravel()
    if flat.size > SET_WORDS_MAX:
        flat = numbers_of(int64_array(flat).unique(), np.int64)
    return set(flat.tolist())
