"""The plan of one dataflow while it is being written: distinct nodes, their lines, and the roots.

The plan holds one node for each digest. Facts beside the graph are stored by digest: the user's lines of a
node, all of them if it was written several times. *Roots* are what has to be computed: outputs, and effects
such as `inspect`.

A loop's body is called once, with variables. The plan knows which loops are open, so that a collection made
in a body knows the loops around it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import ClassVar, Final, NamedTuple, TypeVar

from timely.building.dataflow import Dataflow
from timely.building.declarations import check_name
from timely.building.loop import Loop
from timely.building.stream import Feed, Stream
from timely.errors import GraphError
from timely.user_code.call_site import CallSite, at_site, call_site

from ..columns.schema import Schema
from ..errors import ONE_COLUMN, no_columns
from ..linear.failures.failing import FAILURES
from ..operators.between.imports import TableImport
from ..operators.edge.table_in import TableIn
from ..operators.timed.keyed_io import KeyedTableIn
from .functions import UserFunction
from .improving import Improved, improve
from .nodes import (
    Answered,
    ByHand,
    ByPriority,
    Export,
    FromStream,
    Import,
    Input,
    Inspect,
    IntoStream,
    Keys,
    LetRec,
    Node,
    Output,
    ReduceFunction,
    Select,
    Variable,
)
from .origins.origins import Origins
from .rewriting import beneath, rewrite
from .rules.columns import carrier_of
from .rules.sharing import share
from .sketching import Sketch
from .stages.failing import add_failures, failures_of
from .stages.lowering import Lowering

__all__ = ["LoopPath", "OpenLoop", "Plan", "PlanMark", "loop_of"]

N = TypeVar("N", bound=Node)


@dataclass(frozen=True, eq=False)
class OpenLoop:
    """A loop whose body is being written."""

    plan: Plan
    name: str
    around: LoopPath
    depth: int
    effects: list[Node] = field(default_factory=list)
    sketches: list[Sketch] = field(default_factory=list)
    """The stages written by hand in it, if there are any: at most one sketch."""

    @property
    def loop_path(self) -> LoopPath:
        """The loops around a collection in this body: those around the loop, then the loop itself."""
        return (*self.around, self)


class PlanMark(NamedTuple):
    """A snapshot of a plan: its outputs, its effects (also in loops being written), its number of streams."""

    roots: tuple[Node, ...]
    outputs: frozenset[str]
    effects: list[tuple[OpenLoop, tuple[Node, ...]]]
    streams: int


LoopPath = tuple[Loop | OpenLoop, ...]
"""The loops around a collection, outermost first: hand-written ones of `timely`, then those of plans."""

_open: Final[ContextVar[tuple[OpenLoop, ...]]] = ContextVar(
    "loops whose bodies are being written", default=()
)


def loop_of(sketch: Sketch) -> OpenLoop:
    """Return the loop in whose body the stages of a sketch are written. Raise GraphError if that is over."""
    for loop in _open.get():
        if sketch in loop.sketches:
            return loop
    raise GraphError(
        f"dd.collection ({call_site()}): the stream is of {sketch.scope.name!r}, whose body has returned: "
        "only what `iterate` returns leaves a loop"
    )


class Plan:
    """The nodes of one dataflow, and the roots to be computed of them.

    Invariants (`check_invariants`): there is one node for each digest; all nodes beneath a root are in the
    plan; no root has free variables.
    """

    traveller: ClassVar[str] = "differential.plan.installing:travelling_form"
    """`module:function` that turns a plan into what workers carry out; see `Description`."""
    folding: ClassVar[str] = "differential.plan.durable.rules:plan_facts"
    """`module:function` that knows how its inputs are folded; see `Description`."""

    def __init__(self, dataflow: Dataflow) -> None:
        self.dataflow = dataflow
        dataflow.descriptions.append(self)
        self.nodes: dict[bytes, Node] = {}
        self.sites: dict[bytes, list[CallSite]] = {}
        self.roots: list[Node] = []
        self.streams: dict[bytes, tuple[Stream, tuple[Loop, ...]]] = {}
        """By digest of a leaf: the stream that feeds it, and the hand-written loops around that stream."""
        self.lowering = Lowering(dataflow, self.streams, self.sites)
        self.imported_failures: list[tuple[Stream, Stream, str]] = []
        """For each import: the stream of its rows, the stream of their failures, and its name in messages."""
        self.improved = Improved([])
        """The plan after the rules; set by `carry_out`."""
        self.fed: list[Node] = []
        """What stages that were written by hand read by `feeds`."""
        self.origins = Origins()
        """Which columns behind joins are which of their sides."""
        self.taken_in: dict[str, Input] = {}
        """By name: each input with the columns that it takes in; set by `carry_out`."""
        self._outputs: set[str] = set()
        self._sketches = 0
        self._serials: dict[str, list[object]] = {}

    @classmethod
    def of(cls, dataflow: Dataflow) -> Plan:
        """Return the plan of `dataflow`; make one if it has none yet."""
        plans = [description for description in dataflow.descriptions if isinstance(description, Plan)]
        return plans[0] if plans else cls(dataflow)

    def add(self, node: N, site: CallSite | None = None) -> N:
        """Enter `node` with the line where it was written; return it, or the equal node that is there.

        Raises SchemaError if the node has no column.
        """
        here = call_site() if site is None else site
        with at_site((here,)):
            if any(expr.is_pending for expr in node.expressions):
                node = node.settled()
            # compute now, while its children have them: never by recursion
            node.schema, node.free  # noqa: B018
            _check_has_columns(node)
        added = self.nodes.setdefault(node.digest, node)
        assert type(added) is type(node)
        sites = self.sites.setdefault(node.digest, [])
        if here not in sites:
            sites.append(here)
        return added

    def leaf(self, node: N, stream: Stream, loops: tuple[Loop, ...] = ()) -> N:
        """Enter a leaf together with the stream that feeds it."""
        added = self.add(node)
        self.streams[added.digest] = (stream, loops)
        return added

    def imported(self, node: Import) -> Import:
        """Enter a leaf for an export of another dataflow, and import the failures of its rows as well."""
        rows = self.dataflow.imported(node.owner, node.name, TableImport(node.columns))
        failures = self.dataflow.imported(node.owner, failures_of(node.name), TableImport(FAILURES))
        self.imported_failures.append((rows, failures, f"{node.name!r} of {node.owner!r}"))
        return self.leaf(node, rows)

    def from_stream_serial(self) -> int:
        """Return a number that no other stream of this plan has."""
        return sum(isinstance(node, FromStream) for node in self.nodes.values())

    def function(self, function: object) -> UserFunction:
        """Describe a function of the user; the same function gets the same description again."""
        described = UserFunction.of(function)
        if described.is_whole:
            return described
        others = self._serials.setdefault(described.digest, [])
        for serial, other in enumerate(others):
            if other is function:
                return replace(described, serial=serial)
        others.append(function)
        return replace(described, serial=len(others) - 1)

    def inspect(self, source: Node, function: object) -> Inspect:
        """Enter `inspect` as an effect."""
        serial = sum(isinstance(node, Inspect) for node in self.nodes.values())
        return self.effect(Inspect(source, self.function(function), serial))

    def stream(self, source: Node, stage: Stream, loops: tuple[Loop, ...]) -> IntoStream:
        """Let `stage`, which is in `loops` and has no source yet, get the rows of `source`."""
        into = self.lowering.into_streams
        into.append((stage, loops))
        return self.effect(IntoStream(source, len(into) - 1))

    def feeds(self, source: Node, port: int, keys: Sequence[str] | None) -> list[Feed]:
        """Return feeds of a stage that was written by hand; see `Lowering.feeds`. It reads `source` as it is
        written, so the inputs beneath take in all their columns.
        """
        self.fed.append(source)
        return self.lowering.feeds(source, port, keys)

    def effect(self, effect: N) -> N:
        """Enter an effect: it happens whether or not anybody reads its output."""
        node = self.add(effect)
        self._enter_effect(node)
        return node

    def _enter_effect(self, effect: Node) -> None:
        """List the effect in the innermost loop that it depends on; among the roots if it depends on none."""
        depth = max(effect.free, default=0)
        inside = [loop for loop in self.open_loops() if loop.depth == depth]
        (inside[-1].effects if inside else self.roots).append(effect)

    def output(self, source: Node, name: str, *, is_strict: bool = False, is_stored: bool = False) -> None:
        """Make `source` an output under `name`; see `Output`."""
        check_name("output", name)
        if name in self._outputs or name in self.dataflow.outputs:
            raise GraphError(
                f"the dataflow {self.dataflow.name!r} already has an output {name!r}; choose another name"
            )
        self.ask_for(self.add(Output(source, name, is_strict=is_strict, is_stored=is_stored)))

    def export(self, source: Node, name: str, keys: tuple[str, ...]) -> None:
        """Keep `source` by `keys`, for other dataflows to read under `name`."""
        check_name("export", name)
        if any(isinstance(root, Export) and root.name == name for root in self.roots):
            raise GraphError(
                f"the dataflow {self.dataflow.name!r} already exports {name!r}; choose another name"
            )
        self.ask_for(self.add(Export(source, name, keys)))

    def ask_for(self, root: Node) -> None:
        """Make `root`, an output or an effect, something to compute."""
        if isinstance(root, Output) and not isinstance(root, Export):
            self._outputs.add(root.name)
        self.roots.append(root)

    @contextmanager
    def opened(self, name: str, loop_path: LoopPath) -> Iterator[OpenLoop]:
        """Open a loop in `loop_path` while its body is being written."""
        depth = 1 + sum(isinstance(loop, OpenLoop) for loop in loop_path)
        loop = OpenLoop(self, name, loop_path, depth)
        token = _open.set((*_open.get(), loop))
        try:
            yield loop
            for sketch in loop.sketches:
                self._carry_out_unread(sketch)
        finally:
            _open.reset(token)

    def sketch(self, loop: OpenLoop, title: str) -> Sketch:
        """Return the sketch of the stages that are written by hand in `loop`."""
        if not loop.sketches:
            self._sketches += 1
            loop.sketches.append(Sketch(self._sketches, title))
        return loop.sketches[0]

    def by_hand(self, sketch: Sketch, stage: int, output: int, columns: Schema) -> ByHand:
        """Enter an output of a sketched stage."""
        sketch.read.add(stage)
        sources = tuple(sketch.stages[at].source for at in sketch.sources_of(stage))
        return self.add(
            ByHand(tuple(each for each in sources if each is not None), sketch, stage, output, columns)
        )

    def _carry_out_unread(self, sketch: Sketch) -> None:
        """Enter stages whose outputs nobody reads as effects."""
        for stage in range(len(sketch.stages)):
            if stage not in sketch.read:
                source = sketch.stages[sketch.sources_of(stage)[0]].source
                assert source is not None
                self._enter_effect(self.by_hand(sketch, stage, -1, source.schema))

    def mark(self) -> PlanMark:
        """Return a snapshot for `take_back`."""
        effects = [(loop, tuple(loop.effects)) for loop in self.open_loops()]
        return PlanMark(tuple(self.roots), frozenset(self._outputs), effects, self._streams)

    @property
    def _streams(self) -> int:
        """The number of streams into collections and out of them."""
        return len(self.streams) + len(self.lowering.into_streams)

    def take_back(self, mark: PlanMark) -> bool:
        """Go back to the outputs and effects at `mark`. Return False, with nothing done, if there are new
        streams since, which are in the dataflow already.
        """
        if self._streams != mark.streams:
            return False
        self.roots[:] = mark.roots
        self._outputs = set(mark.outputs)
        for loop, effects in mark.effects:
            loop.effects[:] = effects
        return True

    def open_loops(self) -> tuple[OpenLoop, ...]:
        """The loops of this plan whose bodies are being written, outermost first."""
        return tuple(loop for loop in _open.get() if loop.plan is self)

    def closed(self, node: LetRec) -> LetRec:
        """Enter a finished loop; its variable gets the least depth that the loop's own dependencies allow."""
        loop = self.add(_settled(node, self))
        if loop.effects:
            self._enter_effect(loop)
        return loop

    def carry_out(self) -> None:
        """Make stages for all roots; `timely` calls this before it freezes the dataflow."""
        self.check_has_roots()
        self.improved = improve(
            self.roots, self.add_rewritten, lambda node: self.sites.get(node.digest, ()), self.fed
        )
        self._leave_out_unread()
        self.improved.roots = rewrite(self.improved.roots, self._with_separate_errors)
        self.lowering.sharing = share(self.improved.roots)
        self.lowering.read = frozenset(
            node.digest
            for node in beneath([root for root in self.improved.roots if isinstance(root, Output)])
        )
        for root in self.improved.roots:
            self.lowering.root(root)
        lowering = self.lowering
        add_failures(self.dataflow, lowering.failing, self.imported_failures, lowering.claims)

    @property
    def inputs(self) -> list[Input]:
        """The inputs, with all columns that clients send."""
        return [node for node in self.nodes.values() if isinstance(node, Input) and not node.declared]

    def _leave_out_unread(self) -> None:
        """Let each input take in only the columns that some operator, output or export reads. One that nobody
        reads keeps one column, so that its rows are still rows.
        """
        read = {node.name: node for node in beneath(self.improved.roots) if isinstance(node, Input)}
        read |= {node.name: node for node in beneath(self.fed) if isinstance(node, Input)}
        for declared in self.inputs:
            is_whole = declared.mode == "checked"
            unread = declared if is_whole else declared.only(declared.keys or carrier_of(declared.columns))
            taken = self.taken_in[declared.name] = read.get(declared.name, unread)
            if taken.declared:
                self.streams[taken.digest] = self.streams[declared.digest]
                own = self.dataflow.inputs[taken.name]
                assert isinstance(own.codec, TableIn | KeyedTableIn), own
                own.codec.keep_only(taken.columns.names)
                self.dataflow.stages[own.stage].detail += f"; takes in {', '.join(taken.columns.names)}"

    def _with_separate_errors(self, node: Node, children: tuple[Node, ...]) -> Node:
        """Return `node` over `children`. A function of groups is replaced by one whose errors are extra
        columns, and a node that splits its answers from them.
        """
        sites = self.sites.get(node.digest, ())
        rewritten = self.add_rewritten(node.with_children(children), sites)
        if not isinstance(rewritten, ReduceFunction) or rewritten.collects:
            return rewritten
        with_errors = self.add_rewritten(replace(rewritten, collects=True), sites)
        return self.add_rewritten(Answered(with_errors, f"reduce({rewritten.function.name})"), sites)

    def check_has_roots(self) -> None:
        """Raise GraphError if the plan has no root: clients could feed rows, and nobody could read anything.

        A dataflow with stages that were put beside the inputs by hand passes: they may have effects.
        """
        flow = self.dataflow
        if self.roots or not self.nodes or len(flow.stages) != len(flow.inputs) + len(flow.imports):
            return
        written = [node for node in self.nodes.values() if node.children]
        last = (written or list(self.nodes.values()))[-1]
        sites = self.sites.get(last.digest, ())
        raise GraphError(
            f"nothing of the dataflow {flow.name!r} could be read: it has no output, export, inspect or "
            f"assertion. Write .output('name') behind {last.describe()}" + (f" ({sites[0]})" if sites else "")
        )

    def add_rewritten(self, node: Node, sites: Sequence[CallSite]) -> Node:
        """Enter a node that a rule has made out of nodes written at these lines."""
        added = self.add(node, sites[0] if sites else CallSite("", 0))
        for site in sites[1:]:
            self.add(node, site)
        return added

    def check_invariants(self) -> None:
        """See the class."""
        for digest, node in self.nodes.items():
            assert node.digest == digest
            assert all(child.digest in self.nodes for child in node.children), node
        for root in self.roots:
            assert root.digest in self.nodes
            assert not root.free, root


