"""Which way do failures take to the outputs whose answers they spoil?

Every connector with a chain that has no answer for some rows gets connectors beside it, from the same stream
to the second port of each output that can be reached from where the first one leads. What is reached follows
from the stages, so that it holds for stages that users have written, too. Failures cross neither operators
nor arrangements: they leave the loops that they are in and go to all workers.

What leads to a claim that no output rests on, or to no output at all, spoils all outputs. In a
dataflow without outputs it leads to a stage that ends the dataflow once an epoch with a failure is complete.
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
"""By which failures go to outputs."""


@dataclass
class _Source:
    """A chain on one stream, which several connectors may run. `targets`: how many of these lead to each port
    of a stage.
    """

    stream: Stream
    chain: LinearChain
    transforms: list[LinearTransform] = field(default_factory=list)
    targets: Counter[tuple[int, int]] = field(default_factory=Counter)

    @property
    def times(self) -> int:
        """How often the operator gets each row: twice, where a collection is put together with itself.

        Each target gets the whole collection by connectors of its own.
        """
        return max(self.targets.values())


def failures_of(export: str) -> str:
    """The name under which a dataflow exports what fails in one of its exports."""
    return f"{export}{EXPORTED_BESIDE}"


def add_failures(
    dataflow: Dataflow,
    operators: Sequence[tuple[Stream, Mapping[str, str]]] = (),
    imports: Sequence[tuple[Stream, Stream, str]] = (),
    claims: Sequence[int] = (),
) -> None:
    """Add what failures need to a dataflow of which all stages are declared.

    Args:
        operators: what operators have found to fail, and by the text of what failed where it was written.
        imports: what is imported, what fails in it, and what that is called.
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
        """The outputs and exports that what these stages are sent may spoil; [""]: there are none at all."""
        found: set[str] = set()
        for stage in stages:
            found.update(names if claimed[stage] or not beneath[stage] else beneath[stage])
        return sorted(found) or [""]

    left: dict[tuple[int, int], Stream] = {}
    feeds: dict[str, list[Feed]] = defaultdict(list)
    for source in sources:
        for name in spoiled(target for target, _ in source.targets):
            feeds[name].append(_feed(dataflow, source, places, left))
    known = [(stream, stream, written) for stream, written in operators]
    known += [(rows, stream, _Imported(title)) for rows, stream, title in imports]
    for rows, stream, written in known:
        sites.append(written)
        outside = _outside(dataflow, stream)
        for name in spoiled([rows.stage_index]):
            transform, detail = AtPlace(len(sites) - 1), f"failures at {len(sites) - 1}"
            feeds[name].append(Feed(outside, FAILURES_PORT, _ROUTE, transform, detail))
    for name in exports:
        _export(dataflow, name, feeds.pop(name, []))
    for name, given in feeds.items():
        if name:
            out = FailuresOut(f"output {name!r}", tuple(sites), dataflow.outputs[name].is_strict)
            dataflow.add_failures(name, out, given)
        else:
            _end(dataflow, FailuresOut(f"the dataflow {dataflow.name!r}", tuple(sites), True), given)


def _sources(dataflow: Dataflow) -> list[_Source]:
    """All chains that have no answer for some rows, each once for each stream."""
    found: dict[tuple[object, ...], _Source] = {}
    for stage in dataflow.stages:
        for feed in stage.feeds:
            if not isinstance(feed.transform, LinearTransform) or feed.transform.failures is not None:
                continue
            chain = feed.transform.chain.risky
            if chain is None:
                continue
            key = feed.stream.stage_index, feed.stream.output, tuple(chain.describe()), chain.origins
            source = found.setdefault(key, _Source(feed.stream, chain))
            source.transforms.append(feed.transform)
            source.targets[stage.index, feed.port] += 1
    return list(found.values())


