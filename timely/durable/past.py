"""What earlier incarnations of a cluster have logged, by dataflow and input; or what the base says that
stands for their logs.

Each worker of a new incarnation reads all logs that count. It takes the names of all deliveries, because a
repetition may come to any worker, and the rows of its share: those that old worker w has logged belong to new
worker w modulo the new number of workers.

Laws:
  1. Rows that are not staged count by themselves.
  2. A part counts if and only if a decision of its own incarnation names it. (Worker 0 decides only about
     parts that all workers have synced. Parts without a decision are gone: their call has not returned.)
  3. The epochs up to the last that worker 0 has sealed, at all inputs or at one, are sealed; others wait.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from itertools import chain
from typing import Self, TypeAlias, cast

from ..dictionaries import dictionaries
from ..errors import PeerError
from ..wire.batch import Batch
from ..wire.handshake import Decided, Entering, SealedInput, decode_control
from ..wire.requests import ALL_PARTS, ONE_ATTEMPT
from .bases.coverage import LoggedRecord, Logs, unreadable
from .bases.facts import FoldFacts
from .bases.manifest import Base, FlowBase, InputBase
from .bases.names import TakenNames
from .bases.positions import Place, SourcePosition, SourcePositions, source_key, source_of_key
from .digests import PastDigests
from .incarnations import OldLog
from .journal import BY_EPOCH, IN_OPEN_EPOCH, READER, Shape, batches_in
from .versions import PastOlder, PastSwitch, TakenFacts, take_in

__all__ = [
    "Past",
    "PastDelivery",
    "PastEntering",
    "PastFlow",
    "PastInput",
    "PastPart",
    "StagedName",
    "let_go",
    "note_order",
    "note_rows",
    "past_of",
    "read_orders",
    "read_rows",
]

_Facts: TypeAlias = tuple[str, bytes, str, Sequence[int], int, str, Sequence[str], list[object]]
"""Of a dataflow, as `PastFlow` lists them."""

_PlainRow: TypeAlias = tuple[object, ...]

StagedName: TypeAlias = tuple[int, str, int, bool]
"""Incarnation, writer and sequence of a staged delivery, and whether it is a batch of a query: batches and
insertions with the same name are two.
"""


@dataclass
class PastDelivery:
    """A delivery that counts, and its rows as far as they are of this worker's share."""

    series: str
    writer: str
    sequence: int
    epochs: list[int]
    batches: list[list[Batch]]
    """By epoch, in the order of `epochs`; empty if the rows are of another worker's share."""


@dataclass
class PastPart:
    """A staged part of an attempt, which old worker `worker` has: the number of its rows, as its client has
    counted them, and the rows themselves, if they are of this share. `is_first`: what this worker had of the
    attempt before has been dropped.
    """

    attempt: str
    worker: int
    number: int
    is_first: bool
    rows: int
    batches: list[Batch]
    is_mine: bool


@dataclass
class PastEntering:
    """A decision that a staged delivery enters, and the parts that it names, by attempt, old worker and
    number. `attempts` of `order` are None for an insertion, whose only attempt is `ONE_ATTEMPT`.
    """

    order: Entering
    parts: dict[tuple[str, int, int], PastPart] = field(default_factory=dict)

    def names(self, attempt: str, part: int) -> bool:
        """Return True if this part of an attempt enters."""
        if self.order.attempts is not None:
            return attempt in self.order.attempts
        return attempt == ONE_ATTEMPT and (self.order.parts == ALL_PARTS or part < self.order.parts)

    def take(self, part: PastPart) -> None:
        """Take in a part, if it enters; one of the same number replaces the first."""
        if part.is_first:
            for key in [key for key in self.parts if key[:2] == (part.attempt, part.worker)]:
                del self.parts[key]
        if self.names(part.attempt, part.number):
            self.parts[part.attempt, part.worker, part.number] = part


