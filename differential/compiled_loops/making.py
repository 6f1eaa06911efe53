"""Makes a compiled loop from the stages of a loop, if compiled loops support every one of them."""

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
    IgnoredPort,
    JoinStep,
    Look,
    OtherStep,
    TransformStep,
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
    """Compile a loop; return None if a stage is of another kind, or times have another order."""
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
    if site.workers > 1 and not _are_supported([link.route for link in site.links if link.target >= 0]):
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
        """By stage and output: the edges for rows that are sent there."""
        self._ranges: dict[tuple[int, int], tuple[int, int]] = {}
        """The same as numbers: the first edge, and the one behind the last."""
        self._pending: dict[int, int] = {}
        self._shared: dict[int, int] = {}
        self._raw: list[tuple[int, int, Edge]] = []
        self._suspects: list[FailingStep] = []
        self._failed_groups: dict[int, int] = {}
        """By stage the slot for groups that the stage has no answer for."""
        self._divided: dict[int, list[int]] = {}
        """By slot: for each worker the slot in which its rows wait here."""

    def make(self) -> KernelLoop:
        """Add slots for all inputs, then edges, then steps, since these name them; return the loop."""
        parts = self._parts
        for member in self._site.members:
            self._add_slots(member)
        # Edges of one output are numbered one after another.
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
        """Add a slot for each input that takes rows."""
        parts, vertex, stage = self._parts, member.vertex, member.stage
        if isinstance(vertex, JoinVertex):
            for port, one in enumerate(vertex.machine.inputs):
                if isinstance(one.source, OwnRows):
                    slot = parts.entries[stage, port] = parts.slots.add(one.source.trace.columns)
                    parts.passing.append(slot)
        elif isinstance(vertex, MachineVertex):
            machine = _barrier_machine(vertex.machine)
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
        """Return the words of rows that a stage sends."""
        vertex = self._members[stage].vertex
        if isinstance(vertex, JoinVertex):
            return vertex.machine.words
        if isinstance(vertex, PassingVertex):
            return vertex.words
        if isinstance(vertex, ArrangeVertex):
            return vertex.traces()[0].columns - 2
        assert isinstance(vertex, MachineVertex)
        return _barrier_machine(vertex.machine).words

    def _add_slot_of(self, stage: int) -> int:
        """Add a slot for rows as a stage sends them; return its number."""
        vertex = self._members[stage].vertex
        machine = vertex.machine if isinstance(vertex, MachineVertex) else None
        times = machine.gives_times if isinstance(machine, LookupMachine) else ()
        return self._parts.slots.add(self._width(stage) + 2, times=times)

    def _links(self, stage: int, output: int) -> list[Link]:
        return [link for link in self._site.links if (link.source, link.output) == (stage, output)]

    def _add_edges(self, stage: int, output: int) -> tuple[int, int]:
        """Add the edges of an output; return the first, and the one behind the last."""
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
            if link.use in failing.only_leaving:
                continue
            if link.target < 0:
                is_inside = _fails_inside(link)
                key = link.keep, link.add, is_inside
                if key in leaving:
                    leaving[key].uses.append(link.use)
                    continue
                out = self._add_slot_of(stage)
                send_as: Literal["as they are", "summed"] = "as they are" if is_inside else "summed"
                leaving[key] = Leaving(out, [link.use], link.keep, link.add, send_as)
                parts.leaving.append(leaving[key])
                by.append(Edge(out, None))
                parts.add_edge(out, self._width(stage), None, None)
            elif slot is not None:
                routed = self._routed(slot, link.route)
                failing_here = failing.by_use.get(link.use, [])
                edge = Edge(slot, link.use, () if routed is None else routed.slots, failing_here)
                by.append(edge)
                columns = self._columns(link.target, link.port) - 2
                carrying = carrying_of(link)
                if carrying is not None:
                    parts.add_edge(slot, columns, carrying, link.use, routed)
                    for each in failing_here:
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
        """Return slots for failures that connectors inside find anyway, and links that only remove these."""
        failing = _FailingLinks({}, set())
        for link in links:
            last = _transforms(link)[-1:]
            if not _fails_inside(link) or not isinstance(last[0], FailureTransform):
                continue
            # The owner runs the same transforms, then the one that makes the answers; it may do more behind
            # these.
            transforms = (*_transforms(link)[:-1], last[0].answers)
            owner = next(
                (o for o in links if o.target >= 0 and _transforms(o)[: len(transforms)] == transforms), None
            )
            if owner is None:
                continue
            of_owner = failing.by_use.setdefault(owner.use, [])
            entry = next((each for each in of_owner if each.failures is last[0].failures), None)
            if entry is None:
                entry = Failing(last[0].failures, self._parts.slots.add(FAILURES.width + 2), last[0].rounds)
                of_owner.append(entry)
                self._parts.leaving.append(Leaving(entry.slot, [link.use], link.keep, link.add, "made"))
            else:
                next(each for each in self._parts.leaving if each.slot == entry.slot).uses.append(link.use)
            failing.only_leaving.add(link.use)
        return failing

    def _add_failed_groups(self, stage: int, output: int) -> None:
        """Add a slot for groups without an answer, in which they wait to leave."""
        slot = self._parts.slots.add(FAILURES.width + 2)
        links = self._links(stage, output)
        if links:
            keep, add = links[0].keep, links[0].add
            # Otherwise the first way out would take the rows of the others from the slot.
            assert all((link.keep, link.add) == (keep, add) for link in links), "failures leave all loops"
            uses = [link.use for link in links]
            self._parts.leaving.append(Leaving(slot, uses, keep, add, "as they are"))
        self._failed_groups[stage] = slot

    def _add_suspects(self, stage: int, link: Link, failing: Failing) -> None:
        """Add edges for rows that, as a kernel finds, this connector has no answer for."""
        assert isinstance(link.transform, LinearTransform)
        for carrying in failing_of(link):
            raw = self._add_slot_of(stage)
            self._parts.passing.append(raw)
            self._parts.add_edge(raw, self._width(stage), carrying, None)
            self._suspects.append(FailingStep(stage, raw, link.transform, failing))

    def _routed(self, slot: int, route: object | None) -> EdgeRoute | None:
        """Return how the rows for a slot are divided between workers; None if they stay."""
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
                self._parts.looks[stage, ARRANGED] = IgnoredPort(stage)
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
        """Add a step for rows that a join keeps itself."""
        parts, slot = self._parts, self._parts.entries[stage, port]
        number, line = self._add_step(K_OTHER if machine.flags else K_JOIN, stage, slot, None)
        edges = self._edges.get((stage, 0), [])
        parts.others[number] = JoinStep(stage, slot, machine, port, edges)
        line[P_MATCH] = len(parts.match_rows)
        self._add_matches(stage, machine, port, -1)
        line[P_MATCHES] = len(parts.match_rows)
        trace = parts.traces.number(source.trace, is_ours=True)
        parts.refreshers.append(_StillRead(number, source, trace))

    def _add_matches(self, stage: int, machine: JoinMachine, port: int, via: int) -> None:
        """Add lines for the traces in which rows at a port look for matches."""
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
        """Add a step for rows of an arrangement, which others look up."""
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
                line[P_KIND] = K_OTHER  # the second reader that looks must see what the first did not
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
        parts.refreshers.append(_StillRead(number, trace, at))

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
        if machine.reads:
            parts.refreshers.append(_ExactFrom(shape, 3 if kind == "least" else 4, int(trace)))

    def _add_transforms(self) -> None:
        for stage, slot, edge in self._raw:
            number, _ = self._add_step(K_OTHER, stage, slot, None)
            self._parts.others[number] = TransformStep(stage, slot, edge)
        for step in self._suspects:
            number, _ = self._add_step(K_OTHER, step.stage, step.slot, None)
            self._parts.others[number] = step


