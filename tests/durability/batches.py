"""Batches of queries, as tasks and a driver of Spark write them, by the requests that these send."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pyarrow as pa

import timely
from timely.errors import RestartedError
from timely.wire.claims import shown
from timely.wire.requests import WHEN_NAMED, Decide, Deliver, Missing, Reply, Value

from .judging import Call, WrongAnswer
from .kinds import Row

__all__ = ["columns_of", "table_of", "write_batch"]


def columns_of(flow: timely.Flow, name: str, rows: Sequence[Row]) -> dict[str, object]:
    """Return the columns of rows for an input."""
    schema = flow.input(name).form.schema
    assert schema is not None, f"input {name} takes records"
    return {
        column: pa.array([row[at] for row in rows], schema.field(column).type)
        for at, column in enumerate(schema.names)
    }


def table_of(flow: timely.Flow, name: str, rows: Sequence[Row]) -> pa.Table:
    """Return rows as a table for an input."""
    return pa.table(columns_of(flow, name, rows))


def write_batch(
    chance: random.Random, flow: timely.Flow, call: Call, batch: int, attempt: str
) -> tuple[int, int]:
    """Write a batch in two tasks, some of them twice; return the epoch that it has sealed, and the one
    that it has entered, or that is open if it has entered before.
    """
    name = call.input
    asked = flow.ask_first(Missing(flow.index, -1, [], [[name, "query"]]))
    match asked.items("queries"):
        case [[int(last), int(), int(), int(seconds)]]:
            pass
        case state:
            raise WrongAnswer(f"a query is {shown(state)}")
    names: list[Value] = []
    if last < batch:
        for part, share in enumerate([call.rows[::2], call.rows[1::2]]):
            table = table_of(flow, name, [row for row, _ in share])
            for task in [attempt, "lost"] if chance.random() < 0.3 else [attempt]:
                one = f"{task} {part}"
                request = Deliver(
                    flow.index, name, "query", batch, WHEN_NAMED, flow.epoch, 1, part=0, attempt=one
                )
                flow._workers.ask([(chance.randrange(flow.workers), request, table)])
            names.append(f"{attempt} {part}")
        checks: list[Value] = [[name, "query", batch, one, 1] for one in names]
        replies = flow.ask(
            [(worker, Missing(flow.index, -1, checks), None) for worker in range(flow.workers)]
        )
        for each in names:
            if all(_is_missing(reply, each) for reply in replies):
                if any(reply.incarnation != asked.incarnation for reply in replies):
                    raise RestartedError("what was staged is gone")
                raise WrongAnswer(f"{each} was staged, and no worker has it")
    entry: Value = [name, "query", batch, names, "stream", False, seconds]
    reply = flow.ask_first(Decide(flow.index, flow.epoch, True, enter=[entry], incarnation=asked.incarnation))
    flow.note_epoch(reply.integer("open"))
    match reply.items("entered"):
        case [[bool(is_new), int(epoch)]]:
            return reply.integer("sealed"), epoch if is_new else reply.integer("open")
        case entered:
            raise WrongAnswer(f"a batch has entered {shown(entered)}")


def _is_missing(reply: Reply, attempt: Value) -> bool:
    return any(isinstance(entry, list) and entry[3] == attempt for entry in reply.items("missing"))
