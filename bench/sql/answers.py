"""When are two answers the same? Rows in any order, each as often; floats may differ in their last digits."""

from __future__ import annotations

import math
from collections import defaultdict
from pathlib import Path
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["Rows", "difference", "rows_of", "rows_of_text"]

Rows: TypeAlias = list[tuple[object, ...]]

_ROUNDING = 1e-9
_SHOWN = 3


def rows_of(answer: pa.Table) -> Rows:
    """The rows with times as milliseconds, dates as days, and decimals as whole numbers or floats."""
    columns = [_plain(column.combine_chunks()).to_pylist() for column in answer.columns]
    return list(zip(*columns, strict=True))


def _plain(column: pa.Array) -> pa.Array:
    if pa.types.is_timestamp(column.type):
        return column.cast(pa.timestamp("ms", column.type.tz), safe=False).cast(pa.int64())
    if pa.types.is_date(column.type):
        return column.cast(pa.date32()).cast(pa.int32())
    if pa.types.is_decimal(column.type):
        return pc.cast(column, pa.int64() if column.type.scale == 0 else pa.float64())
    return column


def rows_of_text(path: Path, like: Rows) -> Rows:
    """The rows of a file with tabs, in the kinds of values that another answer has; `\\N` is null."""
    samples = [
        next((row[place] for row in like if row[place] is not None), None)
        for place in range(len(like[0]) if like else 0)
    ]
    rows: Rows = []
    for line in path.read_text().splitlines():
        cells = line.split("\t")
        rows.append(
            tuple(
                None if cell == "\\N" else type(sample)(cell) if isinstance(sample, int | float) else cell
                for cell, sample in zip(cells, samples, strict=True)
            )
            if samples
            else tuple(cells)
        )
    return rows


def difference(found: Rows, wanted: Rows) -> str | None:
    """What is wrong with an answer, if anything: how many rows, and the first of them."""
    rest: dict[tuple[object, ...], Rows] = defaultdict(list)
    for row in wanted:
        rest[_exact(row)].append(row)
    extra: Rows = []
    for row in found:
        candidates = rest[_exact(row)]
        place = next((at for at, other in enumerate(candidates) if _is_near(row, other)), None)
        if place is None:
            extra.append(row)
        else:
            del candidates[place]
    missing = [row for rows in rest.values() for row in rows]
    if not extra and not missing:
        return None
    return (
        f"{len(extra):,} rows that should not be there, as {extra[:_SHOWN]}; "
        f"{len(missing):,} that are missing, as {missing[:_SHOWN]}"
    )


def _exact(row: tuple[object, ...]) -> tuple[object, ...]:
    return tuple(float if isinstance(value, float) else value for value in row)


def _is_near(row: tuple[object, ...], other: tuple[object, ...]) -> bool:
    return all(
        not isinstance(one, float)
        or not isinstance(two, float)
        or math.isclose(one, two, rel_tol=_ROUNDING, abs_tol=_ROUNDING)
        for one, two in zip(row, other, strict=True)
    )
