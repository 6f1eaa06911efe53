"""Appends to epochs that the caller names, for `FlowInput` and `AppendClient`; insertions of some size."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Sized
from dataclasses import replace
from itertools import count
from typing import Final

import pyarrow as pa

from ...errors import InternalError, MisuseError, PeerError, RestartedError
from ...limits import APPEND_BYTES_MAX, POSTED_BYTES_MAX, RESUMES_COUNT_MAX, SPREAD_ROWS_MIN
from ...operators.inputs.names import worker_of
from ...wire.claims import shown
from ...wire.requests import BY_COLUMN, IN_EPOCH, WHEN_NAMED, Decide, Deliver, Reply, Request, Value
from ..installed import Installed, Makes, Members, Requests
from ..reading import epoch_of
from ..tables import chunks

__all__ = ["LastName", "append_request", "insert_in_parts", "is_large", "is_small", "other_kind", "to_one"]

_TAKES = "the number of an epoch, or the name of a column that says the epoch of each row"


class LastName:
    """The name that the last call of a client has given to rows for one input. Another call with this name
    would count as a repetition, and its rows would be lost: it is refused, as far as this client can tell.
    """

    def __init__(self, input: str) -> None:
        self._input = input
        self._last: tuple[tuple[str, int], str, int] | None = None

    def once(self, name: tuple[str, int], call: str, data: object, add: Callable[[], int]) -> int:
        """Add rows by `add`, and return what it returns. Raise `MisuseError` if the name is that of another
        call: `insert` and `remove` have one series, and a repetition has as many rows.
        """
        if self._last is not None and self._last[0] == name:
            self._check(call, _length(data))
        epoch = add()
        self._last = name, call, _length(data)
        return epoch

    def _check(self, call: str, rows: int) -> None:
        assert self._last is not None
        (writer, sequence), before, rows_before = self._last
        if call == before and (rows == rows_before or min(rows, rows_before) < 0):
            return
        other = f"another {call}(…)" if call == before else f"{before}(…)"
        raise MisuseError(
            f"input {self._input!r}: {call}(…) has the name writer={writer!r:.80}, sequence={sequence}, "
            f"which {other} of this program has had: what has the same name counts once, so that these rows "
            "would be lost. Number all calls of a writer for an input on (0, 1, 2, …), or give each kind of "
            f"call a writer of its own, such as writer={f'{writer}/{call}'!r:.80}"
        )


def _length(data: object) -> int:
    """Return how many rows there are; -1: not known."""
    return len(data) if isinstance(data, Sized) else -1


def append_request(dataflow: int, input: str, epoch: object, writer: str, sequence: int) -> Deliver:
    """Return the request to add rows to `epoch`; or, if that names a column of the table, each row to the
    epoch in that column. The column `diff` says how often each row is added. Raise `MisuseError` if `epoch`
    is neither a number nor a text.
    """
    if isinstance(epoch, str):
        return Deliver(dataflow, input, writer, sequence, BY_COLUMN, 0, 0, column=epoch)
    number = epoch_of(epoch, "append(epoch=…)", _TAKES)
    return Deliver(dataflow, input, writer, sequence, IN_EPOCH, number, 0)


def insert_in_parts(
    flow: Installed, name: str, table: pa.Table, diff: int, writer: str, sequence: int
) -> int:
    """Send the rows of an insertion to input `name` in ranges to all workers, and let them enter once all
    have arrived; return their epoch.

    If a durable cluster has started again meanwhile, the parts that it had are gone: send all again, to the
    workers that there are then. Raise `RestartedError` if it starts again each time: the rows themselves may
    be what ends the workers.
    """
    for repeats in count():
        members = flow.members
        try:
            parts = _stage(
                flow, members, Deliver(flow.index, name, writer, sequence, WHEN_NAMED, 0, diff), table
            )
            entering: list[Value] = [[name, writer, sequence, parts]]
            reply = flow.ask_first(
                Decide(flow.index, flow.epoch, enter=entering, incarnation=members.incarnation)
            )
        except RestartedError:
            if flow.members == members or repeats >= RESUMES_COUNT_MAX:
                raise
            continue
        match reply.items("entered"):
            case [[_, int(epoch)]]:
                opened = reply.values.get("open")
                flow.on_answer(Reply({"epoch": epoch, "open": opened, "input": name}))
                return epoch
            case entered:
                raise PeerError(f"a worker says that an insertion has entered {shown(entered)}")
    raise InternalError("nothing ends the tries")


def _stage(flow: Installed, members: Members, request: Deliver, table: pa.Table) -> int:
    """Send the parts of an insertion to these workers; return their number. `request`: what all parts have in
    common. Raise `RestartedError` if a durable cluster starts again meanwhile.
    """
    part = 0
    for part, piece in enumerate(chunks(table, flow.part_bytes * members.count)):
        rows = -(-piece.num_rows // members.count)
        stage = replace(request, epoch=flow.epoch, part=part)
        staging: Requests = [
            (worker, stage, piece.slice(worker * rows, rows)) for worker in range(members.count)
        ]

        def makes(present: Members, staging: Requests = staging) -> Requests:
            if present != members:
                raise RestartedError(
                    f"the cluster has started again while delivery {request.sequence} of {request.writer!r} "
                    "was staged: send all of its rows again"
                )
            return staging

        flow.ask_members(makes, stage)
    return part + 1


def is_small(table: pa.Table, workers: int) -> bool:
    """Return True if an insertion is posted."""
    return not is_large(table, workers) and _fits(table, POSTED_BYTES_MAX)


def is_large(table: pa.Table, workers: int) -> bool:
    """Return True if an insertion is cut into parts."""
    if workers > 1 and table.num_rows >= SPREAD_ROWS_MIN:
        return True
    return not _fits(table, APPEND_BYTES_MAX)


class _RowBytes:
    """The most bytes that a row takes, by schema. Mostly a table has the schema of the last one."""

    def __init__(self) -> None:
        self._last: tuple[pa.Schema, int] = pa.schema([]), 0

    def of(self, schema: pa.Schema) -> int:
        """Return the most bytes of a row, with one for each column that may be null; -1: values decide."""
        last, row_bytes = self._last
        if not schema.equals(last):
            is_known = all(map(pa.types.is_primitive, schema.types))
            row_bytes = sum(2 + type_.bit_width // 8 for type_ in schema.types) if is_known else -1
            self._last = schema, row_bytes
        return row_bytes


_ROW_BYTES: Final = _RowBytes()


def _fits(table: pa.Table, bytes_max: int) -> bool:
    """Return True if a table takes no more bytes than that.

    The size of a slice takes 15 µs. Bounds take about 1 µs: what rows of numbers take at most, and the size
    of the buffers for each piece of a column, as several pieces may share their buffers.
    """
    row_bytes = _ROW_BYTES.of(table.schema)
    if row_bytes >= 0 and row_bytes * table.num_rows <= bytes_max:
        return True
    pieces = sum([column.num_chunks for column in table.columns])
    return table.get_total_buffer_size() * pieces <= bytes_max or bool(table.nbytes <= bytes_max)


def to_one(place: tuple[str, int] | None, request: Request, table: pa.Table) -> Makes:
    """Return what makes a request to the worker that a place decides; None: to worker 0."""
    return lambda members: [(worker_of(*place, members.count) if place else 0, request, table)]


def other_kind(name: str, keys: Sequence[str], call: str) -> MisuseError:
    """Return the error that the input `name`, which keeps the last value by these keys, if there are any, has
    no `call`.
    """
    if not keys:
        return MisuseError(
            f"input {name!r} holds rows: write insert(rows) and remove(rows). {call}(…) is for an input "
            f"that keeps the last value by key, declared by dd.input(flow, {name!r}, …, key='id', "
            f"mode='upsert')"
        )
    return MisuseError(
        f"input {name!r} keeps the last value by {', '.join(keys)}: write upsert(rows), which "
        f"replaces the values of their keys, or delete(keys), in place of {call}(rows)"
    )
