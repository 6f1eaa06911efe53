"""A layout of rows in which the order of words is the order that a user asks for.

Columns of a keyed collection: keys, then those of the order, then all others. Between keys and others the
words of each column of the order are replaced:

    flag    of a nullable column: as it is (null first), or inverted (null last)
    begin   of text and bytes only: the first bytes, and the position behind them, see `symbol_order.py`
    word    itself; a symbol only tells apart values with one beginning

*Inverted* means with every bit flipped, which reverses the order of signed words: words of a descending
column are. Symbols are not inverted: they have no order of their own.

    laws   decode(encode(rows)) == rows, sorted · rows that differ have different layouts
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
from differential.operators.reducing.window_parts import WindowFunctions

__all__ = ["InOrder", "LayoutWord", "SortDirection", "rank_of"]


@dataclass(frozen=True)
class SortDirection:
    """How a column takes part in an order."""

    descending: bool = False
    nulls_last: bool = False


@dataclass(frozen=True)
class LayoutWord:
    """A word of the layout: the word `source` of the row, or (`begins` ≥ 0) a word of its beginning.

    inverted   every bit is flipped: for a descending order, or in the flag of a column with nulls last
    symbol     1, or -1 in a descending order, if the word is a symbol that takes part in the order; else 0
    """

    source: int
    inverted: bool = False
    begins: int = -1
    symbol: int = 0


@dataclass(frozen=True)
class InOrder:
    """The rows of a group from number `offset` on, up to `limit` rows, in the order of some columns.

    schema       keys, then the columns of the order, then all others
    directions   one for each column of the order
    rank         the kind of number that each row gets behind its other words, if any
    ties         and all rows behind these that are equal to the last one in the order
    """

    schema: Schema
    keys: int
    directions: tuple[SortDirection, ...]
    limit: int
    offset: int = 0
    rank: RankKind | None = None
    ties: bool = False

    @property
    def words(self) -> int:
        """The number of value words of an answer."""
        return self.schema.width - self.key_words + self.added

    @property
    def added(self) -> int:
        """The number of words that an answer has behind those of its row."""
        return int(self.rank is not None)

    @cached_property
    def key_words(self) -> int:
        """The number of words of the keys."""
        return sum(column.words for column in self.schema.columns[: self.keys])

    def aggregate(self) -> FirstRows | WindowFunctions:
        """Return what the machine does with rows in this layout."""
        ordered, symbols = self.ordered, self.order_symbols
        width, span = len(self.layout), (self.limit, self.offset)
        return FirstRows(width, *span, self.rank, ordered, symbols, rank_of, self.ties)

    @property
    def ordered(self) -> int:
        """The number of words of the layout that make the order."""
        return len(self.layout) - (self.schema.width - self._order_end)

    @property
    def order_symbols(self) -> tuple[tuple[int, int], ...]:
        """The words that are symbols of the order: see `FirstRows`."""
        return tuple((at, word.symbol) for at, word in enumerate(self.layout) if word.symbol)

    def encode(self, words: Int64s, table: SymbolTable = SYMBOLS) -> Int64s:
        """Return rows in this layout: a new array, unless they are in this layout already."""
        if self._is_plain:
            return words
        kw, layout = self.key_words, self.layout
        out = np.empty((kw + len(layout) + 2, words.shape[1]), np.int64)
        out[:kw] = words[:kw]
        for number, word in enumerate(layout):
            if word.begins < 0:
                out[kw + number] = words[word.source]
            elif word.begins == 0:
                stop = kw + number + BEGINNING_WORDS
                out[kw + number : stop] = beginnings(words[word.source], table)
        for number, word in enumerate(layout):
            if word.inverted:
                np.invert(out[kw + number], out[kw + number])
        out[-2:] = words[-2:]
        return out

    def decode(self, words: Int64s) -> Int64s:
        """Return rows as they were, perhaps with words that were added, sorted and consolidated."""
        if self._is_plain:
            return words
        kw = self.key_words
        out = np.empty((kw + self.words + 2, words.shape[1]), np.int64)
        out[:kw] = words[:kw]
        for number, word in enumerate(self.layout):
            if word.begins < 0:
                out[word.source] = ~words[kw + number] if word.inverted else words[kw + number]
        rest = 2 + self.added
        out[-rest:] = words[-rest:]
        return sort_consolidate(out)

    def plain_row(self, words: Sequence[int]) -> list[int]:
        """Return the words of one row as it was."""
        row = [*words[: self.key_words], *[0] * (self.schema.width - self.key_words)]
        for value, word in zip(words[self.key_words :], self.layout, strict=True):
            if word.begins < 0:
                row[word.source] = ~value if word.inverted else value
        return row

    def describe(self) -> str:
        """Return a stable text for fingerprints."""
        directions = [(each.descending, each.nulls_last) for each in self.directions]
        order = f"{self.keys} keys, order {directions}"
        ties = " ties" if self.ties else ""
        return f"({self.schema}) {order}, {self.limit} from {self.offset} {self.rank}{ties}"

    @cached_property
    def _order_end(self) -> int:
        columns = self.schema.columns[: self.keys + len(self.directions)]
        return sum(column.words for column in columns)

    @property
    def is_turned(self) -> bool:
        """True if the rows of a group are kept from the last one to the first: all words of a row behind its
        key are turned round, those of symbols that are no part of the order, too.
        """
        return False

    @cached_property
    def layout(self) -> tuple[LayoutWord, ...]:
        """The words of a row behind its key, in this layout."""
        layout: list[LayoutWord] = []
        ordered, turned = self.schema.columns[self.keys : self.keys + len(self.directions)], self.is_turned
        for column, direction in zip(ordered, self.directions, strict=True):
            where = self.schema.words_of(column.name)
            descending = direction.descending != turned
            if column.type.nullable:
                layout.append(LayoutWord(where[0], direction.nulls_last != turned))
            if column.type.is_symbol:
                layout += [LayoutWord(where[-1], descending, begins) for begins in range(BEGINNING_WORDS)]
                layout.append(LayoutWord(where[-1], symbol=-1 if descending else 1))
            else:
                for word in where[-column.type.value_words :]:
                    layout.append(LayoutWord(word, descending))
        layout += [LayoutWord(source, turned) for source in range(self._order_end, self.schema.width)]
        return tuple(layout)

    @cached_property
    def _is_plain(self) -> bool:
        """True if the layout is that of the row."""
        kw = self.key_words
        plain = tuple(LayoutWord(source) for source in range(kw, self.schema.width))
        return self.layout == plain


def rank_of(symbols: Int64s) -> Int64s:
    """Return the ranks of symbols, ascending, in the order of the values that they stand for."""
    return ranks(symbols, SYMBOLS)
