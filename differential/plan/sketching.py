"""Stages written by hand in the body of a loop: they are noted, and made when the loop is made.

The body of `iterate` is called before its loop exists, so `collection.stream()` in it has no stage yet. Its
stream belongs to a *sketch*, in which stages are noted. What becomes a collection again is a node, `ByHand`;
lowering makes stages of it, in the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import NoReturn

from progress.times.path_summary import PathSummary
from progress.times.timestamp import TimeShape
from timely.building.scope import Scope
from timely.building.stream import Feed, Stream, TimeStageKind
from timely.errors import GraphError
from timely.operators.vertex import Vertex
from timely.user_code.call_site import CallSite, call_site

from .nodes.node import Node

__all__ = ["Sketch", "SketchedStage"]


@dataclass(frozen=True, eq=False)
class SketchedStage:
    """A stage as it was written. Its rows come from `feeds`, or from the collection `source`."""

    name: str
    vertex: Callable[[], Vertex]
    feeds: tuple[Feed, ...]
    outputs: int
    detail: str
    site: CallSite
    source: Node | None = None


class Sketch:
    """The stages that are written by hand in the body of one loop.

    `serial` is the number of the sketch in its plan, `title` names the loop with those around it.
    """

    def __init__(self, serial: int, title: str) -> None:
        self.serial = serial
        self.stages: list[SketchedStage] = []
        self.scope = Scope(title, TimeShape.ROOT.loop())
        self.read: set[int] = set()
        """The stages that other stages, or collections, read."""

    def source(self, node: Node, vertex: Callable[[], Vertex], detail: str) -> Stream:
        """Return the rows of `node` as the stream of a stage."""
        (stream,) = self._note(SketchedStage("stream", vertex, (), 1, detail, call_site(), node))
        return stream

    def stage(
        self,
        name: str,
        vertex: Callable[[], Vertex],
        feeds: Sequence[Feed],
        *,
        outputs: int = 1,
        detail: str = "",
        workers: Sequence[int] | int | None = None,
        paths: Mapping[tuple[int, int], int | None] | None = None,
    ) -> list[Stream]:
        """Note a stage; return its outputs."""
        if workers is not None or paths is not None:
            raise GraphError(
                f"stage {name!r:.80} ({call_site()}) is in the body of a loop of collections: there "
                "`workers` and `paths` are not known. Write the loop by hand, by dataflow.loop(…), or leave "
                "them out"
            )
        for feed in feeds:
            if feed.stream.dataflow is not self:
                raise GraphError(
                    f"stage {name!r:.80} ({call_site()}) is in {self.scope.name!r}, and one of its streams "
                    "is not. Make a collection of that one outside, by dd.collection(stream, schema), and "
                    "write .stream() of the collection in the body"
                )
            self.read.add(feed.stream.stage_index)
        if not feeds:
            raise GraphError(f"stage {name!r:.80} ({call_site()}) has no input: feed it a stream")
        return self._note(SketchedStage(name, vertex, tuple(feeds), outputs, detail, call_site()))

    def declare_time_stage(
        self, name: str, kind: TimeStageKind, scope: Scope, summary: PathSummary, at: int | None = None
    ) -> NoReturn:
        """Raise GraphError: a loop by hand is not in one that is being written."""
        raise GraphError(f"{name!r} ({call_site()}): no loop by hand begins in {self.scope.name!r}")

    def export(self, name: str, stream: Stream, of_input: str = "") -> NoReturn:
        """Raise GraphError: what is in a loop is not exported."""
        raise GraphError(
            f"export {name!r:.80} ({call_site()}) is in the body of a loop: only what `iterate` returns "
            "leaves it"
        )

    def add_feed(self, stage_index: int, feed: Feed) -> NoReturn:
        """Raise GraphError: stages of a sketch have all their sources at once."""
        raise GraphError(f"stage {stage_index} of {self.scope.name!r} has its sources already: {feed}")

    def replay_times(self, folder: str | PathLike[str], coordinates: int) -> NoReturn:
        """Raise GraphError: a source is in no loop."""
        raise GraphError(
            f"the stream in {str(folder)!r} ({call_site()}) cannot be replayed in {self.scope.name!r}: "
            f"replay it outside, or in a loop by hand, with times of {coordinates} numbers"
        )

    def sources_of(self, stage_index: int) -> list[int]:
        """Return the stages that are sources of rows for a stage, ascending."""
        sources: set[int] = set()
        waiting, seen = [stage_index], {stage_index}
        while waiting:
            at = waiting.pop()
            stage = self.stages[at]
            if stage.source is not None:
                sources.add(at)
            for feed in stage.feeds:
                if feed.stream.stage_index not in seen:
                    seen.add(feed.stream.stage_index)
                    waiting.append(feed.stream.stage_index)
        return sorted(sources)

    def name_of(self, stage_index: int) -> str:
        """Return the name of a stage."""
        return self.stages[stage_index].name

    def _note(self, stage: SketchedStage) -> list[Stream]:
        self.stages.append(stage)
        at = len(self.stages) - 1
        return [Stream(self, at, output, self.scope) for output in range(stage.outputs)]
