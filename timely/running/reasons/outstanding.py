"""What is outstanding on a worker up to an epoch, in the words of `Reason`.

A worker knows of its own inputs, vertices and inboxes, and from progress tracking how many events there are
at each pointstamp on all workers together: its *view*. A client that has heard all workers knows the rest:
messages that are on their way are in a view, and with no worker.

Everything here only reads, so that a thread that asks while the worker is in a long call sees what there was
when the call began.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from progress.times.timestamp import Timestamp

from ...limits import DATED_EPOCHS_MAX, REASON_POINTS_MAX
from ...operators.imported import Exported, ImportHandle
from ...operators.inputs.handle import InputHandle
from ...wire.reasons import Reason
from ..instance import Instance
from ..stages.compiled_loop import HOLD, CompiledLoopRunner
from ..stages.vertex_runner import VertexRunner
from .holders import capability_sites

__all__ = ["Outstanding", "Viewed"]

_Point = tuple[int, Timestamp]
"""A location, and a time whose epoch is counted from 0."""


class Viewed(NamedTuple):
    """A pointstamp in the view of a worker.

    events  of all workers together, as far as this one has heard: below 0, if it has not heard yet of what it
            has received
    own     of this worker
    untold  of `events`, what it has counted in a step that is under way, so that no other one can know it
    """

    reason: Reason
    events: int
    own: int
    untold: int = 0


class Outstanding:
    """What is outstanding in one dataflow on one worker up to an epoch.

    Args:
        instance: the dataflow.
        epoch: the last epoch to look at.
        instances: all dataflows of the worker, since an import waits for another one.
        exported: tell only what can lead to one of these exports of the dataflow; empty: tell all.
        towards: or to one of these stages.
    """

    def __init__(
        self,
        instance: Instance,
        epoch: int,
        instances: Mapping[int, Instance],
        exported: Collection[Exported] = (),
        towards: Collection[int] = (),
    ) -> None:
        self._instance = instance
        self._epoch = epoch
        self._instances = instances
        self._now = time.monotonic()
        self._own: Counter[_Point] = Counter()
        vertices = [one.vertex for one in exported]
        self._towards = [each.stage for each in instance.runners if each.vertex in vertices] or list(towards)
        self._first = self._not_led_to()

    def reasons(self) -> list[Reason]:
        """Return what this worker has, and what is outstanding in the dataflows that it waits for."""
        reasons: list[Reason] = []
        owners: dict[int, list[Exported]] = {}
        for runner in self._instance.runners:
            reasons += self._of_source(runner, owners)
            if self._instance.turns.actors[runner.stage] is runner:
                reasons += self._of_runner(runner)
        reasons += self._of_capabilities()
        for loop in self._instance.loops:
            reasons += self._of_loop(loop)
        reasons += self._of_late_messages()
        if self._towards:
            leading = self._leading_on({reason.number for reason in reasons})
            reasons = [reason for reason in reasons if reason.number in leading]
        for number, exported in owners.items():
            owner = Outstanding(self._instances[number], self._epoch, self._instances, exported)
            reasons += owner.reasons()
        return reasons

    def _leading_on(self, locations: Collection[int]) -> set[int]:
        """Return the locations at which something can lead to one of the exports."""
        between = self._instance.tracker.summaries.between
        # By target: in a large graph a summary costs a look at all steps, unless the last one had its target.
        return {location for stage in self._towards for location in locations if between(location, stage)}

    def view(self) -> list[Viewed]:
        """Return the view of this worker, the earliest times first. Call `reasons` before."""
        graph, base = self._instance.frozen.graph, self._instance.anchor.epoch
        base <<= self._instance.frozen.layout.shifts[0]
        events = Counter({(location, word): count for location, word, count in self._instance.pointstamps()})
        untold = Counter(
            {(location, word + base): delta for location, word, delta in self._instance.untold()}
        )
        for point, delta in untold.items():
            events[point] += delta
        points: list[Viewed] = []
        for (location, word), count in events.items():
            at = graph.code_of(location).unpack_wide(word)
            if at[0] > self._epoch or not (count or untold[location, word]):
                continue
            stage = self._instance.frozen.stages[graph.stage_of(location)]
            kind = "elsewhere" if location < len(graph.stages) else "message"
            detail = "" if kind == "elsewhere" else graph.name_of(location)
            if count >= HOLD:
                kind, detail = "loop", ""
            reason = self._reason(kind, (stage.name, str(stage.site)), location, at, count, detail)
            points.append(Viewed(reason, count, self._own[location, at], untold[location, word]))
        return sorted(points, key=lambda viewed: viewed.reason.time)

    def _reason(
        self, kind: str, of: tuple[str, str], location: int, at: Timestamp, count: int = 1, detail: str = ""
    ) -> Reason:
        """Return a reason about something with a name and a line, `of`."""
        stage, site = of
        is_first = kind == "input" or self._first is None or (location, at) in self._first
        name, who = self._instance.frozen.name, (self._instance.worker,)
        age = self._age(at[0])
        return Reason(kind, name, stage, location, site, at, count, "", age, detail, is_first, who)

    def _of_source(self, runner: VertexRunner, owners: dict[int, list[Exported]]) -> Iterator[Reason]:
        """Yield what an input, an import or a constant holds; add the export that an import waits for."""
        if runner.opened is None:
            return
        at, source = runner.code.unpack_wide(runner.opened), runner.source
        if at[0] > self._epoch:
            return
        self._own[runner.stage, at] += 1
        opened = self._now - max(moment for _, moment in _dated(runner))
        kind, detail, name = "entering", "", runner.name
        if isinstance(source, InputHandle):
            name = source.name
            if not source.is_closed and source.epoch <= self._epoch:
                kind, at = "input", (source.epoch,)
        elif isinstance(source, ImportHandle):
            name = source.exported.title()
            owner = self._instances.get(source.exported.dataflow)
            if not source.is_past(self._epoch) and owner is not None:
                kind, detail = "import", "that dataflow has not completed it there"
                owners.setdefault(owner.index, []).append(source.exported)
        reason = self._reason(kind, (name, runner.site), runner.stage, at, detail=detail)
        yield replace(reason, seconds=opened)

    def _of_runner(self, runner: VertexRunner) -> Iterator[Reason]:
        """Yield the notifications that a vertex waits for, and the messages in front of it."""
        unpack, stage, of = runner.code.unpack_wide, runner.stage, (runner.name, runner.site)
        due = set(runner.due)
        asked = Counter(runner.asked_words())
        for word, count in asked.items():
            at = unpack(word)
            if at[0] <= self._epoch:
                self._own[stage, at] += count
                detail = "it is due, and its turn has not come" if word in due else ""
                yield self._reason("notification", of, stage, at, count, detail)
        waiting = Counter((location, word) for _, location, word, _ in runner.inbox)
        for (location, word), count in waiting.items():
            at = unpack(word)
            if at[0] <= self._epoch:
                self._own[location, at] += count
                yield self._reason("rows", of, location, at, count)

    def _of_capabilities(self) -> Iterator[Reason]:
        held: list[tuple[VertexRunner, Timestamp, int]] = []
        for runner in self._instance.runners:
            for word, count in runner.held_words().items():
                at = runner.code.unpack_wide(word)
                if at[0] <= self._epoch:
                    held.append((runner, at, count))
        sites = capability_sites([runner.vertex for runner, _, _ in held if runner.vertex is not None])
        for runner, at, count in held:
            self._own[runner.stage, at] += count
            where = str(sites.get((id(runner.vertex), at), ""))
            reason = self._reason("capability", (runner.name, runner.site), runner.stage, at, count)
            yield replace(reason, where=where)

    def _of_loop(self, loop: CompiledLoopRunner) -> Iterator[Reason]:
        if loop.held is not None:
            times = {}
            for connector in loop.leaving:
                code = self._instance.frozen.graph.code_of(connector.location)
                word = loop.held + connector.add
                at = code.anchored(self._instance.anchor).unpack_wide(word)
                times[connector.location] = at
                if at[0] <= self._epoch:
                    self._own[connector.location, at] += 1 if self._instance.workers == 1 else HOLD
            location = min(times, key=lambda location: times[location][0], default=-1)
            if times and times[location][0] <= self._epoch:
                reason = self._reason("loop", (loop.name, loop.site), location, times[location])
                yield replace(reason, time=times[location][:1])
        waiting = Counter((location, word) for _, location, word, _ in loop.inbox if location >= 0)
        for (location, word), count in waiting.items():
            code = self._instance.frozen.graph.code_of(location).anchored(self._instance.anchor)
            at = code.unpack_wide(word)
            if at[0] <= self._epoch:
                self._own[location, at] += count
                yield self._reason("rows", (loop.name, loop.site), location, at, count)

    def _of_late_messages(self) -> Iterator[Reason]:
        """Yield the messages of workers that count epochs from a later one; they wait until this one does."""
        graph = self._instance.frozen.graph
        for location, word in self._instance.late_words():
            at = graph.code_of(location).unpack_wide(word)
            if at[0] <= self._epoch:
                self._own[location, at] += 1
                stage = self._instance.frozen.stages[graph.stage_of(location)]
                detail = "until earlier epochs are over"
                yield self._reason("rows", (stage.name, str(stage.site)), location, at, 1, detail)

    def _not_led_to(self) -> set[_Point] | None:
        """Return the pointstamps to which no other leads, in the view of this worker; None if there are very
        many.
        """
        tracker, graph = self._instance.tracker, self._instance.frozen.graph
        if tracker.active_count > REASON_POINTS_MAX:
            return None
        base, shift = self._instance.anchor.epoch, self._instance.frozen.layout.shifts[0]
        first = {
            (location, graph.code_of(location).unpack_wide(word + (base << shift)))
            for location, word in tracker.without_precursors()
        }
        # What is far has a stand-in in the tracker, at another time, and leads to nothing that is near.
        far = self._instance.far.counts()
        return first | {
            (location, graph.code_of(location).unpack_wide(word + (base << shift)))
            for location, word, _ in far
        }

    def _age(self, epoch: int) -> float:
        """Return how many seconds ago the last input has sealed an epoch; -1 if that is not known, or not
        so.
        """
        sealed: list[float] = []
        for runner in self._instance.runners:
            if dated := _dated(runner):
                moments = [moment for opened, moment in dated if opened > epoch]
                if not moments:
                    return -1.0
                if len(dated) < DATED_EPOCHS_MAX or any(opened <= epoch for opened, _ in dated):
                    sealed.append(min(moments))
        return self._now - max(sealed) if sealed else -1.0


def _dated(runner: VertexRunner) -> list[tuple[int, float]]:
    """Return the epochs that an input has opened, each with the moment; none if a stage is no input."""
    return [] if runner.moves is None else runner.moves.pairs()
