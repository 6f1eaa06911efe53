"""What is asked of inputs: to take rows; of worker 0, which decides for all, what belongs to which epoch.

Everything that can be wrong with rows is found before they are kept. What is decided is told to all workers
(`worker/orders.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from ...errors import RequestError
from ...operators.inputs.by_epoch import batches_by_epoch, divided
from ...operators.inputs.deliveries import ONE_ATTEMPT, StagedPart
from ...operators.inputs.handle import InputHandle
from ...operators.inputs.names import DeliveryName, name_of
from ...running.instance import Instance
from ...wire.requests import (
    Append,
    AppendEpochs,
    Arrived,
    CheckAttempts,
    Close,
    CommitAttempts,
    DropAttempts,
    Enter,
    Insert,
    InsertRows,
    Reply,
    Request,
    Seal,
    Stage,
    StageAttempt,
    Value,
)
from ..orders import Orders, open_epoch
from ..replacing import Replacements
from ..tasks.staging import PARTS_MAX, check_attempts, drop_attempts, names_of, stage_attempt

__all__ = ["Inputs"]

_Rows = Append | AppendEpochs | Insert | InsertRows | Stage


class Inputs:
    """Answers for the inputs of one worker.

    Args:
        orders: what it decides, if it is worker 0. replacements: which version of a dataflow is asked.
        worker: its index.
    """

    def __init__(self, orders: Orders, replacements: Replacements, worker: int) -> None:
        self._orders = orders
        self._replacements = replacements
        self._worker = worker

    def handle(self, request: Request, table: pa.Table | None) -> Reply | None:
        """The answer; none if it is not inputs that are asked."""
        match request:
            case InsertRows():
                return self._take_plain_rows(request)
            case Insert() | Append() | Stage():
                return self._take_rows(request, table)
            case AppendEpochs():
                return self._take_epochs(request, table)
            case Seal(dataflow, epoch):
                return Reply({"open": self._orders.seal(dataflow, epoch), "sealed": epoch})
            case StageAttempt(dataflow, name):
                return stage_attempt(self._input(dataflow, name), request, table)
            case Enter(dataflow, name, epoch, writer, sequence):
                is_new, entered = self._orders.enter(dataflow, name, epoch, DeliveryName(writer, sequence))
                return Reply({"is_new": is_new, "epoch": entered})
            case CheckAttempts(dataflow, name):
                return check_attempts(self._input(dataflow, name), request)
            case DropAttempts(dataflow, name):
                return drop_attempts(self._input(dataflow, name), request)
            case CommitAttempts():
                return self._commit(request)
            case Close(dataflow, name):
                return Reply({"open": self._orders.close(dataflow, name)})
            case Arrived(dataflow, epoch, expected):
                missing = _missing(self._replacements.instance(dataflow), epoch, expected)
                return Reply({"missing": missing})
            case _:
                return None

    def _input(self, dataflow: int, name: str) -> InputHandle:
        return self._replacements.instance(dataflow).input(name)

    def _input_for(self, request: _Rows) -> InputHandle:
        """The input that rows are for. Raises `RequestError` if their order is that of calls, and another
        worker makes it: which of two workers took a call first nobody could say.
        """
        handle = self._input(request.dataflow, request.input)
        if self._worker and handle.is_ordered and _is_by_calls(request):
            raise RequestError(
                f"input {request.input!r} keeps the last value by key: worker 0 puts calls in order, and "
                f"takes all rows but those of an append that has a name; this is worker {self._worker}"
            )
        return handle

    def _take_plain_rows(self, request: InsertRows) -> Reply:
        is_new, entered = self._input_for(request).take_rows(
            request.epoch, request.rows, request.diff, request.writer, request.sequence
        )
        return Reply({"is_new": is_new, "epoch": entered})

    def _take_rows(self, request: Insert | Append | Stage, table: pa.Table | None) -> Reply:
        """Rows of a client. Everything that can be wrong with them is found before they are kept."""
        handle = self._input_for(request)
        table = _given(table, request.input)
        if isinstance(request, Stage) and not 0 <= request.part < PARTS_MAX:
            raise RequestError(f"parts are numbered from 0 to {PARTS_MAX - 1}, not {request.part}")
        if isinstance(request, Append):
            named = name_of(request.writer, request.sequence)
            word = handle.epoch_word(request.epoch)
            if not handle.is_wanted(request.epoch, named):
                return Reply({"is_new": False})
            batches = handle.encode(table, request.diff, word)
            return Reply({"is_new": handle.append_all(request.epoch, batches, named)})
        identity = DeliveryName(request.writer, request.sequence)
        if not handle.is_new(identity):
            return Reply({"is_new": False, "epoch": handle.epoch})
        word = handle.epoch_word(max(request.epoch, handle.epoch))
        if isinstance(request, Stage):
            handle.deliveries.check_room(table.nbytes)
            part = StagedPart(word, handle.encode(table, request.diff, word), table.nbytes, table.num_rows)
            handle.deliveries.stage(identity, ONE_ATTEMPT, request.part, part)
            return Reply({"is_new": True, "epoch": handle.epoch})
        batches = handle.encode(table, request.diff, word)
        return Reply({"is_new": True, "epoch": handle.insert(request.epoch, batches, identity)})

    def _take_epochs(self, request: AppendEpochs, table: pa.Table | None) -> Reply:
        """Rows of several epochs: they enter all of these, or none."""
        handle = self._input_for(request)
        given = divided(handle.codec, request.input, _given(table, request.input), request.column)
        named = name_of(request.writer, request.sequence)
        words = [handle.epoch_word(epoch) for epoch in given.epochs]
        if named is not None and handle.deliveries.is_taken_in_all(given.epochs, named):
            return Reply({"is_new": False})
        handle.check_open()
        if given.epochs:
            handle.is_wanted(given.epochs[0])
        batches = batches_by_epoch(handle.codec, request.input, given, words, request.diff)
        handle.append_epochs(given.epochs, words, batches, named)
        return Reply({"is_new": True})

    def _commit(self, request: CommitAttempts) -> Reply:
        """Make a batch of what was staged, and complete its epoch with it: one decision, so that no other
        comes between.
        """
        attempts = names_of(request.attempts)
        is_new, epoch = self._orders.commit(request, attempts)
        if is_new and request.seals:
            self._orders.seal(request.dataflow, epoch)
        opened = open_epoch(self._replacements.instance(request.dataflow))
        return Reply({"is_new": is_new, "epoch": epoch, "open": opened})


def _is_by_calls(request: _Rows) -> bool:
    """Whether the order of rows among others of their epoch is that in which calls are taken."""
    if isinstance(request, Append | AppendEpochs):
        return name_of(request.writer, request.sequence) is None
    return not isinstance(request, Stage)  # which is in the order of its `Enter`


def _given(table: pa.Table | None, name: str) -> pa.Table:
    if table is None:
        raise RequestError(f"rows for {name!r} came without a table")
    return table


def _missing(instance: Instance, epoch: int, expected: Sequence[Value]) -> list[tuple[str, str, int]]:
    missing: list[tuple[str, str, int]] = []
    for entry in expected:
        match entry:
            case [str(name), str(writer), int(sequence)]:
                if instance.input(name).missing(epoch, [DeliveryName(writer, sequence)]):
                    missing.append((name, writer, sequence))
            case _:
                raise RequestError(f"an expected append is [input, writer, sequence], not {entry!r}")
    return missing
