"""Inputs: epochs of rows from outside.

Batches of an epoch are kept until the epoch is sealed and then enter together: the dataflow works in few,
full activations, and an epoch that nobody sealed has left no trace in it. Appends are identified by (epoch,
writer, sequence): a repeated one counts once. An open epoch is a pointstamp at the input's stage.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import msgpack
import pyarrow as pa
import pyarrow.compute as pc

from progress.errors import InputClosedError, MisuseError

from .batch import Batch, Records

if TYPE_CHECKING:
    from .worker.host import Host
    from .worker.instance import Instance


class InputCodec(Protocol):
    """Turns what a client sends into a batch. `timely` ships the one for records; `differential` has one for
    tables.
    """

    def encode(self, table: pa.Table, diff: int, epoch_word: int) -> Batch:
        """The rows of `table`, inserted (`diff` 1) or removed (-1), at the time `epoch_word`.

        Raises `MisuseError` naming the column and row that does not fit.
        """
        ...

    def describe(self) -> str:
        """Stable text for the fingerprint."""
        ...


class RecordsIn:
    """Records come as one binary column `record` of msgpack values."""

    def encode(self, table: pa.Table, diff: int, epoch_word: int) -> Batch:
        """Unpack each value; records can only be added."""
        del epoch_word
        if diff != 1:
            raise MisuseError(
                "an input of records can only be added to: removing is for differential collections"
            )
        if table.column_names != ["record"]:
            raise MisuseError(
                f"an input of records takes one binary column 'record', not {table.column_names}"
            )
        try:
            return Records(
                [
                    msgpack.unpackb(packed, use_list=False, strict_map_key=False)
                    for packed in table.column(0).to_pylist()
                ]
            )
        except (ValueError, TypeError, msgpack.UnpackException) as error:
            raise MisuseError(f"the column 'record' holds a value that is not msgpack: {error!r}") from error

    def describe(self) -> str:
        """Its name."""
        return "records"


@dataclass(frozen=True)
class AppendId:
    """Names one append, so that a repetition is known as such."""

    writer: str
    sequence: int


class InputHandle:
    """One input on one worker: batches by epoch, until sealed."""

    def __init__(self, instance: Instance, name: str, host: Host, codec: InputCodec) -> None:
        self._instance = instance
        self._host = host
        self.name = name
        self.codec = codec
        self.epoch = 0
        self.is_closed = False
        self.rows_waiting = 0
        self._waiting: dict[int, list[Batch]] = {}
        self._seen: dict[int, set[AppendId]] = {}

    def append(self, epoch: int, batch: Batch, identity: AppendId | None = None) -> bool:
        """Add a batch to an epoch that is not sealed; returns whether it was new (`False`: a repetition,
        ignored).
        """
        return self.append_all(epoch, [batch], identity)

    def append_all(self, epoch: int, batches: Sequence[Batch], identity: AppendId | None = None) -> bool:
        """Add the batches of one append: all of them, or, for a repetition, none."""
        if not self.is_wanted(epoch, identity):
            return False
        if identity is not None:
            self._seen.setdefault(epoch, set()).add(identity)
        for batch in batches:
            if batch.rows:
                self._waiting.setdefault(epoch, []).append(batch)
                self.rows_waiting += batch.rows
        return True

    def is_wanted(self, epoch: int, identity: AppendId | None = None) -> bool:
        """Whether an append is new; raises `InputClosedError` if it comes too late."""
        if identity is not None and identity in self._seen.get(epoch, ()):
            return False
        if self.is_closed:
            raise InputClosedError(f"input {self.name!r} is closed: nothing can be appended to epoch {epoch}")
        if epoch < self.epoch:
            raise InputClosedError(
                f"input {self.name!r}: epoch {epoch} is sealed and takes no more rows; "
                f"the open epoch is {self.epoch}. "
                "Append to the open epoch, or remove and insert there what should have been different"
            )
        return True

    def encode(self, table: pa.Table, diff: int, word: int) -> list[Batch]:
        """The batches of one append; with `diff` 0 the column `diff` says how often each row is added."""
        if diff != 0:
            return [self.codec.encode(table, diff, word)]
        position = table.schema.get_field_index("diff")
        if position < 0:
            raise MisuseError(
                f"input {self.name!r}: a table that is appended has a column 'diff'; this one has "
                f"{table.column_names}"
            )
        column = table.column(position)
        if not pa.types.is_integer(column.type) or column.null_count:
            raise MisuseError(
                f"input {self.name!r}: the column 'diff' holds integers without nulls, not {column.type}"
            )
        rows = table.remove_column(position)
        values = sorted(pc.unique(column).to_pylist())
        parts = [rows] if len(values) == 1 else [rows.filter(pc.equal(column, value)) for value in values]
        return [
            self.codec.encode(part, value, word) for value, part in zip(values, parts, strict=True) if value
        ]

    def epoch_word(self, epoch: int) -> int:
        """The time word of an epoch; `TimeOverflowError` for one that no word holds."""
        return self._host.code.pack((epoch,))

    def missing(self, epoch: int, expected: Sequence[AppendId]) -> list[AppendId]:
        """Those of `expected` that have not arrived for `epoch`."""
        seen = self._seen.get(epoch, set())
        return [identity for identity in expected if identity not in seen]

    def send(self, records: Sequence[object], epoch: int | None = None) -> None:
        """Records for an epoch (the open one by default), for use inside the worker's own process."""
        self.append(self.epoch if epoch is None else epoch, Records(list(records)))

    def seal(self, epoch: int | None = None) -> int:
        """Declare all epochs up to `epoch` (default: the open one) complete; returns it."""
        sealed = self.epoch if epoch is None else epoch
        if self.is_closed:
            raise InputClosedError(f"input {self.name!r} is closed: there is no epoch {sealed} to seal")
        if sealed < self.epoch:
            return sealed
        for complete in sorted(waiting for waiting in self._waiting if waiting <= sealed):
            self._release(complete)
        self._instance.advance_input(self._host, self.epoch, sealed + 1)
        self.epoch = sealed + 1
        self._forget()
        return sealed

    def close(self) -> None:
        """No epoch will follow; batches that wait for epochs still open enter first."""
        if self.is_closed:
            return
        if self._waiting:
            self.seal(max(self._waiting))
        self._instance.advance_input(self._host, self.epoch, None)
        self.is_closed = True

    def _release(self, epoch: int) -> None:
        word = self._host.code.pack((epoch,))
        for batch in self._waiting.pop(epoch):
            self.rows_waiting -= batch.rows
            self._instance.send_input(self._host, batch, word)

    def _forget(self) -> None:
        # Identities of the last sealed epoch stay, so that a task retried just after the seal is told
        # "repetition" and not "sealed"; older ones would grow for ever.
        for epoch in [old for old in self._seen if old < self.epoch - 1]:
            del self._seen[epoch]
