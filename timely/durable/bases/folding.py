"""A fold: the next base of a store, from the base before and the logs that it does not stand for.

    s(D) of a dataflow D, the epoch up to which its rows are summed, is at most, less the lookback of D,

        what D has sealed, and so have those whose exports it imports
        the last epoch whose changes are kept, or forgotten, at every output of D
        s(I) of every dataflow I that imports from D: I begins a restart at s(I), with D as of then; for a
        version that is about to take the place of another, the epoch with which it began

The rows are read in several passes if they are many: each takes the rows with certain hashes. So the memory
of a fold is bounded, whatever the inputs hold.

A fold changes nothing of what is there, and puts its manifest last. It may end anywhere. Before that it
stores the answers that the logs have (`../answers/`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final, cast
from uuid import uuid4

from ...dictionaries import dictionaries
from ...errors import PeerError
from ...limits import ENDED_DATAFLOWS_MAX, FOLD_BYTES_MAX, FOLD_DIVIDED_ROWS_MIN, FOLD_FILE_ROWS_MAX
from ...wire.batch import Batch
from ...wire.requests import ONE_ATTEMPT
from ..answers.writing import AnswersOfFold
from ..journal import READER, Shape, batches_in, place_of_part
from ..past import Past
from ..store import log_folder, store_errors
from ..versions import PastSwitch
from .coverage import LoggedRecord, Logs, unreadable
from .facts import InputFacts, OutputFacts
from .files import read_table, write_table
from .history import History, InputHistory, KeptEpochs, read_history
from .manifest import (
    Base,
    BaseFile,
    FlowBase,
    InputBase,
    OutputBase,
    SegmentName,
    base_numbers,
    file_path,
    write_base,
)
from .positions import latest_places, source_key
from .raw_rows import RawRows
from .rows_form import BUCKETS, BaseRows, BucketRange, RowsForm, new_rows

__all__ = ["fold", "summed_epochs"]

_PARTS: Final = 24
"""A multiple of many small numbers of workers."""

_ROW_BYTES: Final = 48
"""About the memory of a row of a base while it is folded, and of 4 bytes of a log."""

_Tidy = Callable[[Sequence[RowsForm]], None]
"""Forgets symbols that only rows need which are not in these; None: they stay."""


def fold(
    logs: Logs,
    live: int = 0,
    *,
    forgets: bool = False,
    bytes_max: int = FOLD_BYTES_MAX,
    tidy: _Tidy | None = None,
) -> Base | None:
    """Write the base that stands for all these logs, and return it; None if another fold was faster.

    Args:
        logs: the logs, and the base before.
        live: the incarnation that is at work and may yet decide about parts; 0: none is.
        forgets: nobody reads changes of epochs that are sealed by now, although no client has said so.
        bytes_max: about the memory for rows.
        tidy: called between segments, and between passes.

    Raises `StoreError` for damage, or if the store cannot be used.
    """
    with store_errors(logs.store):
        history = read_history(logs, live)
        number = max([*base_numbers(logs.store), logs.base.number]) + 1
        return _Fold(logs, history, number, forgets, tidy).run(bytes_max)


def summed_epochs(history: History, forgets: bool = False) -> dict[int, int]:
    """Return the epoch up to which the rows of each dataflow are summed; -1: none are."""
    flows = history.past.flows
    sealed = history.past.sealed()
    summed: dict[int, int] = {}
    needed: dict[int, int] = {}
    for version in history.past.versions.values():  # it may yet take the place of the old one
        needed.update(
            {owner: min(version.as_of, needed.get(owner, version.as_of)) for owner in version.reads}
        )
    for number in sorted(flows, reverse=True):
        flow, facts = flows[number], flows[number].fold_facts
        last = sealed[number]
        if not forgets:
            last = min([last, *(each.kept_before - 1 for each in history.outputs[number].values())])
        last = min(last, needed.get(number, last)) - facts.lookback
        can_sum = bool(flow.reads) or any(each.sums for each in facts.inputs)
        before = -1 if flow.base is None else flow.base.summed
        summed[number] = max(before, last if can_sum and last >= flow.as_of else -1)
        needs = flow.as_of if facts.import_reason or summed[number] < 0 else summed[number]
        for owner in flow.reads:
            needed[owner] = min(needs, needed.get(owner, needs))
    return summed


class _Fold:
    """One fold."""

    def __init__(self, logs: Logs, history: History, number: int, forgets: bool, tidy: _Tidy | None) -> None:
        self._logs = logs
        self._history = history
        self._past: Past = history.past
        self._number = number
        self._unique = uuid4().hex[:8]
        self._forgets = forgets
        self._tidy = tidy
        self._summed = summed_epochs(history, forgets)
        self._base = Base(number)
        self._raw: dict[tuple[int, str, bool], RawRows] = {}
        self._forms: dict[tuple[int, str, bool], RowsForm] = {}
        """The rows of this pass, by dataflow, name, and whether it is an output."""
        self._answers = AnswersOfFold(logs.store, history, self._unique)

    def run(self, bytes_max: int) -> Base | None:
        """Write the files of the base, and its manifest."""
        base = self._base
        base.next_number = self._past.next_number
        base.gone, base.ended_before = self._ended()
        base.pinned = self._history.pinned
        base.covered = self._covered()
        for number in self._past.flows:
            base.flows[number] = self._flow(number)
        base.switches = [
            self._switch(each).plain()
            for each in self._past.switches.values()
            if each.old in base.gone or each.new in base.flows
        ]
        self._begin_raw()
        passes = self._passes(bytes_max)
        for number in range(passes):
            buckets = BucketRange(BUCKETS * number // passes, BUCKETS * (number + 1) // passes)
            self._take_pass(buckets, takes_raw=number == 0)
            self._write_pass(buckets, passes)
        self._write_raw()
        self._answers.finish()  # before the base: logs that it stands for are not read again
        return base if write_base(self._logs.store, base) else None

    # What there is apart from rows.

    def _ended(self) -> tuple[dict[int, tuple[str, list[str]]], int]:
        """Return why the last dataflows have ended that have, and below which number others have that are not
        among these.
        """
        past = self._past
        numbers = sorted(past.gone)
        first_version = min(
            past.versions, default=past.next_number
        )  # it may yet be one of those that are there
        old = [number for number in numbers[:-ENDED_DATAFLOWS_MAX] if number < first_version]
        ended_before = max([past.ended_before, *(number + 1 for number in old[-1:])])
        last = {number: past.gone[number] for number in numbers[len(old) :]}
        return {number: (why, list(classes)) for number, (why, classes) in last.items()}, ended_before

    def _covered(self) -> dict[tuple[int, int], int]:
        covered = {
            (log.incarnation, log.process): max(SegmentName.of(path).number for path, _ in log.segments)
            for log in self._logs.logs
        }
        for (incarnation, process), last in self._logs.base.covered.items():
            # Also of logs that no `begin` lists any more, as long as some of their files are there.
            key = incarnation, process
            if key in covered or self._logs.store.list(log_folder(incarnation)):
                covered[key] = max(last, covered.get(key, -1))
        return covered

    def _switch(self, switch: PastSwitch) -> PastSwitch:
        """Return a switch without failures of the old version that nobody asks for any more."""
        flow = self._base.flows.get(switch.new)
        if flow is not None and flow.right_from < switch.epoch:
            return switch
        return switch._replace(outputs=dict.fromkeys(switch.outputs, ()))

    def _flow(self, number: int) -> FlowBase:
        flow, summed = self._past.flows[number], self._summed[number]
        right_from = summed + flow.fold_facts.lookback if summed >= 0 else -1
        places = [(*reader, *place) for reader, place in latest_places(flow.places).items()]
        inputs = {name: each.as_base(flow.sealed) for name, each in self._history.inputs[number].items()}
        outputs = dict(self._history.outputs[number])
        for name, output in outputs.items():
            if self._forgets:
                kept_from = max(right_from + 1, output.kept_from)
                outputs[name] = OutputBase([], kept_from, max(kept_from, output.kept_before))
        digests = {name: each.notes(max(summed, right_from)) for name, each in flow.digests.items()}
        sources = {name: positions.plain() for name, positions in flow.sources.items()}
        return FlowBase(
            flow.facts,
            flow.sealed,
            flow.closed,
            summed,
            right_from,
            inputs,
            outputs,
            places,
            digests,
            sources,
            dict(flow.sealed_alone),
        )

    # Which rows are taken, and into what.

    def _files_before(self, number: int, name: str, is_output: bool) -> list[BaseFile]:
        before = self._past.flows[number].base
        if before is None:
            return []
        parts: dict[str, InputBase] | dict[str, OutputBase] = before.outputs if is_output else before.inputs
        return parts[name].files if name in parts else []

    def _first_kept(self, number: int, name: str) -> int:
        """Return the first epoch whose changes of an output the base has."""
        flow, switch = self._base.flows[number], self._past.flows[number].switch
        has_older = switch is not None and name in switch.outputs and flow.right_from < switch.epoch
        return -1 if has_older else flow.outputs[name].kept_from

    def _all_facts(self) -> Iterator[tuple[int, InputFacts | OutputFacts, bool]]:
        for number, flow in self._past.flows.items():
            facts = flow.fold_facts
            for name in self._history.inputs[number]:
                yield number, facts.input(name), False
            for output in facts.outputs:
                yield number, output, True

    def _is_rewritten(self, number: int, facts: InputFacts | OutputFacts, is_output: bool) -> bool:
        """Return True if the rows of an input or output are to be written anew."""
        files = self._files_before(number, facts.name, is_output)
        if isinstance(facts, OutputFacts):
            first = self._first_kept(number, facts.name)
            logged = (number, facts.name) in self._history.older or any(
                each.first < each.stop
                for (flow, name, _), each in self._history.logged.items()
                if (flow, name) == (number, facts.name)
            )
            return logged or any(file.epochs[0] < first for file in files)
        before = self._past.flows[number].base
        summed, summed_before = self._summed[number], -1 if before is None else before.summed
        grows = facts.sums and summed > summed_before
        return self._history.inputs[number][facts.name].has_rows or (
            grows and (facts.expires or any(file.epochs[1] > summed_before for file in files))
        )

    def _begin_raw(self) -> None:
        for number, facts, is_output in self._all_facts():
            if facts.form:
                continue
            dropped = self._summed[number] if isinstance(facts, InputFacts) and facts.sums else -1
            if is_output:
                dropped = self._first_kept(number, facts.name) - 1
            files = self._files_before(number, facts.name, is_output)
            self._raw[number, facts.name, is_output] = RawRows(facts.details, files, dropped)

    def _passes(self, bytes_max: int) -> int:
        rows = sum(
            file.rows
            for number, facts, is_output in self._all_facts()
            for file in self._files_before(number, facts.name, is_output)
            if self._is_rewritten(number, facts, is_output)
        )
        logged = sum(
            end
            for log in self._logs.logs
            for path, end in log.segments
            if not self._logs.base.covers(SegmentName.of(path))
        )
        return min(BUCKETS, 1 + (_ROW_BYTES * rows + _ROW_BYTES // 4 * logged) // bytes_max)

    def _take_pass(self, buckets: BucketRange, takes_raw: bool) -> None:
        """Take all rows of these buckets, from the files of the base before and from the logs."""
        self._forms = {}
        self._answers.begin_pass(buckets)
        for number, facts, is_output in self._all_facts():
            if facts.form and self._is_rewritten(number, facts, is_output):
                form = self._forms[number, facts.name, is_output] = new_rows(facts, buckets)
                for file in self._files_before(number, facts.name, is_output):
                    if file.buckets.first < buckets.stop and buckets.first < file.buckets.stop:
                        form.take_table(read_table(self._logs.store, self._logs.base.number, file))
        try:
            for logged in self._logs.records():
                if logged.record.head[0] == "segment" and not logged.record.head[-2]:
                    self._forget_symbols()  # this segment says all symbols anew that it needs
                try:
                    self._take(logged, takes_raw)
                except PeerError as error:
                    raise unreadable(self._logs, logged, error) from error
        finally:
            for dictionary in dictionaries():
                dictionary.withdraw(READER)

    def _forget_symbols(self) -> None:
        if self._tidy is not None:
            self._tidy([*self._forms.values(), *self._answers.forms])

    def _take(self, logged: LoggedRecord, takes_raw: bool) -> None:
        head, frames = logged.record.head, iter(logged.record.frames)
        match head:
            case ("part", int(worker), int(flow), str(name), *facts):
                self._take_part(flow, name, logged, worker, facts, takes_raw)
            case ("few", int(), int(flow), str(name), str(), int(), int(epoch), int(diff), rows):
                if not logged.is_pinned:
                    plain = cast("Sequence[Sequence[object]]", rows)
                    self._take_plain((flow, name, False), epoch, plain, diff, takes_raw)
            case ("rows", int(), int(flow), str(name), *_, by_epoch):
                key = None if logged.is_pinned else (flow, name, False)
                self._take_by_epoch(key, by_epoch, frames, takes_raw)
            case ("source", int(), int(flow), str(name), int(), int(), bytes(), by_epoch):
                key = None if logged.is_pinned else (flow, source_key(name), False)
                self._take_by_epoch(key, by_epoch, frames, takes_raw)
            case ("older", int(), int(flow), str(output), int(), by_epoch):
                key = None if logged.is_pinned else (flow, output, True)
                self._take_by_epoch(key, by_epoch, frames, takes_raw)
            case ("kept", int(), int(flow), str(output), int(), int(), int(), by_epoch):
                only = self._history.logged.get((flow, output, logged.log.incarnation))
                key = None if logged.is_pinned or only is None else (flow, output, True)
                self._take_by_epoch(key, by_epoch, frames, takes_raw, only)
            case ("answer", *_, int(epoch), str(), bool(), shape):
                form = None if logged.is_pinned else self._answers.form_of(logged.log.incarnation, head)
                batches = batches_in(cast("Shape", shape), frames, is_mine=form is not None)
                if form is not None:
                    form.take(epoch, batches)
            case _:
                pass  # not of rows

    def _take_by_epoch(
        self,
        key: tuple[int, str, bool] | None,
        by_epoch: object,
        frames: Iterator[memoryview],
        takes_raw: bool,
        only: KeptEpochs | None = None,
    ) -> None:
        for epoch, shape in cast("Sequence[tuple[int, Shape]]", by_epoch):
            is_taken = only is None or only.first <= epoch < only.stop
            self._take_batches(key if is_taken else None, epoch, shape, frames, takes_raw)

    def _take_part(
        self,
        flow: int,
        name: str,
        logged: LoggedRecord,
        worker: int,
        facts: Sequence[object],
        takes_raw: bool,
    ) -> None:
        writer, sequence, attempt, number, _, _, shape = cast(
            "tuple[str, int, str, int, bool, int, Shape]", facts
        )
        incarnation, frames = logged.log.incarnation, iter(logged.record.frames)
        history: InputHistory | None = self._history.inputs.get(flow, {}).get(name)
        parts = (
            None if history is None else history.parts.get((incarnation, writer, sequence, attempt, worker))
        )
        part = None if parts is None else parts.get(number)
        if part is None or part[:2] != (logged.path, logged.record.start):
            self._take_batches(None, 0, shape, frames, takes_raw)
            return
        staged = incarnation, writer, sequence, attempt != ONE_ATTEMPT
        order = self._past.flows[flow].input(name).entered[staged].order
        at = 0 if order.attempts is None else order.attempts.index(attempt)
        place = place_of_part(number, worker)
        self._take_batches(
            (flow, name, False), order.epoch, shape, frames, takes_raw, order.order + at, place
        )

    def _take_plain(
        self,
        key: tuple[int, str, bool],
        epoch: int,
        rows: Sequence[Sequence[object]],
        diff: int,
        takes_raw: bool,
    ) -> None:
        if key in self._forms:
            self._forms[key].take_plain(epoch, rows, [diff] * len(rows))
        elif takes_raw and key in self._raw:
            self._raw[key].take_plain(epoch, rows, [diff] * len(rows))

    def _take_batches(
        self,
        key: tuple[int, str, bool] | None,
        epoch: int,
        shape: Shape,
        frames: Iterator[memoryview],
        takes_raw: bool,
        order: int = 0,
        place: int | None = None,
    ) -> None:
        """Take batches in the next frames; if nobody takes them, learn their symbols only."""
        if key is not None and takes_raw and key in self._raw:
            own = [next(frames) for _, count in shape for _ in range(count)]
            self._raw[key].take(epoch, shape, own, order, place)
            return
        form = None if key is None else self._forms.get(key)
        batches: list[Batch] = batches_in(shape, frames, is_mine=form is not None)
        if form is not None:
            form.take(epoch, batches, order, place)

    # What is written.

    def _write_pass(self, buckets: BucketRange, passes: int) -> None:
        """Write the rows that were taken."""
        for (number, name, is_output), form in self._forms.items():
            flow = self._base.flows[number]
            part: InputBase | OutputBase = flow.outputs[name] if is_output else flow.inputs[name]
            facts = self._past.flows[number].fold_facts
            summed = flow.summed if not is_output and facts.input(name).sums else -1
            for folded in form.folded(
                _ranges(buckets, form.rows * passes, passes), summed, self._past.flows[number].as_of
            ):
                rows = _kept_part(folded, self._first_kept(number, name)) if is_output else folded
                if rows.table.num_rows:
                    part.files.append(self._write(number, name, rows, is_output))
            self._forms[number, name, is_output] = new_rows(
                facts.output(name) if is_output else facts.input(name), BucketRange(0, 0)
            )
            self._forget_symbols()
        self._answers.write_pass(lambda rows: _ranges(buckets, rows * passes, passes))
        if buckets.stop == BUCKETS:
            for number, facts_of, is_output in self._all_facts():
                if facts_of.form and not self._is_rewritten(number, facts_of, is_output):
                    flow = self._base.flows[number]
                    parts = flow.outputs if is_output else flow.inputs
                    parts[facts_of.name].files = list(self._files_before(number, facts_of.name, is_output))

    def _write(self, number: int, name: str, folded: BaseRows, is_output: bool) -> BaseFile:
        what = f"{number}-{'out' if is_output else 'in'}-{re.sub('[^A-Za-z0-9_]', '_', name)[:40]}"
        # Inputs of one dataflow may have names that look alike here: the position tells them apart.
        facts = self._past.flows[number].fold_facts
        position = [each.name for each in (facts.outputs if is_output else facts.inputs)].index(name)
        path = file_path(self._number, self._unique, f"{what}-{position}-{folded.buckets.first:04}.parquet")
        return write_table(self._logs.store, path, folded, _epoch_column(folded))

    def _write_raw(self) -> None:
        for at, ((number, name, is_output), raw) in enumerate(self._raw.items()):
            flow = self._base.flows[number]
            part: InputBase | OutputBase = flow.outputs[name] if is_output else flow.inputs[name]
            path = file_path(self._number, self._unique, f"{number}-raw-{at}.log")
            part.files = raw.write(self._logs, path)


def _epoch_column(folded: BaseRows) -> int:
    """Return the number of the column of epochs: the last one of that name, with `diff` right behind."""
    names = folded.table.column_names
    return max(at for at, name in enumerate(names) if name == "epoch")


def _kept_part(folded: BaseRows, first: int) -> BaseRows:
    """Return the rows of epochs from `first` on; the epochs ascend."""
    epochs = folded.table.column(_epoch_column(folded)).to_numpy()
    return folded._replace(table=folded.table.slice(int(epochs.searchsorted(first))))


def _ranges(buckets: BucketRange, rows: int, passes: int) -> list[BucketRange]:
    """Divide the buckets of a pass for files of `rows` rows in all passes together."""
    parts = 1
    if rows >= FOLD_DIVIDED_ROWS_MIN:
        parts = _PARTS * -(-rows // (_PARTS * FOLD_FILE_ROWS_MAX))
    count = max(1, min(buckets.stop - buckets.first, -(-parts // passes)))
    first, size = buckets.first, buckets.stop - buckets.first
    return [BucketRange(first + size * at // count, first + size * (at + 1) // count) for at in range(count)]
