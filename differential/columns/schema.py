"""Which columns does a collection have, and where are their words?

A *schema* is an ordered list of named, typed columns. A row is the words of its columns one after another,
so column k starts at the word `offset(k)`. Rows are an int64 array `words[width, n]`, n of them,
column-major and C-contiguous: `words[i]` is word i of every row. (Collections append two more words to each
row, time and diff; a schema does not know about them.)

    Schema.of("src: int, dst: int?, text: string")      src | dst flag | dst | text      width 4

`column_types.py` lists the types. From and to Arrow: `conforming.py` checks and casts, `encoding.py` maps.
From Python, numpy and pandas: `tables.py`. Single rows as tuples: `rows.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, NamedTuple, TypeAlias, cast

import numpy as np
import pyarrow as pa

from differential.columns.column_types import (
    ROW_WORDS_MAX,
    ColumnType,
    Int64s,
    TypeSpec,
    as_column_type,
)
from differential.columns.conforming import Conforming, conform_table, form_of
from differential.columns.encoding import EncodedParts, decode_column, encode_column
from differential.columns.foreign.nested_names import split_outside
from differential.columns.foreign.schemas import foreign_fields
from differential.columns.symbols.table import SymbolTable
from differential.errors import SchemaError, shown
from differential.other_spellings import meant
from timely.user_code.offered import Offered
from timely.wire.arrow import write_numbers

__all__ = ["Column", "Schema", "SchemaSpec"]


_BESIDE_COLUMNS: Final = 2
"""Words of a row beside its columns: time and difference."""


class _ColumnPlace(NamedTuple):
    """The words of a column: from `first` to before `end`. `is_plain`: whole numbers, none of them null."""

    first: int
    end: int
    type: ColumnType
    is_plain: bool


@dataclass(frozen=True, slots=True)
class Column(Offered):
    """A name and a type."""

    _internal = frozenset({"is_ordered", "words"})

    name: str
    type: ColumnType

    @property
    def words(self) -> int:
        """Words of one value: one more for a nullable column, and for a wide decimal."""
        return self.type.words

    @property
    def is_ordered(self) -> bool:
        """True if the order of words is the order of values, so that `min`, `max` and `<` are defined."""
        return self.type.is_ordered

    def __str__(self) -> str:
        return f"{self.name}: {self.type}"


@dataclass(frozen=True)
class Schema(Offered):
    """Ordered, named, typed columns; immutable, hashable, equal when columns, names and types are.

    Laws: decode(encode(table)) == table · equal rows have equal words, different rows different words ·
    `Schema.of(str(schema)) == schema` whenever the names hold no comma or colon
    """

    _internal = frozenset(
        {
            "conform",
            "decode",
            "encode",
            "encode_into",
            "in_parts",
            "offset",
            "picked",
            "reordered",
            "symbol_words",
            "width",
            "without_nulls",
            "words_of",
        }
    )

    columns: tuple[Column, ...]
    _offsets: dict[str, int] = field(init=False, repr=False, compare=False)
    _width: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        offsets: dict[str, int] = {}
        width = 0
        for column in self.columns:
            if not column.name or not isinstance(column.name, str):
                raise SchemaError(f"a column needs a name, not {column.name!r}, in {self}")
            if column.name in offsets:
                raise SchemaError(f"two columns are called {column.name!r} in {self}. Rename one of them.")
            offsets[column.name] = width
            width += column.words
        if width > ROW_WORDS_MAX - _BESIDE_COLUMNS:
            raise SchemaError(
                f"{len(self.columns):,} columns of {width:,} words: a row may have "
                f"{ROW_WORDS_MAX - _BESIDE_COLUMNS:,}, two of them for a column that may be null, one more "
                "for a decimal of more than 18 digits. Select fewer, or keep several values in one column of "
                "type any"
            )
        object.__setattr__(self, "_offsets", offsets)
        object.__setattr__(self, "_width", width)

    @classmethod
    def of(cls, spec: SchemaSpec) -> Schema:
        """Return the schema that `spec` names.

        `spec` is a mapping from names to types, pairs, a string, or a schema, also one of Arrow, Spark,
        Polars or pandas (`foreign/schemas.py` tells what these say about nulls).

        Raises SchemaError for an unknown type or a name that occurs twice.
        """
        if isinstance(spec, Schema):
            return spec
        if isinstance(spec, str):
            return cls(tuple(_parse(spec)))
        fields = foreign_fields(spec)
        if fields is not None:
            return cls(tuple(_column(name, type_, null) for name, type_, null in fields))
        if not isinstance(spec, Iterable):
            raise SchemaError(f"{shown(spec)} is no schema: write, say, 'src: int, name: string?'")
        pairs = list(cast("Iterable[object]", spec.items() if isinstance(spec, Mapping) else spec))
        for pair in pairs:
            if not isinstance(pair, tuple | list) or len(pair) != 2:
                raise SchemaError(
                    f"{pair!r:.80} in a schema is no pair of a name and a type, as ('src', 'int')"
                )
        return cls(tuple(_column(name, type_) for name, type_ in cast("list[tuple[str, TypeSpec]]", pairs)))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns, in order."""
        return tuple(column.name for column in self.columns)

    @property
    def width(self) -> int:
        """Words of a row (without time and diff)."""
        return self._width

    @cached_property
    def symbol_words(self) -> tuple[int, ...]:
        """The words that are symbols: their entries must travel along with the rows."""
        return tuple(
            self._offsets[column.name] + column.words - 1 for column in self.columns if column.type.is_symbol
        )

    def offset(self, name: str) -> int:
        """Return the first word of column `name`; raises SchemaError if there is none."""
        offset = self._offsets.get(name)
        if offset is None:
            raise self._missing(name)
        return offset

    def words_of(self, name: str) -> range:
        """Return the words of column `name`: any flag of a nullable column, then those of the value."""
        offset = self.offset(name)
        return range(offset, offset + self[name].words)

    def reordered(self, first: Sequence[str]) -> Schema:
        """Return the same columns with those called `first` in front, in that order, then the others."""
        front = [self[name] for name in first]
        return Schema((*front, *(column for column in self.columns if column.name not in first)))

    def picked(self, names: Sequence[str]) -> Schema:
        """Return only the columns called `names`, in that order."""
        return Schema(tuple(self[name] for name in names))

    def without_nulls(self, names: Sequence[str]) -> Schema:
        """Return the same columns, with nulls forbidden in those called `names`.

        Raises SchemaError for a name that is no column.
        """
        for name in names:
            self.offset(name)
        return Schema(
            tuple(Column(each.name, each.type.not_null()) if each.name in names else each for each in self)
        )

    def to_arrow(self) -> pa.Schema:
        """Return the Arrow schema of decoded tables."""
        return self._arrow

    @cached_property
    def _arrow(self) -> pa.Schema:
        return pa.schema(
            pa.field(
                column.name,
                column.type.to_arrow(),
                nullable=column.type.nullable,
                metadata=column.type.metadata,
            )
            for column in self.columns
        )

    def conform(self, table: pa.Table | pa.RecordBatch, input_name: str = "input") -> pa.Table:
        """Return `table` with exactly these columns, in this order, cast where that loses nothing.

        Raises SchemaError naming the input, the column, the first offending row and its value.
        """
        return conform_table(table, self._conforming, input_name)

    @cached_property
    def _conforming(self) -> Conforming:
        return form_of(self.to_arrow(), tuple(column.type for column in self.columns))

    def encode(
        self, table: pa.Table | pa.RecordBatch, symbols: SymbolTable | None = None, input_name: str = "input"
    ) -> Int64s:
        """Return the words of `table`: int64[width, n], C-contiguous, writable.

        Columns are matched by name, and cast if that is safe. `symbols` may be left out only if no column is
        a string, bytes or any. Raises SchemaError as `conform`.
        """
        words: Int64s = np.empty((self._width, table.num_rows), dtype=np.int64)
        self.encode_into(words, table, symbols, input_name)
        return words

    def encode_into(
        self,
        words: Int64s,
        table: pa.Table | pa.RecordBatch,
        symbols: SymbolTable | None = None,
        input_name: str = "input",
    ) -> None:
        """Write what `encode` returns into the first words of existing rows, int64[width or more, n]."""
        assert symbols is not None or not self.symbol_words, (
            f"{self} has symbols, but no SymbolTable was given"
        )
        assert words.shape[0] >= self._width and words.shape[1] == table.num_rows
        conformed = self.conform(table, input_name)
        for place, chunks in zip(self._places, conformed.columns, strict=True):
            if place.is_plain and chunks.num_chunks == 1:  # Fast path: most tables are small.
                write_numbers(chunks.chunk(0), words[place.first])
                continue
            start = 0
            for chunk in chunks.chunks:
                stop = start + len(chunk)
                encode_column(chunk, place.type, words[place.first : place.end, start:stop], symbols)
                start = stop

    @cached_property
    def _places(self) -> tuple[_ColumnPlace, ...]:
        """The words of each column."""
        places = []
        for column in self.columns:
            first, type_ = self._offsets[column.name], column.type
            is_plain = type_.kind == "int" and not type_.nullable
            places.append(_ColumnPlace(first, first + column.words, type_, is_plain))
        return tuple(places)

    def in_parts(
        self, table: pa.Table | pa.RecordBatch, symbols: SymbolTable | None = None, input_name: str = "input"
    ) -> EncodedParts:
        """Return an object that writes what `encode_into` writes, some rows at a time.

        Raises SchemaError as `conform`, in this call and not later.
        """
        assert symbols is not None or not self.symbol_words, (
            f"{self} has symbols, but no SymbolTable was given"
        )
        conformed = self.conform(table, input_name)
        offsets = [self._offsets[column.name] for column in self.columns]
        return EncodedParts(conformed.columns, [column.type for column in self.columns], offsets, symbols)

    def decode(
        self, words: Int64s, symbols: SymbolTable | None = None, names: Sequence[str] | None = None
    ) -> pa.Table:
        """Return the table with these words, int64[width or more, n].

        Words beyond the width (time, diff) are ignored. `names`: only these columns, in that order. Strings
        come back as strings, timestamps in UTC, `any`, arrays, structs and maps as
        msgpack bytes in binary (see `rows.py` for values).
        """
        assert words.ndim == 2 and words.shape[0] >= self._width, f"{words.shape} are not rows of {self}"
        assert symbols is not None or not self.symbol_words, (
            f"{self} has symbols, but no SymbolTable was given"
        )
        chosen = self if names is None else self.picked(names)
        arrays = [
            decode_column(words[self._offsets[column.name] :][: column.words], column.type, symbols)
            for column in chosen.columns
        ]
        return pa.Table.from_arrays(arrays, schema=chosen.to_arrow())

    def describe(self) -> str:
        """Return a stable text for plans and fingerprints, which `Schema.of` reads back."""
        return str(self)

    def __str__(self) -> str:
        return ", ".join(str(column) for column in self.columns)

    @cached_property
    def _by_name(self) -> dict[str, Column]:
        return {column.name: column for column in self.columns}

    def __getitem__(self, name: str) -> Column:
        column = self._by_name.get(name)
        if column is None:
            raise self._missing(name)
        return column

    def __contains__(self, name: object) -> bool:
        return name in self._offsets

    def __iter__(self) -> Iterator[Column]:
        return iter(self.columns)

    def __len__(self) -> int:
        return len(self.columns)

    def _missing(self, name: str) -> SchemaError:
        close = meant(name, self.names)
        return SchemaError(
            f"there is no column {shown(name)}; there are: {self or 'none'}{close and '.'}" + close
        )


SchemaSpec: TypeAlias = object
"""A schema as users may write it: `"src: int, dst: int?"`, `{"src": int}`, pairs, a `pyarrow.Schema`, the
dtypes of a DataFrame, a Spark StructType.
"""


def _column(name: str, type_: TypeSpec, nullable: bool = False) -> Column:
    """Return a column whose type is spelled in some way; an error names the column."""
    try:
        return Column(name, as_column_type(type_).or_null(nullable))
    except SchemaError as error:
        raise SchemaError(f"column {name!r}: {error}") from None


def _parse(text: str) -> Iterator[Column]:
    """Yield the columns in `name: type, name: type`."""
    for part in split_outside(text):
        if not part.strip() and not text.strip():
            return
        name, colon, type_name = part.partition(":")
        if not colon:
            raise SchemaError(
                f"{part.strip()!r} in {text!r} is not a column: write name: type, as in src: int."
            )
        yield _column(name.strip(), type_name)
