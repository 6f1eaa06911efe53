"""An output of an installed dataflow as a client reads it.

Only complete epochs are handed out: nothing in them will ever be different. Each client has a place of its
own in an output, which `changes()` and `follow()` move; what one client reads or forgets takes nothing from
another.

    changes()     what came since the last call
    follow()      the same without an end: epoch after epoch, as they become complete
    snapshot()    the collection as a table, and of which epoch it is
"""

from __future__ import annotations

import time
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import suppress
from math import isnan
from operator import index
from typing import TYPE_CHECKING, NoReturn
from uuid import uuid4

import numpy as np
import pyarrow as pa

from ..errors import ForgottenError, MisuseError, PeerError, TimelyError, WaitTimeoutError, revive
from ..failure import again
from ..giving_back import give_back_read
from ..limits import READER_SECONDS_MAX
from ..operators.capture import FOREVER, check_kept
from ..operators.failures import Without
from ..user_code.short_traces import in_short, short_lookup, told_shortly
from ..wire.arrow import int64s_of
from ..wire.requests import Describe, Progress, Read, Value
from .installed import Installed
from .other_spellings import OF_OUTPUTS
from .tables import accumulated, at_epoch, expanded, merged_changes, records_of

__all__ = ["FlowOutput", "epoch_of", "seconds_of"]

_SNAPSHOTS_MAX = 5
_PULSE_SECONDS = READER_SECONDS_MAX / 60
"""How often somebody who follows a quiet output makes himself heard, so that his place is kept."""


