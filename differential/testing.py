"""Write changes as tables, and read them, for tests.

    updates('''
        src | dst | epoch | diff
        1   | 2   | 0     | +1
        1   | 2   | 3     | -1
    ''')

The columns `epoch` (an integer) or `time` (a tuple such as `(0, 2)`) and `diff` are special, and may be
left out: time 0, diff +1. All others are data. Without a schema a cell is an int, a float, true, false or
null if it reads like one, and text otherwise; text in quotes is always text. With a schema cells are read
as the declared types.

`assert_updates` compares the output of a dataflow with changes: as multisets, equal changes summed, in any
order. Its message shows missing and unexpected changes, as tables again.

    laws   updates(format_updates(u)) == u
           accumulated_at(u, t) is the sum of the diffs at times ≤ t, without zeros
"""

from __future__ import annotations

import ast
import datetime as dt
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Final, NamedTuple, TypeAlias, cast

import numpy as np
import pyarrow as pa

from differential.columns.column_types import ColumnType, Int64s
from differential.columns.rows import Row, decode_rows, encode_rows
from differential.columns.schema import Schema, SchemaSpec
from differential.columns.symbols.table import SymbolTable
from differential.errors import SchemaError

__all__ = [
    "Time",
    "Update",
    "Updates",
    "UpdatesLike",
    "accumulated_at",
    "as_updates",
    "assert_updates",
    "format_updates",
    "product_less_equal",
    "updates",
    "updates_from_words",
    "updates_to_words",
]

Time: TypeAlias = tuple[int, ...]

_SPECIAL: Final = ("epoch", "time", "diff")
_BARE: Final[dict[str, object]] = {"true": True, "false": False, "null": None, "none": None}


class Update(NamedTuple):
    """One change: a row, its time, and how many more (or fewer) of it there are."""

    row: Row
    time: Time
    diff: int


@dataclass(frozen=True)
class Updates:
    """Changes to a collection: names of its columns, and the changes as they came, in order."""

    columns: tuple[str, ...]
    changes: tuple[Update, ...]

    def consolidated(self) -> Counter[tuple[Row, Time]]:
        """Return the changes summed by row and time, without zeros."""
        sums: Counter[tuple[Row, Time]] = Counter()
        for row, time, diff in self.changes:
            sums[row, time] += diff
        return Counter({key: diff for key, diff in sums.items() if diff})

    def times(self) -> list[Time]:
        """Return the different times, in lexicographic order."""
        return sorted({time for _, time, _ in self.changes})

    def by_epoch(self) -> dict[int, list[tuple[Row, int]]]:
        """Return (row, diff) of each epoch, epochs in order: what to insert and remove before sealing it."""
        epochs: dict[int, list[tuple[Row, int]]] = {}
        for row, time, diff in sorted(self.changes, key=lambda change: change.time):
            epochs.setdefault(time[0], []).append((row, diff))
        return epochs

    def picked(self, columns: Sequence[str]) -> Updates:
        """Return the same changes with their columns in another order."""
        where = [self.columns.index(name) for name in columns]
        changes = (Update(tuple(row[i] for i in where), time, diff) for row, time, diff in self.changes)
        return Updates(tuple(columns), tuple(changes))

    def __str__(self) -> str:
        return format_updates(self)


UpdatesLike: TypeAlias = Updates | str | pa.Table | Iterable[tuple[Row, int | Time, int]]
"""Changes in any form: a table as text, an Arrow table with epoch and diff, or (row, time, diff) triples."""


def updates(table: str, schema: SchemaSpec | None = None) -> Updates:
    """Return the changes in a table (see the module's docstring).

    Raises SchemaError for a line with too few or too many cells, or a cell that its declared type does not
    take.
    """
    header, *lines = list(_cells(table)) or [[]]
    names = tuple(name for name in header if name not in _SPECIAL)
    declared = None if schema is None else Schema.of(schema)
    if declared is not None and set(declared.names) != set(names):
        raise SchemaError(f"the table has the columns {', '.join(names)}, the schema {declared}")
    changes = []
    for cells in lines:
        if len(cells) != len(header):
            raise SchemaError(
                f"{' | '.join(cells)!r} has {len(cells)} cells, the header {len(header)}: {header}"
            )
        by_name = dict(zip(header, cells, strict=True))
        row = tuple(
            _value(by_name[name], None if declared is None else declared[name].type) for name in names
        )
        changes.append(Update(row, _time(by_name), int(by_name.get("diff", "+1"))))
    result = Updates(names, tuple(changes))
    return result if declared is None else result.picked(declared.names)