def _barrier_machine(machine: Machine) -> ReduceMachine | ConsolidateMachine | FirstMachine | LookupMachine:
    """Return the machine of a barrier, as one of the kinds that compiled loops support."""
    assert isinstance(machine, _MACHINES)
    return machine


class _StillRead(NamedTuple):
    """Lets a step put rows into a trace for as long as somebody looks them up."""

    step: int
    source: OwnRows | SharedTrace
    trace: int

    def __call__(self, parts: Parts) -> None:
        parts.steps[self.step, P_TRACE] = -1 if self.source.is_done else self.trace


class _ExactFrom(NamedTuple):
    """Tells the kernel of a reduce which lines of a trace have their original times."""

    shape: Int64s
    at: int
    trace: int

    def __call__(self, parts: Parts) -> None:
        self.shape[self.at] = parts.traces.exact_from(self.trace)


class _FailingLinks(NamedTuple):
    """Links of an output with failures inside the loop.

    by_use: slots for failures, by the connector that finds them; only_leaving: connectors that take these
    away.
    """

    by_use: dict[LinkUse, list[Failing]]
    only_leaving: set[LinkUse]


def _transforms(link: Link) -> tuple[object, ...]:
    """Return the transforms of a connector, in order."""
    if isinstance(link.transform, Composed):
        return tuple(link.transform.transforms)
    return () if link.transform is None else (link.transform,)


def _fails_inside(link: Link) -> bool:
    """Return True if a connector takes away failures of a chain inside the loop, iteration by iteration."""
    last = _transforms(link)[-1:]
    return bool(last) and isinstance(last[0], FailureTransform) and last[0].failures.counters != 0


def _are_supported(routes: Sequence[object]) -> bool:
    """Return True if a kernel can divide rows by all these routes."""
    return all(route is None or isinstance(route, KeyRoute | UnitRoute) for route in routes)


def _kind_of(kernel: str | None) -> int:
    """Return the kind of barrier that a reduce is."""
    return {"least": K_LEAST, "sums": K_TOTALS}.get(kernel or "", K_BARRIER)