@dataclass
class PastInput:
    """What has come in by one input."""

    few: dict[int, tuple[list[_PlainRow], list[int]]] = field(default_factory=dict)
    """Plain rows of this share, and their diffs, by epoch."""
    names: list[tuple[int, str, int, int]] = field(default_factory=list)
    """Incarnation, writer, sequence and epoch of deliveries to the open epoch, oldest incarnation first."""
    deliveries: list[PastDelivery] = field(default_factory=list)
    entered: dict[StagedName, PastEntering] = field(default_factory=dict)
    """Decisions that staged deliveries enter, in their order."""
    staged: dict[StagedName, list[PastPart]] = field(default_factory=dict)
    """Parts about which nothing is decided yet, if they are kept."""
    streams: dict[str, str] = field(default_factory=dict)
    """The stream of the last batch of each query."""
    calls: int = 0
    """How many calls have their order, where that counts."""
    base: InputBase = field(default_factory=InputBase)
    """What the base has of this input."""
    older_names: InputBase = field(default_factory=InputBase)
    """Which deliveries an older version of the dataflow has taken, as far as that has been read."""
    taken: InputBase | None = None
    """The same, if there is something new in it."""

    def batches(self) -> Iterator[Batch]:
        """Yield all batches that are here."""
        for delivery in self.deliveries:
            for batches in delivery.batches:
                yield from batches
        entered = [part for entering in self.entered.values() for part in entering.parts.values()]
        for part in (*entered, *chain.from_iterable(self.staged.values())):
            yield from part.batches

    def drop(self, name: StagedName, worker: int, attempt: str) -> None:
        """Forget the parts of an attempt that a worker has dropped, as far as nothing is decided about
        them.
        """
        staged = self.staged.pop(name, [])
        if left := [part for part in staged if (part.worker, part.attempt) != (worker, attempt)]:
            self.staged[name] = left


@dataclass
class PastFlow:
    """One dataflow. Its facts, as `Journal.flow` writes them:

    spec, arguments   by which every worker builds it; the spec is empty if only the program that has
                      installed it can build it again
    key               by which clients install it again
    reads             the numbers of the dataflows that it imports from
    as_of             the epoch with which it began
    fingerprint       of what was built
    lines             its description, for the message about a difference
    folding           how its inputs are folded: `FoldFacts.plain`
    """

    number: int
    spec: str
    arguments: bytes
    key: str
    reads: tuple[int, ...]
    as_of: int
    fingerprint: str
    lines: tuple[str, ...]
    folding: Sequence[object]
    sealed: int = -1
    durable: int = 0
    """All rows of the epochs before this one were in the logs as worker 0 wrote so; those of later ones may
    still come."""
    closed: list[str] = field(default_factory=list)
    sealed_alone: dict[str, int] = field(default_factory=dict)
    """The last epoch of inputs that were sealed by themselves; `sealed` is that of all open inputs."""
    inputs: dict[str, PastInput] = field(default_factory=dict)
    places: dict[tuple[str, str], Place] = field(default_factory=dict)
    """The place of each reader, by output and reader, those that moved last at the end."""
    moved: dict[tuple[str, str], dict[int, Place]] = field(default_factory=dict)
    """Where readers have gone on each worker in the incarnation that is being read."""
    digests: dict[str, PastDigests] = field(default_factory=dict)
    """What each output has shown."""
    base: FlowBase | None = None
    """What the base has of it."""
    switch: PastSwitch | None = None
    """How it has taken the place of an older version, if it has."""
    older: dict[str, PastOlder] = field(default_factory=dict)
    """What its outputs held before that."""
    sources: dict[str, SourcePositions] = field(default_factory=dict)
    """How far each of its sources has come."""

    @classmethod
    def of(cls, number: int, facts: Sequence[object]) -> Self:
        """Return the dataflow that has these facts."""
        spec, arguments, key, reads, as_of, fingerprint, lines, folding = cast("_Facts", tuple(facts))
        return cls(number, spec, arguments, key, tuple(reads), as_of, fingerprint, tuple(lines), folding)

    @property
    def facts(self) -> list[object]:
        """All facts, in this order."""
        return [
            self.spec,
            self.arguments,
            self.key,
            list(self.reads),
            self.as_of,
            self.fingerprint,
            list(self.lines),
            self.folding,
        ]

    @property
    def fold_facts(self) -> FoldFacts:
        """How its inputs are folded."""
        return FoldFacts.of(self.folding)

    def input(self, name: str) -> PastInput:
        """Return what has come in by an input."""
        return self.inputs.setdefault(name, PastInput())

    def source(self, name: str) -> SourcePositions:
        """Return how far a source has come."""
        return self.sources.setdefault(name, SourcePositions())

    @property
    def passed(self) -> int:
        """The last epoch that its own inputs have sealed, and all of its sources have gone past."""
        names = [each.name for each in self.fold_facts.inputs]
        held = [
            self.source(name).first_held(self.as_of) for name in map(source_of_key, names) if name is not None
        ]
        bounds = [epoch - 1 for epoch in held if epoch >= 0]
        return min(bounds if bounds and len(held) == len(names) else [self.sealed, *bounds])

    def settle_sealed(self) -> None:
        """Note up to where all open inputs are sealed, if some were sealed by themselves."""
        if self.sealed_alone:
            inputs = {each.name for each in self.fold_facts.inputs if source_of_key(each.name) is None}
            alone = [self.sealed_alone.get(name, self.sealed) for name in inputs.difference(self.closed)]
            self.sealed = max(self.sealed, min(alone, default=self.sealed))

    def settle_places(self, workers: int) -> None:
        """At the end of an incarnation with so many workers: note where readers are. A reader that is not
        everywhere at the same epoch may still need the changes from the first of them on.
        """
        for reader, moved in self.moved.items():
            before = self.places.pop(reader, None)
            places = [moved.get(worker, before) for worker in range(workers)]
            held = [place for place in places if place is not None and place[0] >= 0]
            if held:
                epoch, seconds, _ = min(held)
                self.places[reader] = epoch, seconds, max(heard for _, _, heard in held)
        self.moved.clear()


