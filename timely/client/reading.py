"""An output of an installed dataflow as a client reads it.

A client reads only complete epochs: nothing in them will ever change. Each client has a position of its own
in an output, which `changes()` and `follow()` move; one client that reads or forgets takes nothing from
another.

    changes()     the changes since the last call
    follow()      the same without an end: epoch after epoch, as they become complete
    snapshot()    the collection as a table, and its epoch
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import suppress
from math import isnan
from operator import index
from typing import TYPE_CHECKING
from uuid import uuid4

import numpy as np
import pyarrow as pa

from ..errors import ForgottenError, MisuseError, PeerError, TimelyError, WaitTimeoutError, revive
from ..failure import fresh_copy
from ..giving_back import give_back_read
from ..limits import READER_SECONDS_MAX, REPLY_SECONDS_MAX
from ..operators.capture import FOREVER
from ..operators.failures import Without
from ..operators.outputs.output_log import check_kept
from ..operators.outputs.places import reader_id
from ..user_code.call_site import UNKNOWN_SITE, call_site
from ..user_code.html_tables import html_or_text, html_text
from ..user_code.offered import Offered
from ..user_code.short_traces import answers_misfits, in_short, short_lookup, shortened_traces
from ..wire.arrow import int64s_of, to_pandas, to_polars
from ..wire.requests import Describe, Progress, Read, Value
from .installed import Installed
from .other_spellings import OF_OUTPUTS, of_snapshot
from .shown.live_rows import LiveRows, RowOrder
from .shown.live_table import live_table
from .shown.pictures import output_picture
from .statements.drawing import drawn
from .tables import accumulated, at_epoch, expanded, merged_changes, records_of, with_values

__all__ = ["FlowOutput", "epoch_of", "seconds_of"]

_ROWS_SHOWN = 20
_LIVE_ROWS_SHOWN = 50
_SNAPSHOTS_MAX = 5
_PICTURE_SECONDS = 1.0
"""How long a notebook waits for the rows that it shows of an output."""
_PULSE_SECONDS = READER_SECONDS_MAX / 60
"""How often a client that follows a quiet output sends a request, so that workers keep its position."""


@in_short
class FlowOutput(Offered):
    """One output of an installed dataflow. `schema`: its columns, without epoch and diff; None for
    records.
    """

    _internal = frozenset({"complete_before_capped", "has_ended", "is_records", "rows_kept"})

    def __init__(self, flow: Installed, name: str, description: str, schema: pa.Schema | None = None) -> None:
        self._flow = flow
        self.name = name
        self.description = description
        self.schema = schema
        self._reader_ids: list[str] = []
        self._position = 0

    def __repr__(self) -> str:
        """Return the names of the output and of the dataflow, and the description of its rows."""
        return f"FlowOutput({self.name!r} of {self._flow.name!r}: {self.description})"

    def _repr_html_(self) -> str:
        return html_or_text(self, self._picture)

    def _picture(self) -> str:
        flow = self._flow
        title = f"output {self.name!r} of dataflow {flow.name!r}"
        if end := flow.end_text():
            return html_text(f"{title}, {end}")

        def snapshot(epoch: int) -> pa.Table:
            request = Read(flow.index, self.name, -1, epoch + 1, _PICTURE_SECONDS)
            replies = flow.look(request, _PICTURE_SECONDS)
            return with_values(accumulated([reply.columns() for reply in replies], epoch))

        # The answer comes after the limit, too, with the epochs that are complete by then.
        extent = Progress(flow.index, self.name, flow.epoch - 1, _PICTURE_SECONDS, extent=True)
        return output_picture(title, self.schema, lambda: flow.look(extent, 2 * _PICTURE_SECONDS), snapshot)

    if not TYPE_CHECKING:

        @short_lookup
        def __getattr__(self, name: str) -> object:
            same = OF_OUTPUTS.same(self, name)
            if same is not None:
                return same
            missing = f"an output of a flow has no {name!r}"
            raise AttributeError(OF_OUTPUTS.message(missing, name, dir(FlowOutput)))

    @property
    def _reader(self) -> str:
        """The name of this client's position, made when it is first needed, on the line that reads then."""
        if not self._reader_ids:
            client = f"process {os.getpid()} on {socket.gethostname()}"
            site = call_site()
            # Other threads may make one at the same time: all use the first, or a position would stay behind.
            self._reader_ids.append(reader_id(uuid4().hex, client, str(site) if site != UNKNOWN_SITE else ""))
        return self._reader_ids[0]

    @property
    def is_records(self) -> bool:
        """True if the output has Python records; otherwise it has tables."""
        return self.description == "records"

    def changes(
        self, start: int | None = None, stop: int | None = None, timeout: float | None = None
    ) -> pa.Table:
        """Return the changes of the epochs `start` ≤ epoch < `stop`, once they are complete.

        They are a table of the columns, epoch and diff, sorted by epoch; for an output of records a list of
        (epoch, record), in which those of an epoch come in no certain order: neither that in which they were
        inserted, nor the same one again. `start` is by default the first epoch that this client has not read
        yet. Without `stop` this returns all epochs that this client has sealed, and others that are complete
        by then; after `Flow.finish` that is all.

        If the last of these epochs has no answer, since something fails in it, this raises the error, and
        the same call may be made again. Changes in epochs without an answer count as changes of the next
        epoch that has one.
        """
        begin = self._position if start is None else epoch_of(start, "changes(start=…)")
        check_kept(begin, 0)
        stop = None if stop is None else epoch_of(stop, "changes(stop=…)")
        if start is not None and stop is not None and stop < begin:
            raise MisuseError(
                f"changes(start={begin}, stop={stop}): no epoch is both. It takes the first epoch, and "
                "the one behind the last"
            )
        if stop is not None:
            table, end = self._read(begin, stop, timeout, start is None), stop
        else:
            # After a seal the client wants that epoch. Epochs that others have sealed come with it if they
            # are complete.
            own = max(begin, self._flow.epoch)
            table, end = self._read_open_ended(begin, own, timeout, start is None)
        if start is None:
            self._position = max(self._position, end)
        return records_of(table) if self.is_records else with_values(table)

    def changes_nowait(self) -> pa.Table:
        """Return the changes of all epochs that are complete now and that this client has not read yet,
        whichever client sealed them; do not wait.
        """
        table, self._position = self._read_open_ended(self._position, self._position, None, moves_reader=True)
        return records_of(table) if self.is_records else with_values(table)

    def follow(
        self,
        *,
        start: int | None = None,
        snapshot: bool = False,
        forget: bool = False,
        empty: bool = True,
        timeout: float | None = None,
    ) -> Iterator[tuple[int, pa.Table | TimelyError]]:
        """Yield every epoch from `start` on (by default the first that this client has not read yet) with its
        changes, in order and as soon as it is complete: `for epoch, changes in output.follow(): …`.

        An epoch without changes comes, too: it shows that there are none. The iteration ends when all inputs
        are closed and all work is done.

        An epoch at which something fails has no answer: the error comes in place of its changes, and is not
        raised. The next epoch that has an answer brings all changes since the last one that had.

        Args:
            snapshot: begin with the collection as it is: the first pair has the last complete epoch, and all
                rows as if they had come in it; the next epochs follow without a gap.
            forget: let the workers drop epochs that this has yielded, as soon as no other client needs them.
            empty: False: skip epochs without changes. If epochs are far apart, as by `seal(through=)`, there
                may be very many of them. A snapshot comes also if it has no rows. With False an error comes
                at the first epoch without an answer, and again each time the error changes.
            timeout: raise `WaitTimeoutError` if no epoch becomes complete for this number of seconds.
                Embedded workers raise it at once if no other thread of the program could seal one.
        """
        if snapshot and start is not None:
            raise MisuseError("follow() begins with a snapshot or at an epoch: give one of the two")
        start = None if start is None else epoch_of(start, "follow(start=…)")
        last_error = None  # the first epoch of the error that came last
        if snapshot:
            last_error = yield from self._follow_to_snapshot(empty, timeout)
        elif start is not None:
            check_kept(start, 0)
            self._position = start
        while True:
            with shortened_traces():
                complete = self._wait_for_more(timeout)
                table, failed = self._read_with_failures(self._position, complete, timeout)
            if complete == FOREVER:
                complete = self._end(table, failed)
                if complete <= self._position:
                    return
            epochs: Iterable[int] = range(self._position, complete)
            if not empty:
                with_news = [max(each.start, self._position) for each in failed if each.since != last_error]
                epochs = sorted({*with_news, *np.unique(int64s_of(table.column("epoch"))).tolist()})
            for epoch in epochs:
                if epoch < self._position:
                    continue  # `changes` has returned it meanwhile
                self._position = epoch + 1
                without = next((each for each in failed if each.start <= epoch < each.stop), None)
                if without is not None:
                    last_error = without.since
                    yield epoch, fresh_copy(without.error)
                    continue
                rows = at_epoch(table, epoch)
                records = [record for _, record in records_of(rows)] if self.is_records else None
                yield epoch, with_values(rows) if records is None else records
            self._position = max(self._position, complete)
            if forget:
                self.forget()

    def _follow_to_snapshot(
        self, empty: bool, timeout: float | None
    ) -> Generator[tuple[int, pa.Table | TimelyError], None, int | None]:
        """Yield the snapshot with which `follow` begins, and before it errors of epochs without an answer.
        Return the first epoch of the last error.
        """
        last_error = None
        while True:
            with shortened_traces():
                epoch, first = self._first_snapshot(timeout)
            if not isinstance(first, Without):
                if epoch >= 0:
                    yield epoch, with_values(first)
                return last_error
            if empty or last_error != first.since:
                last_error = first.since
                yield epoch, fresh_copy(first.error)
            with shortened_traces():
                if self._wait_for_more(timeout) == FOREVER and self._end() <= self._position:
                    return last_error  # and no epoch follows

    @answers_misfits(of_snapshot)
    def snapshot(self, *, as_of: int | None = None, timeout: float | None = None) -> pa.Table:
        """Return the collection as of the last epoch that this client has sealed, or a later one that is
        complete; wait until it is. The table is sorted, and has each row as often as it is in the collection.
        The epoch is in its metadata: `output.epoch_of(table)`. Before the first epoch is sealed the
        collection is empty; raise `MisuseError` if rows that this client has inserted wait for a seal.

        `as_of`: a sealed epoch; workers must still keep its changes and all later ones. Raise
        `ForgottenError` for an earlier one, and `MisuseError` for one that is not sealed; both name the
        epochs that there are.

        If something fails in that epoch, so that it has no answer, raise that error.
        """
        at = None if as_of is None else self._kept_epoch(epoch_of(as_of, "snapshot(as_of=…)"))
        epoch, tables = self._snapshot(timeout, at)
        table = expanded(tables)
        del tables
        give_back_read(table.num_rows)
        return with_values(table).replace_schema_metadata({_EPOCH_KEY: str(epoch)})

    def to_pylist(self, *, timeout: float | None = None) -> list[dict[str, object]]:
        """Return the rows of `snapshot()` as dicts."""
        rows: list[dict[str, object]] = self.snapshot(timeout=timeout).to_pylist()
        return rows

    def to_arrow(self, *, timeout: float | None = None) -> pa.Table:
        """Return the table of `snapshot()`."""
        return self.snapshot(timeout=timeout)

    def to_pandas(self, *, timeout: float | None = None) -> object:
        """Return the rows of `snapshot()` as a DataFrame of pandas, which must be installed."""
        return to_pandas(self.snapshot(timeout=timeout))

    def to_polars(self, *, timeout: float | None = None) -> object:
        """Return the rows of `snapshot()` as a DataFrame of Polars; raise `MisuseError` if that is not
        installed.
        """
        return to_polars(self.snapshot(timeout=timeout))

    def show(self, rows: int = _ROWS_SHOWN, *, timeout: float | None = None) -> None:
        """Print `snapshot()` as a table: up to so many rows, and how many there are."""
        print(drawn(self.snapshot(timeout=timeout), rows))  # noqa: T201

    def live(
        self,
        rows: int = _LIVE_ROWS_SHOWN,
        *,
        order_by: str | None = None,
        descending: bool = False,
        key: str | Sequence[str] = (),
    ) -> object:
        """Return a table for a notebook that follows the output: the first rows by a column, and how many
        there are. Cells that have changed are marked for a moment; a click on the head of a column sorts by
        it.

        `key`: the columns that tell which row a changed one was before, by default the first column. The
        table has a position of its own, and a thread that reads; `close()`, and the end of the cluster, end
        it. Needs anywidget: `pip install 'naiad[notebook]'`.
        """
        if self.schema is None:
            raise MisuseError(f"output {self.name!r} has records, which are no table: follow() it")
        order = None if order_by is None else RowOrder(order_by, bool(descending))
        keys = (key,) if isinstance(key, str) else tuple(key)
        live_rows = LiveRows(self.schema, index(rows), order, keys)
        return live_table(FlowOutput(self._flow, self.name, self.description, self.schema), live_rows)

    @property
    def has_ended(self) -> bool:
        """True if the dataflow, or its cluster, has ended, as far as this client knows."""
        return bool(self._flow.end_text())

    def rows_kept(self) -> int:
        """Return about how many rows the workers keep of the collection; -1: some worker does not know."""
        extent = Progress(self._flow.index, self.name, timeout_seconds=0.0, extent=True)
        counts = [reply.integer("rows") for reply in self._flow.ask_all(extent)]
        return -1 if min(counts) < 0 else sum(counts)

    @staticmethod
    def epoch_of(snapshot: pa.Table) -> int:
        """Return the epoch of a table that `snapshot` has returned; -1: before the first epoch."""
        metadata = snapshot.schema.metadata or {}
        if _EPOCH_KEY not in metadata:
            raise MisuseError("this table is no snapshot, or has lost its metadata on the way")
        return int(metadata[_EPOCH_KEY])

    def complete_before(self) -> int:
        """Return the first epoch that is not complete on all workers."""
        return self._complete_within(-1.0)

    def _complete_within(self, seconds: float) -> int:
        """Return `complete_before`. Embedded workers work first, for as long as `seconds`; below 0: as for
        other calls.
        """
        replies = self._flow.ask_all(
            Progress(self._flow.index, self.name), REPLY_SECONDS_MAX if seconds < 0 else seconds
        )
        return min(reply.integer("complete") for reply in replies)

    def forget(self, stop: int | None = None) -> None:
        """Give up the changes of epochs before `stop`, by default of all that this client has read. The
        workers drop them as soon as no other client has its position there.
        """
        end = self._position if stop is None else epoch_of(stop, "forget(stop)")
        self._position = max(self._position, end)
        self._flow.ask_all(
            Progress(self._flow.index, self.name, reader=self._reader, keep_from=end, drops=True)
        )

    def leave(self) -> None:
        """Give up this client's position: it holds nothing back any more. Reading again takes a new one."""
        self._flow.ask_all(Progress(self._flow.index, self.name, reader=self._reader))

    def _read(self, start: int, stop: int, timeout: float | None, moves_reader: bool) -> pa.Table:
        seconds = seconds_of(timeout)
        reader = self._reader if moves_reader else ""
        request = Read(self._flow.index, self.name, start, max(stop, 0), seconds, reader=reader)
        table = merged_changes([reply.columns() for reply in self._flow.ask_all(request, seconds)])
        give_back_read(table.num_rows)
        return table

    def _read_with_failures(
        self, start: int, stop: int, timeout: float | None
    ) -> tuple[pa.Table, list[Without]]:
        """Like `_read`, and return also the epochs without an answer. If `start` is `stop`, these say whether
        the epoch before has an answer.
        """
        seconds = seconds_of(timeout)
        request = Read(
            self._flow.index, self.name, start, max(stop, 0), seconds, reader=self._reader, with_failures=True
        )
        replies = self._flow.ask_all(request, seconds)
        table = merged_changes([reply.columns() for reply in replies])
        give_back_read(table.num_rows)
        return table, _failed(replies[0].values.get("failed"))

    def _read_open_ended(
        self, start: int, stop: int, timeout: float | None, moves_reader: bool
    ) -> tuple[pa.Table, int]:
        """Wait until the epochs before `stop` are complete; return the changes of all complete epochs from
        `start` on, and the end of these epochs.
        """
        seconds = -1.0 if timeout is None else seconds_of(timeout)
        reader = self._reader if moves_reader else ""
        replies = self._flow.ask_all(
            Read(self._flow.index, self.name, start, stop, seconds, reader=reader, is_open_ended=True),
            seconds,
        )
        end = min(reply.integer("complete") for reply in replies)
        tables = [
            # A worker that is ahead has sent epochs that the others have not completed.
            reply.columns() if reply.integer("complete") == end else at_epoch(reply.columns(), start, end)
            for reply in replies
        ]
        table = merged_changes(tables)
        del replies, tables
        give_back_read(table.num_rows)
        if end == FOREVER:
            # Nothing will ever come any more; the position stays among the epochs that exist.
            end = max(stop, self._end(table))
        return table, max(start, end)

    def _end(self, rest: pa.Table | None = None, failed: Sequence[Without] = ()) -> int:
        """Return the epoch behind the last one, once nothing can come any more. `rest` are the changes, and
        `failed` the epochs without an answer, that this client has not read yet.

        Rows of an input that was closed may have entered epochs that other inputs have not reached, and on
        each worker a different last one.
        """
        sealed = max(reply.integer("epoch") for reply in self._flow.ask_all(Describe(self._flow.index)))
        self._flow.note_epoch(sealed)
        ends = [sealed, *(each.since + 1 for each in failed)]
        if rest is not None and rest.num_rows:
            ends.append(int(int64s_of(rest.column("epoch")).max()) + 1)
        return max(ends)

    def _wait_for_more(self, timeout: float | None) -> int:
        """Wait until the epoch at this client's position is complete on all workers; return the first epoch
        that is not.
        """
        flow = self._flow
        waited = 0.0
        while True:
            slice_seconds = _PULSE_SECONDS if timeout is None else min(_PULSE_SECONDS, timeout - waited)
            until = time.monotonic() + slice_seconds
            try:
                request = Progress(flow.index, self.name, self._position, slice_seconds, waited)
                # Embedded workers must know the whole wait: they find out whether it is in vain.
                is_for_ever = timeout is None and flow.is_embedded
                replies = flow.ask_all(request, -1.0 if is_for_ever else slice_seconds, explains=False)
            except WaitTimeoutError as error:
                waited += slice_seconds
                is_hopeless = flow.is_embedded and time.monotonic() < until  # they did not even wait
                if is_hopeless or (timeout is not None and waited >= timeout):
                    flow.tell_why(error, request)
                    raise
                with suppress(WaitTimeoutError):  # a worker that computes gets it later
                    self._read(self._position, self._position, 0.0, moves_reader=True)
                continue
            return min(reply.integer("complete") for reply in replies)

    def _first_snapshot(self, timeout: float | None) -> tuple[int, pa.Table | Without]:
        """Return an epoch, and the collection as rows that come in it; or why there is no answer. This
        client's position is right behind that epoch then.
        """
        for _ in range(_SNAPSHOTS_MAX):
            # The position comes first: from then on nobody can drop the next epochs.
            self._position = max(self._flow.epoch, self.complete_before_capped(seconds_of(timeout)))
            try:
                _, failed = self._read_with_failures(self._position, self._position, timeout)
                if failed:
                    return self._position - 1, failed[-1]
                epoch, tables = self._snapshot(timeout, self._position - 1)
            except ForgottenError:
                continue
            return epoch, accumulated(tables, epoch)
        raise PeerError(f"output {self.name!r}: epochs are forgotten faster than one snapshot can be read")

    def _kept_epoch(self, epoch: int) -> int:
        """Return the epoch, if it has a snapshot; raise an error that names those that have one."""
        flow = self._flow
        replies = flow.ask_all(Progress(flow.index, self.name, extent=True))
        first = max(0, *(reply.integer("kept") - 1 for reply in replies))
        complete = min(reply.integer("complete") for reply in replies)
        opened = flow.ask_first(Describe(flow.index)).integer("epoch")
        last = (max(opened, complete) if complete < FOREVER else self._end()) - 1
        if first <= epoch <= last:
            return epoch
        there = f"epochs {first} to {last}" if first < last else f"epoch {last}"
        error = f"output {self.name!r} has no snapshot as of epoch {epoch}: it has those of {there}"
        if last < 0:
            raise MisuseError(
                f"output {self.name!r} has no snapshot as of epoch {epoch}: no epoch is sealed yet. Write "
                "flow.seal()"
            )
        if epoch < first:
            raise ForgottenError(f"{error}. Earlier changes were forgotten, as a client has said they may be")
        raise MisuseError(f"{error}. Seal the epoch first: flow.seal(through={epoch})")

    def _snapshot(self, timeout: float | None, at: int | None = None) -> tuple[int, list[pa.Table]]:
        seconds = seconds_of(timeout)
        flow = self._flow
        for _ in range(_SNAPSHOTS_MAX):
            epoch = self._latest(seconds) if at is None else at
            if epoch < 0 and at is None and flow.filled_input:
                raise MisuseError(
                    f"output {self.name!r} has nothing to show yet: no epoch of {flow.name!r} is sealed, and "
                    f"the rows that this client has put into input {flow.filled_input!r} wait in epoch "
                    f"{flow.epoch}, which is open.\n  Seal it first: flow.seal(); a snapshot then waits "
                    "until the epoch is complete"
                )
            try:
                replies = flow.ask_all(Read(flow.index, self.name, -1, epoch + 1, seconds), seconds)
            except ForgottenError:
                if at is not None:
                    raise
                continue  # another client has sealed, read and forgotten meanwhile: try a later epoch
            return epoch, [reply.columns() for reply in replies]
        raise PeerError(
            f"output {self.name!r}: epochs are sealed and forgotten faster than one snapshot can be "
            "read; follow() it"
        )

    def _latest(self, seconds: float) -> int:
        """Return the last epoch that this client has sealed, or a later one that is complete; if `seconds` is
        0 or more, wait until it is, for so long at most.
        """
        began = time.monotonic()
        complete = self.complete_before_capped(seconds)
        epoch = max(self._flow.epoch, complete) - 1
        if seconds >= 0 and epoch >= complete:
            # Embedded workers have worked already, and may have used up the time.
            waited = min(seconds, time.monotonic() - began)
            rest = seconds - waited
            self._flow.ask_all(Progress(self._flow.index, self.name, epoch, rest, waited), rest)
        return epoch

    def complete_before_capped(self, seconds: float = -1.0) -> int:
        """Return `complete_before`, or, if nothing can come any more, the epoch that would be next."""
        complete = self._complete_within(seconds)
        return complete if complete < FOREVER else self._end()


