"""Building a dataflow: stages, the connectors between them, loops, inputs, outputs, probes.

Every worker builds the same dataflow by running the same function. The result is only a description; `freeze`
turns it into the shape that progress tracking works on (`progress.Graph`) and the list of connectors that a
worker instantiates.

*Ingress*, *egress* and *feedback* are stages of the description. They change times and nothing else, so no
vertex exists for them at run time: `freeze` contracts each path through them into one connector that carries
the path's summary. Entering a loop, leaving it and going round it thus cost one addition and one mask, no
activation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING, Literal, overload

import pyarrow as pa

from progress.errors import GraphError, MisuseError
from progress.times.path_summary import PathSummary
from progress.times.timestamp import TimeShape

from ..failure import text_of
from ..limits import NAME_CHARS_MAX, NOTE_CHARS_MAX, PORTS_MAX, STAGES_MAX
from ..operators.capture import CaptureVertex, RecordsOut
from ..operators.captured.capture_folder import folder_name
from ..operators.captured.replaying import ReplaysFrom
from ..operators.constant import ConstantCodec
from ..operators.failures import FAILURES_PORT, FailureLogs
from ..operators.imported import ImportCodec
from ..operators.inputs.codecs import InputCodec, RecordsIn
from ..operators.inputs.tables_in import TablesIn
from ..operators.outputs.exported_streams import RecordsImport
from ..operators.outputs.output_log import OutputCodec
from ..operators.probe import ProbeVertex
from ..operators.router import RoutingIn
from ..operators.vertex import Vertex
from ..user_code.call_site import call_site
from ..user_code.code_digest import ClassTexts, digest_of
from ..user_code.offered import Offered
from ..user_code.short_traces import short_lookup
from ..wire.claims import shown
from .declarations import (
    ConstantDeclaration,
    Declarations,
    ExportDeclaration,
    ImportDeclaration,
    InputDeclaration,
    OutputDeclaration,
    StageDeclaration,
    StageKind,
    check_name,
)
from .freeze import FrozenDataflow, freeze
from .loop import Feedback, Loop, LoopOrder
from .other_spellings import OF_DATAFLOWS
from .placing.placement import chosen_workers
from .routing_input import RoutingInput
from .scope import ITERATIONS_MAX, Scope
from .stream import Feed, Stream, TimeStageKind
from .tables.table_stream import TableStream
from .tables.table_stream import tables as as_tables


class Dataflow(Offered, Declarations):
    """A dataflow under construction.

    Args:
        name: the name in errors and counters.
        level_bits: value bits per nesting level of a time word, epoch first; `None` takes the default for the
            depth.
    """

    _internal = frozenset(
        {
            "add_failures",
            "add_feed",
            "constant",
            "constants",
            "declare_time_stage",
            "descriptions",
            "exports",
            "feedbacks",
            "freeze",
            "imports",
            "inputs",
            "level_bits",
            "open_stage",
            "outputs",
            "probes",
            "replay_times",
            "root",
            "stages",
            "text",
        }
    )

    def __init__(self, name: str = "dataflow", *, level_bits: Sequence[int] | None = None) -> None:
        super().__init__(name, None if level_bits is None else tuple(level_bits))
        self.root = Scope(name, TimeShape.ROOT)
        self._frozen: FrozenDataflow | None = None
        self._class_texts = ClassTexts()

    if not TYPE_CHECKING:

        @short_lookup
        def __getattr__(self, name: str) -> object:
            missing = f"a dataflow has no {name!r}"
            raise AttributeError(OF_DATAFLOWS.message(missing, name, dir(Dataflow)))

    def rename(self, name: str) -> None:
        """Change the name, in errors of loops too. Raise GraphError if the dataflow has stages already."""
        if self.stages:
            raise GraphError(f"the dataflow {self.name!r} has stages already, and keeps its name")
        self.name = name
        self.root = replace(self.root, name=name)

    @overload
    def input(self, name: str, codec: InputCodec | None = None) -> Stream: ...

    @overload
    def input(self, name: str, *, tables: Literal[True]) -> TableStream: ...

    def input(self, name: str, codec: InputCodec | None = None, *, tables: bool = False) -> Stream:
        """Add a named input to the root scope; without a codec its rows are Python records. With `tables`,
        they are the Arrow tables that clients insert.
        """
        check_name("input", name)
        if name in self.inputs:
            raise GraphError(f"the dataflow {self.name!r} already has an input {name!r}; choose another name")
        declaration = self._declare(f"input {name}", "input", self.root, outputs=1)
        own = TablesIn() if tables else RecordsIn()
        used: InputCodec = own if codec is None else codec
        declaration.detail = used.describe()
        self.inputs[name] = InputDeclaration(name, declaration.index, used)
        stream = Stream(self, declaration.index, 0, self.root)
        return as_tables(stream) if tables else stream

    def source(
        self, name: str, vertex: Callable[[], Vertex], *, workers: Sequence[int] | int | None = None
    ) -> Stream:
        """Add a stage without inputs, whose vertices bring in records by themselves; return its output.

        `vertex` makes one vertex per worker, of a class that has `on_open(capability)`: this is called once,
        with the right to send at the first epoch or later. An epoch is complete when the vertices of the
        source hold it no more.

        `workers`: the numbers of the workers on which it sends, such as [0], or how many of the first ones;
        by default on all.
        """
        _check_vertex(name, vertex)
        chosen = chosen_workers(f"source {name!r:.80}", workers)
        declaration = self._declare(name, "vertex", self.root, outputs=1)
        declaration.vertex = vertex
        declaration.source = chosen
        declaration.detail = f"source {chosen.describe()} {digest_of(vertex)}"
        return Stream(self, declaration.index, 0, self.root)

    def replay(self, folder: str | PathLike[str]) -> Stream:
        """Return a stream that `stream.capture(folder)` has written, on any number of workers: the same
        records at the same epochs. An epoch is over once it was over in the files of all workers.

        Files may end early, where a process was killed: then the stream ends in front of the first epoch that
        is not over in all of them.
        """
        return self.replay_times(folder, 1)

    def replay_times(self, folder: str | PathLike[str], coordinates: int) -> Stream:
        """Add the source of `replay`, for times with so many numbers. If that is more than one, its records
        are pairs (time, message), which `AtItsTimeVertex` takes.
        """
        name = folder_name("replay", folder)
        stream = self.source("replay", ReplaysFrom(name, coordinates, call_site()))
        # Not the digest of what makes its vertices: the line has other paths on other hosts.
        declared = self.stages[stream.stage_index]
        declared.detail = f"replay {name}, {coordinates}"
        declared.begins_anew = "a stream that is replayed begins with its first record"
        return stream

    def imported(self, owner: int | str, export: str, codec: ImportCodec | None = None) -> Stream:
        """Read what the running dataflow `owner` (its number, or its name) exports as `export`: without a
        codec the records of a stream, from the first epoch that it keeps on. Epochs there are epochs of this
        dataflow.
        """
        codec = RecordsImport() if codec is None else codec
        declaration = self._declare(f"import {export} of {owner}", "input", self.root, outputs=1)
        declaration.detail = codec.describe()
        self.imports.append(ImportDeclaration(owner, export, declaration.index, codec))
        return Stream(self, declaration.index, 0, self.root)

    def constant(self, name: str, codec: ConstantCodec) -> Stream:
        """Add rows that are there from the first epoch of the dataflow on, once in all, and never change."""
        declaration = self._declare(name, "input", self.root, outputs=1)
        declaration.detail = codec.describe()
        self.constants.append(ConstantDeclaration(declaration.index, codec))
        return Stream(self, declaration.index, 0, self.root)

    def note(self, text: str) -> None:
        """Keep a text beside the dataflow that says what it was made from; clients read it as `Flow.note`.

        A later call replaces it. At most 1,048,576 characters; raise GraphError for a longer one.
        """
        handed_in: object = text
        if not isinstance(handed_in, str) or len(text) > NOTE_CHARS_MAX:
            shown_text = f"{len(text):,} characters" if isinstance(handed_in, str) else text_of(handed_in)
            raise GraphError(
                f"dataflow {self.name!r}: a note is a text of up to {NOTE_CHARS_MAX:,} characters, not "
                f"{shown_text:.80}"
            )
        self.text = text

    def export(self, name: str, stream: Stream, of_input: str = "", columns: pa.Schema | None = None) -> None:
        """Let other dataflows read the rows that the vertex at the source of `stream` keeps, under a name.

        `of_input`: the name of the input whose content these are, neither more nor less, if there is one.
        `columns`: what a row has, which clients read as `Flow.exported`; None for records.
        """
        check_name("export", name)
        if name in self.exports:
            raise GraphError(f"the dataflow {self.name!r} already exports {name!r}; choose another name")
        if stream.scope is not self.root:
            raise GraphError(f"export {name!r} is inside {stream.scope.path()!r}: leave the loop first")
        self.exports[name] = ExportDeclaration(name, stream.stage_index, of_input, columns)

    def routing(self, name: str = "routing", lead: int = 2) -> RoutingInput:
        """Add a named input of pairs (bucket, worker): new owners of buckets of keys, from the `lead`-th
        epoch after their own on, for stages that are built with `RoutingInput.stage`.
        """
        return RoutingInput(self.input(name, RoutingIn()), lead)

    def output(
        self,
        name: str,
        stream: Stream,
        codec: OutputCodec | None = None,
        feeds: Sequence[Feed] | None = None,
        *,
        strict: bool = False,
        stored: bool = False,
    ) -> None:
        """Capture `stream` (or several `feeds`) under a name that clients read.

        `strict`: an epoch that has no answer because something failed ends the dataflow. By default the
        output has an error at that epoch, and answers again from the first epoch on that has one.

        `stored`: a durable cluster stores what the output holds as Parquet (`timely.durable.stored`). Only
        outputs with columns can be stored, and no other cluster installs such a dataflow.
        """
        check_name("output", name)
        if name in self.outputs:
            raise GraphError(
                f"the dataflow {self.name!r} already has an output {name!r}; choose another name"
            )
        handed_in: object = stream
        if isinstance(handed_in, (list, tuple)):
            raise GraphError(
                f"output {name!r}: dataflow.stage(…), branch, ok_err and partition return several streams, "
                "and an output is one. Write (stream,) = dataflow.stage(…), or dataflow.stage(…)[0]"
            )
        if stream.scope is not self.root:
            raise GraphError(f"output {name!r} is inside {stream.scope.path()!r}: leave the loop first")
        used = RecordsOut() if codec is None else codec
        if stored and not hasattr(used, "base_form"):
            raise GraphError(
                f"output {name!r}: only an output with columns can be stored, and this one carries records: "
                "make a collection of them, and write collection.output(name, stored=True)"
            )
        sources = [stream.feed()] if feeds is None else list(feeds)
        self.stage(
            f"output {name}",
            lambda: self._capture(name),
            sources,
            outputs=0,
            detail=f"{used.describe()}; stored" if stored else used.describe(),
        )
        self.outputs[name] = OutputDeclaration(
            name, self.stages[-1].index, used, is_strict=strict, is_stored=stored
        )

    def _capture(self, name: str) -> CaptureVertex:
        declared = self.outputs[name]
        failures = None if declared.failures is None else declared.failures.new_log()
        return CaptureVertex(declared.codec.new_log(), failures)

    def add_failures(self, name: str, logs: FailureLogs, feeds: Sequence[Feed]) -> None:
        """Let the output `name` keep the rows of `feeds` as failures: see `operators/failures.py`."""
        declared = self.outputs[name]
        assert declared.failures is None, f"output {name!r} has failures already"
        self.outputs[name] = replace(declared, failures=logs)
        self.stages[declared.stage].detail += f"; {logs.describe()}"
        for feed in feeds:
            assert feed.port == FAILURES_PORT, feed
            self.add_feed(declared.stage, feed)

    def probe(self, name: str, stream: Stream) -> None:
        """Watch how far `stream` has come, in whichever scope it is; `Instance.probe(name)` returns the
        vertex.
        """
        check_name("probe", name)
        if name in self.probes:
            raise GraphError(f"the dataflow {self.name!r} already has a probe {name!r}; choose another name")
        self.stage(f"probe {name}", ProbeVertex, [stream.feed()], outputs=0)
        self.probes[name] = self.stages[-1].index

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
        """Add a stage with any number of inputs and outputs; return its outputs.

        All feeds must be streams of one scope, which becomes the scope of the stage. A feed says which input
        it is for, and which worker gets a record: `stream.feed(1, exchange=timely.by("word"))`.

        `workers`: the numbers of the workers that have a vertex of it, or how many of the first ones; by
        default all. `paths`: by (input, output), how many iterations (at the root: epochs) later than what
        comes in by this input its vertices send by this output at the earliest, or None: what comes in there
        never leads to anything here. Without an entry: at the same time.
        """
        _check_parts(name, vertex, feeds)
        as_passed: object = name
        if _is_ours(vertex) and isinstance(as_passed, str) and len(as_passed) > NAME_CHARS_MAX:
            name = f"{name[: NAME_CHARS_MAX - 1]}…"  # it tells what an operator computes
        _check_count(f"stage {name!r:.80}: `outputs`", outputs)
        for feed in feeds:
            _check_count(f"stage {name!r:.80}: the port of a feed", feed.port)
        scope = feeds[0].stream.scope
        declaration = self._declare(name, "vertex", scope, outputs)
        declaration.vertex = vertex
        declaration.detail = (
            detail if _is_ours(vertex) else f"{detail} {digest_of(vertex, self._class_texts)}".lstrip()
        )
        if workers is not None:
            declaration.placed = chosen_workers(f"stage {name!r:.80}", workers)
            declaration.detail = f"{declaration.placed.describe()} {declaration.detail}"
        for feed in feeds:
            self._check_feed(declaration, feed)
            declaration.feeds.append(feed)
        declaration.paths = _paths_of(declaration, {} if paths is None else paths)
        fed = {feed.port for feed in feeds}
        for port in range(declaration.inputs):
            if port not in fed:
                raise GraphError(f"input {port} of stage {name!r} is not connected ({declaration.site})")
        return [Stream(self, declaration.index, output, scope) for output in range(outputs)]

    def open_stage(self, name: str, vertex: Callable[[], Vertex], scope: Scope, detail: str = "") -> Stream:
        """Add a stage in `scope` whose sources come later, by `add_feed`; return its only output."""
        declaration = self._declare(name, "vertex", scope, outputs=1)
        declaration.vertex = vertex
        declaration.detail = detail
        return Stream(self, declaration.index, 0, scope)

    def loop(
        self,
        name: str = "loop",
        *,
        order: LoopOrder = "product",
        times: int | None = None,
    ) -> Loop:
        """Add a loop to the root scope; see `Loop`. Loops in loops: `Loop.loop`.

        `times`: the number of iterations after which it ends, and drops rows that would go on.
        """
        limit = ITERATIONS_MAX if times is None else times
        return Loop.inside(self, self.root, name, order, limit, times is not None)

    def feedback(self, by: int = 1) -> Feedback:
        """Add a way back outside of all loops: what you `connect` to it comes out of its `stream` in the next
        epoch, or `by` epochs later.
        """
        if type(by) is not int or by < 1:
            raise MisuseError(
                f"feedback(by={shown(by)}): `by` is a number of epochs from 1 on, or an epoch would wait for "
                "itself"
            )
        summary = PathSummary.feedback(self.root.shape, by)
        feedback = Feedback(self.declare_time_stage("feedback", "feedback", self.root, summary))
        self.feedbacks.append(feedback)
        return feedback

    def freeze(self) -> FrozenDataflow:
        """Return the finished description; from now on nothing can be added."""
        if self._frozen is None:
            for description in self.descriptions:
                description.carry_out()
            for feedback in self.feedbacks:
                if not feedback.is_connected:
                    site = self.stages[feedback.stream.stage_index].site
                    raise GraphError(
                        f"the dataflow {self.name!r} has a feedback ({site}) that nothing is connected to: "
                        "call connect(stream)"
                    )
            self._frozen = freeze(self)
            self._class_texts.clear()
        return self._frozen

    def add_feed(self, stage_index: int, feed: Feed) -> None:
        """Add a source to an input of a stage that exists already (feedback is connected late)."""
        declaration = self.stages[stage_index]
        self._check_feed(declaration, feed)
        declaration.feeds.append(feed)

    def declare_time_stage(
        self, name: str, kind: TimeStageKind, scope: Scope, summary: PathSummary, at: int | None = None
    ) -> Stream:
        """Add an ingress, egress or feedback stage; return its output, in `scope`. By an egress with `at`
        only records leave that are at this counter.
        """
        declaration = self._declare(name, kind, scope, outputs=1)
        declaration.summary = summary
        declaration.at = at
        return Stream(self, declaration.index, 0, scope)

    def _declare(self, name: str, kind: StageKind, scope: Scope, outputs: int) -> StageDeclaration:
        check_name("stage", name)
        if self._frozen is not None:
            raise GraphError(f"the dataflow {self.name!r} is frozen; stage {name!r} came too late")
        if len(self.stages) >= STAGES_MAX:
            raise GraphError(
                f"the dataflow {self.name!r} has {STAGES_MAX:,} stages, ways into loops and out of them "
                f"included, as many as one may have; stage {name!r:.80} ({call_site()}) is one too many. Let "
                "one stage do the work of several, or install several dataflows"
            )
        declaration = StageDeclaration(len(self.stages), name, kind, scope, outputs, str(call_site()))
        self.stages.append(declaration)
        return declaration

    def _check_feed(self, declaration: StageDeclaration, feed: Feed) -> None:
        if feed.stream.dataflow is not self:
            raise GraphError(
                f"stage {declaration.name!r} takes a stream of another dataflow ({declaration.site})"
            )
        if type(feed.port) is not int or feed.port < 0:
            raise GraphError(
                f"stage {declaration.name!r} is fed at input {feed.port!r:.80} ({declaration.site}): inputs "
                "are numbered 0, 1, …, as in stream.feed(0)"
            )
        expected = declaration.scope
        if declaration.kind == "vertex" and feed.stream.scope is not expected:
            raise GraphError(
                f"stage {declaration.name!r} is in {expected.path()!r}, but one of its inputs comes from "
                f"{feed.stream.scope.path()!r} ({declaration.site}): enter or leave the loop explicitly, "
                "by loop.enter(stream) and loop.leave(stream)"
            )


def _is_ours(vertex: Callable[[], Vertex]) -> bool:
    """Return True if a factory is of these packages, which describe their vertices in the stage's detail."""
    module: str = getattr(vertex, "__module__", None) or ""
    return module.partition(".")[0] in ("timely", "differential")