@dataclass
class Past:
    """All that counts of the incarnations before."""

    flows: dict[int, PastFlow] = field(default_factory=dict)
    """The dataflows that have not ended for good, by number."""
    gone: dict[int, tuple[str, tuple[str, ...]]] = field(default_factory=dict)
    """Why the others have ended: the message and the classes of the error."""
    next_number: int = 0
    """The first number that no dataflow has had."""
    builds: dict[int, str] = field(default_factory=dict)
    """Which release and machine has made the digests of an incarnation."""
    versions: dict[int, PastFlow] = field(default_factory=dict)
    """New versions that have not taken the place of the old ones, by number."""
    switches: dict[int, PastSwitch] = field(default_factory=dict)
    """Those that have, by the number of the old version."""
    ended_before: int = 0
    """Dataflows with lower numbers that are not in `flows` have ended, whatever `gone` has."""

    def sealed(self) -> dict[int, int]:
        """Return, by dataflow, the last epoch that is sealed, also of those that it reads."""
        sealed: dict[int, int] = {}
        for number, flow in sorted(self.flows.items()):  # owners before their importers
            bounds = [sealed[owner] for owner in flow.reads if owner in sealed]
            sealed[number] = min([flow.passed, *bounds] if flow.fold_facts.inputs or not bounds else bounds)
        return sealed

    def current(self, number: int) -> int:
        """Return the number of the version that has taken the place of a dataflow, or of its new version."""
        while number in self.switches:
            number = self.switches[number].new
        return number


def read_orders(logs: Logs) -> Past:
    """Return which dataflows there are, and what was decided about them; their inputs have the rows and names
    of the base only. Raise `StoreError` for damage.
    """
    past = past_of(logs.base)
    before: OldLog | None = None
    for record, log, _, is_pinned in logs.records():
        if before is not None and before.incarnation != log.incarnation:
            _settle_places(past, before)
        before = log
        if not is_pinned:
            note_order(past, log, record.head)
    if before is not None:
        _settle_places(past, before)
    let_go(past)
    for flow in past.flows.values():
        for digests in flow.digests.values():
            digests.end_incarnation()
    return past


def _settle_places(past: Past, log: OldLog) -> None:
    """Note where readers are at the end of the incarnation of a log."""
    for flow in past.flows.values():
        flow.settle_places(log.workers)


def let_go(past: Past) -> None:
    """Drop the dataflows that have ended for good, and all that read them: these have ended with them."""
    for flow in past.flows.values():  # a dataflow reads earlier ones only
        for read in flow.reads:
            if flow.number not in past.gone and read in past.gone:
                past.gone[flow.number] = past.gone[read]
    for number in past.gone:
        past.flows.pop(number, None)


