"""An installed dataflow as a client sees it: its inputs and its epochs. Its outputs are in `reading.py`.

Any number of clients may work with one dataflow. Each call happens as a whole: an insertion enters one epoch,
on all workers, or none; an epoch is sealed on all workers, or on none. After an error nothing has changed,
but after a `WaitTimeoutError`, or a `StoreError` of a failing disk, the client cannot know. It may repeat
such a call as it is, and the call counts once; if it adds rows, it needs `writer` and `sequence` for that.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, NoReturn

import pyarrow as pa

from ..errors import MisuseError, UninstalledError, WaitTimeoutError
from ..limits import REPLY_SECONDS_MAX
from ..operators.capture import FOREVER
from ..operators.inputs.names import UNNAMED, ExpectedAppend, closed_error, named, new_writer, worker_of
from ..user_code.html_tables import html_or_text
from ..user_code.offered import Offered
from ..user_code.short_traces import answers_misfits, in_short, short_lookup
from ..wire.arrow import stored
from ..wire.requests import (
    IN_OPEN,
    Decide,
    Deliver,
    Describe,
    Missing,
    Progress,
    Reply,
    Uninstall,
    Value,
)
from .feeding.appending import (
    LastName,
    append_request,
    insert_in_parts,
    is_large,
    is_small,
    other_kind,
    to_one,
)
from .feeding.changes import ChangeKind, changes_table
from .feeding.own_epochs import OwnEpochs, heeding
from .installed import Installed, Members, Requests, Workers
from .other_spellings import OF_FLOWS, OF_INPUTS, no_end, of_rows
from .reading import FlowOutput, epoch_of, seconds_of
from .reports.reported import Reported
from .shown.pictures import flow_picture
from .tables import InputForm, exported_forms, imported_names, input_forms, open_ahead, output_forms

__all__ = ["Flow", "FlowInput"]

_GONE_LOOK_SECONDS = 0.002


@in_short
class Flow(Offered, Reported):
    """One installed dataflow. Made by `Cluster.install` or `Cluster.flow`.

    `epoch` is the open one, as far as this client knows: rows that it inserts enter that epoch or a later
    one, and `seal` completes it.
    """

    _internal = frozenset(
        {
            "ahead", "ask", "ask_all", "ask_first", "ask_members", "check_refused", "end_text",
            "filled_input", "first_epoch", "incarnation", "insert_rows", "is_embedded", "look", "members",
            "note_epoch", "note_sealed", "on_answer", "on_refusal", "own_epochs", "part_bytes", "post",
            "report", "seal_open", "settle", "tell_why", "wait_for",
        }
    )  # fmt: skip

    def __init__(self, workers: Workers, reply: Reply) -> None:
        super().__init__(workers, reply.integer("dataflow"), reply.text("name"), reply.integer("epoch"))
        self.fingerprint = reply.text("fingerprint")
        self.stages = [str(line) for line in reply.items("stages")]
        writer = new_writer()
        self._inputs = {form.name: FlowInput(self, form, writer) for form in input_forms(reply)}
        self.exported, self.reads = exported_forms(reply), imported_names(reply)
        self.exports = list(self.exported)
        self.first_epoch, self.note = reply.integer("first"), reply.text("note")
        self._outputs = {form[0]: FlowOutput(self, *form) for form in output_forms(reply)}
        self.ahead = open_ahead(reply)

    def __repr__(self) -> str:
        ends = f"inputs {list(self._inputs)}, outputs {list(self._outputs)}"
        return f"Flow({self.name!r}, {self.end_text() or f'epoch {self.epoch}'}, {ends})"

    def _repr_html_(self) -> str:
        title = f"dataflow {self.name!r}, {self.end_text() or f'epoch {self.epoch} is open'}"
        forms = [each.form for each in self._inputs.values()]
        return html_or_text(self, lambda: flow_picture(title, forms, list(self._outputs.values())))

    if not TYPE_CHECKING:

        @short_lookup
        def __getattr__(self, name: str) -> NoReturn:
            ends = vars(self)  # empty if `__init__` has failed
            kinds = [kind for kind in ("input", "output") if name in ends.get(f"_{kind}s", ())]
            if kinds:
                are = " and ".join(f"an {kind}" for kind in kinds)
                calls = " or ".join(f"{kind}({name!r})" for kind in kinds)
                raise AttributeError(f"a flow has no {name!r}: it is {are}; write {calls}")
            raise AttributeError(OF_FLOWS.message(f"a flow has no {name!r}", name, dir(Flow)))

        def __getitem__(self, name: object) -> NoReturn:
            raise MisuseError(f"a flow has no [{name!r}]: write output({name!r}), or input({name!r})")

    @property
    def inputs(self) -> list[str]:
        """The names of the inputs."""
        return list(self._inputs)

    @property
    def outputs(self) -> list[str]:
        """The names of the outputs."""
        return list(self._outputs)

    def input(self, name: str) -> FlowInput:
        """Return the input of that name; raise `MisuseError` if there is none."""
        key: object = name  # users may write anything
        match = self._inputs.get(key) if isinstance(key, str) else None
        if match is None:
            raise no_end(self.name, "input", name, self._inputs, self._outputs)
        return match

    def output(self, name: str) -> FlowOutput:
        """Return the output of that name; raise `MisuseError` if there is none."""
        key: object = name  # users may write anything
        match = self._outputs.get(key) if isinstance(key, str) else None
        if match is None:
            raise no_end(self.name, "output", name, self._inputs, self._outputs)
        return match

    def seal(
        self,
        expected: Sequence[ExpectedAppend] = (),
        *,
        through: int | None = None,
        wait: bool | None = None,
        timeout: float | None = None,
    ) -> int:
        """Seal the open epoch: complete it at all inputs, on all workers, and return it. Every row that this
        client has inserted is in that epoch or in an earlier one.

        `through` seals all epochs up to that one instead; those that are sealed already stay so. Use it if
        epochs are times, or for inputs of a dataflow that also imports others, whose epochs may be far ahead.

        `wait` also waits until that epoch is complete everywhere, as `wait(seal())` does, but sends both
        requests to workers in other processes at once. After `timeout` seconds of waiting it raises
        `WaitTimeoutError`; then the epoch is sealed, and `wait()` goes on waiting. The seal itself has no
        limit: it waits for the turn of another thread, or for the current step of worker 0. Without `wait`
        this does not wait for the work: `Flow.wait` does, and reading. If that work fails, they raise the
        error, or a later call does.

        In a durable cluster the epoch is on disk when this returns. `wait=False` does not wait for the disk
        (`durable_before`), so that many epochs share one sync.

        `expected` names appends (by `FlowInput.append` or `AppendClient.append`) that must have arrived; if
        one has not, this seals nothing, and the error lists the missing ones. It is no error if another
        client has sealed the epoch meanwhile: then that epoch is complete.
        """
        if isinstance(expected, int):  # also 0, which would otherwise count as no appends
            raise MisuseError(
                f"seal takes the appends that must have arrived, not {expected!r}. To complete epochs up to "
                f"one write seal(through={expected!r}); the open one alone, {self.epoch}: seal()"
            )
        seconds: float | None
        if wait:
            seconds, began = (-1.0, 0.0) if timeout is None else (seconds_of(timeout), time.monotonic())
        elif timeout is None:
            seconds, began = None, 0.0
        else:
            raise MisuseError("seal waits only with wait=True: write seal(wait=True, timeout=…)")
        if through is None and not expected:
            before = self.epoch
            try:
                epoch, is_done = self.seal_open(seconds, wait is False)
            finally:  # also if the wait was too long
                if self.own_epochs and self.epoch > before:
                    self.note_sealed(self.epoch - 1)
            if is_done or (seconds is None and epoch >= 0):
                return epoch
        else:
            epoch = -1
        if epoch < 0:
            epoch = self._seal_settled(expected, through)
        if seconds is not None:
            waited = 0.0 if seconds < 0 else min(seconds, time.monotonic() - began)
            self.wait_for(epoch, seconds if seconds < 0 else seconds - waited, waited)
        return epoch

    def _seal_settled(self, expected: Sequence[ExpectedAppend], through: int | None) -> int:
        """Seal an epoch after settling all posts."""
        # If rows have entered a later epoch than this client knew, that is the one to seal.
        self.settle(seals=True)
        epoch = self.epoch if through is None else epoch_of(through, "seal(through=…)")
        if expected:
            self._check_arrived(epoch, expected)
        if epoch >= self.epoch:
            self.note_epoch(self.ask_first(Decide(self.index, epoch, True)).integer("open"))
        self.note_sealed(epoch)
        return epoch

    @property
    def durable_before(self) -> int:
        """The first epoch that a restart of a durable cluster may lose; earlier ones are on disk, on all
        workers. Raise `MisuseError` if the cluster is not durable.
        """
        before = self.ask_first(Describe(self.index)).integer("durable")
        if before < 0:
            raise MisuseError("this cluster keeps no epochs: start it by timely.connect(…, durable=FOLDER)")
        return before

    def refresh(self) -> int:
        """Ask worker 0 for the open epoch, which another client may have changed; return it."""
        self.note_epoch(self.ask_first(Describe(self.index)).integer("epoch"))
        return self.epoch

    def wait(self, epoch: int | None = None, timeout: float | None = None) -> int:
        """Block until `epoch` (by default the last sealed one) is complete everywhere; return it. Right
        behind a seal, `seal(wait=True)` does both.

        Raise `WaitTimeoutError` after `timeout` seconds, `PeerError` if a worker is lost meanwhile. Embedded
        workers raise the first at once if no other thread of the program could seal the epoch, and otherwise
        after the step in which the time is over; the next call goes on from there.
        """
        if type(epoch) is not int:
            epoch = self.epoch - 1 if epoch is None else epoch_of(epoch, "wait(epoch)")
        self.wait_for(epoch, -1.0 if timeout is None else seconds_of(timeout))
        return epoch

    def finish(self, timeout: float | None = None) -> int:
        """Close all inputs, and block until all consequences of their rows are complete on all workers.

        Then `changes()` of an output returns all changes that this client has not read yet, also those at
        epochs later than the sealed ones, and `snapshot()` returns the collection after the last change.
        Return the epoch behind the last one in which an output has changed. A dataflow that reads others is
        finished when these are. Raise `WaitTimeoutError` after `timeout` seconds; then this may be called
        again.
        """
        seconds = seconds_of(timeout)
        until = time.monotonic() + seconds
        for each in self._inputs.values():
            each.close()
        left = seconds if seconds < 0 else max(0.0, until - time.monotonic())
        self.wait_for(FOREVER - 1, left, 0.0 if seconds < 0 else seconds - left)
        for name in self._outputs:
            held = self.ask_all(Progress(self.index, name, keep_from=0, extent=True))
            self.note_epoch(max(reply.integer("last") for reply in held))
        return self.epoch

    def uninstall(self, *, cascade: bool = False) -> None:
        """End this dataflow on all workers, for all clients, and free its memory; other dataflows go on.

        From now on every call for it, and every wait, raises `UninstalledError`. Raise `MisuseError` while
        other dataflows import from this one, unless `cascade` ends them, too.
        """
        self.ask_first(Uninstall(self.index, cascade))
        # Other workers hear of it a moment later. Until then they would take rows that nobody will ever read.
        for worker in range(self.workers):
            self._wait_gone(worker, time.monotonic() + REPLY_SECONDS_MAX)

    def _wait_gone(self, worker: int, deadline: float) -> None:
        def makes(members: Members) -> Requests:
            return [(worker, Describe(self.index), None)] if worker < members.count else []

        while True:
            try:
                if not self._workers.ask_members(makes):
                    return  # the worker is gone, too
            except UninstalledError as error:
                self._hear(error)
                return
            if time.monotonic() > deadline:
                raise WaitTimeoutError(
                    f"worker {worker} has not let go of dataflow {self.index} within "
                    f"{REPLY_SECONDS_MAX:.0f} s; it will, when what it computes is done"
                )
            time.sleep(_GONE_LOOK_SECONDS)

    def _check_arrived(self, epoch: int, expected: Sequence[ExpectedAppend]) -> None:
        def makes(members: Members) -> Requests:
            by_worker: list[list[Value]] = [[] for _ in range(members.count)]
            for name, writer, sequence in expected:
                by_worker[worker_of(writer, sequence, members.count)].append([name, writer, sequence])
            return [
                (worker, Missing(self.index, epoch, listed), None)
                for worker, listed in enumerate(by_worker)
                if listed
            ]

        replies = self.ask_members(makes, Missing(self.index, epoch, []))
        missing = [entry for reply in replies for entry in reply.items("missing")]
        if missing:
            listed = "\n    ".join(str(entry) for entry in missing[:10])
            raise MisuseError(
                f"epoch {epoch} is not sealed: {len(missing)} of the expected appends have not arrived "
                f"(input, writer, sequence):\n    {listed}\n  Append them again, then seal"
            )


@in_short
class FlowInput(Offered):
    """One input of an installed dataflow."""

    _internal = frozenset({"form"})

    def __init__(self, flow: Installed, form: InputForm, writer: str) -> None:
        self._flow = flow
        self.form = form
        self._writer = writer
        self._rows_writer = f"{writer}/rows"
        self._is_keyed = bool(form.keys)
        self._is_closed = False
        """True if this client has closed it; another client may have, which only workers know."""
        self._place = None if self._is_keyed else (writer, 0)
        """Decides which worker gets unnamed insertions; None: worker 0, as the order of calls counts."""
        # Counters that several threads may share: `next` is one step.
        self._numbers = count()
        self._large_numbers = count()
        self._row_numbers = count()
        self._append_numbers = count()
        self._last_name = LastName(form.name)

    def __repr__(self) -> str:
        """Return the names of the input and of the dataflow, and the description of its rows."""
        return f"FlowInput({self.form.name!r} of {self._flow.name!r}: {self.form.description})"

    if not TYPE_CHECKING:

        @short_lookup
        def __getattr__(self, name: str) -> NoReturn:
            missing = f"an input of a flow has no {name!r}"
            raise AttributeError(OF_INPUTS.message(missing, name, dir(FlowInput)))

    @answers_misfits(of_rows)
    def insert(self, data: object, *, writer: str | None = None, sequence: int | None = None) -> int:
        """Add rows (Arrow, pandas, a structured array, tuples or dicts; or records) to the open epoch, and
        return it: all rows enter one epoch, on all workers, or, after an error, none.

        Few rows, or a small table, go to worker processes without waiting for the answer. If a worker refuses
        them, the next call of this thread, or a seal of another thread, or else `Cluster.close` raises that,
        with the line of this call, and does nothing else. The returned epoch is then the open one as far as
        this client knows; if another client has sealed it, the rows enter a later one, which `seal` of this
        client returns.

        `writer` and `sequence` name the call: a repetition with the same name, however much later, counts
        once. Number the calls of a writer for this input 0, 1, 2, …, whether they insert or remove. A
        repeated call returns the epoch that is open now: the rows are in that one or, if the first call had
        arrived, in an earlier one.
        """
        if self._is_keyed:
            raise other_kind(self.form.name, self.form.keys, "insert")
        return self._add("insert", self.form, data, 1, writer, sequence)

    @answers_misfits(of_rows)
    def upsert(self, data: object, *, writer: str | None = None, sequence: int | None = None) -> int:
        """Set the values of keys, at an input that keeps the last value by key (`mode="upsert"`); otherwise
        like `insert`. Return the epoch.

        Within an epoch the last call counts, and in it the last row. Worker 0 orders calls as it takes them:
        a call that has returned is before one that begins, in any thread of this client. (Before calls of
        another client only once this client has sealed, or called anything else.) A call with `writer` and
        `sequence` may be repeated, and counts once, where it came first.
        """
        if not self._is_keyed:
            raise other_kind(self.form.name, self.form.keys, "upsert")
        return self._add("upsert", self.form, data, 1, writer, sequence)

    @answers_misfits(of_rows)
    def delete(self, keys: object, *, writer: str | None = None, sequence: int | None = None) -> int:
        """Remove the values of these keys; otherwise like `upsert`. `keys` are bare values if the key has one
        column; or tuples, dicts, or a table with the columns of the key. A key without a value changes
        nothing.
        """
        if not self._is_keyed:
            raise other_kind(self.form.name, self.form.keys, "delete")
        return self._add("delete", self.form.of_keys, self.form.key_rows(keys), -1, writer, sequence)

    @answers_misfits(of_rows)
    def remove(self, data: object, *, writer: str | None = None, sequence: int | None = None) -> int:
        """Remove rows from the collection, in the open epoch; otherwise like `insert`. For collections
        only.
        """
        if self._is_keyed:
            raise other_kind(self.form.name, self.form.keys, "remove")
        return self._add("remove", self.form, data, -1, writer, sequence)

    @answers_misfits(of_rows)
    def apply(
        self,
        changes: object,
        op: str = "op",
        *,
        ops: Mapping[object, ChangeKind] | None = None,
        writer: str | None = None,
        sequence: int | None = None,
    ) -> int:
        """Take a change feed, in its order: rows whose column `op` says what happened to them, or Debezium's
        envelopes. Return the epoch. All of it enters one epoch, or, after an error, nothing.

        `ops` says which values of `op` mean insert, update, before and delete, where these are not c, r, u,
        d, +I, -U, +U, -D, insert, update, delete, …. `writer` and `sequence`: see `insert`.
        """
        table = changes_table(self.form, changes, op, ops)
        if writer is None and sequence is None:
            return self._add_table(None, table, 0, None, None)
        _, writer, sequence = self._identity(writer, sequence)
        add = partial(self._add_table, "apply", table, 0, writer, sequence)
        return self._last_name.once((writer, sequence), "apply", table, add)

    def append(
        self,
        table: pa.Table,
        *,
        epoch: int | str | None = None,
        writer: str | None = None,
        sequence: int | None = None,
    ) -> bool:
        """Add rows as often as their column `diff` says; return False for a repetition, else True.

        With `writer` and `sequence` the rows enter `epoch` (by default the open one that this client knows),
        and a repetition of (epoch, writer, sequence) changes nothing; raise `InputClosedError` if the epoch
        is sealed. Give both, or neither: without them an append is always new, and, if the order of calls
        counts, it is one of the calls. If a durable cluster starts again during the call, the client makes it
        again, and then this may be the repetition.

        `epoch` may name a column that has the epoch of each row, a whole number. One call then adds rows to
        many epochs: to all of them, or, after an error, to none. A repetition of (writer, sequence) changes
        nothing as long as one of the epochs is open. The column belongs to the rows only if the input has a
        column of that name. `Flow.seal(through=…)` completes these epochs together.
        """
        if not isinstance(table, pa.Table):
            raise MisuseError(
                f"input {self.form.name!r}: append takes an Arrow table of the columns and 'diff', not "
                f"{type(table).__name__}: pa.Table.from_pandas(frame, preserve_index=False), or to_arrow() "
                "of Polars. insert(…) and remove(…) take rows of any kind, into the open epoch"
            )
        table = stored(table)
        if (writer is None) != (sequence is None):
            raise MisuseError("an append is known by writer and sequence together: give both, or neither")
        self._flow = heeding(self._flow, self.form.name) if self._flow.ahead else self._flow
        is_named = writer is not None
        if writer is None or sequence is None:
            if epoch is None:
                self._add_table(None, table, 0, None, None)
                return True
            # Without a number workers have nothing to remember, and the order is that of calls.
            place, (writer, sequence) = self._place, self._append_name()
        else:
            place = writer, sequence = named(writer, sequence)
        at = self._flow.epoch if epoch is None else epoch
        request = append_request(self._flow.index, self.form.name, at, writer, sequence)
        (reply,) = self._flow.ask_members(to_one(place, request, table), request)
        if table.num_rows:
            self._flow.filled_input = self.form.name
        return bool(reply.integer("is_new")) or not is_named

    @property
    def epoch(self) -> int:
        """The open epoch of this input, as far as this client knows."""
        self._flow = heeding(self._flow, self.form.name) if self._flow.ahead else self._flow
        return self._flow.epoch

    def seal(self) -> int:
        """Complete the open epoch of this input alone, and return it. From then on the input has epochs of
        its own; `Flow.seal` completes them as far as the others. An epoch of an output is complete once all
        inputs are past it. `Cluster.replace` takes inputs of one epoch only.
        """
        return self._with_own_epochs().seal()

    def advance_to(self, epoch: int) -> int:
        """Complete all epochs of this input before `epoch`, as `seal` does; return the open one then."""
        return self._with_own_epochs().advance_to(epoch_of(epoch, "advance_to(epoch)"))

    def _with_own_epochs(self) -> OwnEpochs:
        if not isinstance(self._flow, OwnEpochs):
            self._flow = OwnEpochs(self._flow, self.form.name)
        return self._flow

    def close(self) -> int:
        """Complete the open epoch of this input; no other epoch follows, and no rows can be added any more.

        The dataflow frees all that it kept only because rows might still come. Return the epoch that is open
        at the other inputs, or, if all are closed, the one that would be next. From then on insertions raise
        `InputClosedError`: for this client at once, for other clients as any refusal.
        """
        self._flow.settle(seals=True)
        request = Decide(self._flow.index, -1, close=[self.form.name])
        self._flow.note_epoch(self._flow.ask_first(request).integer("open"))
        self._is_closed = True
        return self._flow.epoch

    def _add(
        self, call: str, form: InputForm, data: object, diff: int, writer: str | None, sequence: int | None
    ) -> int:
        """Send few plain rows as they are, other data as a table. Wait for the answer if they have a name."""
        flow = self._flow
        if flow.ahead:
            flow = self._flow = heeding(flow, self.form.name)
        rows: list[Value] | None = form.plain_rows(data)  # type: ignore[assignment]  # plain ones are such
        if writer is not None or sequence is not None:
            _, writer, sequence = self._identity(writer, sequence)
            if not rows:
                add = partial(self._add_table, call, form.to_table(data), diff, writer, sequence)
            else:
                flow.filled_input, add = self.form.name, partial(self._deliver, rows, diff, writer, sequence)
            return self._last_name.once((writer, sequence), call, data, add)
        if not rows:  # no rows, or no plain ones
            return self._add_table(call, form.to_table(data), diff, None, None)
        flow.filled_input = self.form.name
        if self._is_closed:
            self._refuse_as_closed()
        # To worker 0, so that a seal may go behind them. For keys the last call counts, in whichever thread.
        name, number = self.form.name, next(self._row_numbers)
        return flow.insert_rows(name, self._rows_writer, number, diff, rows, call, self._is_keyed)

    def _deliver(self, values: list[Value], diff: int, writer: str, sequence: int) -> int:
        flow, name = self._flow, self.form.name
        request = Deliver(flow.index, name, writer, sequence, IN_OPEN, flow.epoch, diff, values)
        return self._entered(flow.ask_first(request))

    def _add_table(
        self, call: str | None, table: pa.Table, diff: int, writer: str | None, sequence: int | None
    ) -> int:
        """Send few rows to one worker; many in ranges to all workers, where they enter once all have arrived.
        Wait for the answer to a small table only if the caller has named it, or has passed no `call`.
        """
        flow, workers = self._flow, self._flow.workers
        if table.num_rows:
            flow.filled_input = self.form.name
        # An insertion with a name may repeat one from before the end; only workers know.
        if self._is_closed and writer is None and sequence is None:
            self._refuse_as_closed()
        if call is not None and writer is None and sequence is None and is_small(table, workers):
            writer, sequence = self._rows_writer, next(self._row_numbers)
            small = Deliver(flow.index, self.form.name, writer, sequence, IN_OPEN, flow.epoch, diff)
            flow.post(0, small, table, f"{call}(…), input {self.form.name!r},", self._is_keyed)
            return flow.epoch
        if is_large(table, workers):
            _, writer, sequence = self._identity(writer, sequence, is_large=True)
            return insert_in_parts(flow, self.form.name, table, diff, writer, sequence)
        place, writer, sequence = self._identity(writer, sequence)
        request = Deliver(flow.index, self.form.name, writer, sequence, IN_OPEN, flow.epoch, diff)
        (reply,) = flow.ask_members(to_one(place, request, table), request)
        return self._entered(reply)

    def _identity(
        self, writer: object, sequence: object, is_large: bool = False
    ) -> tuple[tuple[str, int] | None, str, int]:
        """Return what decides which worker an insertion goes to (None: worker 0), and the name of the
        insertion.

        Worker 0 knows the insertions that the caller has named, whatever their size: the numbers of a writer
        are one series. Unnamed insertions are numbered in three series: posted ones and those sent in parts
        (both known to worker 0), and the rest (known to the worker they go to).
        """
        if writer is not None and sequence is not None:
            return None, *named(writer, sequence)
        if writer is not None or sequence is not None:
            raise MisuseError("an insertion is known by writer and sequence together: give both, or neither")
        if is_large:
            return None, f"{self._writer}/parts", next(self._large_numbers)
        return self._place, self._writer, next(self._numbers)

    def _append_name(self) -> tuple[str, int]:
        """Return the name of an append for which the caller has none. Clients of a durable cluster make one,
        so that the append can be made again after a restart; but not if the order of calls counts, since
        appends with names are in the order of these.
        """
        if self._flow.incarnation and not self._is_keyed:
            return f"{self._writer}/appends", next(self._append_numbers)
        return self._writer, UNNAMED

    def _entered(self, reply: Reply) -> int:
        self._flow.on_answer(reply)
        return reply.integer("epoch")

    def _refuse_as_closed(self) -> NoReturn:
        """Raise at once the refusal that workers would send, and that only the next call would raise."""
        self._flow.settle()  # first raise that the dataflow has ended, or earlier refusals
        raise closed_error(self.form.name)
