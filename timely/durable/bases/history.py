"""What do logs say that a base is to stand for, apart from the rows?

The names of deliveries, which parts count, how far each output is kept, and which segments a base cannot
replace yet.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias, cast

from ...limits import WRITERS_MAX
from ...wire.requests import ONE_ATTEMPT, WRITES_ONCE
from ..answers.logged import AnswerName, LoggedAnswers
from ..journal import IN_OPEN_EPOCH
from ..past import Past, PastFlow, PastInput, read_orders
from ..versions import TakenFacts, take_in
from .coverage import OF_FLOWS, LoggedRecord, Logs
from .manifest import InputBase, OutputBase, QueryBase, SegmentName
from .names import TakenNames
from .positions import source_key

__all__ = ["AttemptKey", "History", "InputHistory", "KeptEpochs", "LoggedPart", "read_history"]

_UNNAMED = -1
"""The sequence of an append that nobody can repeat."""

AttemptKey: TypeAlias = tuple[int, str, int, str, int]
"""Incarnation, writer, sequence, attempt, old worker."""


class LoggedPart(NamedTuple):
    """Where a part stands that counts, and its rows as the client has counted them."""

    path: str
    start: int
    rows: int


@dataclass
class InputHistory:
    """What has come in by one input, apart from the rows.

    parts   for each attempt, on each old worker, its parts that count, by number
    """

    names: TakenNames
    appends: list[tuple[str, int, list[int]]]
    queries: dict[str, QueryBase]
    calls: int
    parts: dict[AttemptKey, dict[int, LoggedPart]] = field(default_factory=dict)
    has_rows: bool = False

    @classmethod
    def of(cls, base: InputBase) -> InputHistory:
        """Begin with what a base has."""
        queries = {each.query: each for each in base.queries}
        return cls(TakenNames(base.names), list(base.appends), queries, base.calls)

    def has_decided(self, writer: str, sequence: int, attempt: str) -> bool:
        """Return True if there was a decision about this attempt, or about a later batch of its query."""
        if attempt == ONE_ATTEMPT:
            return (writer, sequence) in self.names
        return writer in self.queries and self.queries[writer].batch >= sequence

    def as_base(self, sealed: int) -> InputBase:
        """Return the same for a base, without files. Names are forgotten as inputs forget them (see
        `operators/inputs/deliveries.py`): of appends to epochs before the last sealed one, and, beyond so
        many, of writers, and of queries that write once, that were not heard of for longest.
        """
        appends = [each for each in self.appends if max(each[2]) >= sealed]
        once = [query for query in self.queries if query.startswith(WRITES_ONCE)]
        forgotten = set(once[: max(0, len(once) - WRITERS_MAX)])
        queries = [each for query, each in self.queries.items() if query not in forgotten]
        return InputBase([], self.names.plain()[-WRITERS_MAX:], appends, queries, self.calls)


class KeptEpochs(NamedTuple):
    """The epochs whose changes of an output count, as an incarnation has logged them: those of each epoch
    `first` ≤ epoch < `stop` are there from all workers.
    """

    first: int
    stop: int


@dataclass
class History:
    """See the module.

    logged   by flow, output and incarnation: which of the logged changes count
    outputs  by flow and output, as the next base has them, without files
    answers  to be stored, as far as the logs have them
    workers  how many each incarnation had
    older    by flow and output: the first epoch whose changes are not forgotten of those that an output had
             in the version before
    """

    past: Past
    inputs: dict[int, dict[str, InputHistory]] = field(default_factory=dict)
    outputs: dict[int, dict[str, OutputBase]] = field(default_factory=dict)
    logged: dict[tuple[int, str, int], KeptEpochs] = field(default_factory=dict)
    older: dict[tuple[int, str], int] = field(default_factory=dict)
    pinned: dict[SegmentName, tuple[str, int]] = field(default_factory=dict)
    answers: LoggedAnswers = field(default_factory=LoggedAnswers)
    workers: dict[int, int] = field(default_factory=dict)

    def newest_answers(self) -> dict[tuple[int, str], AnswerName]:
        """Return, by dataflow and output, the newest answer that counts."""
        return self.answers.newest(self.past, self.workers)

    def input(self, flow: int, name: str) -> InputHistory | None:
        """Return the history of an input; None if its dataflow has ended."""
        inputs = self.inputs.get(flow)
        if inputs is None:
            return None
        return inputs.setdefault(name, InputHistory.of(InputBase()))


_Report: TypeAlias = dict[int, tuple[int, int]]
"""By worker: the first epoch that it has not forgotten, and the one before which it has logged all."""


def read_history(logs: Logs, live: int) -> History:
    """Read all that counts. `live`: the incarnation that goes on, and may yet decide about parts; 0: none
    does. Raise `StoreError` for damage.
    """
    past = read_orders(logs)
    history = History(past)
    for number, flow in past.flows.items():
        history.inputs[number] = {name: InputHistory.of(each.base) for name, each in flow.inputs.items()}
        for name, each in flow.inputs.items():
            _take_decisions(history.inputs[number][name], each)
    reports: dict[tuple[int, str, int], _Report] = {}
    workers = history.workers
    undecided = _Undecided()
    continuing: set[str] = set()
    for logged in logs.records():
        workers[logged.log.incarnation] = logged.log.workers
        if logged.record.head[0] == "segment" and logged.record.head[-2]:
            continuing.add(logged.path)
        _note(history, logged, reports)
        if logged.log.incarnation == live:
            undecided.note(history, logged)
    _note_kept(history, reports, workers)
    paths = undecided.paths(history)
    while paths:
        history.pinned = _pinned(logs, paths, continuing)
        drops = undecided.drops_in({path for path, _ in history.pinned.values()})
        if drops <= paths:
            break
        paths |= drops
    return history


def _pinned(
    logs: Logs, undecided: Collection[str], continuing: Collection[str]
) -> dict[SegmentName, tuple[str, int]]:
    """Return the segments with parts about which nothing is decided, and those whose symbols they need."""
    pinned: dict[SegmentName, tuple[str, int]] = {}
    for log in logs.logs:
        is_needed = False
        for path, end in reversed(log.segments):
            if is_needed or path in undecided:
                pinned[SegmentName.of(path)] = path, end
                is_needed = path in continuing
    return pinned


def _take_decisions(history: InputHistory, past: PastInput) -> None:
    """Take the names of staged deliveries that have entered."""
    for entering in past.entered.values():
        order = entering.order
        if order.attempts is None:
            history.names.take(order.writer, order.sequence, order.epoch)
        else:
            before = history.queries.get(order.writer)
            stream = None if before is None else before.stream
            history.queries.pop(order.writer, None)
            history.queries[order.writer] = QueryBase(order.writer, order.sequence, 0, stream)
        history.calls = max(history.calls, order.order + len(order.attempts or "1") - 1)
    for query, stream in past.streams.items():
        if query in history.queries:
            history.queries[query] = history.queries[query]._replace(stream=stream)


def _note(history: History, logged: LoggedRecord, reports: dict[tuple[int, str, int], _Report]) -> None:
    match logged.record.head:
        case ("part", int(worker), int(flow), str(name), *facts):
            into = history.input(flow, name)
            if into is not None:
                _note_part(history.past.flows[flow], name, into, logged, worker, facts)
        case _ if logged.is_pinned:
            pass
        case ("few", int(), int(flow), str(name), str(writer), int(sequence), int(epoch), *_):
            into = history.input(flow, name)
            if into is not None:
                into.has_rows = True
                into.names.take(writer, sequence, epoch)
        case ("rows", int(), int(flow), str(name), *facts):
            into = history.input(flow, name)
            if into is not None:
                _note_delivery(into, facts)
        case ("source", int(), int(flow), str(name), *_):
            into = history.input(flow, source_key(name))
            if into is not None:
                into.has_rows = True
        case ("answer", *_):
            history.answers.note(logged.log.incarnation, logged.record.head)
        case ("taken", int(), int(flow), str(name), *facts):
            into = history.input(flow, name)
            if into is not None:
                taken = TakenFacts.of(facts)
                take_in(taken, into.names, into.appends, into.queries)
                into.calls = max(into.calls, taken.calls)
        case ("older", int(), int(flow), str(output), int(kept_from), _):
            if flow in history.inputs:
                history.older[flow, output] = max(kept_from, history.older.get((flow, output), 0))
        case ("kept", int(worker), int(flow), str(output), int(forgotten), int(), int(stop), _):
            if flow in history.inputs:
                reports.setdefault((flow, output, logged.log.incarnation), {})[worker] = forgotten, stop
        case _:
            pass


def _note_delivery(into: InputHistory, facts: Sequence[object]) -> None:
    series, writer, sequence, calls, shapes = cast("tuple[str, str, int, int, list[list[int]]]", facts)
    epochs = [epoch for epoch, _ in shapes]
    into.has_rows = True
    into.calls = max(into.calls, calls)
    if series == IN_OPEN_EPOCH:
        into.names.take(writer, sequence, epochs[0])
    elif sequence != _UNNAMED and epochs:
        into.appends.append((writer, sequence, epochs))


def _note_part(
    flow: PastFlow,
    name: str,
    into: InputHistory,
    logged: LoggedRecord,
    worker: int,
    facts: Sequence[object],
) -> None:
    writer, sequence, attempt, number, is_first, rows, _ = cast(
        "tuple[str, int, str, int, bool, int, object]", facts
    )
    incarnation, is_batch = logged.log.incarnation, attempt != ONE_ATTEMPT
    entering = flow.input(name).entered.get((incarnation, writer, sequence, is_batch))
    if entering is None:
        return
    parts = into.parts.setdefault((incarnation, writer, sequence, attempt, worker), {})
    new = -sum(part.rows for part in parts.values()) if is_first else 0
    if is_first:  # what was staged before has been dropped
        parts.clear()
    if entering.names(attempt, number):  # one of the same number replaces the first
        new += rows - (parts[number].rows if number in parts else 0)
        into.has_rows = True
        parts[number] = LoggedPart(logged.path, logged.record.start, rows)
    query = into.queries.get(writer)
    if is_batch and query is not None and query.batch == sequence:
        into.queries[writer] = query._replace(rows=query.rows + new)


class _Undecided:
    """Which segments have parts about which nothing is decided, or records of a new version that has not
    taken the place of the old one, or of a dataflow that has begun behind the cut of worker 0.
    """

    def __init__(self) -> None:
        self._of_versions: set[str] = set()
        self._of_parts: dict[tuple[int, int, str, str, int, str], set[str]] = {}
        """By worker, dataflow, input, writer, sequence and attempt."""
        self._dropped: list[tuple[set[str], str]] = []
        """Of each attempt that was dropped, the segments with its parts, and the one that says so."""

    def note(self, history: History, logged: LoggedRecord) -> None:
        """Take in a record of the incarnation that goes on."""
        past = history.past
        match logged.record.head:
            case ("version", int(flow), *_) if flow in past.versions:
                self._of_versions.add(logged.path)
            case (str(kind), int(), int(flow), *_) if (
                kind in OF_FLOWS
                and flow not in past.flows
                and flow not in past.gone
                and flow >= past.ended_before
            ):
                self._of_versions.add(logged.path)
            case ("part", int(worker), int(flow), str(name), str(writer), int(sequence), str(attempt), *_):
                paths = self._of_parts.setdefault((worker, flow, name, writer, sequence, attempt), set())
                paths.add(logged.path)
            case ("dropped", int(worker), int(flow), str(name), str(writer), int(sequence), str(attempt)):
                before = self._of_parts.pop((worker, flow, name, writer, sequence, attempt), None)
                if before is not None:
                    self._dropped.append((before, logged.path))

    def paths(self, history: History) -> set[str]:
        """Return the segments."""
        paths = set(self._of_versions)
        for (_, flow, name, writer, sequence, attempt), segments in self._of_parts.items():
            into = history.input(flow, name)
            if into is not None and not into.has_decided(writer, sequence, attempt):
                paths |= segments
        return paths

    def drops_in(self, pinned: Collection[str]) -> set[str]:
        """Return the segments that say which parts in `pinned` were dropped: without them these would be
        undecided for the next base.
        """
        return {path for segments, path in self._dropped if not segments.isdisjoint(pinned)}


def _note_kept(
    history: History, reports: dict[tuple[int, str, int], _Report], workers: dict[int, int]
) -> None:
    """Find out which of the logged changes of outputs count. A report counts once all workers of its
    incarnation have made it: otherwise they will make it again. Changes that one of them had forgotten are
    not whole any more.
    """
    for number, flow in history.past.flows.items():
        names = {each.name for each in flow.fold_facts.outputs}
        before = {} if flow.base is None else flow.base.outputs
        history.outputs[number] = {
            name: OutputBase([], before[name].kept_from, before[name].kept_before)
            if name in before
            else _before_any(history, flow, name)
            for name in names
        }
    for (number, name, incarnation), report in sorted(reports.items()):
        output = history.outputs[number].get(name)
        if output is None or len(report) < workers[incarnation]:
            continue
        stop = min(stop for _, stop in report.values())
        history.logged[number, name, incarnation] = KeptEpochs(output.kept_before, stop)
        output.kept_before = max(output.kept_before, stop)
        output.kept_from = max(output.kept_from, *(forgotten for forgotten, _ in report.values()))


def _before_any(history: History, flow: PastFlow, name: str) -> OutputBase:
    """Return what there is of an output that no base has, without files."""
    if flow.switch is None or (flow.number, name) not in history.older:
        return OutputBase([], flow.as_of, flow.as_of)
    return OutputBase([], history.older[flow.number, name], flow.switch.epoch)
