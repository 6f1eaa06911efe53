"""What is the shape of a dataflow, and can it make progress at all?

A *stage* is a logical step, a *connector* joins an output of one stage to an input of another and applies its
summary to times. A *location* is where an event can be outstanding: a stage (requested notifications,
capabilities held) or a connector (messages under way). Locations are numbers:

    stage s      → s
    connector c  → len(stages) + c        its times are those that the target sees

An event at one location can lead on to others in one step (`steps`):

    connector into input p of stage s  →  connector leaving output q of s    internal[p, q], then its summary
    connector into input p of stage s  →  s                                  hold_summary(s, p)
    stage s                            →  each connector leaving s           its summary

Invariant: no path of one step or more from a location to itself, applied to a time t, yields a time ≤ t.
Otherwise an event could wait for itself for ever. The graph refuses such a cycle when it is built.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from progress.errors import GraphError
from progress.times.path_summary import PathSummary
from progress.times.time_words import TimeCode, TimeLayout
from progress.times.timestamp import TimeShape

Step = tuple[int, int, PathSummary]
"""(location, next location, summary)."""


@dataclass(frozen=True)
class StageSpec:
    """A logical step of the dataflow.

        internal   the summary from input p to output q, by (p, q): missing = identity,
                   None = a message on p leads to nothing on q
        detail     free text that two workers must agree on (the plan of an operator)

    If an input has different summaries to the outputs, see `Graph.hold_summary`: a capability is a right to
    send on every output of the stage, so a stage cannot turn a message that may not lead to all of them into
    a capability.
    """

    name: str
    shape: TimeShape
    inputs: int
    outputs: int
    internal: Mapping[tuple[int, int], PathSummary | None] = field(default_factory=dict)
    detail: str = ""


@dataclass(frozen=True)
class ConnectorSpec:
    """A connector from `output` of stage `source` to `input` of stage `target`; it applies `summary` to every
    time.
    """

    source: int
    output: int
    target: int
    input: int
    summary: PathSummary
    detail: str = ""


class Graph:
    """The frozen shape of a dataflow.

    Raises `GraphError` for ports that do not exist, for summaries that do not fit the scopes they join, and
    for cycles that do not advance.
    """

    def __init__(
        self,
        stages: Sequence[StageSpec],
        connectors: Sequence[ConnectorSpec],
        layout: TimeLayout | None = None,
    ) -> None:
        self.stages = tuple(stages)
        self.connectors = tuple(connectors)
        deepest = max((stage.shape.levels for stage in self.stages), default=1)
        self.layout = TimeLayout.default(deepest) if layout is None else layout
        codes = {shape: TimeCode(self.layout, shape) for shape in {stage.shape for stage in self.stages}}
        self.codes = tuple(codes[stage.shape] for stage in self.stages)
        assert len(self.codes) == len(self.stages)
        self._check_stages()
        self._check_connectors()
        self.steps: tuple[Step, ...] = tuple(self._all_steps())
        assert all(there >= len(self.stages) or here >= len(self.stages) for here, there, _ in self.steps)
        cycle = _standing_cycle(self.location_count, self.steps)
        if cycle is not None:
            self._refuse(cycle)

    # -- locations --

    @property
    def location_count(self) -> int:
        """Number of locations: stages and connectors together."""
        return len(self.stages) + len(self.connectors)

    def connector_location(self, connector: int) -> int:
        """Return the location of a connector."""
        assert 0 <= connector < len(self.connectors), connector
        location = len(self.stages) + connector
        assert location < self.location_count
        return location

    def stage_of(self, location: int) -> int:
        """Return the stage at a location: itself, or the target of the connector."""
        assert 0 <= location < self.location_count, location
        if location < len(self.stages):
            return location
        stage = self.connectors[location - len(self.stages)].target
        assert 0 <= stage < len(self.stages), stage
        return stage

    def shape_of(self, location: int) -> TimeShape:
        """Return the shape of the times at a location."""
        return self.stages[self.stage_of(location)].shape

    def code_of(self, location: int) -> TimeCode:
        """Return the code of the times at a location."""
        return self.codes[self.stage_of(location)]

    def location_codes(self) -> list[TimeCode]:
        """Return the codes of the times at all locations; scopes of one shape share one."""
        return [*self.codes, *(self.codes[connector.target] for connector in self.connectors)]

    def name_of(self, location: int) -> str:
        """Return the name of a location for messages."""
        assert 0 <= location < self.location_count, location
        if location < len(self.stages):
            return f"'{self.stages[location].name}' (stage {location})"
        connector = self.connectors[location - len(self.stages)]
        source, target = self.stages[connector.source].name, self.stages[connector.target].name
        return (
            f"'{source}' output {connector.output} → '{target}' input {connector.input} "
            f"(connector {location - len(self.stages)})"
        )

    # -- what leads where --

    def internal(self, stage: int, input: int, output: int) -> PathSummary | None:
        """Return the summary from `input` to `output`; None if a message on `input` leads to nothing on
        `output`.
        """
        spec = self.stages[stage]
        assert 0 <= input < spec.inputs, (spec, input)
        assert 0 <= output < spec.outputs, (spec, output)
        return spec.internal.get((input, output), PathSummary.identity(spec.shape))

    def hold_summary(self, stage: int, input: int) -> PathSummary | None:
        """Return the summary from a message on `input` to the earliest capability or notification that the
        stage may have for it; None if it may have none.

        A capability at t is a right to send on every output at t. So it must not be earlier than any of the
        internal summaries allows: it is the latest of them, if there is one and all outputs can be reached.
        For a stage that declares nothing it is the identity.
        """
        spec = self.stages[stage]
        assert 0 <= input < spec.inputs, (spec, input)
        latest: PathSummary | None = PathSummary.identity(spec.shape) if spec.outputs == 0 else None
        internals = [self.internal(stage, input, output) for output in range(spec.outputs)]
        for candidate in internals:
            if candidate is not None and all(
                other is not None and other.less_equal(candidate, spec.shape) for other in internals
            ):
                latest = candidate
        assert latest is None or latest.is_between(spec.shape, spec.shape), latest
        return latest

    def _all_steps(self) -> list[Step]:
        """Return all steps from location to location; see the module's table."""
        steps: list[Step] = []
        leaving: list[list[int]] = [[] for _ in self.stages]
        for number, connector in enumerate(self.connectors):
            leaving[connector.source].append(number)
            steps.append((connector.source, self.connector_location(number), connector.summary))
        held = {
            (stage, input): self.hold_summary(stage, input)
            for stage, spec in enumerate(self.stages)
            for input in range(spec.inputs)
        }
        for number, connector in enumerate(self.connectors):
            here, stage = self.connector_location(number), connector.target
            hold = held[stage, connector.input]
            if hold is not None:
                steps.append((here, stage, hold))
            for onward in leaving[stage]:
                inside = self.internal(stage, connector.input, self.connectors[onward].output)
                # A step that is no earlier than the way through the stage itself need not be a step of its
                # own.
                if inside is not None and inside != hold:
                    summary = inside.then(self.connectors[onward].summary)
                    steps.append((here, self.connector_location(onward), summary))
        assert len(steps) >= len(self.connectors), "every connector is entered from its source"
        codes = self.location_codes()
        shapes = {(summary, codes[here].shape, codes[there].shape) for here, there, summary in steps}
        for summary, source, target in shapes:
            assert summary.is_between(source, target), (source, target, summary)
        return steps

    # -- checks --

    def _check_stages(self) -> None:
        for number, stage in enumerate(self.stages):
            if stage.inputs < 0 or stage.outputs < 0:
                raise GraphError(f"'{stage.name}' (stage {number}) has a negative number of ports")
            for (input, output), summary in stage.internal.items():
                where = f"'{stage.name}' (stage {number}), from input {input} to output {output}"
                if not (0 <= input < stage.inputs and 0 <= output < stage.outputs):
                    raise GraphError(f"{where}: there are {stage.inputs} inputs and {stage.outputs} outputs")
                if summary is None:
                    continue
                if not summary.is_between(stage.shape, stage.shape):
                    raise GraphError(f"{where}: '{summary}' does not keep times in the scope {stage.shape}")
                if not PathSummary.identity(stage.shape).less_equal(summary, stage.shape):
                    raise GraphError(f"{where}: '{summary}' could lead back in time")

    def _check_connectors(self) -> None:
        for number, connector in enumerate(self.connectors):
            if not (0 <= connector.source < len(self.stages) and 0 <= connector.target < len(self.stages)):
                raise GraphError(f"connector {number} joins stages that do not exist: {connector}")
            where = self.name_of(self.connector_location(number))
            source, target = self.stages[connector.source], self.stages[connector.target]
            if not 0 <= connector.output < source.outputs:
                raise GraphError(f"{where}: '{source.name}' has {source.outputs} outputs")
            if not 0 <= connector.input < target.inputs:
                raise GraphError(f"{where}: '{target.name}' has {target.inputs} inputs")
            if not connector.summary.is_between(source.shape, target.shape):
                raise GraphError(
                    f"{where}: '{connector.summary}' does not lead from the scope {source.shape} to "
                    f"{target.shape}; a stream from another loop has to enter or leave it first"
                )

    def _refuse(self, cycle: list[int]) -> None:
        """Raise `GraphError` that names the stages of a cycle that does not advance."""
        assert cycle, "a cycle has a location"
        assert len(set(cycle)) == len(cycle), f"no location twice: {cycle}"
        stages: list[int] = []
        for location in cycle:
            stage = self.stage_of(location)
            if not stages or stages[-1] != stage:
                stages.append(stage)
        if len(stages) > 1 and stages[0] == stages[-1]:
            stages.pop()
        assert stages, "a cycle of connectors alone still has their targets"
        names = " → ".join(f"'{self.stages[stage].name}' (stage {stage})" for stage in (*stages, stages[0]))
        raise GraphError(
            f"this cycle does not advance any counter, so it would wait for itself for ever: {names}. "
            "Lead the stream back through the feedback of a loop, which advances the loop's counter"
        )

    # -- identity --

    @cached_property
    def _lines(self) -> tuple[str, ...]:
        lines = [f"layout {self.layout.level_bits}"]
        incoming: list[list[str]] = [[] for _ in self.stages]
        for connector in self.connectors:
            incoming[connector.target].append(
                f"{connector.input}<-{connector.source}.{connector.output}[{connector.summary}]"
                f"{connector.detail!r}"
            )
        for number, stage in enumerate(self.stages):
            inner = ", ".join(
                f"{input}->{output}[{summary if summary is not None else 'nothing'}]"
                for (input, output), summary in sorted(stage.internal.items(), key=lambda item: item[0])
            )
            lines.append(
                f"stage {number} {stage.name!r} scope {stage.shape} ports {stage.inputs}/{stage.outputs}"
                f" inside ({inner}) from ({'; '.join(incoming[number])}) detail {stage.detail!r}"
            )
        assert len(lines) == 1 + len(self.stages), "a line for the layout and one for each stage"
        assert not any("\n" in line for line in lines), "a line is a line"
        return tuple(lines)

    def describe(self) -> list[str]:
        """Return one line for the layout, then one per stage with all that workers must agree on."""
        return list(self._lines)

    def fingerprint(self) -> str:
        """Return the SHA-256, in hexadecimal, of the lines of `describe`: equal iff the workers built the
        same.
        """
        return hashlib.sha256("\n".join(self._lines).encode()).hexdigest()


