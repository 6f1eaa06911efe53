"""From the description of a dataflow to the stages and connectors that workers instantiate.

Each path through ingress, egress and feedback stages becomes one connector with the path's summary and the
composed transforms. The stages that have something to do at run time remain; only they, and the connectors
between them, are locations of progress tracking.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from heapq import heappop, heappush
from typing import Protocol, runtime_checkable

from progress.errors import GraphError
from progress.graph.graph import ConnectorSpec, Graph, StageSpec
from progress.times.path_summary import PathSummary
from progress.times.time_words import TimeCode, TimeLayout

from ..failure import text_of
from ..wire.batch import Batch, Composed, Transform
from .declarations import (
    BRIEF,
    ConstantDeclaration,
    Declarations,
    Description,
    ExportDeclaration,
    ImportDeclaration,
    InputDeclaration,
    OutputDeclaration,
    StageDeclaration,
    check_name,
)
from .exchange import Route
from .placing.placement import ChosenWorkers
from .scope import DescribeIterations, Scope
from .stream import Stream

_TIME_STAGES = ("ingress", "egress", "feedback")


@dataclass(frozen=True, eq=False)
class PhysicalConnector:
    """One connector as a worker makes it; indices are those of `Graph`."""

    index: int
    source: int
    output: int
    target: int
    port: int
    keep: int
    add: int
    transform: Transform | None
    route: Route | None
    is_identity: bool
    limits: tuple[LoopLimit, ...]
    counting: IterationCounting | None = None
    late: tuple[tuple[int, int, int], ...] = ()
    """For each loop that stops, and that it goes round and leaves: position and mask of the counter, and the
    largest value of rows that go on. Rows with times of their own are dropped by a transform."""
    only: tuple[tuple[int, int, int], ...] = ()
    """Position and mask of a counter, and its value in batches that are carried: see `Loop.leave`."""
    advances: bool = False
    """True if it leads to a later epoch, by a way back of the root."""
    placed: tuple[int, ...] | None = None
    """The workers that have its target; None: all."""


@dataclass(frozen=True, eq=False)
class IterationCounting:
    """Where a connector counts rows that go round a loop: behind `before`, ahead of `after`; together these
    are the connector's transform. `coordinates` is their number in times of the loop. By its `limit`, a
    loop that stops does not count rows that go no further.

    One of the connectors that carry the rows that a stage sends round counts them.
    """

    loop: str
    coordinates: int
    limit: LoopLimit
    before: Transform | None
    after: Transform | None


@dataclass(frozen=True)
class LoopLimit:
    """The position of a loop's counter in a time word, and its largest value: `iterations_max`.

    Rows that would go further are dropped if the loop `stops`, and an error if not. `describe` takes
    batches as the stage sends them.
    """

    loop: str
    shift: int
    mask: int
    iterations_max: int
    stops: bool = False
    site: str = ""
    describe: DescribeIterations | None = None


@dataclass(frozen=True, eq=False)
class FrozenDataflow:
    """A finished dataflow: its graph, its stages in topological order, its connectors."""

    name: str
    graph: Graph
    layout: TimeLayout
    stages: tuple[StageDeclaration, ...]
    codes: tuple[TimeCode, ...]
    connectors: tuple[PhysicalConnector, ...]
    inputs: dict[str, InputDeclaration]
    outputs: dict[str, OutputDeclaration]
    probes: dict[str, int]
    stage_of: dict[int, int]
    imports: tuple[ImportDeclaration, ...] = ()
    exports: Mapping[str, ExportDeclaration] = field(default_factory=dict)
    constants: tuple[ConstantDeclaration, ...] = ()
    descriptions: tuple[Description, ...] = ()
    """What layers above have described, from which some of the stages were made."""
    note: str = ""
    """What the dataflow was made from, for clients: see `Dataflow.note`."""

    @property
    def is_brief(self) -> bool:
        """True if the dataflow runs for one answer, and ends with it."""
        return self.note == BRIEF

    @property
    def fingerprint(self) -> str:
        """Equal on all workers if and only if they built the same dataflow."""
        return self.graph.fingerprint()

    @cached_property
    def feeding(self) -> tuple[tuple[tuple[PhysicalConnector, ...], ...], ...]:
        """By stage and input port, the connectors that feed it, in their order."""
        feeding: list[list[list[PhysicalConnector]]] = [
            [[] for _ in range(spec.inputs)] for spec in self.graph.stages
        ]
        for connector in self.connectors:
            feeding[connector.target][connector.port].append(connector)
        return tuple(tuple(map(tuple, ports)) for ports in feeding)

    @cached_property
    def open_stages(self) -> tuple[int, ...]:
        """The stages, as `Graph` numbers them, that stand for inputs, imports and constants, in
        order.
        """
        inputs = (declared.stage for declared in self.inputs.values())
        imports = (declared.stage for declared in self.imports)
        constants = (declared.stage for declared in self.constants)
        return tuple(self.stage_of[stage] for stage in (*inputs, *imports, *constants))

    @property
    def sources(self) -> dict[int, ChosenWorkers]:
        """The stages, as `Graph` numbers them, that bring in records by themselves, and on which workers."""
        return {number: stage.source for number, stage in enumerate(self.stages) if stage.source is not None}

    @cached_property
    def goes_on(self) -> bool:
        """True if by a way back of the root records of one epoch may lead to records of all later ones."""
        return any(connector.advances for connector in self.connectors)

    @property
    def behind_loops(self) -> frozenset[int]:
        """The stages, as `Graph` numbers them, that lie in a loop or behind one: their rows may come in as
        many pieces as the loop has iterations.
        """
        behind = {number for number, stage in enumerate(self.stages) if stage.scope.level > 0}
        for connector in self.connectors:  # by target: outside of loops sources come before their targets
            if connector.source in behind:
                behind.add(connector.target)
        return frozenset(behind)


@runtime_checkable
class KnowsPath(Protocol):
    """A transform that looks at counters in time words."""

    def on_path(self, layout: TimeLayout, rounds: int) -> Transform:
        """Return the same transform for a path that goes round loops. Times, which `layout` packs, become
        later by the word `rounds` on it; batches still have their earlier times.
        """
        ...


@dataclass(frozen=True, eq=False)
class _Path:
    """One path from a real stage's output to a feed."""

    stage: StageDeclaration
    output: int
    summary: PathSummary
    transforms: tuple[Transform, ...]
    details: tuple[str, ...]
    feedbacks: tuple[tuple[Scope, DescribeIterations | None, int], ...]
    """The ways back on it: the loop, how errors describe batches, by how many iterations."""
    round: tuple[StageDeclaration, int] | None = None
    """The last feedback on the path, and the number of transforms before it."""
    only: tuple[tuple[Scope, int | None], ...] = ()
    """The loops that it leaves at one counter only, with the counter that this is at the beginning of the
    path; None: a path that enters the loop at another counter, by which nothing leaves."""