def _check_parts(name: str, vertex: object, feeds: object) -> None:
    """Raise GraphError unless `vertex` makes vertices and `feeds` are feeds, with what to write."""
    _check_vertex(name, vertex)
    if isinstance(feeds, (Feed, Stream)):
        write = "[stream.feed()]" if isinstance(feeds, Stream) else "[stream.feed(…)]"
        raise GraphError(
            f"stage {name!r:.80} ({call_site()}): `feeds` is a list of feeds, not a {type(feeds).__name__}. "
            f"Write {write}"
        )
    if not isinstance(feeds, Sequence) or not feeds:
        raise GraphError(f"stage {name!r} has no input: feed it a stream")
    for number, feed in enumerate(feeds):
        if not isinstance(feed, Feed):
            raise GraphError(
                f"stage {name!r:.80} ({call_site()}): `feeds` has a {type(feed).__name__} at place {number}, "
                f"where a feed belongs. Write stream.feed({number}) for input {number}"
            )


def _check_vertex(name: str, vertex: object) -> None:
    """Raise GraphError unless `vertex` makes vertices, with what to write."""
    if isinstance(vertex, str) and not isinstance(name, str):
        raise GraphError(
            f"stage {vertex!r:.80} ({call_site()}): its name comes first, then what makes its vertices. "
            f"Write stage({vertex!r:.80}, {getattr(name, '__name__', 'MyVertex'):.80})"
        )
    if isinstance(vertex, Vertex) or not callable(vertex):
        shown = type(vertex).__name__
        raise GraphError(
            f"stage {name!r:.80} ({call_site()}): each worker makes a vertex of its own, so hand in the "
            f"class or a function that makes one, not a {shown}: "
            + (
                f"{shown}, or lambda: {shown}(…)"
                if isinstance(vertex, Vertex)
                else "MyVertex, not MyVertex()"
            )
        )