@in_short
class FlowOutput:
    """One output of an installed dataflow. `schema`: its columns, beside epoch and diff; None for records."""

    def __init__(self, flow: Installed, name: str, description: str, schema: pa.Schema | None = None) -> None:
        self._flow = flow
        self.name = name
        self.description = description
        self.schema = schema
        self._reader = uuid4().hex
        self._place = 0

    def __repr__(self) -> str:
        """Of which dataflow, and what is in it."""
        return f"FlowOutput({self.name!r} of {self._flow.name!r}: {self.description})"

    if not TYPE_CHECKING:

        @short_lookup
        def __getattr__(self, name: str) -> NoReturn:
            missing = f"an output of a flow has no {name!r}"
            raise AttributeError(OF_OUTPUTS.message(missing, name, dir(FlowOutput)))

    @property
    def is_records(self) -> bool:
        """Whether it carries Python records; otherwise tables."""
        return self.description == "records"

    def changes(
        self, start: int | None = None, stop: int | None = None, timeout: float | None = None
    ) -> pa.Table:
        """Changes of the epochs `start` ≤ epoch < `stop`, once they are complete.

        A table of the columns, epoch and diff, sorted by epoch; for an output of records a list of (epoch,
        record). Without `start`: from the first epoch that this client was not given yet. Without `stop`: all
        that this client has sealed, and what else is complete by then; behind `Flow.finish` that is all.

        If the last of these epochs has no answer, since something fails in it, this raises the error, and
        the same call may be made again. What changed in epochs without an answer is a change of the next
        one that has one.
        """
        begin = self._place if start is None else epoch_of(start, "changes(start=…)")
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
            # Who reads after his own seal means that epoch. Those of others are taken along if they are
            # complete.
            own = max(begin, self._flow.epoch)
            table, end = self._read_open_ended(begin, own, timeout, start is None)
        if start is None:
            self._place = max(self._place, end)
        return records_of(table) if self.is_records else table

    def changes_nowait(self) -> pa.Table:
        """Changes of the epochs that are complete by now, whoever sealed them, and that this client was not
        given yet; does not wait.
        """
        table, self._place = self._read_open_ended(self._place, self._place, None, takes_place=True)
        return records_of(table) if self.is_records else table

    def follow(
        self,
        *,
        start: int | None = None,
        snapshot: bool = False,
        forget: bool = False,
        empty: bool = True,
        timeout: float | None = None,
    ) -> Iterator[tuple[int, pa.Table | TimelyError]]:
        """Every epoch from `start` on (by default the first that this client was not given yet), in order and
        as soon as it is complete, with its changes: `for epoch, changes in output.follow(): …`.

        An epoch without changes comes, too: it says that they are all. Ends when all inputs are closed and
        done.

        An epoch at which something fails has no answer: the error comes in place of its changes, and is not
        raised. The next epoch that has an answer brings all changes since the last one that had.

        Args:
            snapshot: begin with the collection as it is: the first pair has the last complete epoch, and all
                rows as if they had come in it; what follows joins on exactly.
            forget: let the workers drop what was handed out, as soon as no other client needs it.
            empty: whether epochs without changes come. Where epochs are far apart, as by `seal(through=)`,
                these may be very many. A snapshot comes also if it has no rows. Without them an error comes
                at the first epoch without an answer, and again where what fails changes.
            timeout: raise `WaitTimeoutError` when for so many seconds no epoch has become complete. With
                embedded workers it comes at once where no other thread of the program could seal one.
        """
        if snapshot and start is not None:
            raise MisuseError("follow() begins with a snapshot or at an epoch: give one of the two")
        start = None if start is None else epoch_of(start, "follow(start=…)")
        told = None  # since when the error that came last holds
        if snapshot:
            told = yield from self._follow_to_snapshot(empty, timeout)
        elif start is not None:
            check_kept(start, 0)
            self._place = start
        while True:
            with told_shortly():
                complete = self._wait_for_more(timeout)
                table, failed = self._read_with_failures(self._place, complete, timeout)
            if complete == FOREVER:
                complete = self._end(table, failed)
                if complete <= self._place:
                    return
            epochs: Iterable[int] = range(self._place, complete)
            if not empty:
                with_news = [max(each.start, self._place) for each in failed if each.since != told]
                epochs = sorted({*with_news, *np.unique(int64s_of(table.column("epoch"))).tolist()})
            for epoch in epochs:
                if epoch < self._place:
                    continue  # `changes` has handed it out meanwhile
                self._place = epoch + 1
                without = next((each for each in failed if each.start <= epoch < each.stop), None)
                if without is not None:
                    told = without.since
                    yield epoch, again(without.error)
                    continue
                rows = at_epoch(table, epoch)
                yield epoch, [record for _, record in records_of(rows)] if self.is_records else rows
            self._place = max(self._place, complete)
            if forget:
                self.forget()

    def _follow_to_snapshot(
        self, empty: bool, timeout: float | None
    ) -> Generator[tuple[int, pa.Table | TimelyError], None, int | None]:
        """The snapshot with which `follow` begins, and before it errors of epochs without an answer. Returns
        since when the last error holds.
        """
        told = None
        while True:
            with told_shortly():
                epoch, first = self._first_snapshot(timeout)
            if not isinstance(first, Without):
                if epoch >= 0:
                    yield epoch, first
                return told
            if empty or told != first.since:
                told = first.since
                yield epoch, again(first.error)
            with told_shortly():
                if self._wait_for_more(timeout) == FOREVER and self._end() <= self._place:
                    return told  # and no epoch follows

    def snapshot(self, timeout: float | None = None) -> pa.Table:
        """The collection as of the last epoch that is sealed by this client or complete, once it is complete,
        sorted: each row as often as it is in it. The epoch is in the table's metadata:
        `output.epoch_of(table)`. Before the first epoch is sealed the collection is empty; if rows that this
        client has inserted wait for that, MisuseError says so.

        Raises the error if something fails in that epoch, so that it has no answer.
        """
        epoch, tables = self._snapshot(timeout)
        table = expanded(tables)
        del tables
        give_back_read(table.num_rows)
        return table.replace_schema_metadata({_EPOCH_KEY: str(epoch)})

    @staticmethod
    def epoch_of(snapshot: pa.Table) -> int:
        """The epoch as of which a table that `snapshot` returned is the collection; -1: before the first."""
        metadata = snapshot.schema.metadata or {}
        if _EPOCH_KEY not in metadata:
            raise MisuseError("this table is no snapshot, or has lost its metadata on the way")
        return int(metadata[_EPOCH_KEY])

    def complete_before(self) -> int:
        """The first epoch that is not complete on all workers."""
        return min(
            reply.integer("complete") for reply in self._flow.ask_all(Progress(self._flow.index, self.name))
        )

    def forget(self, stop: int | None = None) -> None:
        """This client needs no changes of epochs before `stop`, by default of all that it was given. The
        workers drop them as soon as no other client has its place there.
        """
        end = self._place if stop is None else epoch_of(stop, "forget(stop)")
        self._place = max(self._place, end)
        self._flow.ask_all(
            Progress(self._flow.index, self.name, reader=self._reader, keep_from=end, drops=True)
        )

    def leave(self) -> None:
        """Give up this client's place: it holds nothing back any more. Reading again takes a new one."""
        self._flow.ask_all(Progress(self._flow.index, self.name, reader=self._reader))

    def _read(self, start: int, stop: int, timeout: float | None, takes_place: bool) -> pa.Table:
        seconds = seconds_of(timeout)
        reader = self._reader if takes_place else ""
        request = Read(self._flow.index, self.name, start, max(stop, 0), seconds, reader=reader)
        table = merged_changes([reply.columns() for reply in self._flow.ask_all(request, seconds)])
        give_back_read(table.num_rows)
        return table

    def _read_with_failures(
        self, start: int, stop: int, timeout: float | None
    ) -> tuple[pa.Table, list[Without]]:
        """As `_read`, and the epochs without an answer; of no epochs whether the one in front has one."""
        seconds = seconds_of(timeout)
        request = Read(
            self._flow.index, self.name, start, max(stop, 0), seconds, reader=self._reader, with_failures=True
        )
        replies = self._flow.ask_all(request, seconds)
        table = merged_changes([reply.columns() for reply in replies])
        give_back_read(table.num_rows)
        return table, _failed(replies[0].values.get("failed"))

    def _read_open_ended(
        self, start: int, stop: int, timeout: float | None, takes_place: bool
    ) -> tuple[pa.Table, int]:
        """Changes from `start` to `stop`, once they are complete, and on to what all workers have; and where
        that is.
        """
        seconds = -1.0 if timeout is None else seconds_of(timeout)
        reader = self._reader if takes_place else ""
        replies = self._flow.ask_all(
            Read(self._flow.index, self.name, start, stop, seconds, reader=reader, is_open_ended=True),
            seconds,
        )
        end = min(reply.integer("complete") for reply in replies)
        tables = [
            # A worker that is ahead has said more than the others can confirm.
            reply.columns() if reply.integer("complete") == end else at_epoch(reply.columns(), start, end)
            for reply in replies
        ]
        table = merged_changes(tables)
        del replies, tables
        give_back_read(table.num_rows)
        if end == FOREVER:
            # Nothing will ever come any more; the place stays among the epochs that there are.
            end = max(stop, self._end(table))
        return table, max(start, end)

    def _end(self, rest: pa.Table | None = None, failed: Sequence[Without] = ()) -> int:
        """The epoch after the last one, when nothing can come any more, and the changes `rest` and epochs
        without an answer are left.

        An input that was closed let its rows enter up to epochs that others have not reached, and on each
        worker up to another one.
        """
        sealed = max(reply.integer("epoch") for reply in self._flow.ask_all(Describe(self._flow.index)))
        self._flow.note_epoch(sealed)
        ends = [sealed, *(each.since + 1 for each in failed)]
        if rest is not None and rest.num_rows:
            ends.append(int(int64s_of(rest.column("epoch")).max()) + 1)
        return max(ends)

    def _wait_for_more(self, timeout: float | None) -> int:
        """Wait until the epoch at this client's place is complete on all workers; returns the first that is
        not.
        """
        flow = self._flow
        waited = 0.0
        while True:
            slice_seconds = _PULSE_SECONDS if timeout is None else min(_PULSE_SECONDS, timeout - waited)
            until = time.monotonic() + slice_seconds
            try:
                asked = Progress(flow.index, self.name, self._place, slice_seconds, waited)
                # To embedded workers it is the whole that counts, for whoever could be waited for in vain.
                is_for_ever = timeout is None and flow.is_embedded
                replies = flow.ask_all(asked, -1.0 if is_for_ever else slice_seconds)
            except WaitTimeoutError:
                waited += slice_seconds
                is_hopeless = flow.is_embedded and time.monotonic() < until  # not even waited for
                if is_hopeless or (timeout is not None and waited >= timeout):
                    raise
                with suppress(WaitTimeoutError):  # a worker that computes hears it later
                    self._read(self._place, self._place, 0.0, takes_place=True)
                continue
            return min(reply.integer("complete") for reply in replies)

    def _first_snapshot(self, timeout: float | None) -> tuple[int, pa.Table | Without]:
        """The collection as rows that come in one epoch, with this client's place right behind it; or why it
        has no answer there.
        """
        for _ in range(_SNAPSHOTS_MAX):
            # The place comes first: from then on nobody can drop what joins on.
            self._place = max(self._flow.epoch, self.complete_before_capped())
            try:
                _, failed = self._read_with_failures(self._place, self._place, timeout)
                if failed:
                    return self._place - 1, failed[-1]
                epoch, tables = self._snapshot(timeout, self._place - 1)
            except ForgottenError:
                continue
            return epoch, accumulated(tables, epoch)
        raise PeerError(f"output {self.name!r}: epochs are forgotten faster than one snapshot can be read")

    def _snapshot(self, timeout: float | None, wanted: int | None = None) -> tuple[int, list[pa.Table]]:
        seconds = seconds_of(timeout)
        flow = self._flow
        for _ in range(_SNAPSHOTS_MAX):
            epoch = max(flow.epoch, self.complete_before_capped()) - 1 if wanted is None else wanted
            if epoch < 0 and wanted is None and flow.filled_input:
                raise MisuseError(
                    f"output {self.name!r} has nothing to show yet: no epoch of {flow.name!r} is sealed, and "
                    f"the rows that this client has put into input {flow.filled_input!r} wait in epoch "
                    f"{flow.epoch}, which is open.\n  Seal it first: flow.seal(); a snapshot then waits "
                    "until the epoch is complete"
                )
            try:
                replies = flow.ask_all(Read(flow.index, self.name, -1, epoch + 1, seconds), seconds)
            except ForgottenError:
                if wanted is not None:
                    raise
                continue  # another client has sealed, read and forgotten meanwhile: meet it where it is
            return epoch, [reply.columns() for reply in replies]
        raise PeerError(
            f"output {self.name!r}: epochs are sealed and forgotten faster than one snapshot can be "
            "read; follow() it"
        )

    def complete_before_capped(self) -> int:
        """`complete_before`, or, when nothing can come any more, the epoch that would be next."""
        complete = self.complete_before()
        return complete if complete < FOREVER else self._end()