def freeze(dataflow: Declarations) -> FrozenDataflow:
    """Contract, lay out the time words, check, and number everything."""
    check_name("dataflow", dataflow.name)
    levels = 1 + max(stage.scope.level for stage in dataflow.stages) if dataflow.stages else 1
    layout = TimeLayout.default(levels) if dataflow.level_bits is None else _layout(dataflow.level_bits)
    real = _in_order(dataflow)
    if not real:
        raise GraphError(f"the dataflow {dataflow.name!r} is empty: give it at least one input")
    stage_of = {stage.index: position for position, stage in enumerate(real)}
    code_of = {shape: TimeCode(layout, shape) for shape in {stage.scope.shape for stage in real}}
    codes = tuple(code_of[stage.scope.shape] for stage in real)
    specs: list[ConnectorSpec] = []
    connectors: list[PhysicalConnector] = []
    counted: set[tuple[int, int, int]] = set()
    for target in real:
        for feed in target.feeds:
            for path in _paths(dataflow, feed.stream, ()):
                source = stage_of[path.stage.index]
                own = () if feed.transform is None else (_on_path(feed.transform, path, layout),)
                keep, add = path.summary.to_words(codes[source], codes[stage_of[target.index]])
                late = _too_late(path, keep, layout)
                source_mask = codes[source].keep_mask(path.stage.scope.level + 1)
                texts = *path.details, _text(feed.detail, target, "a feed has a `detail` that")
                details = " then ".join(text for text in texts if text)
                specs.append(
                    ConnectorSpec(
                        source,
                        path.output,
                        stage_of[target.index],
                        feed.port,
                        path.summary,
                        _with_route(details, feed.route, target),
                    )
                )
                connectors.append(
                    PhysicalConnector(
                        len(connectors), source, path.output, stage_of[target.index], feed.port, keep, add,
                        _composed((*late, *path.transforms, *own)), feed.route,
                        add == 0 and keep & source_mask == source_mask and not path.only,
                        tuple(_limit(layout, loop, describe) for loop, describe, _ in path.feedbacks),
                        _counting(path, own, keep, layout, counted),
                        tuple((each.shift, each.mask, each.last) for each in late),
                        _only(path, layout),
                        path.summary.kept_coordinates == 1 and path.summary.add > 0,
                        target.placed.listed,
                    )
                )  # fmt: skip
    stages = [
        StageSpec(
            s.name,
            s.scope.shape,
            s.inputs,
            s.outputs,
            s.paths,
            detail=f"{s.scope.path()}: {_text(s.detail, s, 'its codec, or its `detail`,')}",
        )
        for s in real
    ]
    graph = Graph(stages, specs, layout)
    return FrozenDataflow(
        dataflow.name, graph, layout, tuple(real), codes, tuple(connectors),
        dataflow.inputs, dataflow.outputs, dataflow.probes, stage_of,
        tuple(dataflow.imports), dataflow.exports, tuple(dataflow.constants), tuple(dataflow.descriptions),
        dataflow.text,
    )  # fmt: skip