def _cells(table: str) -> Iterator[list[str]]:
    """Yield the cells of each line; skip empty lines, rules (---|---) and what follows ` # `."""
    for line in table.splitlines():
        cells = _split(line)
        if any(cells) and not set(line) <= set("-|+= "):
            yield cells


def _split(line: str) -> list[str]:
    """Return the cells of a line. Within quotes, which begin a cell, bars and hashes are plain characters."""
    cells = [""]
    quote = ""
    characters = iter(line)
    for character in characters:
        if quote:
            cells[-1] += character
            if character == "\\":
                cells[-1] += next(characters, "")
            elif character == quote:
                quote = ""
        elif character == "|":
            cells.append("")
        elif character == "#" and (cells[-1].endswith(" ") or cells == [""]):
            break
        else:
            if character in "'\"" and cells[-1].strip() in ("", "b"):
                quote = character
            cells[-1] += character
    return [cell.strip() for cell in cells]


def _time(by_name: dict[str, str]) -> Time:
    text = by_name.get("time", by_name.get("epoch", "0"))
    parts = text.strip("()").split(",")
    return tuple(int(part) for part in parts if part.strip())


def _value(cell: str, type_: ColumnType | None) -> object:
    """Return a cell as a value: guessed, or of the declared type."""
    if cell[:1] in ("'", '"') or cell[:2] in ("b'", 'b"'):
        return ast.literal_eval(cell)
    if type_ is not None:
        return _declared_value(cell, type_)
    if cell.lower() in _BARE:
        return _BARE[cell.lower()]
    for read in (int, float):
        try:
            return read(cell)
        except ValueError:
            pass
    return cell


def _declared_value(cell: str, type_: ColumnType) -> object:
    if type_.nullable and cell.lower() == "null":
        return None
    read: dict[str, Callable[[str], object]] = {
        "int": int,
        "float": float,
        "bool": lambda text: {"true": True, "false": False}[text.lower()],
        "timestamp": lambda text: dt.datetime.fromisoformat(text).replace(tzinfo=dt.UTC),
        "date": dt.date.fromisoformat,
        "decimal": Decimal,
        "string": str,
        "bytes": str.encode,
        **dict.fromkeys(("any", "array", "struct", "map"), ast.literal_eval),
    }
    try:
        return read[type_.kind](cell)
    except (ValueError, KeyError, SyntaxError, InvalidOperation):
        raise SchemaError(f"the cell {cell!r} is not of type {type_}") from None


def as_updates(changes: UpdatesLike, columns: Sequence[str] = ()) -> Updates:
    """Return `changes` in one form; `columns` names the columns of triples (else c0, c1, …)."""
    if isinstance(changes, Updates):
        return changes
    if isinstance(changes, str):
        return updates(changes)
    if isinstance(changes, pa.Table):
        return _from_arrow(changes)
    triples = [
        Update(tuple(row), (time,) if isinstance(time, int) else tuple(time), diff)
        for row, time, diff in cast(Iterable[tuple[Row, int | Time, int]], changes)
    ]
    width = len(triples[0].row) if triples else len(columns)
    return Updates(tuple(columns) or tuple(f"c{i}" for i in range(width)), tuple(triples))


def _from_arrow(table: pa.Table) -> Updates:
    names = tuple(name for name in table.column_names if name not in _SPECIAL)
    changes = []
    for record in table.to_pylist():
        time = record["time"] if "time" in record else (record.get("epoch", 0),)
        changes.append(Update(tuple(record[name] for name in names), tuple(time), record.get("diff", 1)))
    return Updates(names, tuple(changes))