def _standing_cycle(locations: int, steps: Sequence[Step]) -> list[int] | None:
    """Return a cycle that leads some time to a time no later, as its locations in order; None if there is
    none.

    Along a cycle let m be the smallest `kept_coordinates` of its steps. Coordinates before m - 1 stay as they
    are, m - 1 grows by the `add` of the steps that keep exactly m, and the later ones are set to constants,
    which some start exceeds. So a cycle is bad iff no step of it that keeps m adds anything. For each m we
    search the steps that keep at least m, without those that keep m and add.
    """
    assert all(0 <= here < locations for here, _, _ in steps), "every step starts somewhere"
    assert all(0 <= there < locations for _, there, _ in steps), "and leads somewhere"
    for level in sorted({summary.kept_coordinates for _, _, summary in steps}):
        chosen = [
            step
            for step in steps
            if step[2].kept_coordinates >= level
            and not (step[2].kept_coordinates == level and step[2].add > 0)
        ]
        following: list[list[int]] = [[] for _ in range(locations)]
        for here, there, _ in chosen:
            following[here].append(there)
        component = _components(following)
        for here, there, summary in chosen:
            if summary.kept_coordinates == level and component[here] == component[there]:
                cycle = [here, *_walk(following, component, there, here)]
                assert len(set(cycle)) == len(cycle), f"a shortest cycle has no location twice: {cycle}"
                return cycle
    return None