def _in_order(dataflow: Declarations) -> list[StageDeclaration]:
    """Return the stages that do something, sources before their readers, ways back of loops aside; otherwise
    as they were written.
    """
    real = [stage for stage in dataflow.stages if stage.kind not in _TIME_STAGES]
    waits_for = {stage.index: _sources(dataflow, stage) for stage in real}
    if all(source < index for index, sources in waits_for.items() for source in sources):
        return real  # fast path: only a stage whose sources came later is not behind them
    readers: dict[int, list[int]] = {}
    for index, sources in waits_for.items():
        for source in sources:
            readers.setdefault(source, []).append(index)
    ready = [index for index, sources in waits_for.items() if not sources]  # ascending, so a heap
    ordered: list[int] = []
    while ready:
        index = heappop(ready)
        ordered.append(index)
        for reader in readers.get(index, ()):
            waits_for[reader].discard(index)
            if not waits_for[reader]:
                heappush(ready, reader)
    done = set(ordered)  # stages in a circle without a way back are left: the graph refuses them
    return [dataflow.stages[index] for index in ordered] + [each for each in real if each.index not in done]


def _sources(dataflow: Declarations, stage: StageDeclaration) -> set[int]:
    """Return the stages that do something and send to `stage`, ways back of the loops around it aside."""
    sources: set[int] = set()
    waiting, seen = [stage], {stage.index}
    while waiting:
        for feed in waiting.pop().feeds:
            source = dataflow.stages[feed.stream.stage_index]
            if source.kind not in _TIME_STAGES:
                sources.add(source.index)
            elif source.index not in seen and not (
                source.kind == "feedback" and source.scope in _scopes(stage.scope)
            ):
                seen.add(source.index)
                waiting.append(source)
    return sources


def _scopes(scope: Scope | None) -> Iterator[Scope]:
    """Yield a scope and those around it."""
    while scope is not None:
        yield scope
        scope = scope.parent


