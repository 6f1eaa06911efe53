"""Answers about inputs: they take deliveries; worker 0 decides for all workers what belongs to which epoch.

A worker checks everything that can be wrong with rows before it keeps them. Worker 0 tells its decisions to
all workers (`worker/orders.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import pyarrow as pa

from ...errors import RequestError
from ...operators.inputs.by_epoch import batches_by_epoch, divided
from ...operators.inputs.deliveries import Deliveries, StagedPart
from ...operators.inputs.handle import InputHandle
from ...operators.inputs.names import UNNAMED, DeliveryName, name_of
from ...running.core import Worker
from ...running.instance import Instance
from ...wire.claims import shown
from ...wire.requests import (
    BY_COLUMN,
    IN_EPOCH,
    IN_OPEN,
    ONE_ATTEMPT,
    WHEN_NAMED,
    Decide,
    Deliver,
    Drop,
    Missing,
    Reply,
    Request,
    Value,
)
from ..orders import Orders, attempt_names, open_epoch

__all__ = ["PARTS_MAX", "Inputs", "inputs_named", "with_open"]

PARTS_MAX: Final = 1 << 20
"""Parts of one attempt. If the order of rows counts, 64 bits hold the part, the worker and the row."""

_PART_BYTES_MIN: Final = 1 << 10
"""The size that a part counts for even if it has no rows."""


def inputs_named(request: Request) -> Iterator[str]:
    """Yield the inputs that a request names, as far as it is well-formed."""
    match request:
        case Deliver():
            yield request.input
        case Decide():
            yield from (name for name in request.close if isinstance(name, str))
            yield from _first_of([*request.after, *request.enter])
        case Missing():
            yield from _first_of([*request.names, *request.queries])
        case Drop():
            yield from _first_of(request.names)


def _first_of(entries: Sequence[Value]) -> Iterator[str]:
    for entry in entries:
        match entry:
            case [str(name), *_]:
                yield name


class Inputs:
    """Answers for the inputs of one worker.

    Args:
        worker: the worker.
        orders: what it decides, if it is worker 0.

    Requires: requests name the version of a dataflow that has the inputs now (`Replacements.inputs_of`).
    """

    def __init__(self, worker: Worker, orders: Orders) -> None:
        self._worker = worker
        self._orders = orders

    def handle(self, request: Request, table: pa.Table | None) -> Reply | None:
        """Return the answer; None if the request is not about inputs."""
        match request:
            case Deliver():
                return self._deliver(request, table)
            case Decide():
                return self._orders.decide(request)
            case Missing():
                return _missing(self._worker.instance(request.dataflow), request, self._orders.incarnation)
            case Drop():
                return _drop(self._worker.instance(request.dataflow), request)
            case _:
                return None

    def _deliver(self, request: Deliver, table: pa.Table | None) -> Reply:
        """Take rows of a client. Check everything that can be wrong with them before any are kept."""
        instance = self._worker.instance(request.dataflow)
        handle = instance.input(request.input)
        counts = request.counts
        if self._worker.index and handle.is_ordered and _is_by_calls(request):
            raise RequestError(
                f"input {request.input!r} keeps the last value by key: worker 0 puts calls in order, and "
                f"takes all rows but those of an append that has a name; this is worker {self._worker.index}"
            )
        if request.rows and (table is not None or counts != IN_OPEN):
            raise RequestError(f"plain rows for {request.input!r} come alone, and count as {IN_OPEN!r}")
        if request.rows:
            is_new, entered = handle.take_rows(
                request.epoch, request.rows, request.diff, request.writer, request.sequence
            )
            reply = Reply({"is_new": is_new, "epoch": entered})
            return with_open(reply, instance, request.input, request.epoch)
        if table is None:
            raise RequestError(f"rows for {request.input!r} came without a table")
        if counts == IN_OPEN:
            return with_open(_insert(handle, request, table), instance, request.input, request.epoch)
        if counts == IN_EPOCH:
            return _append(handle, request, table)
        if counts == BY_COLUMN:
            return _append_by_column(handle, request, table)
        if counts == WHEN_NAMED:
            return _stage(handle, request, table)
        names = ", ".join(map(repr, (IN_OPEN, IN_EPOCH, BY_COLUMN, WHEN_NAMED)))
        raise RequestError(f"rows count as one of {names}, not as {shown(counts)}")


def with_open(reply: Reply, instance: Instance, name: str, epoch: int) -> Reply:
    """Return the answer about rows that have entered an epoch of the input `name`, for a client that took
    `epoch` for the open one. If the input is ahead of others, it has the first epoch that is open at any: the
    client must not take the later one for that of all inputs.
    """
    entered = reply.integer("epoch")
    if entered > epoch and entered > (opened := open_epoch(instance)):
        reply.values["open"] = opened
        reply.values["input"] = name
    return reply


def _is_by_calls(request: Deliver) -> bool:
    """Return True if the order of calls decides the order of these rows among others of their epoch."""
    if request.counts in (IN_EPOCH, BY_COLUMN):
        return request.sequence == UNNAMED
    return request.counts != WHEN_NAMED  # for staged rows, the order of decisions counts


def _insert(handle: InputHandle, request: Deliver, table: pa.Table) -> Reply:
    """Take rows for the open epoch."""
    name = DeliveryName(request.writer, request.sequence)
    if not handle.is_new(name):
        return Reply({"is_new": False, "epoch": handle.epoch})
    batches = handle.encode(table, request.diff, handle.epoch_word(max(request.epoch, handle.epoch)))
    return Reply({"is_new": True, "epoch": handle.insert(request.epoch, batches, name)})


def _append(handle: InputHandle, request: Deliver, table: pa.Table) -> Reply:
    """Take rows for the epoch that the caller names."""
    name = name_of(request.writer, request.sequence)
    word = handle.epoch_word(request.epoch)
    if not handle.is_new_append(request.epoch, name):
        return Reply({"is_new": False})
    batches = handle.encode(table, request.diff, word)
    return Reply({"is_new": handle.append_all(request.epoch, batches, name)})


def _append_by_column(handle: InputHandle, request: Deliver, table: pa.Table) -> Reply:
    """Take rows of several epochs: they enter all of these, or none."""
    table_by_epoch = divided(handle.codec, request.input, table, request.column)
    name = name_of(request.writer, request.sequence)
    words = [handle.epoch_word(epoch) for epoch in table_by_epoch.epochs]
    if name is not None and handle.deliveries.is_taken_in_all(table_by_epoch.epochs, name):
        return Reply({"is_new": False})
    handle.check_open()
    if table_by_epoch.epochs:
        handle.is_new_append(table_by_epoch.epochs[0])
    batches = batches_by_epoch(handle.codec, request.input, table_by_epoch, words, request.diff)
    handle.append_epochs(table_by_epoch.epochs, words, batches, name)
    return Reply({"is_new": True})


def _stage(handle: InputHandle, request: Deliver, table: pa.Table) -> Reply:
    """Stage rows until a decision names them."""
    deliveries, name, attempt = (
        handle.deliveries,
        DeliveryName(request.writer, request.sequence),
        request.attempt,
    )
    if not 0 <= request.part < PARTS_MAX:
        raise RequestError(f"parts are numbered from 0 to {PARTS_MAX - 1}, not {request.part}")
    if attempt == ONE_ATTEMPT:
        is_new = handle.is_new(name)
    elif name.sequence < 0:
        raise RequestError(f"batches are numbered from 0, not {name.sequence}")
    else:
        is_new = name.sequence > deliveries.last_batch(name.writer)
        if is_new:
            handle.check_open()
            deliveries.check_remembered(name.writer)
    if not is_new:
        return Reply({"is_new": False, "epoch": handle.epoch})
    size_bytes = max(table.nbytes, _PART_BYTES_MIN)
    deliveries.check_room(size_bytes)
    word = handle.epoch_word(max(request.epoch, handle.epoch))
    batches = handle.encode(table, request.diff, word)
    handle.stage(name, attempt, request.part, StagedPart(word, batches, size_bytes, table.num_rows))
    return Reply({"is_new": True, "epoch": handle.epoch})


def _missing(instance: Instance, request: Missing, incarnation: int) -> Reply:
    """Return the deliveries that are not here. Attempts that are here stay until their decision."""
    appends: list[tuple[Value, Deliveries, DeliveryName]] = []
    attempts: list[tuple[Value, Deliveries, DeliveryName, str, int]] = []
    for entry in request.names:
        match entry:
            case [str(name), str(writer), int(sequence)]:
                appends.append((entry, instance.input(name).deliveries, DeliveryName(writer, sequence)))
            case [str(name), str(query), int(batch), str(attempt), int(parts)]:
                named = DeliveryName(query, batch)
                attempts.append((entry, instance.input(name).deliveries, named, attempt, parts))
            case _:
                raise RequestError(
                    "what may be missing is an append [input, writer, sequence], or an attempt [input, "
                    f"query, batch, attempt, parts], not {shown(entry)}"
                )
    queries = list(_queries(instance, request.queries))
    missing = [entry for entry, deliveries, name in appends if deliveries.missing(request.epoch, [name])]
    missing += [
        entry
        for entry, deliveries, name, attempt, parts in attempts
        if deliveries.keep(name, attempt) != parts
    ]
    reply: dict[str, Value] = {"missing": missing, "queries": queries}
    return Reply({**reply, "incarnation": incarnation} if incarnation else reply)


def _queries(instance: Instance, queries: Sequence[Value]) -> Iterator[Value]:
    for entry in queries:
        match entry:
            case [str(name), str(query)]:
                handle = instance.input(name)
                deliveries = handle.deliveries
                yield [
                    deliveries.last_batch(query),
                    deliveries.last_rows(query),
                    handle.epoch,
                    deliveries.seconds(),
                ]
            case _:
                raise RequestError(f"a query is [input, query], not {shown(entry)}")


def _drop(instance: Instance, request: Drop) -> Reply:
    """Drop staged deliveries that no decision will name."""
    dropped: list[tuple[Deliveries, DeliveryName, tuple[str, ...]]] = []
    for entry in request.names:
        match entry:
            case [str(name), str(writer), int(sequence), *attempts] if len(attempts) <= 1:
                named = DeliveryName(writer, sequence)
                dropped.append((instance.input(name).deliveries, named, attempt_names(attempts)))
            case _:
                raise RequestError(
                    "what is dropped is [input, writer, sequence, attempt], or, of a batch, [input, query, "
                    f"batch], not {shown(entry)}"
                )
    for deliveries, named, names in dropped:
        deliveries.drop(named, names)
    return Reply()
