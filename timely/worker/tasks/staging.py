"""What a worker takes from the tasks of a query: `StageAttempt` and its kin of `wire/task_requests.py`.

What is committed is decided by worker 0 (`orders.py`); here rows are checked and kept, asked for, and let go.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from ...errors import RequestError
from ...operators.inputs.attempts import Part
from ...operators.inputs.handle import APPENDS_MAX, InputHandle
from ...wire.claims import shown
from ...wire.requests import Reply
from ...wire.task_requests import CheckAttempts, DropAttempts, StageAttempt, Value

__all__ = ["check_attempts", "drop_attempts", "names_of", "stage_attempt"]


def stage_attempt(handle: InputHandle, request: StageAttempt, table: pa.Table | None) -> Reply:
    """Keep rows for a commit. Everything that can be wrong with them is found before."""
    if table is None:
        raise RequestError(f"rows for {request.input!r} came without a table")
    if request.batch < 0 or not 0 <= request.part < APPENDS_MAX:
        raise RequestError(f"batches and parts are numbered from 0: not {request.batch}, {request.part}")
    if request.batch <= handle.attempts.last(request.query):
        return Reply({"is_new": False})
    handle.check_open()
    handle.check_room(table.nbytes)
    word = handle.epoch_word(handle.epoch)
    part = Part(word, handle.encode(table, request.diff, word), table.nbytes)
    is_new = handle.attempts.stage(request.query, request.batch, request.attempt, request.part, part)
    return Reply({"is_new": is_new})


def check_attempts(handle: InputHandle, request: CheckAttempts) -> Reply:
    """Say what is not here."""
    missing: list[Value] = []
    for entry in request.attempts:
        match entry:
            case [str(name), int(parts)]:
                if handle.attempts.parts(request.query, request.batch, name) != parts:
                    missing.append(name)
            case _:
                raise RequestError(f"an attempt is [name, parts], not {shown(entry)}")
    return Reply({"missing": missing, "last": handle.attempts.last(request.query)})


def drop_attempts(handle: InputHandle, request: DropAttempts) -> Reply:
    """Let go of what will not count."""
    handle.attempts.drop(request.query, request.batch, names_of(request.attempts))
    return Reply()


def names_of(attempts: Sequence[Value]) -> tuple[str, ...]:
    """Names of attempts, each once; `RequestError` for anything else."""
    names = tuple(name for name in attempts if isinstance(name, str))
    if len(names) < len(attempts) or len(set(names)) < len(names):
        raise RequestError(f"attempts are named, each once, not {shown(attempts)}")
    return names