def _paths(dataflow: Declarations, stream: Stream, seen: tuple[int, ...]) -> list[_Path]:
    """Return all paths by which batches reach `stream` from real stages."""
    stage = dataflow.stages[stream.stage_index]
    if stage.kind not in _TIME_STAGES:
        return [_Path(stage, stream.output, PathSummary.identity(stage.scope.shape), (), (), ())]
    if stage.index in seen:
        names = " → ".join(
            dataflow.stages[index].name for index in (*seen[seen.index(stage.index) :], stage.index)
        )
        raise GraphError(f"the cycle {names} contains no stage that does anything: {stage.site}")
    assert stage.summary is not None
    paths: list[_Path] = []
    is_round = stage.kind == "feedback" and stage.scope.parent is not None
    for feed in stage.feeds:
        own = () if feed.transform is None else (feed.transform,)
        detail = () if not feed.detail else (feed.detail,)
        for path in _paths(dataflow, feed.stream, (*seen, stage.index)):
            transforms = (*path.transforms, *own)
            described = None if feed.describe is None else _behind(transforms, feed.describe)
            goes_round = ((stage.scope, described, stage.summary.add),) if is_round else ()
            paths.append(
                _Path(
                    path.stage,
                    path.output,
                    path.summary.then(stage.summary),
                    transforms,
                    (*path.details, *detail, *(() if stage.at is None else (f"only at {stage.at}",))),
                    (*path.feedbacks, *goes_round),
                    (stage, len(transforms)) if goes_round else path.round,
                    path.only
                    if stage.at is None
                    else (*path.only, *_leaving(path, feed.stream.scope, stage.at)),
                )
            )
    return paths


def _behind(transforms: tuple[Transform, ...], describe: DescribeIterations) -> DescribeIterations:
    """Return a function that describes batches, as a stage sends them, by their rows behind these
    transforms.
    """
    transform = _composed(transforms)
    if transform is None:
        return describe

    def describe_transformed(last: Sequence[tuple[int, Batch]]) -> str:
        transformed = [(iteration, transform(batch)) for iteration, batch in last]
        return describe([(iteration, batch) for iteration, batch in transformed if batch is not None])

    return describe_transformed


def _counting(
    path: _Path, own: tuple[Transform, ...], keep: int, layout: TimeLayout, counted: set[tuple[int, int, int]]
) -> IterationCounting | None:
    """Return how a connector counts, if it stays in the loop, and no earlier connector counts the same
    rows.
    """
    if path.round is None:
        return None
    feedback, before = path.round
    shift, bits = TimeCode(layout, feedback.scope.shape).fields[-1]
    mask = ((1 << bits) - 1) << shift
    same = (feedback.index, path.stage.index, path.output)
    if keep & mask != mask or same in counted:
        return None
    counted.add(same)
    transforms = (*path.transforms, *own)
    coordinates = sum(feedback.scope.shape.level_coordinates)
    loop, limit = feedback.scope.path_inside(), _limit(layout, feedback.scope, None)
    return IterationCounting(
        loop, coordinates, limit, _composed(transforms[:before]), _composed(transforms[before:])
    )


def _limit(layout: TimeLayout, scope: Scope, describe: DescribeIterations | None) -> LoopLimit:
    """Return the limit of a loop; its counter's field is an upper bound of it."""
    shift, bits = TimeCode(layout, scope.shape).fields[-1]
    last = (1 << bits) - 2
    mask = (2 << bits) - 1  # with the guard bit: a way back by several iterations may pass the last value
    if scope.shape.level_coordinates[-1] > 1:
        # Above the iteration is the priority and no guard bit: a way back, which adds less than half of the
        # field, must not get there.
        last, mask = (1 << (bits - 1)) - 1, (1 << bits) - 1
    if not scope.stops:
        return LoopLimit(
            scope.path(), shift, mask, min(scope.iterations_max, last), False, scope.site, describe
        )
    # The first iteration is number 0: rows that go on to number `iterations_max` are dropped.
    if scope.iterations_max - 1 > last:
        raise GraphError(
            f"the loop {scope.path()!r} ({scope.site}) is to go round {scope.iterations_max:,} times, and "
            f"its counter, of {bits} bits, holds {last + 1:,}: give the dataflow other bits, as in "
            f"Dataflow(…, level_bits=…); now they are {layout.level_bits}"
        )
    return LoopLimit(scope.path(), shift, mask, scope.iterations_max - 1, True, scope.site)


