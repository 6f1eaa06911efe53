"""The report of workers on the rows that went round in the loops of a dataflow, as a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import pyarrow as pa

from progress.errors import MisuseError

from ...wire.requests import Reply, Value
from .arrangements import dataflow_in

__all__ = ["iterations_of"]

_SCHEMA: Final = pa.schema(
    [
        ("loop", pa.string()),
        ("epoch", pa.int64()),
        ("around", pa.list_(pa.int64())),
        ("iteration", pa.int64()),
        ("rows", pa.int64()),
    ]
)

_Time = tuple[str, int, tuple[int, ...], int]


def iterations_of(replies: Sequence[Reply], dataflow: int, loop: str | None) -> pa.Table:
    """Return the table of `Flow.iterations` from the answers of all workers to `Stats`."""
    loops: set[str] = set()
    rows: dict[_Time, int] = {}
    for reply in replies:
        for name, rounds in _loops(dataflow_in(reply, dataflow)):
            loops.add(name)
            for each in rounds:
                match each:
                    case [[int(epoch), *around, int(iteration)], int(count)]:
                        counters = tuple(one for one in around if isinstance(one, int))
                        time = (name, epoch, counters, iteration)
                        rows[time] = rows.get(time, 0) + count
    if loop is not None and loop not in loops:
        names_of_loops = ", ".join(map(repr, sorted(loops))) or "none"
        raise MisuseError(f"the dataflow has no loop {loop!r}; its loops: {names_of_loops}")
    names = _SCHEMA.names
    chosen = [(*time, count) for time, count in sorted(rows.items()) if loop in (None, time[0])]
    return pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in chosen], _SCHEMA)


def _loops(dataflow: Value) -> Iterator[tuple[str, list[Value]]]:
    match dataflow:
        case {"loops": [*loops]}:
            for each in loops:
                match each:
                    case {"name": str(name), "rounds": [*rounds]}:
                        yield name, rounds