def _walk(following: list[list[int]], component: list[int], start: int, goal: int) -> list[int]:
    """Return a shortest walk from `start` to `goal` inside their component, without `goal` itself."""
    assert component[start] == component[goal], "only then there is a way"
    came_from = {start: start}
    queue = [start]
    for here in queue:
        for there in following[here]:
            if there not in came_from and component[there] == component[start]:
                came_from[there] = here
                queue.append(there)
    assert goal in came_from, "a component is strongly connected"
    assert set(came_from) <= set(range(len(following)))
    walk = [goal]
    while walk[-1] != start:
        walk.append(came_from[walk[-1]])
    return walk[:0:-1]


def _components(following: list[list[int]]) -> list[int]:
    """Return for each location a number that it shares with those it reaches and is reached from (Tarjan)."""
    unseen = -1
    order = [unseen] * len(following)
    low = [0] * len(following)
    component = [unseen] * len(following)
    stack: list[int] = []
    seen = 0
    for root in range(len(following)):
        if order[root] != unseen:
            continue
        path = [(root, 0)]
        while path:
            here, position = path.pop()
            if position == 0:
                order[here] = low[here] = seen
                seen += 1
                stack.append(here)
            else:
                low[here] = min(low[here], low[following[here][position - 1]])
            while position < len(following[here]):
                there = following[here][position]
                position += 1
                if order[there] == unseen:
                    path += [(here, position), (there, 0)]
                    break
                if component[there] == unseen:
                    low[here] = min(low[here], order[there])
            else:
                if low[here] == order[here]:
                    while component[here] == unseen:
                        component[stack.pop()] = here
    assert not stack, "every location has its component"
    assert unseen not in component
    return component
