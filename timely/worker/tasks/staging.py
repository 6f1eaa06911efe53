"""What a worker takes from the tasks of a query: `StageAttempt` and its kin of `wire/task_requests.py`.

What is committed is decided by worker 0 (`orders.py`); here rows are checked and kept, asked for, and let go.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from ...errors import RequestError
from ...operators.inputs.deliveries import StagedPart
from ...operators.inputs.handle import InputHandle
from ...operators.inputs.names import DeliveryName
from ...wire.claims import shown
from ...wire.requests import Reply
from ...wire.task_requests import CheckAttempts, DropAttempts, StageAttempt, Value

__all__ = ["PARTS_MAX", "check_attempts", "drop_attempts", "names_of", "stage_attempt"]

PARTS_MAX: Final = 1 << 22
"""Of one attempt or insertion; where the order of rows counts, 64 bits hold this, the worker and the row."""

_PART_BYTES_MIN = 1 << 10
"""What a part takes though it has no rows."""


def stage_attempt(handle: InputHandle, request: StageAttempt, table: pa.Table | None) -> Reply:
    """Keep rows for a commit. Everything that can be wrong with them is found before."""
    if table is None:
        raise RequestError(f"rows for {request.input!r} came without a table")
    if request.batch < 0 or not 0 <= request.part < PARTS_MAX:
        raise RequestError(f"batches and parts are numbered from 0: not {request.batch}, {request.part}")
    deliveries = handle.deliveries
    if request.batch <= deliveries.last_batch(request.query):
        return Reply({"is_new": False})
    handle.check_open()
    deliveries.check_remembered(request.query)
    size_bytes = max(table.nbytes, _PART_BYTES_MIN)
    deliveries.check_room(size_bytes)
    word = handle.epoch_word(handle.epoch)
    part = StagedPart(word, handle.encode(table, request.diff, word), size_bytes, table.num_rows)
    deliveries.stage(DeliveryName(request.query, request.batch), request.attempt, request.part, part)
    return Reply({"is_new": True})


def check_attempts(handle: InputHandle, request: CheckAttempts) -> Reply:
    """Say what is not here; what is waits for its commit."""
    missing: list[Value] = []
    deliveries, batch = handle.deliveries, DeliveryName(request.query, request.batch)
    for entry in request.attempts:
        match entry:
            case [str(name), int(parts)]:
                if deliveries.keep(batch, name) != parts:
                    missing.append(name)
            case _:
                raise RequestError(f"an attempt is [name, parts], not {shown(entry)}")
    last, rows = deliveries.last_batch(request.query), deliveries.last_rows(request.query)
    seconds = deliveries.seconds()
    return Reply(
        {"missing": missing, "last": last, "last_rows": rows, "open": handle.epoch, "seconds": seconds}
    )


def drop_attempts(handle: InputHandle, request: DropAttempts) -> Reply:
    """Let go of what will not count."""
    handle.deliveries.drop(DeliveryName(request.query, request.batch), names_of(request.attempts))
    return Reply()


def names_of(attempts: Sequence[Value]) -> tuple[str, ...]:
    """Names of attempts, each once; `RequestError` for anything else."""
    names = tuple(name for name in attempts if isinstance(name, str))
    if len(names) < len(attempts) or len(set(names)) < len(names):
        raise RequestError(f"attempts are named, each once, not {shown(attempts)}")
    return names
