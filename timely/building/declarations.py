"""Declarations of a dataflow: its stages, inputs and outputs, as they were written.

`Dataflow` adds to this, `freeze` reads it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, Protocol

import pyarrow as pa

from progress.errors import GraphError
from progress.times.path_summary import PathSummary

from ..failure import text_of
from ..limits import NAME_CHARS_MAX
from ..operators.constant import ConstantCodec
from ..operators.failures import FailureLogs
from ..operators.imported import ImportCodec
from ..operators.inputs.codecs import InputCodec
from ..operators.outputs.output_log import OutputCodec
from ..operators.vertex import Vertex
from ..user_code.call_site import call_site
from .loop import Feedback
from .placing.placement import ChosenWorkers
from .scope import Scope
from .stream import Feed, TimeStageKind

BRIEF = "for one answer"
"""The note of a dataflow that runs for one answer. Workers do not stop to look for garbage when it ends."""

StageKind = Literal["vertex", "input"] | TimeStageKind


@dataclass(eq=False)
class StageDeclaration:
    """One stage as it was written: its name, the place in the program, and its feeds."""

    index: int
    name: str
    kind: StageKind
    scope: Scope
    outputs: int
    site: str
    vertex: Callable[[], Vertex] | None = None
    feeds: list[Feed] = field(default_factory=list)
    summary: PathSummary | None = None
    detail: str = ""
    at: int | None = None
    """If the stage is a way out of a loop by which records of one counter leave: this counter."""
    source: ChosenWorkers | None = None
    """If the stage is a source: on which workers."""
    begins_anew: str = ""
    """Why a source cannot go on after a restart, for people; "" if its vertices give positions."""
    placed: ChosenWorkers = field(default_factory=ChosenWorkers)
    """On which workers it has vertices."""
    paths: dict[tuple[int, int], PathSummary | None] = field(default_factory=dict)
    """By (input, output), what its vertices do to times at least; None: nothing comes out; missing: the
    identity."""

    @property
    def inputs(self) -> int:
        """The number of input ports: one more than the highest that is fed."""
        return 1 + max((feed.port for feed in self.feeds), default=-1)


@dataclass(frozen=True, eq=False)
class InputDeclaration:
    """A named input: the stage that stands for it, and the codec that turns clients' tables into batches."""

    name: str
    stage: int
    codec: InputCodec


@dataclass(frozen=True, eq=False)
class OutputDeclaration:
    """A named output: its capturing stage, the codec that turns batches into clients' tables, and the logs of
    failures that may come beside its rows; None: none can.

    `is_strict`: an epoch without an answer ends the dataflow. `is_stored`: a durable cluster stores what the
    output holds as Parquet.
    """

    name: str
    stage: int
    codec: OutputCodec
    failures: FailureLogs | None = None
    is_strict: bool = False
    is_stored: bool = False


@dataclass(frozen=True, eq=False)
class ImportDeclaration:
    """An import from the dataflow `owner` (its number, or its name), and the stage that stands for it."""

    owner: int | str
    export: str
    stage: int
    codec: ImportCodec


@dataclass(frozen=True, eq=False)
class ConstantDeclaration:
    """Rows that are there from the first epoch on, and the stage that stands for them."""

    stage: int
    codec: ConstantCodec


@dataclass(frozen=True, eq=False)
class ExportDeclaration:
    """A stage whose vertex other dataflows may read; `of_input`: the input whose content it keeps, if there
    is one; `columns`: the columns that it keeps, None for records.
    """

    name: str
    stage: int
    of_input: str = ""
    columns: pa.Schema | None = None


class Description(Protocol):
    """A description of a part of a dataflow by a layer above, which becomes stages in the end.

    `traveller` names a function, "module:function". It takes the description, and returns a builder that
    workers have, by name, and the arguments with which this builder builds the same.

    `folding` names a function that takes the description, once it was carried out, and returns how its inputs
    are folded in a durable cluster (`timely.durable.bases.facts`): lookback, inputs, import_reason.
    """

    @property
    def traveller(self) -> str:
        """See above."""
        ...

    @property
    def folding(self) -> str:
        """See above."""
        ...

    def carry_out(self) -> None:
        """Add the stages; called once, just before the dataflow is frozen."""
        ...


class Declarations:
    """All of one dataflow, in the order in which it was written.

    `level_bits` are value bits per nesting level of a time word, epoch first; `None` takes the default.
    """

    def __init__(self, name: str, level_bits: tuple[int, ...] | None = None) -> None:
        self.name = name
        self.text = ""
        self.level_bits = level_bits
        self.stages: list[StageDeclaration] = []
        self.inputs: dict[str, InputDeclaration] = {}
        self.outputs: dict[str, OutputDeclaration] = {}
        self.probes: dict[str, int] = {}
        self.imports: list[ImportDeclaration] = []
        self.constants: list[ConstantDeclaration] = []
        self.exports: dict[str, ExportDeclaration] = {}
        self.feedbacks: list[Feedback] = []
        self.descriptions: list[Description] = []
        """Descriptions of layers above, which add their stages when the dataflow is frozen."""


def check_name(what: str, name: object) -> None:
    """Raise GraphError unless `name` is a text that clients can send and receive: workers list names for
    every client that connects.
    """
    problem = ""
    if not isinstance(name, str) or not name or not _is_utf8(name):
        problem = f"the name of {'an' if what[0] in 'aeiou' else 'a'} {what} is a text, such as 'rows'"
    elif len(name) > NAME_CHARS_MAX:
        problem = f"a name has at most {NAME_CHARS_MAX:,} characters, this one {len(name):,}"
    if problem:
        shown = ascii(name) if isinstance(name, str) else text_of(name)
        raise GraphError(f"{what} {shown:.80} ({call_site()}): {problem}")


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
