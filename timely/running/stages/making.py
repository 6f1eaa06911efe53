"""Making of vertices, inputs, constants and imports, when a dataflow is installed.

A stage has a vertex, or stands for an input, a constant or an import: then its runner has a `source`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from inspect import isasyncgenfunction as is_async_generator
from inspect import iscoroutinefunction as is_coroutine
from inspect import isgeneratorfunction as is_generator
from typing import Protocol

from progress.errors import MisuseError
from progress.times.time_words import TimeCode

from ...building.freeze import FrozenDataflow
from ...failure import add_note
from ...operators.awaiting.in_order import ASYNC_CALLBACKS, async_callbacks
from ...operators.constant import ConstantHandle
from ...operators.imported import Exported, ImportCodec, ImportHandle
from ...operators.inputs.handle import InputHandle
from ...operators.vertex import Vertex
from ...user_code.vertex_calls import check_parameters
from ...user_code.vertex_spellings import meant_callback
from ..paths.rights_by_path import PathRunner, Paths
from .rights import Acting
from .source_runner import SourceRunner, check_source
from .surroundings import WithAlarms
from .vertex_runner import VertexRunner

__all__ = ["Exporter", "make_constants", "make_inputs", "make_runners", "make_vertices", "take_hold"]


class Exporter(Protocol):
    """Knows the exports of other dataflows; `core.py` implements it."""

    def exported(self, owner: int | str, export: str) -> Exported:
        """Return an export of another dataflow; raise `MisuseError` if there is no such export."""
        ...


def make_runners(
    surroundings: WithAlarms[VertexRunner],
    frozen: FrozenDataflow,
    codes: Sequence[TimeCode],
    acting: Acting,
) -> list[VertexRunner]:
    """Make the runners of all stages."""
    runners: list[VertexRunner] = []
    for stage, (declared, code) in enumerate(zip(frozen.stages, codes, strict=True)):
        declared.placed.check(f"stage {declared.name!r} ({declared.site})", surroundings.workers)
        kind: Callable[..., VertexRunner] = VertexRunner  # type: ignore[explicit-any]
        if declared.source is not None:
            kind = partial(SourceRunner, declared.source)
        elif declared.paths:
            kind = partial(PathRunner, Paths.of(frozen.graph, stage))
        runners.append(
            kind(surroundings, stage, declared.name, declared.site, code, declared.outputs, acting)
        )
    return runners


def make_vertices(
    frozen: FrozenDataflow, runners: Sequence[VertexRunner]
) -> tuple[list[list[int]], list[int]]:
    """Instantiate all vertices. Return the watched ports, each as the connectors that feed it, and the
    stage of each port.
    """
    watched: list[list[int]] = []
    owners: list[int] = []
    in_pieces = frozen.behind_loops
    checked: set[tuple[type[Vertex], bool]] = set()
    for stage, declaration in enumerate(frozen.stages):
        if declaration.vertex is None:
            continue
        runner = runners[stage]
        if not declaration.placed.has(runner.worker):
            continue
        try:
            vertex = declaration.vertex()
        except Exception as error:
            add_note(
                error,
                f"  while the vertex of stage {declaration.name!r} was made, built at {declaration.site}. It "
                "is made by a call without arguments: to hand in some, write lambda: MyVertex(…) in `stage`",
            )
            raise
        if not isinstance(vertex, Vertex):
            raise MisuseError(
                f"stage {declaration.name!r} ({declaration.site}): what makes its vertices returned a "
                f"{type(vertex).__name__}. Give `stage` a subclass of timely.Vertex, or a function that "
                "returns a new object of one each time"
            )
        _check_callbacks(vertex, declaration.name, declaration.site)
        if (kind := (type(vertex), declaration.inputs > 0)) not in checked:
            checked.add(kind)
            _check_class(*kind, f"stage {declaration.name!r} ({declaration.site})")
        if declaration.paths and (vertex.word_times or async_callbacks(vertex)):
            what = "takes whole activations (word_times)" if vertex.word_times else "has async callbacks"
            raise MisuseError(
                f"stage {declaration.name!r} ({declaration.site}) has `paths`, and "
                f"{type(vertex).__name__} {what}: it must be known for which message it sends. "
                "Write plain callbacks, or leave `paths` out"
            )
        if declaration.source is not None:
            check_source(vertex, runner, declaration.source)
        runner.vertex = vertex
        # Read these once, here, where an error still refuses the dataflow.
        runner.wants_frontier = bool(vertex.wants_frontier)
        runner.wants_end = bool(vertex.wants_end)
        # Elsewhere all rows have come by the end of a step. And with other workers a step ends whenever it
        # has to wait for them: a vertex that stays behind would only make it tell them twice, first of the
        # rows that are there, and then that they are gone.
        runner.is_patient = bool(vertex.is_patient) and runner.workers == 1 and stage in in_pieces
        runner.notifies = not vertex.word_times
        for port in range(declaration.inputs):
            runner.ports.append(len(watched))
            watched.append([len(runners) + connector.index for connector in frozen.feeding[stage][port]])
            owners.append(stage)
    return watched, owners


def _check_callbacks(vertex: Vertex, stage: str, site: str) -> None:
    """Raise MisuseError if a call of a callback by hand would do nothing: it is a generator, or async where
    nobody awaits it.
    """
    if vertex.word_times:
        return
    for name in (*ASYNC_CALLBACKS, "on_start", "on_end", "on_frontier", "on_resume"):
        callback = getattr(vertex, name)
        if is_generator(callback) or is_async_generator(callback):
            raise MisuseError(
                f"stage {stage!r} ({site}): {type(vertex).__name__}.{name} has a yield, so that a call of it "
                "runs nothing. Write a function that sends its records: self.send_by(0, [record], time)"
            )
        if is_coroutine(callback) and name not in ASYNC_CALLBACKS:
            raise MisuseError(
                f"stage {stage!r} ({site}): {type(vertex).__name__}.{name} is async, and nobody awaits it: "
                f"only {', '.join(ASYNC_CALLBACKS)} may be. Write a plain function"
            )


def _check_class(kind: type[Vertex], has_inputs: bool, where: str) -> None:
    """Raise MisuseError if a class has a callback by another name, which nobody would call, or with other
    parameters.
    """
    if kind.word_times:
        return
    for ours in ("on_recv", "on_notify", "on_end"):
        if ours == "on_recv" and (not has_inputs or kind.recv_all is not Vertex.recv_all):
            continue
        name = meant_callback(kind, Vertex, ours)
        if name is not None:
            parameters = ", ".join(inspect.signature(getattr(Vertex, ours)).parameters)
            raise MisuseError(
                f"{where}: {kind.__name__} defines {name}, which nobody calls, and no {ours}. "
                f"Write def {ours}({parameters})"
            )
    check_parameters(kind, Vertex, where)


def make_inputs(frozen: FrozenDataflow, runners: Sequence[VertexRunner]) -> dict[str, InputHandle]:
    """Make the inputs; return them by name."""
    handles: dict[str, InputHandle] = {}
    for name, declared in frozen.inputs.items():
        runner = runners[frozen.stage_of[declared.stage]]
        runner.source = handles[name] = InputHandle(name, runner, declared.codec)
    return handles


def make_constants(frozen: FrozenDataflow, runners: Sequence[VertexRunner]) -> list[ConstantHandle]:
    """Make the constants; return them in the order in which they were built."""
    handles: list[ConstantHandle] = []
    for constant in frozen.constants:
        runner = runners[frozen.stage_of[constant.stage]]
        runner.source = handle = ConstantHandle(constant.codec, runner, runner.worker)
        handles.append(handle)
    return handles


def take_hold(
    exporter: Exporter,
    frozen: FrozenDataflow,
    runners: Sequence[VertexRunner],
    feeds: Mapping[str, Exported],
    number: int,
) -> tuple[list[ImportHandle], dict[str, ImportHandle]]:
    """Open the imports of dataflow `number`, and the exports that feed its inputs, by name; all of them or
    none.
    """
    reader = f"dataflow {number} ({frozen.name})"
    imports: list[ImportHandle] = []
    feed_handles: dict[str, ImportHandle] = {}

    def opened(codec: ImportCodec, exported: Exported, stage: int) -> ImportHandle:
        runner = runners[frozen.stage_of[stage]]
        runner.source = handle = ImportHandle(exported, codec.open(exported, reader), runner)
        return handle

    try:
        for imported in frozen.imports:
            exported = exporter.exported(imported.owner, imported.export)
            imports.append(opened(imported.codec, exported, imported.stage))
        for name, exported in feeds.items():
            declared = frozen.inputs[name]
            feed_handles[name] = opened(declared.codec.as_import(), exported, declared.stage)
    except BaseException:
        for handle in (*imports, *feed_handles.values()):
            handle.close()
        raise
    return imports, feed_handles