def read_rows(
    logs: Logs, flows: Collection[PastFlow], is_mine: Callable[[int], bool]
) -> dict[int, dict[str, PastInput]]:
    """Return, by dataflow and input, the names of all deliveries, and the rows of this share: `is_mine` tells
    whether it has those of an old worker. Raise `StoreError` for damage.

    Requires: the dataflows are built, so that the classes of their batches are known here.
    """
    inputs = {flow.number: deepcopy(flow.inputs) for flow in flows}
    older = {flow.number: flow.older for flow in flows}
    try:
        for logged in logs.records():
            try:
                note_rows(inputs, older, logged, is_mine)
            except PeerError as error:
                raise unreadable(logs, logged, error) from error
    finally:
        for dictionary in dictionaries():
            dictionary.withdraw(READER)
    return inputs


def past_of(base: Base) -> Past:
    """Return what a base has."""
    past = Past(next_number=base.next_number, ended_before=base.ended_before)
    past.gone = {number: (reason, tuple(classes)) for number, (reason, classes) in base.gone.items()}
    past.switches = {each.old: each for each in map(PastSwitch.of, base.switches)}
    by_new = {each.new: each for each in past.switches.values()}
    for number, before in base.flows.items():
        flow = PastFlow.of(number, before.facts)
        flow.switch = by_new.get(number)
        flow.sealed, flow.closed, flow.base = before.sealed, list(before.closed), before
        flow.inputs = {name: PastInput(calls=each.calls, base=each) for name, each in before.inputs.items()}
        flow.places = {each[:2]: each[2:] for each in before.places}
        flow.digests = {name: PastDigests.of(each) for name, each in before.digests.items()}
        flow.sources = {name: SourcePositions(each) for name, each in before.sources.items()}
        flow.sealed_alone = dict(before.sealed_alone)
        past.flows[number] = flow
    return past


def note_order(past: Past, log: OldLog, head: Sequence[object]) -> None:
    """Take in a record, if it is of a decision, a dataflow, or a place."""
    match head:
        case ("sealed", int(number), int(epoch), *before):
            if (flow := past.flows.get(number)) is not None:
                flow.sealed = max(flow.sealed, epoch)
                flow.durable = max([flow.durable, *cast("list[int]", before)])
        case ("durable", int(number), int(before), *source):
            if (flow := past.flows.get(number)) is not None and source:
                positions = flow.source(str(source[0]))
                positions.durable = max(positions.durable, before)
            elif flow is not None:
                flow.durable = max(flow.durable, before)
        case ("order", int(number), bytes(payload), streams):
            order = decode_control(payload, 0)
            assert isinstance(order, Decided | SealedInput), "the journal writes no other orders"
            if (flow := past.flows.get(number)) is not None and isinstance(order, SealedInput):
                flow.sealed_alone[order.input] = max(order.sealed, flow.sealed_alone.get(order.input, -1))
                flow.settle_sealed()
            elif flow is not None and isinstance(order, Decided):
                _note_decision(flow, log.incarnation, order)
                for name, query, stream in cast("Sequence[tuple[str, str, str]]", streams):
                    flow.input(name).streams[query] = stream
        case ("flow", int(number), *facts):
            past.flows[number] = PastFlow.of(number, facts)
            past.next_number = max(past.next_number, number + 1)
        case ("version", int(number), *facts):
            past.versions[number] = PastFlow.of(number, facts)
            past.next_number = max(past.next_number, number + 1)
        case ("switched", *facts):
            _switch(past, PastSwitch.of(facts))
        case ("gone", numbers, str(reason), classes):
            for number in cast("Sequence[int]", numbers):
                past.gone[number] = reason, tuple(cast("Sequence[str]", classes))
                past.versions.pop(number, None)
        case ("place", int(worker), int(number), str(output), str(reader), *place):
            if (flow := past.flows.get(past.current(number))) is not None:
                moved, now = flow.moved.pop((output, reader), {}), int(time.time())  # for logs without it
                flow.moved[output, reader] = {**moved, worker: cast("Place", (*place, now)[:3])}
        case ("digest", int(worker), int(number), str(output), int(before), epochs, digests):
            if (flow := past.flows.get(number)) is not None:
                sums = zip(cast("Sequence[int]", epochs), cast("Sequence[int]", digests), strict=True)
                flow.digests.setdefault(output, PastDigests()).note(
                    log.incarnation, log.workers, worker, before, sums
                )
        case ("build", int(), str(description)):
            past.builds[log.incarnation] = description
        case ("accept", numbers):
            for number in cast("Sequence[int]", numbers):
                if (flow := past.flows.get(number)) is not None:
                    flow.digests.clear()
        case ("source", int(worker), int(number), str(name), int(of), int(held), bytes(position), _):
            past.next_number = max(past.next_number, number + 1)
            if (flow := past.flows.get(number)) is not None:
                flow.source(name).note(SourcePosition(log.incarnation, worker, of, held, position))
        case ("few" | "rows" | "part" | "taken" | "older", int(), int(number), *_):
            # A new version may have written them without its `version`; another one must not get them.
            past.next_number = max(past.next_number, number + 1)
        case _:
            pass