def _check_has_columns(node: Node) -> None:
    """Raise SchemaError if a user's operator makes a collection without columns.

    Its rows would be only a number. Arrow's tables, Python's rows and the rules that drop unread columns
    cannot tell them from no rows. `Keys` without columns is allowed: only a join without a condition makes
    it.
    """
    if (
        node.schema.columns
        or isinstance(node, Keys)
        or not all(each.schema.columns for each in node.children)
    ):
        return
    raise no_columns(node.describe(), "select(one=1)" if isinstance(node, Select) else ONE_COLUMN)


def _settled(loop: LetRec, plan: Plan) -> LetRec:
    depth = 1 + max(loop.free, default=0)
    if depth == loop.depth:
        return loop
    settled = _renamed(loop, {loop.depth: depth}, plan)
    assert isinstance(settled, LetRec)
    return settled


def _renamed(loop: LetRec, depths: dict[int, int], plan: Plan) -> Node:
    """Return the loop with its variables at another depth; the variables of loops inside it follow.

    Nodes that do not depend on these variables stay as they are. Loops among those are numbered anew from 1,
    so their variables may have the same depth as one that is replaced here, and yet be other variables.
    """

    def visit(node: Node, children: tuple[Node, ...]) -> Node:
        if node is not loop and node.free.isdisjoint(depths):
            return node
        rewritten = node.with_children(children)
        if isinstance(rewritten, ByPriority | Variable | LetRec) and rewritten.depth in depths:
            rewritten = replace(rewritten, depth=depths[rewritten.depth])
        elif isinstance(rewritten, LetRec):
            rewritten = _settled(rewritten, plan)
        for site in plan.sites.get(node.digest, ()):
            plan.add(rewritten, site)
        return rewritten

    (renamed,) = rewrite([loop], visit)
    return renamed