def _paths_of(stage: StageDeclaration, paths: object) -> dict[tuple[int, int], PathSummary | None]:
    """Return the summaries that a user has declared; raise GraphError for what cannot be one."""
    where = f"stage {stage.name!r:.80} ({stage.site}): `paths`"
    if not isinstance(paths, Mapping):
        raise GraphError(f"{where} is a dict from (input, output) to a number, not {shown(paths)}")
    shape = stage.scope.shape
    what = "iterations" if shape.levels > 1 else "epochs"
    summaries: dict[tuple[int, int], PathSummary | None] = {}
    for ports, by in paths.items():
        pair = ports if isinstance(ports, tuple) else ()
        sizes = (stage.inputs, stage.outputs)
        if len(pair) != 2 or not all(
            type(port) is int and 0 <= port < size for port, size in zip(pair, sizes, strict=True)
        ):
            raise GraphError(
                f"{where} has {shown(ports)}, which is no (input, output) of {stage.inputs} inputs and "
                f"{stage.outputs} outputs"
            )
        if by is not None and (type(by) is not int or by < 0):
            raise GraphError(
                f"{where} says {shown(by)} of {ports}: it is a number of {what}, from 0 on, or None: nothing "
                "that comes in there leads to anything that is sent here"
            )
        summaries[pair] = None if by is None else PathSummary(shape.coordinates, by)
    return summaries


def _check_count(what: str, count: object) -> None:
    """Raise GraphError unless `count` is a number of ports that a stage can have."""
    if type(count) is not int or not 0 <= count <= PORTS_MAX:
        shown = f"{count:,}" if type(count) is int and abs(count) < 1 << 63 else f"a {type(count).__name__}"
        raise GraphError(f"{what} ({call_site()}) is a whole number from 0 to {PORTS_MAX:,}, not {shown}")
