"""Lead failures to the outputs whose answers they spoil.

Take a connector with a chain that has no answer for some rows. From the stream of this connector, further
connectors lead to the second port of each output that can be reached from the connector's target.
Reachability follows from the stages, so that it holds for stages that users have written, too. Failures cross
neither operators nor arrangements: they leave the loops that they are in and go to all workers.

Failures that lead to a claim that no output rests on, or to no output at all, spoil all outputs. In a
dataflow without outputs they go to a stage that ends the dataflow once an epoch with a failure is complete.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from progress.times.path_summary import PathSummary
from timely.building.dataflow import Dataflow
from timely.building.declarations import StageDeclaration
from timely.building.stream import Feed, Stream
from timely.operators.failures import EXPORTED_BESIDE, FAILURES_PORT

from ...columns.routes import EveryWorkerRoute, KeyRoute
from ...linear.chain import LinearChain
from ...linear.failures.failing import FAILURES
from ...linear.transform import AtPlace, ChainFailures, FailureTransform, LinearTransform
from ...operators.between.exports import ExportVertex
from ...operators.edge.failure_log import FailuresOut
from ...operators.passing import FailuresEndVertex
from ...operators.table_io import TableConstant

__all__ = ["add_failures", "failures_of"]

_ROUTE: Final = EveryWorkerRoute(FAILURES.width)
"""The route of failures to outputs."""


@dataclass
class _Source:
    """A chain on one stream, which several connectors may run.

    `targets`: for each port of a stage, the number of these connectors that lead to it.
    """

    stream: Stream
    chain: LinearChain
    transforms: list[LinearTransform] = field(default_factory=list)
    targets: Counter[tuple[int, int]] = field(default_factory=Counter)

    @property
    def times(self) -> int:
        """How often the operator gets each row: twice, where a collection is concatenated with itself.

        Each target gets the whole collection by connectors of its own.
        """
        return max(self.targets.values())


def failures_of(export: str) -> str:
    """Return the name under which a dataflow exports the failures of one of its exports."""
    return f"{export}{EXPORTED_BESIDE}"


def add_failures(
    dataflow: Dataflow,
    operators: Sequence[tuple[Stream, Mapping[str, str]]] = (),
    imports: Sequence[tuple[Stream, Stream, str]] = (),
    claims: Sequence[int] = (),
) -> None:
    """Add the ways of failures to a dataflow after all its stages are declared.

    Args:
        operators: the failures that each operator finds itself; and, by text of what failed, where it was
            written.
        imports: the rows of each import, its failures, and its name.
        claims: stages at which claims end that no output rests on.
    """
    exports = {failures_of(name): declared.stage for name, declared in dataflow.exports.items()}
    sources = _sources(dataflow)
    if not sources and not operators and not imports and not exports:
        return
    places, sites = _places(sources)
    outputs = {name: declared.stage for name, declared in dataflow.outputs.items()}
    names = [*outputs, *exports]
    beneath = _reached(dataflow, outputs | exports)
    claimed = _reached(dataflow, {str(claim): claim for claim in claims})

    def spoiled(stages: Iterable[int]) -> list[str]:
        """Return the outputs and exports that failures at these stages may spoil; [""] if there are none."""
        spoiled_names: set[str] = set()
        for stage in stages:
            spoiled_names.update(names if claimed[stage] or not beneath[stage] else beneath[stage])
        return sorted(spoiled_names) or [""]

    left: dict[tuple[int, int], Stream] = {}
    feeds: dict[str, list[Feed]] = defaultdict(list)
    for source in sources:
        for name in spoiled(target for target, _ in source.targets):
            feeds[name].append(_feed(dataflow, source, places, left))
    entries = [(stream, stream, lines) for stream, lines in operators]
    entries += [(rows, stream, _Imported(title)) for rows, stream, title in imports]
    for rows, stream, lines in entries:
        sites.append(lines)
        outside = _outside(dataflow, stream)
        for name in spoiled([rows.stage_index]):
            transform, detail = AtPlace(len(sites) - 1), f"failures at {len(sites) - 1}"
            feeds[name].append(Feed(outside, FAILURES_PORT, _ROUTE, transform, detail))
    for name in exports:
        _export(dataflow, name, feeds.pop(name, []))
    for name, failure_feeds in feeds.items():
        if name:
            out = FailuresOut(f"output {name!r}", tuple(sites), dataflow.outputs[name].is_strict)
            dataflow.add_failures(name, out, failure_feeds)
        else:
            _end(dataflow, FailuresOut(f"the dataflow {dataflow.name!r}", tuple(sites), True), failure_feeds)


def _sources(dataflow: Dataflow) -> list[_Source]:
    """Return all chains that have no answer for some rows, each once for each stream."""
    sources: dict[tuple[object, ...], _Source] = {}
    for stage in dataflow.stages:
        for feed in stage.feeds:
            if not isinstance(feed.transform, LinearTransform) or feed.transform.failures is not None:
                continue
            chain = feed.transform.chain.risky
            if chain is None:
                continue
            key = feed.stream.stage_index, feed.stream.output, tuple(chain.describe()), chain.origins
            source = sources.setdefault(key, _Source(feed.stream, chain))
            source.transforms.append(feed.transform)
            source.targets[stage.index, feed.port] += 1
    return list(sources.values())


def _places(sources: Sequence[_Source]) -> tuple[dict[bytes, int], list[Mapping[str, str]]]:
    """Number the operators of these chains; return the numbers, and by number the lines of their chains."""
    places: dict[bytes, int] = {}
    sites: list[dict[str, str]] = []
    for source in sources:
        lines = source.chain.sites()
        for operator in source.chain.origins:
            if places.setdefault(operator, len(sites)) == len(sites):
                sites.append({})
            sites[places[operator]] |= lines
    return places, list(sites)


class _Imported(dict[str, str]):
    """Stands in for the lines where something was written: says for every text which import it is from."""

    def __init__(self, title: str) -> None:
        super().__init__()
        self._title = title

    def get(self, key: str, default: str = "") -> str:  # type: ignore[override]  # every text has one
        """Return the same line for every text."""
        return f"in the import {self._title}"


def _reached(dataflow: Dataflow, targets: Mapping[str, int]) -> dict[int, frozenset[str]]:
    """Return by stage the names of the targets that its output can reach; a target stage reaches itself."""
    readers: dict[int, set[int]] = defaultdict(set)
    for stage in dataflow.stages:
        for feed in stage.feeds:
            readers[feed.stream.stage_index].add(stage.index)
    sources: dict[int, set[int]] = defaultdict(set)
    for source, reading in readers.items():
        for reader in reading:
            sources[reader].add(source)
    reached: dict[int, set[str]] = {stage.index: set() for stage in dataflow.stages}
    for name, target in targets.items():
        waiting = [target]
        while waiting:
            stage_index = waiting.pop()
            if name not in reached[stage_index]:
                reached[stage_index].add(name)
                waiting += sources[stage_index]
    return {index: frozenset(names) for index, names in reached.items()}


def _feed(
    dataflow: Dataflow, source: _Source, places: Mapping[bytes, int], left: dict[tuple[int, int], Stream]
) -> Feed:
    """Return one more connector for the failures of a chain; from then on they do not end the dataflow."""
    first = source.transforms[0]
    if first.failures is None:
        shape = source.stream.scope.shape
        first.failures = ChainFailures(places, shape, source.times)
        for other in source.transforms[1:]:
            other.failures = ChainFailures(places, shape)  # nobody reads these: they are the first one's
    key = source.stream.stage_index, source.stream.output
    if key not in left:
        left[key] = _outside(dataflow, source.stream)
    first.failures.readers += 1
    transform = FailureTransform(first, first.failures)
    detail = f"failures of {'; '.join(source.chain.describe())}"
    return Feed(left[key], FAILURES_PORT, _ROUTE, transform, detail)


def _outside(dataflow: Dataflow, stream: Stream) -> Stream:
    """Return the same stream in the scope of outputs."""
    while (parent := stream.scope.parent) is not None:
        summary = PathSummary.leave(parent.shape)
        name = f"failures leave {stream.scope.name}"
        outside = dataflow.declare_time_stage(name, "egress", parent, summary)
        dataflow.add_feed(outside.stage_index, stream.feed())
        stream = outside
    return stream


def _export(dataflow: Dataflow, name: str, feeds: list[Feed]) -> None:
    """Let importers read failures under a name, even if there are none."""
    keys = FAILURES.names
    route = KeyRoute(FAILURES.width, FAILURES.symbol_words, FAILURES.width)
    own_feeds = [Feed(feed.stream, 0, route, feed.transform, feed.detail) for feed in feeds]
    if not own_feeds:
        own_feeds = [dataflow.constant(f"no {name}", TableConstant(FAILURES, [])).feed()]
    (stream,) = dataflow.stage(name, lambda: ExportVertex(FAILURES, keys), own_feeds, detail="failures")
    dataflow.export(name, stream)


def _end(dataflow: Dataflow, out: FailuresOut, feeds: list[Feed]) -> StageDeclaration:
    """Add a stage that ends the dataflow at an epoch with failures."""
    own_feeds = [Feed(feed.stream, 0, feed.route, feed.transform, feed.detail) for feed in feeds]
    dataflow.stage(
        "failures", lambda: FailuresEndVertex(out.new_log()), own_feeds, outputs=0, detail=out.describe()
    )
    return dataflow.stages[-1]