def _places(sources: Sequence[_Source]) -> tuple[dict[bytes, int], list[Mapping[str, str]]]:
    """A number for each operator, and by number where what fails in its chains was written."""
    places: dict[bytes, int] = {}
    sites: list[dict[str, str]] = []
    for source in sources:
        written = source.chain.sites()
        for operator in source.chain.origins:
            if places.setdefault(operator, len(sites)) == len(sites):
                sites.append({})
            sites[places[operator]] |= written
    return places, list(sites)


class _Imported(dict[str, str]):
    """In place of where something was written: of which import it is."""

    def __init__(self, title: str) -> None:
        super().__init__()
        self._title = title

    def get(self, key: str, default: str = "") -> str:  # type: ignore[override]  # it knows all
        """The same for everything."""
        return f"in the import {self._title}"


def _reached(dataflow: Dataflow, targets: Mapping[str, int]) -> dict[int, frozenset[str]]:
    """By stage the names of the targets, stages too, that what it sends can reach, its own included."""
    readers: dict[int, set[int]] = defaultdict(set)
    for stage in dataflow.stages:
        for feed in stage.feeds:
            readers[feed.stream.stage_index].add(stage.index)
    sources: dict[int, set[int]] = defaultdict(set)
    for source, reading in readers.items():
        for reader in reading:
            sources[reader].add(source)
    found: dict[int, set[str]] = {stage.index: set() for stage in dataflow.stages}
    for name, target in targets.items():
        waiting = [target]
        while waiting:
            stage_index = waiting.pop()
            if name not in found[stage_index]:
                found[stage_index].add(name)
                waiting += sources[stage_index]
    return {index: frozenset(names) for index, names in found.items()}


def _feed(
    dataflow: Dataflow, source: _Source, places: Mapping[bytes, int], left: dict[tuple[int, int], Stream]
) -> Feed:
    """One more connector for the failures of a chain; all that run it let failures pass by."""
    first = source.transforms[0]
    if first.failures is None:
        shape = source.stream.scope.shape
        first.failures = ChainFailures(places, shape, source.times)
        for other in source.transforms[1:]:
            other.failures = ChainFailures(places, shape)  # which nobody reads: they are those of the first
    key = source.stream.stage_index, source.stream.output
    if key not in left:
        left[key] = _outside(dataflow, source.stream)
    first.failures.readers += 1
    transform = FailureTransform(first, first.failures)
    detail = f"failures of {'; '.join(source.chain.describe())}"
    return Feed(left[key], FAILURES_PORT, _ROUTE, transform, detail)


def _outside(dataflow: Dataflow, stream: Stream) -> Stream:
    """The same stream in the scope of outputs."""
    while (parent := stream.scope.parent) is not None:
        summary = PathSummary.leave(parent.shape)
        name = f"failures leave {stream.scope.name}"
        outside = dataflow.declare_time_stage(name, "egress", parent, summary)
        dataflow.add_feed(outside.stage_index, stream.feed())
        stream = outside
    return stream


def _export(dataflow: Dataflow, name: str, feeds: list[Feed]) -> None:
    """Let importers read what fails, under a name; nothing does, perhaps."""
    keys = FAILURES.names
    route = KeyRoute(FAILURES.width, FAILURES.symbol_words, FAILURES.width)
    given = [Feed(feed.stream, 0, route, feed.transform, feed.detail) for feed in feeds]
    if not given:
        given = [dataflow.constant(f"no {name}", TableConstant(FAILURES, [])).feed()]
    (stream,) = dataflow.stage(name, lambda: ExportVertex(FAILURES, keys), given, detail="failures")
    dataflow.export(name, stream)


def _end(dataflow: Dataflow, out: FailuresOut, feeds: list[Feed]) -> StageDeclaration:
    """A stage that ends the dataflow at an epoch with failures."""
    given = [Feed(feed.stream, 0, feed.route, feed.transform, feed.detail) for feed in feeds]
    dataflow.stage(
        "failures", lambda: FailuresEndVertex(out.new_log()), given, outputs=0, detail=out.describe()
    )
    return dataflow.stages[-1]
