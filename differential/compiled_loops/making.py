"""From the stages of a loop to a compiled loop, if every stage is one that compiled loops know."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

from differential.columns.routes import KeyRoute, UnitRoute
from differential.compiled_loops.carrying import carrying_of, failing_of
from differential.compiled_loops.loop import KernelLoop
from differential.compiled_loops.places import places_of
from differential.compiled_loops.steps import (
    ArrangeStep,
    Barrier,
    Edge,
    FailedGroups,
    Failing,
    FailingStep,
    JoinStep,
    Look,
    OtherStep,
    TransformStep,
    Unheard,
)
from differential.compiled_loops.tables import EdgeRoute, Leaving, Out, Parts
from differential.kernels.compiled_loops.layout import (
    BY_KEY,
    BY_UNIT,
    FAR,
    K_ARRANGE,
    K_BARRIER,
    K_JOIN,
    K_LEAST,
    K_OTHER,
    K_SUM,
    K_TOTALS,
    KEEPS_ANSWERS,
    KEEPS_ROWS,
    M_DELAY,
    M_EDGE,
    M_EDGES,
    M_GUARDS,
    M_KW,
    M_PROJECTION,
    M_TRACE,
    M_VIA,
    M_WORDS,
    P_ANSWERS,
    P_EDGE,
    P_EDGES,
    P_KEEPS,
    P_KIND,
    P_LEVELS,
    P_MATCH,
    P_MATCHES,
    P_NEXT,
    P_PARTS,
    P_PARTS_COLUMNS,
    P_PARTS_LINES,
    P_PENDING,
    P_PLACES,
    P_SHAPE,
    P_SHAPE_WORDS,
    P_SLOT,
    P_TRACE,
    S_COLUMNS,
)
from differential.linear.failures.failing import FAILURES
from differential.linear.transform import FailureTransform, LinearTransform
from differential.operators.arrange import ArrangeVertex
from differential.operators.consolidate import ConsolidateMachine
from differential.operators.join import JoinMachine, OwnRows
from differential.operators.join_vertex import JoinVertex
from differential.operators.loops.priority import PriorityVertex
from differential.operators.machine import Machine
from differential.operators.ordered.machine import FirstMachine
from differential.operators.passing import InspectVertex, RowsEndVertex
from differential.operators.patterns.lookups import ARRANGED, LookupMachine
from differential.operators.reduce import ReduceMachine
from differential.operators.timed.during import OnTimeVertex
from differential.operators.vertices import MachineVertex, PassingVertex
from differential.trace.readers import Reader
from differential.trace.shared import SharedTrace
from progress.compiled.arrays import Int64s
from timely.operators.compiled_loop import CompiledLoop, Link, LinkUse, LoopSite, Member
from timely.wire.batch import Composed

__all__ = ["compile_loop"]

_PASSING = (PriorityVertex, InspectVertex, OnTimeVertex, RowsEndVertex)
_KINDS = (JoinVertex, MachineVertex, ArrangeVertex, *_PASSING)
_MACHINES = (ReduceMachine, ConsolidateMachine, FirstMachine, LookupMachine)


def compile_loop(site: LoopSite) -> CompiledLoop | None:
    """Compile a loop; return None if a stage is of another kind, or times are of another order."""
    for member in site.members:
        vertex = member.vertex
        if type(vertex) not in _KINDS:
            return None
        if isinstance(vertex, MachineVertex) and not isinstance(vertex.machine, _MACHINES):
            return None
    for member in site.members:
        depth = len(member.loops)
        if member.code.guards != sum(site.layout.guard(level) for level in range(depth + 1)):
            return None
    if site.workers > 1 and not _are_known([link.route for link in site.links if link.target >= 0]):
        return None
    places = places_of(site.members, site.links, site.layout)
    if places is None:
        return None
    return _Maker(site, places).make()


class _Maker:
    """Compiles one loop."""

    def __init__(self, site: LoopSite, places: dict[int, list[int]]) -> None:
        self._site = site
        self._places = places
        self._members = {member.stage: member for member in site.members}
        layout = site.layout
        fields = [[*layout.shifts], [(1 << bits) - 1 for bits in layout.level_bits]]
        self._parts = Parts(np.array(fields, np.int64), layout.shifts[0])
        self._edges: dict[tuple[int, int], list[Edge]] = {}
        """By stage and output: what rows that are sent there go by."""
        self._ranges: dict[tuple[int, int], tuple[int, int]] = {}
        """The same as numbers: the first edge, and the one behind the last."""
        self._pending: dict[int, int] = {}
        self._shared: dict[int, int] = {}
        self._raw: list[tuple[int, int, Edge]] = []
        self._suspects: list[FailingStep] = []
        self._failed_groups: dict[int, int] = {}
        """By stage the slot for groups that it has no answer for."""
        self._divided: dict[int, list[int]] = {}
        """By slot, where rows for it wait, for each worker."""

    def make(self) -> KernelLoop:
        """Slots for all that comes in, then edges, then steps, since these name them."""
        parts = self._parts
        for member in self._site.members:
            self._add_slots(member)
        # Rows of one output have edges one behind the other.
        outputs = {(link.source, link.output) for link in self._site.links}
        outputs.update((stage, 0) for stage in self._shared)
        self._ranges = {output: self._add_edges(*output) for output in sorted(outputs)}
        for member in self._site.members:
            self._add_steps(member)
        self._add_transforms()
        parts.close()
        parts.vertices = [member.vertex for member in self._site.members]
        return KernelLoop(parts, self._site.workers)

    def _add_slots(self, member: Member) -> None:
        """A slot for each input that takes rows."""
        parts, vertex, stage = self._parts, member.vertex, member.stage
        if isinstance(vertex, JoinVertex):
            for port, one in enumerate(vertex.machine.inputs):
                if isinstance(one.source, OwnRows):
                    slot = parts.entries[stage, port] = parts.slots.add(one.source.trace.columns)
                    parts.passing.append(slot)
        elif isinstance(vertex, MachineVertex):
            machine = _known(vertex.machine)
            components = 0 if vertex.components is None else vertex.components.number
            parts.entries[stage, 0] = parts.slots.add(machine.columns, components, machine.times)
            if isinstance(machine, ReduceMachine):
                self._pending[stage] = parts.slots.add(machine.kw + 1)
            if vertex.shared is not None:
                self._shared[stage] = parts.slots.add(machine.words + 2)
                parts.passing.append(self._shared[stage])
        elif isinstance(vertex, ArrangeVertex):
            slot = parts.entries[stage, 0] = parts.slots.add(vertex.traces()[0].columns)
            parts.passing.append(slot)
        else:
            assert isinstance(vertex, PassingVertex)
            slot = parts.entries[stage, 0] = parts.slots.add(vertex.columns)
            parts.passing.append(slot)

    def _columns(self, stage: int, port: int) -> int:
        return int(self._parts.slots.table[self._parts.entries[stage, port], S_COLUMNS])

    def _width(self, stage: int) -> int:
        """Words of the rows that a stage sends."""
        vertex = self._members[stage].vertex
        if isinstance(vertex, JoinVertex):
            return vertex.machine.words
        if isinstance(vertex, PassingVertex):
            return vertex.words
        if isinstance(vertex, ArrangeVertex):
            return vertex.traces()[0].columns - 2
        assert isinstance(vertex, MachineVertex)
        return _known(vertex.machine).words

    def _add_slot_of(self, stage: int) -> int:
        """A slot for rows as a stage sends them."""
        vertex = self._members[stage].vertex
        machine = vertex.machine if isinstance(vertex, MachineVertex) else None
        times = machine.gives_times if isinstance(machine, LookupMachine) else ()
        return self._parts.slots.add(self._width(stage) + 2, times=times)

    def _links(self, stage: int, output: int) -> list[Link]:
        return [link for link in self._site.links if (link.source, link.output) == (stage, output)]

    def _add_edges(self, stage: int, output: int) -> tuple[int, int]:
        """The edges of an output, one behind the other: the first, and the one behind the last."""
        parts = self._parts
        start = len(parts.edge_rows)
        vertex = self._members[stage].vertex
        if isinstance(vertex, MachineVertex) and output == vertex.failures_output:
            self._add_failed_groups(stage, output)
            return start, start
        by: list[Edge] = self._edges.setdefault((stage, output), [])
        links = self._links(stage, output)
        failing = self._add_failing(links)
        leaving: dict[tuple[int, int, bool], Leaving] = {}
        for link in links:
            slot = parts.entries.get((link.target, link.port))
            if link.use in failing.made:
                continue
            if link.target < 0:
                is_inside = _fails_inside(link)
                key = link.keep, link.add, is_inside
                if key in leaving:
                    leaving[key].uses.append(link.use)
                    continue
                out = self._add_slot_of(stage)
                way: Literal["as they are", "summed"] = "as they are" if is_inside else "summed"
                leaving[key] = Leaving(out, [link.use], link.keep, link.add, way)
                parts.leaving.append(leaving[key])
                by.append(Edge(out, None))
                parts.add_edge(out, self._width(stage), None, None)
            elif slot is not None:
                routed = self._routed(slot, link.route)
                mine = failing.by_use.get(link.use, [])
                edge = Edge(slot, link.use, () if routed is None else routed.slots, mine)
                by.append(edge)
                columns = self._columns(link.target, link.port) - 2
                carrying = carrying_of(link)
                if carrying is not None:
                    parts.add_edge(slot, columns, carrying, link.use, routed)
                    for each in mine:
                        self._add_suspects(stage, link, each)
                elif not isinstance(self._members[stage].vertex, PassingVertex):
                    raw = self._add_slot_of(stage)
                    parts.passing.append(raw)
                    parts.add_edge(raw, self._width(stage), None, None)
                    self._raw.append((stage, raw, edge))
        if output == 0 and stage in self._shared:
            by.append(Edge(self._shared[stage], None))
            parts.add_edge(self._shared[stage], self._width(stage), None, None)
        return start, len(parts.edge_rows)

    def _add_failing(self, links: Sequence[Link]) -> _FailingLinks:
        """Where failures wait that connectors inside find on their way, and are not looked for once more."""
        found = _FailingLinks({}, set())
        for link in links:
            last = _transforms(link)[-1:]
            if not _fails_inside(link) or not isinstance(last[0], FailureTransform):
                continue
            # The connectors before it, and the one that gives the answers, in front of what else it does.
            wanted = (*_transforms(link)[:-1], last[0].answers)
            owner = next(
                (o for o in links if o.target >= 0 and _transforms(o)[: len(wanted)] == wanted), None
            )
            if owner is None:
                continue
            known = found.by_use.setdefault(owner.use, [])
            mine = next((each for each in known if each.failures is last[0].failures), None)
            if mine is None:
                mine = Failing(last[0].failures, self._parts.slots.add(FAILURES.width + 2), last[0].rounds)
                known.append(mine)
                self._parts.leaving.append(Leaving(mine.slot, [link.use], link.keep, link.add, "made"))
            else:
                next(each for each in self._parts.leaving if each.slot == mine.slot).uses.append(link.use)
            found.made.add(link.use)
        return found

    def _add_failed_groups(self, stage: int, output: int) -> None:
        """Where groups without an answer wait to leave."""
        slot = self._parts.slots.add(FAILURES.width + 2)
        links = self._links(stage, output)
        if links:
            keep, add = links[0].keep, links[0].add
            # Else one way out would take the rows of the others from the slot.
            assert all((link.keep, link.add) == (keep, add) for link in links), "failures leave all loops"
            uses = [link.use for link in links]
            self._parts.leaving.append(Leaving(slot, uses, keep, add, "as they are"))
        self._failed_groups[stage] = slot

    def _add_suspects(self, stage: int, link: Link, failing: Failing) -> None:
        """Edges for rows that a kernel finds to have no answer on this connector."""
        assert isinstance(link.transform, LinearTransform)
        for carrying in failing_of(link):
            raw = self._add_slot_of(stage)
            self._parts.passing.append(raw)
            self._parts.add_edge(raw, self._width(stage), carrying, None)
            self._suspects.append(FailingStep(stage, raw, link.transform, failing))

    def _routed(self, slot: int, route: object | None) -> EdgeRoute | None:
        """How the rows for a slot are divided between workers; None if they stay."""
        site, parts = self._site, self._parts
        if site.workers == 1 or not isinstance(route, KeyRoute | UnitRoute):
            return None
        if slot not in self._divided:
            columns, times = int(parts.slots.table[slot, S_COLUMNS]), parts.slots.times.get(slot, ())
            every = [
                slot if peer == site.worker else parts.slots.add(columns, times=times)
                for peer in range(site.workers)
            ]
            parts.outs += [Out(out, peer, slot) for peer, out in enumerate(every) if peer != site.worker]
            self._divided[slot] = every
        parts.symbol_words.setdefault(slot, set()).update(route.symbol_words)
        kind, by = (BY_KEY, route.kw) if isinstance(route, KeyRoute) else (BY_UNIT, route.at)
        assert site.routing.versions == 1, "only a stage outside of compiled loops moves keys"
        return EdgeRoute(kind, by, site.routing.owners, self._divided[slot])

    def _add_steps(self, member: Member) -> None:
        vertex, stage = member.vertex, member.stage
        if isinstance(vertex, JoinVertex):
            for port, one in enumerate(vertex.machine.inputs):
                if isinstance(one.source, OwnRows):
                    self._add_join(stage, vertex.machine, port, one.source)
                else:
                    edges = self._edges.get((stage, 0), [])
                    self._parts.looks[stage, port] = Look(vertex.machine, port, None, edges, stage)
        elif isinstance(vertex, MachineVertex):
            machine = vertex.machine
            if isinstance(machine, LookupMachine):
                self._parts.looks[stage, ARRANGED] = Unheard(stage)
            if isinstance(machine, ReduceMachine):
                self._add_reduce(member, machine)
            else:
                kind = K_SUM if isinstance(machine, ConsolidateMachine) else K_BARRIER
                self._add_barrier(member, kind, machine, -1)
            if vertex.shared is not None:
                self._add_arrange(stage, 1, self._shared[stage], vertex.shared)
        elif isinstance(vertex, ArrangeVertex):
            (trace,) = vertex.traces()
            assert isinstance(trace, SharedTrace)
            self._add_arrange(stage, 0, self._parts.entries[stage, 0], trace)
        else:
            assert isinstance(vertex, PassingVertex)
            number, _ = self._add_step(K_OTHER, stage, self._parts.entries[stage, 0], None)
            edges = self._edges.get((stage, 0), [])
            self._parts.others[number] = OtherStep(stage, self._parts.entries[stage, 0], vertex, edges)

    def _add_step(self, kind: int, stage: int, slot: int, output: int | None) -> tuple[int, Int64s]:
        parts = self._parts
        line = parts.step_rows.add()
        line[P_KIND], line[P_SLOT], line[P_NEXT] = kind, slot, FAR
        line[P_TRACE], line[P_ANSWERS], line[P_PENDING] = -1, -1, -1
        if output is not None:
            line[P_EDGE], line[P_EDGES] = self._ranges.get((stage, output), (0, 0))
        return len(parts.step_rows) - 1, line

    def _add_join(self, stage: int, machine: JoinMachine, port: int, source: OwnRows) -> None:
        """Rows of a join's own."""
        parts, slot = self._parts, self._parts.entries[stage, port]
        number, line = self._add_step(K_OTHER if machine.flags else K_JOIN, stage, slot, None)
        edges = self._edges.get((stage, 0), [])
        parts.others[number] = JoinStep(stage, slot, machine, port, edges)
        line[P_MATCH] = len(parts.match_rows)
        self._add_matches(stage, machine, port, -1)
        line[P_MATCHES] = len(parts.match_rows)
        trace = parts.traces.number(source.trace, is_ours=True)

        def refresh() -> None:
            parts.steps[number, P_TRACE] = -1 if source.is_done else trace

        parts.refreshers.append(refresh)

    def _add_matches(self, stage: int, machine: JoinMachine, port: int, via: int) -> None:
        """Where rows at a port look for others."""
        parts, side = self._parts, machine.inputs[port].side
        for other in machine.inputs:
            if other.side == side:
                continue
            line = parts.match_rows.add()
            source = other.source
            read = source.trace if isinstance(source, OwnRows) else source
            line[M_TRACE] = parts.traces.number(read, is_ours=isinstance(source, OwnRows))
            line[M_DELAY], line[M_KW], line[M_GUARDS] = source.path.delay, machine.kw, machine.guards
            projection = machine.projections[side]
            line[M_PROJECTION], line[M_WORDS] = parts.keep(projection), projection.shape[1]
            line[M_EDGE], line[M_EDGES] = self._ranges.get((stage, 0), (0, 0))
            line[M_VIA] = via

    def _add_arrange(self, stage: int, output: int, slot: int, trace: SharedTrace) -> None:
        """Rows that others look up."""
        parts = self._parts
        number, line = self._add_step(K_ARRANGE, stage, slot, output)
        looks: list[Look] = []
        readers: set[Reader] = set()
        line[P_MATCH] = len(parts.match_rows)
        for link in self._links(stage, output):
            vertex = self._members[link.target].vertex if link.target >= 0 else None
            if not isinstance(vertex, JoinVertex):
                continue
            machine = vertex.machine
            edges = self._edges.get((link.target, 0), [])
            looks.append(Look(machine, link.port, link.use, edges, link.target))
            reader = machine.inputs[link.port].source
            assert isinstance(reader, Reader)
            others = [one.source for one in machine.inputs if one.side != machine.inputs[link.port].side]
            is_with_itself = any(isinstance(other, Reader) and other in trace.readers for other in others)
            if machine.flags or is_with_itself:
                line[P_KIND] = K_OTHER  # whoever looks second must see what the first has not
            readers.add(reader)
            carrying = carrying_of(link)
            if carrying is None:
                line[P_KIND] = K_OTHER
                continue
            via = parts.add_edge(0, 0, carrying, link.use)
            self._add_matches(link.target, machine, link.port, via)
        line[P_MATCHES] = len(parts.match_rows)
        if {reader for reader in trace.readers if reader.position is not None} != readers:
            line[P_KIND] = K_OTHER
        at = parts.traces.number(trace, is_ours=True)
        edges = self._edges.get((stage, output), [])
        parts.others[number] = ArrangeStep(stage, slot, trace, looks, edges)

        def refresh() -> None:
            # Where the other sides of all joins have ended, its rows are looked up by nobody.
            parts.steps[number, P_TRACE] = -1 if trace.is_done else at

        parts.refreshers.append(refresh)

    def _add_barrier(self, member: Member, kind: int, machine: Machine, pending: int) -> tuple[int, Int64s]:
        parts, stage = self._parts, member.stage
        slot = parts.entries[stage, 0]
        number, line = self._add_step(kind, stage, slot, 0)
        failed = None
        if stage in self._failed_groups:
            assert isinstance(member.vertex, MachineVertex)
            failed = FailedGroups(member.vertex, self._failed_groups[stage])
        parts.barriers[number] = Barrier(
            stage, slot, pending, machine, self._edges.get((stage, 0), []), failed
        )
        parts.levels[number] = line[P_LEVELS] = len(member.loops)
        line[P_PENDING] = pending
        for level, place in enumerate(self._places[stage]):
            line[P_PLACES + level] = place
        return number, line

    def _add_reduce(self, member: Member, machine: ReduceMachine) -> None:
        kind, shape, aggregates = machine.kernel()
        number, line = self._add_barrier(member, _kind_of(kind), machine, self._pending[member.stage])
        if line[P_KIND] == K_BARRIER:
            return
        parts = self._parts
        line[P_SHAPE], line[P_SHAPE_WORDS] = parts.keep(shape), shape.shape[0]
        line[P_PARTS] = parts.keep(aggregates)
        line[P_PARTS_LINES], line[P_PARTS_COLUMNS] = aggregates.shape
        trace = line[P_TRACE] = parts.traces.number(machine.input, is_ours=not machine.reads)
        line[P_ANSWERS] = parts.traces.number(machine.output, is_ours=kind == "least")
        line[P_KEEPS] = (0 if machine.reads else KEEPS_ROWS) | (KEEPS_ANSWERS if machine.keeps_answers else 0)
        exact = 3 if kind == "least" else 4

        def refresh() -> None:
            if machine.reads:
                shape[exact] = parts.traces.exact_from(int(trace))

        parts.refreshers.append(refresh)

    def _add_transforms(self) -> None:
        for stage, slot, edge in self._raw:
            number, _ = self._add_step(K_OTHER, stage, slot, None)
            self._parts.others[number] = TransformStep(stage, slot, edge)
        for step in self._suspects:
            number, _ = self._add_step(K_OTHER, step.stage, step.slot, None)
            self._parts.others[number] = step


