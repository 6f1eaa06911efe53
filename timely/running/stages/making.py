"""Making of vertices, inputs, constants and imports, when a dataflow is installed.

A stage has a vertex, or stands for an input, a constant or an import: then its runner has a `source`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from inspect import isasyncgenfunction as is_async_generator
from inspect import iscoroutinefunction as is_coroutine
from inspect import isgeneratorfunction as is_generator
from typing import Protocol

from progress.errors import MisuseError

from ...building.freeze import FrozenDataflow
from ...failure import add_note
from ...operators.constant import ConstantHandle
from ...operators.imported import Exported, ImportCodec, ImportHandle
from ...operators.inputs.handle import InputHandle
from ...operators.vertex import Vertex
from .vertex_runner import VertexRunner

__all__ = ["Exporter", "make_constants", "make_inputs", "make_vertices", "take_hold"]


class Exporter(Protocol):
    """Knows the exports of other dataflows; `core.py` implements it."""

    def exported(self, owner: int | str, export: str) -> Exported:
        """Return an export of another dataflow; raise `MisuseError` if there is no such export."""
        ...


def make_vertices(
    frozen: FrozenDataflow, runners: Sequence[VertexRunner]
) -> tuple[list[list[int]], list[int]]:
    """Instantiate all vertices. Return the watched ports, each as the connectors that feed it, and the
    stage of each port.
    """
    watched: list[list[int]] = []
    owners: list[int] = []
    in_pieces = frozen.behind_loops
    for stage, declaration in enumerate(frozen.stages):
        if declaration.vertex is None:
            continue
        runner = runners[stage]
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
            feeding = [
                len(runners) + c.index for c in frozen.connectors if c.target == stage and c.port == port
            ]
            runner.ports.append(len(watched))
            watched.append(feeding)
            owners.append(stage)
    return watched, owners


def _check_callbacks(vertex: Vertex, stage: str, site: str) -> None:
    """Raise MisuseError if a callback by hand is a generator or async: a call of it would do nothing."""
    if vertex.word_times:
        return
    for name in ("on_recv", "on_notify"):
        callback = getattr(vertex, name)
        if is_generator(callback) or is_async_generator(callback) or is_coroutine(callback):
            raise MisuseError(
                f"stage {stage!r} ({site}): {type(vertex).__name__}.{name} has a yield or is async, so that "
                "a call of it runs nothing. Write a plain function that sends its records: "
                "self.send_by(0, [record], time)"
            )


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