def _switch(past: Past, switch: PastSwitch) -> None:
    """Let a new version take the place of a dataflow."""
    flow = past.versions.pop(switch.new, None)
    old = past.flows.pop(switch.old, None)
    past.switches[switch.old] = switch
    past.gone[switch.old] = switch.end
    if flow is None or old is None:
        return  # it has ended before the base, or behind it
    flow.switch, flow.sealed, flow.durable = switch, switch.epoch - 1, switch.epoch
    flow.places = {key: place for key, place in old.places.items() if key[0] in switch.outputs}
    flow.moved = {key: moved for key, moved in old.moved.items() if key[0] in switch.outputs}
    past.flows[switch.new] = flow


def _note_decision(flow: PastFlow, incarnation: int, order: Decided) -> None:
    flow.sealed = max(flow.sealed, order.sealed)
    flow.closed += order.close
    flow.settle_sealed()
    for one in order.enter:
        into = flow.input(one.input)
        name = incarnation, one.writer, one.sequence, one.attempts is not None
        staged = into.staged.pop(name, ())
        if one.attempts is not None:  # nothing of earlier batches ever enters
            for other in [each for each in into.staged if _is_earlier(each, name)]:
                del into.staged[other]
        if one.epoch >= 0:  # else it was a repetition
            entering = into.entered[name] = PastEntering(one)
            for part in staged:
                entering.take(part)


def _is_earlier(batch: StagedName, than: StagedName) -> bool:
    return batch[3] and (batch[1] == than[1]) and batch[2] < than[2]


def note_rows(
    inputs: Mapping[int, dict[str, PastInput]],
    older: Mapping[int, dict[str, PastOlder]],
    logged: LoggedRecord,
    is_mine: Callable[[int], bool],
    reader: int = READER,
    keeps_undecided: bool = False,
) -> None:
    """Take in a record, if it is of rows of these dataflows, by number and input.

    `reader`: the peer from which the symbols of this log are learned. `keeps_undecided`: a decision about
    parts may still come; False: it has come before, or the parts count for nothing.
    """
    record, incarnation = logged.record, logged.log.incarnation
    match record.head:
        case ("few" | "rows" | "part" as kind, int(worker), int(number), str(name), *facts):
            into = inputs[number].setdefault(name, PastInput()) if number in inputs else None
            if logged.is_pinned and kind != "part":
                into = None  # the base has it
            if kind == "few":
                _note_few(into, incarnation, facts, is_mine(worker))
            elif kind == "rows":
                _note_delivery(into, incarnation, facts, record.frames, is_mine(worker), reader)
            else:
                kept = into if keeps_undecided else None
                _note_part(into, kept, incarnation, worker, facts, record.frames, is_mine(worker), reader)
        case ("source", int(worker), int(number), str(name), int(), int(), bytes(), by_epoch):
            of_source = inputs[number].setdefault(source_key(name), PastInput()) if number in inputs else None
            facts = [BY_EPOCH, "", -1, 0, by_epoch]  # a delivery that nobody can repeat
            of_source = None if logged.is_pinned else of_source
            _note_delivery(of_source, incarnation, facts, record.frames, is_mine(worker), reader)
        case ("dropped", int(worker), int(number), str(name), str(writer), int(sequence), str(attempt)):
            if number in inputs and name in inputs[number]:
                staged = incarnation, writer, sequence, attempt != ONE_ATTEMPT
                inputs[number][name].drop(staged, worker, attempt)
        case ("answer", *_, shape):  # like `kept`, for a fold alone
            batches_in(cast("Shape", shape), iter(record.frames), is_mine=False, reader=reader)
        case ("taken", int(), int(number), str(name), *facts):
            if number in inputs and not logged.is_pinned:
                _note_taken(inputs[number].setdefault(name, PastInput()), TakenFacts.of(facts))
        case ("older", int(worker), int(number), str(output), int(kept_from), by_epoch):
            held = older[number].setdefault(output, PastOlder()) if number in older else None
            left = iter(record.frames)
            is_read = held is not None and not logged.is_pinned
            for epoch, shape in cast("Sequence[tuple[int, Shape]]", by_epoch):
                batches = batches_in(shape, left, is_mine=is_read and is_mine(worker), reader=reader)
                if held is not None:
                    held.changes += [(epoch, batch) for batch in batches]
            if held is not None and is_read:
                held.kept_from = max(held.kept_from, kept_from)
        case ("kept", *_, by_epoch):  # changes of outputs, which are for the next base alone
            left = iter(record.frames)
            for _, shape in cast("Sequence[tuple[int, Shape]]", by_epoch):
                batches_in(shape, left, is_mine=False, reader=reader)
        case _:
            pass  # not of rows