def _failed(said: Value) -> list[Without]:
    """The epochs without an answer that a worker reports: all workers report the same."""
    found: list[Without] = []
    for each in said if isinstance(said, list) else []:
        match each:
            case [int(start), int(stop), int(since), [*names], str(message)]:
                found.append(Without(start, stop, revive([str(name) for name in names], message), since))
            case _:
                raise PeerError(f"a worker reports {each!r:.200} for epochs without an answer")
    return found


_EPOCH_KEY = b"epoch"


def epoch_of(given: object, call: str, takes: str = "the number of an epoch") -> int:
    """The number of an epoch that a call takes; for the error the call as written, and what it takes."""
    if not isinstance(given, bool):
        with suppress(TypeError):
            return index(given)  # type: ignore[arg-type]  # an integer of numpy is one, too
    raise MisuseError(f"{call} takes {takes}, not {given!r:.80}")


def seconds_of(timeout: float | None) -> float:
    """A time-out as requests carry it: none is negative; time that is over already is 0."""
    if timeout is None:
        return -1.0
    wrong = MisuseError(f"timeout takes seconds, or None to wait without a limit, not {timeout!r:.80}")
    given: object = timeout
    if isinstance(given, (str, bytes)):  # of which some are numbers to `float`
        raise wrong
    try:
        seconds = float(timeout)
    except (TypeError, ValueError):
        raise wrong from None
    if isnan(seconds):
        raise MisuseError("timeout is not a number: give seconds, or None to wait without a limit")
    return max(0.0, seconds)