def _failed(entries: Value) -> list[Without]:
    """Return the epochs without an answer from a reply; all workers report the same."""
    failures: list[Without] = []
    for each in entries if isinstance(entries, list) else []:
        match each:
            case [int(start), int(stop), int(since), [*names], str(message)]:
                failures.append(Without(start, stop, revive([str(name) for name in names], message), since))
            case _:
                raise PeerError(f"a worker reports {each!r:.200} for epochs without an answer")
    return failures


_EPOCH_KEY = b"epoch"


def epoch_of(value: object, call: str, takes: str = "the number of an epoch") -> int:
    """Return an argument as the number of an epoch; raise `MisuseError` otherwise, with the call as written,
    and what it takes.
    """
    if not isinstance(value, bool):
        with suppress(TypeError):
            return index(value)  # type: ignore[arg-type]  # an integer of numpy is one, too
    raise MisuseError(f"{call} takes {takes}, not {value!r:.80}")


def seconds_of(timeout: float | None) -> float:
    """Return a timeout as requests carry it: -1.0 for None, and 0.0 for a negative one. Raise `MisuseError`
    if it is no number.
    """
    if timeout is None:
        return -1.0
    wrong = MisuseError(f"timeout takes seconds, or None to wait without a limit, not {timeout!r:.80}")
    value: object = timeout
    if isinstance(value, (str, bytes)):  # `float` reads some texts as numbers
        raise wrong
    try:
        seconds = float(timeout)
    except (TypeError, ValueError):
        raise wrong from None
    if isnan(seconds):
        raise MisuseError("timeout is not a number: give seconds, or None to wait without a limit")
    return max(0.0, seconds)