def _note_taken(into: PastInput, facts: TakenFacts) -> None:
    before, names = into.older_names, TakenNames(into.older_names.names)
    queries = {each.query: each for each in before.queries}
    take_in(facts, names, before.appends, queries)
    calls = max(before.calls, facts.calls)
    into.older_names = into.taken = InputBase([], names.plain(), before.appends, [*queries.values()], calls)


def _note_few(into: PastInput | None, incarnation: int, facts: Sequence[object], is_mine: bool) -> None:
    if into is None:
        return
    writer, sequence, epoch, diff, rows = cast("tuple[str, int, int, int, Sequence[_PlainRow]]", facts)
    into.names.append((incarnation, writer, sequence, epoch))
    if is_mine:
        plain, diffs = into.few.setdefault(epoch, ([], []))
        plain += [tuple(row) for row in rows]
        diffs += [diff] * len(rows)


def _note_delivery(
    into: PastInput | None,
    incarnation: int,
    facts: Sequence[object],
    frames: Sequence[memoryview],
    is_mine: bool,
    reader: int,
) -> None:
    series, writer, sequence, calls, shapes = cast(
        "tuple[str, str, int, int, Sequence[tuple[int, Shape]]]", facts
    )
    left = iter(frames)
    epochs = [epoch for epoch, _ in shapes]
    batches = [batches_in(shape, left, is_mine and into is not None, reader) for _, shape in shapes]
    if into is not None:
        into.calls = max(into.calls, calls)
        into.deliveries.append(PastDelivery(series, writer, sequence, epochs, batches))
        if series == IN_OPEN_EPOCH:
            into.names.append((incarnation, writer, sequence, epochs[0]))


def _note_part(
    into: PastInput | None,
    kept: PastInput | None,
    incarnation: int,
    worker: int,
    facts: Sequence[object],
    frames: Sequence[memoryview],
    is_mine: bool,
    reader: int,
) -> None:
    """`kept`: where a part about which nothing is decided is kept, if anywhere."""
    writer, sequence, attempt, number, is_first, rows, shape = cast(
        "tuple[str, int, str, int, bool, int, Shape]", facts
    )
    name = incarnation, writer, sequence, attempt != ONE_ATTEMPT
    entering = None if into is None else into.entered.get(name)
    counts = kept is not None if entering is None else entering.names(attempt, number)
    batches = batches_in(shape, iter(frames), counts and is_mine, reader)
    part = PastPart(attempt, worker, number, is_first, rows, batches, is_mine)
    if entering is not None:
        entering.take(part)
    elif kept is not None:
        kept.staged.setdefault(name, []).append(part)
