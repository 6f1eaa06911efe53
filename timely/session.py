"""An installed dataflow as a client sees it: its inputs, its epochs, its outputs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from .appends import ExpectedAppend, new_writer, place_of
from .errors import MisuseError, PeerError
from .limits import APPEND_BYTES_MAX, REPLY_SECONDS_MAX, SPREAD_ROWS_MIN
from .requests import (
    Append,
    Arrived,
    Changes,
    Describe,
    Forget,
    Frontier,
    Reply,
    Request,
    Seal,
    Snapshot,
    Value,
    Wait,
    schema_from_bytes,
)
from .rows import InputForm, chunks, expanded, merged_changes, records_of

if TYPE_CHECKING:
    from .cluster import Workers

__all__ = ["Flow", "FlowInput", "FlowOutput"]

_PATIENCE_SECONDS = 86_400.0 * 365
"""For requests that wait for work of any length: what ends them is the answer, or the loss of a worker."""


class Flow:
    """One installed dataflow. Made by `Cluster.install` or `Cluster.flow`.

    `epoch` is the open one: what is inserted belongs to it, `seal` completes it.
    """

    def __init__(self, workers: Workers, index: int, replies: Sequence[Reply]) -> None:
        self._workers = workers
        self.index = index
        self.name = replies[0].text("name")
        self.fingerprint = replies[0].text("fingerprint")
        self.stages = [str(line) for line in replies[0].items("stages")]
        self.epoch = max(reply.integer("epoch") for reply in replies)
        writer = new_writer()
        self._inputs = {
            form.name: FlowInput(self, workers, form, writer) for form in _input_forms(replies[0])
        }
        self._outputs = {
            name: FlowOutput(self, workers, name, text) for name, text in _output_names(replies[0])
        }

    def __repr__(self) -> str:
        ends = f"inputs {list(self._inputs)}, outputs {list(self._outputs)}"
        return f"Flow({self.name!r}, epoch {self.epoch}, {ends})"

    def input(self, name: str) -> FlowInput:
        """The input of that name."""
        found = self._inputs.get(name)
        if found is None:
            raise MisuseError(
                f"{self.name!r} has no input {name!r}: there are "
                f"{', '.join(map(repr, self._inputs)) or 'none'}"
            )
        return found

    def output(self, name: str) -> FlowOutput:
        """The output of that name."""
        found = self._outputs.get(name)
        if found is None:
            raise MisuseError(
                f"{self.name!r} has no output {name!r}: there are "
                f"{', '.join(map(repr, self._outputs)) or 'none'}"
            )
        return found

    def seal(self, expected: Sequence[ExpectedAppend] = ()) -> int:
        """Complete the open epoch of all inputs on all workers, and return it.

        `expected` names appends (by `FlowInput.append` or `AppendClient.append`) that must have arrived; if
        one has not, nothing is sealed and the error lists what is missing.
        """
        epoch = self.epoch
        by_worker: list[list[Value]] = [[] for _ in range(self._workers.count)]
        for name, writer, sequence in expected:
            by_worker[place_of(writer, sequence, self._workers.count)].append([name, writer, sequence])
        if expected:
            self._check_arrived(epoch, by_worker)
        self._workers.ask(
            [(worker, Seal(self.index, epoch, listed), None) for worker, listed in enumerate(by_worker)]
        )
        self.epoch = epoch + 1
        return epoch

    def refresh(self) -> int:
        """Ask which epoch is open, when another client seals them; returns it."""
        self.epoch = max(reply.integer("epoch") for reply in self.ask_all(Describe(self.index)))
        return self.epoch

    def wait(self, epoch: int | None = None, timeout: float | None = None) -> int:
        """Block until `epoch` (the last sealed one by default) is complete everywhere; returns it.

        Raises `WaitTimeoutError` after `timeout` seconds, `PeerError` when a worker is lost meanwhile.
        """
        wanted = self.epoch - 1 if epoch is None else epoch
        seconds = _seconds(timeout)
        self.ask_all(Wait(self.index, "", wanted, seconds), seconds)
        return wanted

    def ask_all(self, request: Request, timeout_seconds: float = REPLY_SECONDS_MAX) -> list[Reply]:
        """Send the same request to all workers; a negative time-out is none."""
        seconds = _PATIENCE_SECONDS if timeout_seconds < 0 else timeout_seconds + REPLY_SECONDS_MAX
        return self._workers.ask([(worker, request, None) for worker in range(self._workers.count)], seconds)

    def _check_arrived(self, epoch: int, by_worker: list[list[Value]]) -> None:
        replies = self._workers.ask(
            [(worker, Arrived(self.index, epoch, listed), None) for worker, listed in enumerate(by_worker)]
        )
        missing = [entry for reply in replies for entry in reply.items("missing")]
        if missing:
            listed = "\n    ".join(str(entry) for entry in missing[:10])
            raise MisuseError(
                f"epoch {epoch} is not sealed: {len(missing)} of the expected appends have not arrived "
                f"(input, writer, sequence):\n    {listed}\n  Append them again, then seal"
            )


class FlowInput:
    """One input of an installed dataflow."""

    def __init__(self, flow: Flow, workers: Workers, form: InputForm, writer: str) -> None:
        self._flow = flow
        self._workers = workers
        self.form = form
        self._writer = writer
        self._sequence = 0

    def insert(self, data: object) -> None:
        """Add rows to the open epoch: Arrow, pandas, a structured array, tuples or dicts; or records."""
        self._spread(self.form.to_table(data), 1)

    def remove(self, data: object) -> None:
        """Take rows out of the collection, in the open epoch; for collections only."""
        self._spread(self.form.to_table(data), -1)

    def append(
        self,
        table: pa.Table,
        *,
        epoch: int | None = None,
        writer: str | None = None,
        sequence: int | None = None,
    ) -> bool:
        """Add rows as often as their column `diff` says; returns whether the append was new.

        One that repeats (epoch, writer, sequence) changes nothing. Give both, or neither: then it is always
        new.
        """
        if (writer is None) != (sequence is None):
            raise MisuseError("an append is known by writer and sequence together: give both, or neither")
        if writer is None or sequence is None:
            writer, sequence = self._writer, self._next()
        request = Append(
            self._flow.index,
            self.form.name,
            self._flow.epoch if epoch is None else epoch,
            writer,
            sequence,
            0,
        )
        (reply,) = self._workers.ask([(place_of(writer, sequence, self._workers.count), request, table)])
        return bool(reply.integer("is_new"))

    def _spread(self, table: pa.Table, diff: int) -> None:
        """Few rows to one worker, turn by turn; many by ranges to all."""
        for piece in chunks(table, APPEND_BYTES_MAX * self._workers.count):
            sequence = self._next()
            request = Append(self._flow.index, self.form.name, self._flow.epoch, self._writer, sequence, diff)
            self._workers.ask([(worker, request, part) for worker, part in self._parts(piece, sequence)])

    def _parts(self, table: pa.Table, sequence: int) -> Iterator[tuple[int, pa.Table]]:
        count = self._workers.count
        if table.num_rows < SPREAD_ROWS_MIN or count == 1:
            yield sequence % count, table
            return
        rows = -(-table.num_rows // count)
        for worker in range(count):
            yield worker, table.slice(worker * rows, rows)

    def _next(self) -> int:
        self._sequence += 1
        return self._sequence - 1


class FlowOutput:
    """One output of an installed dataflow."""

    def __init__(self, flow: Flow, workers: Workers, name: str, description: str) -> None:
        self._flow = flow
        self._workers = workers
        self.name = name
        self.description = description
        self._read_before = flow.epoch

    @property
    def is_records(self) -> bool:
        """Whether it carries Python records; otherwise tables."""
        return self.description == "records"

    def changes(
        self, start: int | None = None, stop: int | None = None, timeout: float | None = None
    ) -> pa.Table:
        """Changes of the epochs `start` ≤ epoch < `stop`, once they are complete.

        A table of the columns, epoch and diff, sorted by epoch; for an output of records a list of (epoch,
        record). Without `start`: from the first epoch that was not returned yet. Without `stop`: up to the
        last sealed one.
        """
        begin = self._read_before if start is None else start
        end = self._flow.epoch if stop is None else stop
        table = self._read(begin, end, timeout)
        if start is None:
            self._read_before = max(self._read_before, end)
        return records_of(table) if self.is_records else table

    def changes_nowait(self) -> pa.Table:
        """Changes of the epochs that are complete by now and were not returned yet; does not wait."""
        end = min(self.complete_before(), self._flow.epoch)
        return self.changes(stop=max(end, self._read_before))

    def snapshot(self, timeout: float | None = None) -> pa.Table:
        """The collection as of the last sealed epoch, once that is complete, sorted: each row as often as it
        is in it.
        """
        epoch = self._flow.epoch - 1
        seconds = _seconds(timeout)
        for _ in range(_SNAPSHOTS_MAX):
            replies = self._flow.ask_all(Snapshot(self._flow.index, self.name, epoch, seconds), seconds)
            complete = {reply.integer("complete") for reply in replies}
            if len(complete) == 1:
                return expanded([reply.columns() for reply in replies])
            # Another client seals epochs meanwhile, and some workers are ahead: meet them there.
            epoch = max(complete) - 1
        raise PeerError(
            f"output {self.name!r}: epochs are sealed faster than one snapshot can be read; read changes() "
            "instead"
        )

    def complete_before(self) -> int:
        """The first epoch that is not complete on all workers."""
        return min(
            reply.integer("complete") for reply in self._flow.ask_all(Frontier(self._flow.index, self.name))
        )

    def forget(self, stop: int | None = None) -> None:
        """Let the workers drop the changes of epochs before `stop`; by default of all that were returned."""
        self._flow.ask_all(Forget(self._flow.index, self.name, self._read_before if stop is None else stop))

    def _read(self, start: int, stop: int, timeout: float | None) -> pa.Table:
        seconds = _seconds(timeout)
        replies = self._flow.ask_all(
            Changes(self._flow.index, self.name, start, max(stop, 0), seconds), seconds
        )
        return merged_changes([reply.columns() for reply in replies])


_SNAPSHOTS_MAX = 5


def _seconds(timeout: float | None) -> float:
    return -1.0 if timeout is None else float(timeout)


def _input_forms(reply: Reply) -> Iterator[InputForm]:
    for entry in reply.items("inputs"):
        match entry:
            case [str(name), str(description), packed, converter]:
                schema = schema_from_bytes(packed) if isinstance(packed, bytes) else None
                yield InputForm(name, description, schema, converter if isinstance(converter, str) else None)
            case _:
                raise PeerError(f"a worker describes an input as {entry!r}")


def _output_names(reply: Reply) -> Iterator[tuple[str, str]]:
    for entry in reply.items("outputs"):
        match entry:
            case [str(name), str(description)]:
                yield name, description
            case _:
                raise PeerError(f"a worker describes an output as {entry!r}")
