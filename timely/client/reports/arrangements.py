"""The report of workers on the arrangements that several operators share, as a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import pyarrow as pa

from ...wire.requests import Reply, Value

__all__ = ["arrangements_of", "dataflow_in"]

_SCHEMA: Final = pa.schema(
    [
        ("worker", pa.int64()),
        ("arrangement", pa.string()),
        ("loop", pa.string()),
        ("rows", pa.int64()),
        ("bytes", pa.int64()),
        ("reader", pa.string()),
        ("hold", pa.list_(pa.list_(pa.int64()))),
        ("lag", pa.int64()),
        ("holds_back", pa.bool_()),
    ]
)


def arrangements_of(replies: Sequence[Reply], dataflow: int) -> pa.Table:
    """Return the table of `Flow.arrangements` from the answers of all workers to `Stats`."""
    rows = [row for worker, reply in enumerate(replies) for row in _rows(worker, reply, dataflow)]
    return pa.Table.from_pylist(rows, _SCHEMA)


def dataflow_in(reply: Reply, dataflow: int) -> Value:
    """Return what an answer to `Stats` reports of a dataflow; None if nothing."""
    match reply.values.get("dataflows"):
        case {**dataflows}:
            return dataflows.get(dataflow)
        case _:
            return None


def _rows(worker: int, reply: Reply, dataflow: int) -> Iterator[dict[str, Value]]:
    match dataflow_in(reply, dataflow):
        case {"stages": [*stages]}:
            pass
        case _:
            return
    for stage in stages:
        match stage:
            case {"arrangements": [*arrangements], "loop": str(loop)}:
                for arrangement in arrangements:
                    yield from _readers(worker, loop, arrangement)


def _readers(worker: int, loop: str, arrangement: Value) -> Iterator[dict[str, Value]]:
    match arrangement:
        case {"name": str(name), "rows": int(rows), "bytes": int(size), "readers": [*readers]}:
            for reader in readers:
                yield {
                    "worker": worker,
                    "arrangement": name,
                    "loop": loop,
                    "rows": rows,
                    "bytes": size,
                    "reader": reader["name"],
                    "hold": reader["hold"],
                    "lag": reader["lag"],
                    "holds_back": bool(reader["holds_back"]),
                }