def _known(machine: Machine) -> ReduceMachine | ConsolidateMachine | FirstMachine | LookupMachine:
    """The machine of a barrier."""
    assert isinstance(machine, _MACHINES)
    return machine


class _FailingLinks(NamedTuple):
    """by_use: by connector where what fails on it waits; made: connectors that only bring that away."""

    by_use: dict[LinkUse, list[Failing]]
    made: set[LinkUse]


def _transforms(link: Link) -> tuple[object, ...]:
    """What a connector does, one thing after another."""
    if isinstance(link.transform, Composed):
        return tuple(link.transform.transforms)
    return () if link.transform is None else (link.transform,)


def _fails_inside(link: Link) -> bool:
    """Whether a connector brings failures away of a chain that is inside the loop, iteration by iteration."""
    last = _transforms(link)[-1:]
    return bool(last) and isinstance(last[0], FailureTransform) and last[0].failures.counters != 0


def _are_known(routes: Sequence[object]) -> bool:
    """Whether rows are divided as a kernel can."""
    return all(route is None or isinstance(route, KeyRoute | UnitRoute) for route in routes)


def _kind_of(kernel: str | None) -> int:
    """The kind of barrier that a reduce is."""
    return {"least": K_LEAST, "sums": K_TOTALS}.get(kernel or "", K_BARRIER)