def assert_updates(actual: UpdatesLike, expected: UpdatesLike, schema: SchemaSpec | None = None) -> None:
    """Fail unless both are the same changes, summed by row and time, in any order.

    Columns are matched by name. With `schema`, an expected table is read with its types.
    """
    right = updates(expected, schema) if isinstance(expected, str) else as_updates(expected)
    left = as_updates(actual, right.columns)
    if set(left.columns) != set(right.columns):
        if left.changes or right.changes:
            raise AssertionError(f"columns are {', '.join(left.columns)}, not {', '.join(right.columns)}")
    else:
        left = left.picked(right.columns)
    have, want = left.consolidated(), right.consolidated()
    if have == want:
        return
    # A change with another diff than expected is shown on both sides.
    missing = {key: diff for key, diff in want.items() if have.get(key) != diff}
    surplus = {key: diff for key, diff in have.items() if want.get(key) != diff}
    raise AssertionError(
        "updates differ\n"
        f"missing:\n{_listed(right.columns, missing)}\n"
        f"unexpected:\n{_listed(right.columns, surplus)}\n"
        f"all that came:\n{_listed(right.columns, have)}"
    )


def _listed(columns: tuple[str, ...], diffs: dict[tuple[Row, Time], int] | Counter[tuple[Row, Time]]) -> str:
    """Return summed changes as an indented table, or a word for none."""
    if not diffs:
        return "    nothing"
    changes = [Update(row, time, diff) for (row, time), diff in diffs.items()]
    text = format_updates(
        Updates(columns, tuple(sorted(changes, key=lambda change: (change.time, str(change.row)))))
    )
    return "\n".join("    " + line for line in text.splitlines())


def format_updates(changes: UpdatesLike) -> str:
    """Return the changes as a table that `updates` reads back."""
    listed = as_updates(changes)
    is_root = all(len(time) == 1 for _, time, _ in listed.changes)
    lines = [[*listed.columns, "epoch" if is_root else "time", "diff"]]
    for row, time, diff in listed.changes:
        when = str(time[0]) if is_root else f"({', '.join(map(str, time))})"
        lines.append([*map(_cell, row), when, f"{diff:+d}"])
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def _cell(value: object) -> str:
    """Return a value as a cell; text in quotes only if it would be read as something else."""
    if value is None or isinstance(value, bool):
        return str(value).lower() if value is not None else "null"
    if isinstance(value, str):
        is_plain = value.strip() == value and value != "" and not set(value) & set("|#'\"\\\n")
        return (
            value
            if is_plain and isinstance(_value(value, None), str) and value.isprintable()
            else repr(value)
        )
    return str(value)


def product_less_equal(left: Time, right: Time) -> bool:
    """Return True if every coordinate is less or equal: the product order."""
    return all(a <= b for a, b in zip(left, right, strict=True))


def accumulated_at(
    changes: UpdatesLike, time: int | Time, less_equal: Callable[[Time, Time], bool] = product_less_equal
) -> Counter[Row]:
    """Return the collection at `time`: each row with the sum of its diffs at times ≤ `time`, no zeros."""
    until = (time,) if isinstance(time, int) else time
    sums: Counter[Row] = Counter()
    for row, at, diff in as_updates(changes).changes:
        if less_equal(at, until):
            sums[row] += diff
    return Counter({row: count for row, count in sums.items() if count})


def updates_to_words(
    changes: UpdatesLike,
    schema: SchemaSpec,
    symbols: SymbolTable | None = None,
    pack: Callable[[Time], int] = lambda time: time[0],
) -> Int64s:
    """Return the changes as rows of words, int64[width + 2, n], in order; `pack` gives a time's word."""
    schema = Schema.of(schema)
    listed = as_updates(changes, schema.names)
    words = np.empty((schema.width + 2, len(listed.changes)), dtype=np.int64)
    words[:-2] = encode_rows(schema, [change.row for change in listed.changes], symbols)
    words[-2] = [pack(change.time) for change in listed.changes]
    words[-1] = [change.diff for change in listed.changes]
    return words


def updates_from_words(
    words: Int64s,
    schema: SchemaSpec,
    symbols: SymbolTable | None = None,
    unpack: Callable[[int], Time] = lambda word: (word,),
) -> Updates:
    """The inverse of `updates_to_words`."""
    schema = Schema.of(schema)
    rows = decode_rows(schema, words, symbols)
    changes = (
        Update(row, unpack(time), diff)
        for row, time, diff in zip(rows, words[-2].tolist(), words[-1].tolist(), strict=True)
    )
    return Updates(schema.names, tuple(changes))
