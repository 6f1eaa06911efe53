"""One dataflow's plan while it is being written: equal nodes once, where each was written, what is asked for.

Facts beside the graph are kept by digest: the user's lines of a node, all of them if it was written several
times. *Roots* are what has to be computed: outputs, and effects such as `inspect`.

A loop's body is called once, with variables. Which loops are open is known here, so that what is made in a
body knows what it is beneath.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import ClassVar, Final, NamedTuple, TypeVar

from timely.building.dataflow import Dataflow
from timely.building.loop import Loop
from timely.building.stream import Stream
from timely.errors import GraphError
from timely.user_code.call_site import CallSite, at_site, call_site

from ..errors import ONE_COLUMN, no_columns
from ..linear.failures.failing import FAILURES
from ..operators.between.imports import TableImport
from .functions import UserFunction
from .improving import Improved, improve
from .nodes import (
    Answered,
    ByPriority,
    Export,
    FromStream,
    Import,
    Inspect,
    Keys,
    LetRec,
    Node,
    Output,
    ReduceFunction,
    Select,
    Variable,
)
from .rewriting import beneath, rewrite
from .rules.sharing import share
from .stages.failing import add_failures, failures_of
from .stages.lowering import Lowering

__all__ = ["LoopPath", "OpenLoop", "Plan", "PlanMark"]

N = TypeVar("N", bound=Node)


@dataclass(frozen=True, eq=False)
class OpenLoop:
    """A loop whose body is being written."""

    plan: Plan
    name: str
    around: LoopPath
    depth: int
    effects: list[Node] = field(default_factory=list)

    @property
    def place(self) -> LoopPath:
        """Inside it."""
        return (*self.around, self)


class PlanMark(NamedTuple):
    """What a plan asked for at some moment, also in loops that were being written; how many leaves it had."""

    roots: tuple[Node, ...]
    outputs: frozenset[str]
    effects: list[tuple[OpenLoop, tuple[Node, ...]]]
    leaves: int


LoopPath = tuple[Loop | OpenLoop, ...]
"""The loops around a collection, outermost first: hand-written ones of `timely`, then those of plans."""

_open: Final[ContextVar[tuple[OpenLoop, ...]]] = ContextVar(
    "loops whose bodies are being written", default=()
)


class Plan:
    """What is asked of one dataflow.

    Invariants (`check_invariants`): one node for each digest; the nodes beneath a root are all known; no
    root has free variables.
    """

    traveller: ClassVar[str] = "differential.plan.installing:travelling_form"
    """Who knows how workers carry it out; see `Description`."""

    def __init__(self, dataflow: Dataflow) -> None:
        self.dataflow = dataflow
        dataflow.descriptions.append(self)
        self.nodes: dict[bytes, Node] = {}
        self.sites: dict[bytes, list[CallSite]] = {}
        self.roots: list[Node] = []
        self.streams: dict[bytes, tuple[Stream, tuple[Loop, ...]]] = {}
        """What feeds leaves: the stream of each, and the hand-written loops that it is in."""
        self.lowering = Lowering(dataflow, self.streams, self.sites)
        self.imported_failures: list[tuple[Stream, Stream, str]] = []
        """What is imported, what fails in it, and what that is called."""
        self.improved = Improved([])
        """What the rules have made of it; known once it has been carried out."""
        self._outputs: set[str] = set()
        self._serials: dict[str, list[object]] = {}

    @classmethod
    def of(cls, dataflow: Dataflow) -> Plan:
        """The plan of `dataflow`; a new one if it has none yet."""
        found = [known for known in dataflow.descriptions if isinstance(known, Plan)]
        return found[0] if found else cls(dataflow)

    def add(self, node: N, site: CallSite | None = None) -> N:
        """`node`, or the one that is equal to it and was there before; notes that it was written here.

        Raises SchemaError if it has no column.
        """
        here = call_site() if site is None else site
        with at_site((here,)):
            node.schema, node.free  # noqa: B018  # now, while what is beneath it is known: never by recursion
            _check_has_columns(node)
        known = self.nodes.setdefault(node.digest, node)
        assert type(known) is type(node)
        written = self.sites.setdefault(node.digest, [])
        if here not in written:
            written.append(here)
        return known

    def leaf(self, node: N, stream: Stream, loops: tuple[Loop, ...] = ()) -> N:
        """A leaf, and the stream that feeds it."""
        added = self.add(node)
        self.streams[added.digest] = (stream, loops)
        return added

    def imported(self, node: Import) -> Import:
        """A leaf for what another dataflow exports, with what fails in it."""
        rows = self.dataflow.imported(node.owner, node.name, TableImport(node.columns))
        failures = self.dataflow.imported(node.owner, failures_of(node.name), TableImport(FAILURES))
        self.imported_failures.append((rows, failures, f"{node.name!r} of {node.owner!r}"))
        return self.leaf(node, rows)

    def from_stream_serial(self) -> int:
        """A number for a stream that no other has."""
        return sum(isinstance(node, FromStream) for node in self.nodes.values())

    def function(self, function: object) -> UserFunction:
        """What is known of a function of the user; the same again for the same one."""
        known = UserFunction.of(function)
        if known.is_whole:
            return known
        same = self._serials.setdefault(known.digest, [])
        for serial, other in enumerate(same):
            if other is function:
                return replace(known, serial=serial)
        same.append(function)
        return replace(known, serial=len(same) - 1)

    def inspect(self, source: Node, function: object) -> Inspect:
        """An effect; it happens whether or not somebody asks for what comes out of it."""
        serial = sum(isinstance(node, Inspect) for node in self.nodes.values())
        return self.effect(Inspect(source, self.function(function), serial))

    def effect(self, effect: N) -> N:
        """Something that happens whether or not somebody asks for what comes out of it."""
        node = self.add(effect)
        self._happens(node)
        return node

    def _happens(self, effect: Node) -> None:
        """An effect in the loop that it depends on, or of the whole."""
        depth = max(effect.free, default=0)
        inside = [loop for loop in self.open_loops() if loop.depth == depth]
        (inside[-1].effects if inside else self.roots).append(effect)

    def output(self, source: Node, name: str, *, is_strict: bool = False) -> None:
        """Ask for `source` under `name`; see `Output`."""
        if name in self._outputs or name in self.dataflow.outputs:
            raise GraphError(
                f"the dataflow {self.dataflow.name!r} already has an output {name!r}; choose another name"
            )
        self.ask_for(self.add(Output(source, name, is_strict=is_strict)))

    def export(self, source: Node, name: str, keys: tuple[str, ...]) -> None:
        """Keep `source` by `keys`, for other dataflows to read under `name`."""
        if any(isinstance(root, Export) and root.name == name for root in self.roots):
            raise GraphError(
                f"the dataflow {self.dataflow.name!r} already exports {name!r}; choose another name"
            )
        self.ask_for(self.add(Export(source, name, keys)))

    def ask_for(self, root: Node) -> None:
        """Compute `root`, an output or an effect, whatever else is asked for."""
        if isinstance(root, Output) and not isinstance(root, Export):
            self._outputs.add(root.name)
        self.roots.append(root)

    @contextmanager
    def opened(self, name: str, place: LoopPath) -> Iterator[OpenLoop]:
        """The body of a loop in `place` is being written."""
        depth = 1 + sum(isinstance(loop, OpenLoop) for loop in place)
        loop = OpenLoop(self, name, place, depth)
        token = _open.set((*_open.get(), loop))
        try:
            yield loop
        finally:
            _open.reset(token)

    def mark(self) -> PlanMark:
        """What is asked for by now, for `take_back`."""
        effects = [(loop, tuple(loop.effects)) for loop in self.open_loops()]
        return PlanMark(tuple(self.roots), frozenset(self._outputs), effects, len(self.streams))

    def take_back(self, mark: PlanMark) -> bool:
        """Ask only for what was asked for at `mark`; False, with nothing done, if there are new leaves since:
        they are in the dataflow.
        """
        if len(self.streams) != mark.leaves:
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
        """A finished loop, whose variable is as deep as what the loop depends on demands, and no deeper."""
        loop = self.add(_settled(node, self))
        if loop.effects:
            self._happens(loop)
        return loop

    def carry_out(self) -> None:
        """Make stages of all that is asked for; `timely` calls this before it freezes the dataflow."""
        self.check_asked()
        self.improved = improve(self.roots, self.again, lambda node: self.sites.get(node.digest, ()))
        self.improved.roots = rewrite(self.improved.roots, self._with_errors_beside)
        self.lowering.sharing = share(self.improved.roots)
        self.lowering.read = frozenset(
            node.digest
            for node in beneath([root for root in self.improved.roots if isinstance(root, Output)])
        )
        for root in self.improved.roots:
            self.lowering.root(root)
        lowering = self.lowering
        add_failures(self.dataflow, lowering.failing, self.imported_failures, lowering.claims)

    def _with_errors_beside(self, node: Node, children: tuple[Node, ...]) -> Node:
        """`node` over other children; functions of groups with their errors as columns, which are taken
        apart.
        """
        sites = self.sites.get(node.digest, ())
        made = self.again(node.with_children(children), sites)
        if not isinstance(made, ReduceFunction) or made.collects:
            return made
        beside = self.again(replace(made, collects=True), sites)
        return self.again(Answered(beside, f"reduce({made.function.name})"), sites)

    def check_asked(self) -> None:
        """Raise GraphError if nothing is asked for: rows could be fed, and nobody could read anything.

        A dataflow with stages that were put beside the inputs by hand is let through: they may do something.
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

    def again(self, node: Node, sites: Sequence[CallSite]) -> Node:
        """What a rule has made of nodes that were written at these lines."""
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
    """Raises SchemaError for what a user makes a collection without columns of.

    Its rows would be a number and nothing else, which Arrow's tables, Python's rows and rules that look for
    columns to keep cannot tell from no rows. `Keys` by nothing are ours: of a join that has no condition.
    """
    if (
        node.schema.columns
        or isinstance(node, Keys)
        or not all(each.schema.columns for each in node.children)
    ):
        return
    raise no_columns(node.describe(), "select(one=1)" if isinstance(node, Select) else ONE_COLUMN)


def _settled(loop: LetRec, plan: Plan) -> LetRec:
    wanted = 1 + max(loop.free, default=0)
    if wanted == loop.depth:
        return loop
    found = _renamed(loop, {loop.depth: wanted}, plan)
    assert isinstance(found, LetRec)
    return found


def _renamed(loop: LetRec, depths: dict[int, int], plan: Plan) -> Node:
    """The loop with its variables at another depth; those of loops inside it follow.

    What does not depend on them stays as it is: loops of its own are numbered anew from 1, so that their
    variables may have the very number that is given away here, and mean something else by it.
    """

    def visit(node: Node, children: tuple[Node, ...]) -> Node:
        if node is not loop and node.free.isdisjoint(depths):
            return node
        made = node.with_children(children)
        if isinstance(made, ByPriority | Variable | LetRec) and made.depth in depths:
            made = replace(made, depth=depths[made.depth])
        elif isinstance(made, LetRec):
            made = _settled(made, plan)
        for site in plan.sites.get(node.digest, ()):
            plan.add(made, site)
        return made

    (renamed,) = rewrite([loop], visit)
    return renamed
