"""Tables of Arrow as text, with lines between columns and numbers on the right."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

__all__ = ["drawn"]

_CELL_CHARACTERS_MAX = 200


def drawn(table: pa.Table, rows: int | None = None) -> str:
    """Return a table as text: its columns, up to `rows` rows (all without it), and how many there are.

    A text with several lines takes as many; one longer than 200 characters is cut, if it has one line.
    """
    shown = table if rows is None else table.slice(0, rows)
    names = [str(name) for name in table.column_names]
    columns = [[_cell(value) for value in column.to_pylist()] for column in shown.columns]
    on_right = [pa.types.is_integer(each) or _is_fractional(each) for each in table.schema.types]
    lines = [_line(names, columns, names, on_right), _rule(names, columns)]
    lines += [_line(names, columns, row, on_right) for row in zip(*columns, strict=True)]
    left = table.num_rows - shown.num_rows
    count = f"({table.num_rows:,} row{'s' * (table.num_rows != 1)}{f', {left:,} not shown' if left else ''})"
    return "\n".join([*(line.rstrip() for line in lines), count])


def _is_fractional(type_: pa.DataType) -> bool:
    return bool(pa.types.is_floating(type_) or pa.types.is_decimal(type_))


def _cell(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    text = str(value)
    return (
        text if len(text) <= _CELL_CHARACTERS_MAX or "\n" in text else text[: _CELL_CHARACTERS_MAX - 1] + "…"
    )


def _widths(names: Sequence[str], columns: Sequence[Sequence[str]]) -> list[int]:
    return [
        max([len(name), *(len(line) for cell in column for line in cell.split("\n"))])
        for name, column in zip(names, columns, strict=True)
    ]


def _rule(names: Sequence[str], columns: Sequence[Sequence[str]]) -> str:
    return "-+-".join("-" * width for width in _widths(names, columns))


def _line(
    names: Sequence[str], columns: Sequence[Sequence[str]], cells: Sequence[str], on_right: Sequence[bool]
) -> str:
    """Return a row, over as many lines as its longest cell has."""
    widths = _widths(names, columns)
    parts = [cell.split("\n") for cell in cells]
    height = max((len(part) for part in parts), default=1)
    lines = []
    for line in range(height):
        texts = [part[line] if line < len(part) else "" for part in parts]
        padded = [
            text.rjust(width) if right else text.ljust(width)
            for text, width, right in zip(texts, widths, on_right, strict=True)
        ]
        lines.append(" | ".join(padded).rstrip())
    return "\n".join(lines)
