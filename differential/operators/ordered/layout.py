"""How is a row laid out so that the order of words is the order that a user asks for?

Columns of a keyed collection: keys, then those of the order, then all others. Between keys and others the
words of each column of the order are replaced:

    flag    of a nullable column: as it is (null first), or turned round (null last)
    begin   of text and bytes only: the first bytes, and the place behind them, see `symbol_order.py`
    word    itself; a symbol says only which of those with one beginning it is

*Turned round* is every bit the other way, which turns the order of signed words round: what is ordered
descendingly is. Symbols are not turned: they have no order of their own.

    laws   decode(encode(rows)) == rows, sorted · rows that differ are different in order
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from differential.columns.column_types import Int64s
from differential.columns.schema import Schema
from differential.columns.symbols.table import SymbolTable
from differential.columns.worker_symbols import SYMBOLS
from differential.kernels.rows.sort import sort_consolidate
from differential.operators.ordered.symbol_order import BEGINNING_WORDS, beginnings, ranks
from differential.operators.reduce import FirstRows, RankKind

__all__ = ["InOrder", "SortDirection"]


@dataclass(frozen=True)
class SortDirection:
    """How a column takes part in an order."""

    descending: bool = False
    nulls_last: bool = False


@dataclass(frozen=True)
class _Word:
    """A word of the layout: which word of the row it is, or (`begins` ≥ 0) which word of its beginning.

    symbol   1, or -1 in a descending order, if it is one that takes part in the order; else 0
    """

    source: int
    turned: bool = False
    begins: int = -1
    symbol: int = 0


@dataclass(frozen=True)
class InOrder:
    """The rows of a group from place `offset` on, up to `limit`, by the columns `order` of `schema`.

    schema   keys, then the columns of the order, then all others
    turns    one for each column of the order
    rank     which number each row gets behind its other words, if any
    """

    schema: Schema
    keys: int
    turns: tuple[SortDirection, ...]
    limit: int
    offset: int = 0
    rank: RankKind | None = None

    @property
    def words(self) -> int:
        """Value words of an answer."""
        return self.schema.width - self.key_words + (self.rank is not None)

    @cached_property
    def key_words(self) -> int:
        """Words of the keys."""
        return sum(column.words for column in self.schema.columns[: self.keys])

    def first_rows(self) -> FirstRows:
        """What the machine is to do with rows in this layout."""
        places = self._places
        ordered = len(places) - (self.schema.width - self._order_end)
        symbols = tuple((at, place.symbol) for at, place in enumerate(places) if place.symbol)
        return FirstRows(len(places), self.limit, self.offset, self.rank, ordered, symbols, _ranks)

    def encode(self, words: Int64s, table: SymbolTable = SYMBOLS) -> Int64s:
        """Rows in this layout: a new array, unless it is the one that they have."""
        if self._is_plain:
            return words
        kw, places = self.key_words, self._places
        out = np.empty((kw + len(places) + 2, words.shape[1]), np.int64)
        out[:kw] = words[:kw]
        for number, place in enumerate(places):
            if place.begins < 0:
                out[kw + number] = words[place.source]
            elif place.begins == 0:
                stop = kw + number + BEGINNING_WORDS
                out[kw + number : stop] = beginnings(words[place.source], table)
        for number, place in enumerate(places):
            if place.turned:
                np.invert(out[kw + number], out[kw + number])
        out[-2:] = words[-2:]
        return out

    def decode(self, words: Int64s) -> Int64s:
        """Rows as they were, perhaps with a rank behind their words, sorted and consolidated."""
        if self._is_plain:
            return words
        kw = self.key_words
        out = np.empty((kw + self.words + 2, words.shape[1]), np.int64)
        out[:kw] = words[:kw]
        for number, place in enumerate(self._places):
            if place.begins < 0:
                out[place.source] = ~words[kw + number] if place.turned else words[kw + number]
        rest = 2 + (self.rank is not None)
        out[-rest:] = words[-rest:]
        return sort_consolidate(out)

    def plain_row(self, words: Sequence[int]) -> list[int]:
        """The words of one row as it was."""
        row = [*words[: self.key_words], *[0] * (self.schema.width - self.key_words)]
        for word, place in zip(words[self.key_words :], self._places, strict=True):
            if place.begins < 0:
                row[place.source] = ~word if place.turned else word
        return row

    def describe(self) -> str:
        """A stable text for fingerprints."""
        turns = [(turn.descending, turn.nulls_last) for turn in self.turns]
        return f"({self.schema}) {self.keys} keys, order {turns}, {self.limit} from {self.offset} {self.rank}"

    @cached_property
    def _order_end(self) -> int:
        columns = self.schema.columns[: self.keys + len(self.turns)]
        return sum(column.words for column in columns)

    @cached_property
    def _places(self) -> tuple[_Word, ...]:
        found: list[_Word] = []
        ordered = self.schema.columns[self.keys : self.keys + len(self.turns)]
        for column, turn in zip(ordered, self.turns, strict=True):
            where = self.schema.words_of(column.name)
            if column.type.nullable:
                found.append(_Word(where[0], turn.nulls_last))
            if column.type.is_symbol:
                found += [_Word(where[-1], turn.descending, begins) for begins in range(BEGINNING_WORDS)]
                found.append(_Word(where[-1], symbol=-1 if turn.descending else 1))
            else:
                found.append(_Word(where[-1], turn.descending))
        found += [_Word(source) for source in range(self._order_end, self.schema.width)]
        return tuple(found)

    @cached_property
    def _is_plain(self) -> bool:
        """Whether the layout is that of the row."""
        kw = self.key_words
        plain = tuple(_Word(source) for source in range(kw, self.schema.width))
        return self._places == plain


def _ranks(symbols: Int64s) -> Int64s:
    return ranks(symbols, SYMBOLS)