def _layout(level_bits: object) -> TimeLayout:
    """Return the layout with the bits that a user has chosen; raise GraphError if these do not fit."""
    if not isinstance(level_bits, tuple | list) or not all(type(bits) is int for bits in level_bits):
        raise GraphError(
            "level_bits are whole numbers, one for each nesting level, the one for epochs first, as in "
            f"level_bits=(20, 10), not {text_of(level_bits):.80}"
        )
    return TimeLayout(tuple(level_bits))


def _with_route(details: str, route: Route | None, target: StageDeclaration) -> str:
    if route is None:
        return details
    return f"{details} [{_text(route.describe(), target, '`describe` of a route to it')}]"


def _text(text: object, stage: StageDeclaration, what: str) -> str:
    """Return a description, for the fingerprint; raise GraphError if it is no text."""
    if not isinstance(text, str):
        raise GraphError(
            f"stage {stage.name!r} ({stage.site}): {what} is a {type(text).__name__}. Give a text that "
            "is the same on all workers: they compare what they have built by it"
        )
    return text


@dataclass(frozen=True)
class _Until:
    """Rows whose counter at `shift` and `mask` is at most `last`."""

    shift: int
    mask: int
    last: int

    def __call__(self, batch: Batch) -> Batch | None:
        return batch.until(self.shift, self.mask, self.last)


def _too_late(path: _Path, keep: int, layout: TimeLayout) -> list[_Until]:
    """Return transforms for a path that goes round loops that stop, and leaves them. Each drops the rows that
    its loop would not let go round as often as the path does: behind the loop no counter is left by which to
    recognise them.
    """
    transforms: list[_Until] = []
    rounds: Counter[Scope] = Counter()
    for scope, _, by in path.feedbacks:
        if scope.stops:
            rounds[scope] += by
    for scope, count in rounds.items():
        limit = _limit(layout, scope, None)
        if keep & (limit.mask << limit.shift) == 0:
            transforms.append(_Until(limit.shift, limit.mask, limit.iterations_max - count))
    return transforms


def _leaving(path: _Path, loop: Scope, at: int) -> tuple[tuple[Scope, int | None], ...]:
    """Return the condition under which what comes by `path` leaves `loop` at the counter `at`; none, if all
    does.
    """
    place = loop.shape.counter_place
    if place < path.summary.kept_coordinates:
        is_last = place == path.summary.kept_coordinates - 1
        return ((loop, at - path.summary.add if is_last else at),)
    entered = path.summary.appended[place - path.summary.kept_coordinates]
    return () if entered == at else ((loop, None),)


def _only(path: _Path, layout: TimeLayout) -> tuple[tuple[int, int, int], ...]:
    """Return `PhysicalConnector.only` of a path."""
    only: list[tuple[int, int, int]] = []
    for loop, value in path.only:
        if value is None or value < 0:
            only.append((0, 0, -1))  # no counter is that
            continue
        shift, bits = TimeCode(layout, loop.shape).fields[loop.shape.counter_place]
        only.append((shift, (1 << bits) - 1, value))
    return tuple(only)


def _on_path(own: Transform, path: _Path, layout: TimeLayout) -> Transform:
    """Return the transform of a feed, as it is at the end of a path."""
    transform: object = own
    if not isinstance(transform, KnowsPath):
        return own
    rounds = sum(by << TimeCode(layout, scope.shape).fields[-1][0] for scope, _, by in path.feedbacks)
    if path.summary.kept_coordinates == 1:
        rounds += path.summary.add << layout.shifts[0]
    return transform.on_path(layout, rounds)


def _composed(transforms: tuple[Transform, ...]) -> Transform | None:
    if not transforms:
        return None
    return transforms[0] if len(transforms) == 1 else Composed(transforms)
