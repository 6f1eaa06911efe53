"""One vertex without a cluster: a test hands it messages, moves frontiers, and looks at what it does.

    with VertexHarness(BalanceVertex, inputs=2) as vertex:
        vertex.recv([("ada", 500)], (0,))
        vertex.recv([("ada",)], (0,), edge=1)
        assert vertex.asked == [(0,)]
        vertex.advance((1,))
        assert vertex.notified == [(0,)]
        assert vertex.sent == [Sending(0, (0,), [("ada", 500)])]

The vertex is in a real dataflow on a real worker, between a stage that the test moves and one that takes what
comes. So what it may do is decided by the code that decides it in production, with the same errors.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from math import inf
from threading import get_ident
from types import TracebackType
from typing import ClassVar, Literal, NamedTuple, Self

import pyarrow as pa

from progress.errors import MisuseError, TimelyError
from progress.times.timestamp import Timestamp

from ..building.dataflow import Dataflow
from ..building.loop import Loop
from ..building.stream import Stream
from ..dictionaries import Mark
from ..errors import WaitTimeoutError
from ..operators.awaiting.event_loop import EventLoop
from ..operators.capability import Capability
from ..operators.vertex import Vertex
from ..running.checking.actions import Action, Activate, Idle, Notify, Receive, Resume, Ring
from ..running.checking.reached import Door
from ..running.core import Worker
from ..running.instance import Instance
from ..running.reasons.holders import capability_sites
from ..user_code.call_site import UNKNOWN_SITE, CallSite
from ..wire.batch import Batch, Records, frames_of
from ..wire.frames.table_batch import TableBatch
from .guards import guarded

__all__ = ["Sending", "VertexHarness"]

_TURNS_MAX = 10_000
_THREADS_SECONDS_MAX = 5.0


class Sending(NamedTuple):
    """What a vertex has sent by one `send_by`."""

    edge: int
    time: Timestamp
    records: list[object] | pa.Table | Batch


class VertexHarness:
    """A vertex, alone.

    Args:
        make: the class, or a function that makes a vertex.
        inputs: the number of its inputs; 0 for a source, whose `on_open` is called at once.
        outputs: the number of its outputs.
        depth: the number of coordinates of its times: 1 for the root, 2 in a loop, 3 in a loop in a loop.
        order: how the loops compare times: see `Loop`.
        worker: the index that it sees as its worker's, among `workers`. The other workers are not there:
            nothing comes from them.
        name: the name of its stage.
    """

    def __init__(
        self,
        make: Callable[[], Vertex],
        *,
        inputs: int = 1,
        outputs: int = 1,
        depth: int = 1,
        order: Literal["product", "lexicographic"] = "product",
        worker: int = 0,
        workers: int = 1,
        name: str = "tested",
    ) -> None:
        if inputs == 0 and depth > 1:
            raise MisuseError(
                f"a source has no inputs, and is in no loop: depth={depth} is for inputs=1 or more"
            )
        self.sent: list[Sending] = []
        """All that it has sent so far, in order."""
        self.notified: list[Timestamp] = []
        """The times of all notifications so far, in order."""
        self._now = 0.0
        self._failure: BaseException | None = None
        self._has_ended = False
        self._worker = Worker(worker, workers, Door({}), compiled_loops=False)
        self._loop = self._worker.acting.loop = EventLoop(lambda: self._now)
        self._loop.users = 1
        self._instance = self._worker.install(
            _dataflow(make, inputs, outputs, (depth, order), worker, name).freeze()
        )
        (self._runner,) = (each for each in self._instance.runners if each.name == name)
        assert self._runner.vertex is not None
        self.vertex: Vertex = self._runner.vertex
        """The vertex itself."""
        self._feeders = [_feeder(self._instance, number) for number in range(inputs)]
        self._takers = [each for each in self._instance.runners if isinstance(each.vertex, _TakingVertex)]
        self._note_notifications()
        self._settle()

    # -- what a test does --

    def recv(self, records: Sequence[object] | pa.Table | Batch, time: Timestamp, edge: int = 0) -> None:
        """Let a message come in at an input: a list of records, a table, or a batch."""
        self._begin_call()
        feeder = self._feeder(edge)
        time = tuple(time)
        held = next((each for each in feeder.held if self._is_before(each.time, time)), None)
        if held is None:
            open_times = [each.time for each in feeder.held]
            where = f"is at {open_times}" if open_times else "is closed"
            raise MisuseError(f"input {edge} {where}: no message at {time} can come in any more")
        if isinstance(records, Sequence | pa.Table | pa.RecordBatch):
            feeder.send_by(0, records, time)
        else:
            feeder.send(0, records, feeder.code.pack(time))
        self._settle()

    def advance(self, *times: Timestamp, edge: int | None = None, deliver: bool = True) -> None:
        """Let messages come in only at these times or later: at an input, or at all inputs. Then call what is
        due: notifications, in the order in which they come, and `on_frontier`.

        `deliver=False`: call it with the next `recv`, `advance` or `run`. A real worker may be as late, so
        that messages of later times come first.
        """
        self._begin_call()
        for feeder in self._feeders if edge is None else [self._feeder(edge)]:
            open_times = [each.time for each in feeder.held]
            for wanted in map(tuple, times):
                if not any(self._is_before(each, wanted) for each in open_times):
                    raise MisuseError(f"{feeder.name} cannot go on to {wanted}: it is at {open_times}")
            feeder.go_on([tuple(wanted) for wanted in times])
        self._settle(deliver)

    def close(self, edge: int | None = None) -> None:
        """Let nothing come in any more at an input, or at all inputs, and call what is due."""
        self.advance(edge=edge)

    def ring(self) -> None:
        """Let the first moment come for which it has asked by `activate`, or the ring of an activator."""
        if not self.alarms:
            raise MisuseError(
                f"{self._runner.title()} has not asked for an activation: there is none to come"
            )
        self._begin_call()
        self._perform(Ring(self._instance.index, self._runner.stage))
        self._settle()

    def run(self) -> None:
        """Let everything happen that the vertex has asked for: activations, whatever their moment, and
        coroutines, which do not sleep here. What never ends is an error.
        """
        for _ in range(_TURNS_MAX):
            self._settle()
            if self.alarms:
                self.ring()
            elif not self._let_sleepers_go_on():
                return
        raise MisuseError(
            f"{self._runner.title()} asks for another turn without end: {_TURNS_MAX:,} have passed"
        )

    def take(self) -> list[Sending]:
        """Return what it has sent since the last call of this, and forget it."""
        taken, self.sent = self.sent, []
        return taken

    def finish(self) -> None:
        """Close all inputs, let everything happen, and end: a `with` block does so behind its last line.

        Raises `MisuseError` if it still holds a time, with the line of the capability, or has asked to be
        notified of one.
        """
        self.close()
        self.run()
        gc.collect()  # capabilities that only a circle refers to
        self._settle()
        if self._runner.held_words():
            held = ", ".join(f"{time} (held at {site})" for time, site in self.capabilities)
            raise MisuseError(
                f"{self._runner.title()} still holds {held}: nothing comes in any more, so these times will "
                "never be over. drop() what it holds once it needs it no more"
            )
        self.end()

    def end(self, reason: TimelyError | None = None) -> None:
        """End the dataflow, so that `on_end(reason)` is called: None stands for a cluster that is closed."""
        if not self._has_ended:
            self._has_ended = True
            self._instance.drop(reason)
            self._loop.close()

    # -- what a test sees --

    @property
    def held(self) -> list[Timestamp]:
        """The times that it holds by capabilities, each as often as it holds it."""
        words = self._runner.held_words()
        return sorted(self._unpack(word) for word, count in words.items() for _ in range(count))

    @property
    def capabilities(self) -> list[tuple[Timestamp, CallSite]]:
        """The times that it holds, each with the line of a capability."""
        sites = capability_sites([self.vertex])
        return [(time, sites.get((id(self.vertex), time), UNKNOWN_SITE)) for time in self.held]

    @property
    def asked(self) -> list[Timestamp]:
        """The times that `on_notify` will be called for."""
        return sorted(map(self._unpack, self._runner.requested))

    @property
    def alarms(self) -> int:
        """The number of activations that it has asked for, or was rung for, and that have not come."""
        stage, alarms = self._runner.stage, self._instance.alarms
        return (stage in alarms.rung) + sum(1 for _, each in alarms.moments if each == stage)

    @property
    def is_awaiting(self) -> bool:
        """True while a coroutine of it is not over."""
        return self._runner.calls is not None and self._runner.calls.is_busy

    # -- inside --

    def _note_notifications(self) -> None:
        on_notify = self.vertex.on_notify

        def noted(time: Timestamp) -> object:
            self.notified.append(time)
            return on_notify(time)

        self.vertex.on_notify = noted  # type: ignore[method-assign,assignment]

    def _feeder(self, edge: int) -> _FeedingVertex:
        if not 0 <= edge < len(self._feeders):
            raise MisuseError(f"there is no input {edge}: {self._runner.title()} has {len(self._feeders)}")
        return self._feeders[edge]

    def _is_before(self, earlier: Timestamp, later: Timestamp) -> bool:
        return self._runner.code.shape.less_equal(earlier, later)

    def _unpack(self, word: int) -> Timestamp:
        return self._runner.code.unpack_wide(word)

    def _begin_call(self) -> None:
        if self._failure is not None:
            raise MisuseError(f"{self._runner.title()} has failed before: {self._failure}")
        if self._has_ended:
            raise MisuseError(f"{self._runner.title()} has ended before")
        self._worker.acting.thread = get_ident()

    def _settle(self, deliver: bool = True) -> None:
        """Do all that can be done without alarms, and without sleep."""
        self._begin_call()
        for _ in range(_TURNS_MAX):
            actions = [action for action in self._worker.enabled() if self._comes_by_itself(action, deliver)]
            if actions:
                self._perform(actions[0])
            elif deliver and self._loop.seconds == 0:
                self._loop.run()
                self._take_sent()
            else:
                return
        raise MisuseError(
            f"{self._runner.title()} asks for another turn without end: {_TURNS_MAX:,} have passed"
        )

    def _comes_by_itself(self, action: Action, deliver: bool) -> bool:
        if isinstance(action, Receive | Idle):
            return False
        if isinstance(action, Ring):
            return action.stage != self._runner.stage
        if deliver:
            return True
        is_own = isinstance(action, Activate | Resume) and action.stage == self._runner.stage
        return not (is_own or isinstance(action, Notify))

    def _perform(self, action: Action) -> None:
        try:
            if isinstance(action, Activate) and action.stage == self._runner.stage:
                with guarded(self._instance, action.stage):
                    self._worker.perform(action)
            else:
                self._worker.perform(action)
        except BaseException as error:
            self._failure = error
            raise
        self._take_sent()

    def _take_sent(self) -> None:
        """Note what was sent, in order, before the taker consumes it."""
        for taker in self._takers:
            waiting, taker.inbox[:] = list(taker.inbox), []
            for port, location, word, batch in waiting:
                self.sent.append(Sending(port, taker.code.unpack(word), _contents(batch)))
                self._instance.count(location, word, -1)

    def _let_sleepers_go_on(self) -> bool:
        """Let coroutines go on that sleep, as if their time had come; return False if there are none."""
        if not self.is_awaiting:
            return False
        if self._loop.seconds == inf:
            self._wait_for_thread()
        self._now = max(self._now, self._loop.wake_at if self._loop.wake_at < inf else self._now)
        self._loop.run()
        self._take_sent()
        return True

    def _wait_for_thread(self) -> None:
        """Wait until something outside, such as a thread, lets a coroutine go on."""
        until = time.monotonic() + _THREADS_SECONDS_MAX
        while self._loop.seconds == inf and self.is_awaiting:
            if time.monotonic() > until:
                raise WaitTimeoutError(
                    f"{self._runner.title()} awaits something that has not come in {_THREADS_SECONDS_MAX:g} s"
                )
            time.sleep(1e-3)
            self._loop.run()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None and self._failure is None and not self._has_ended:
            self.finish()
        else:
            self.end()


class _FeedingVertex(Vertex):
    """Stands before an input of the vertex: it holds the times at which something may still come."""

    def __init__(self) -> None:
        self.held: list[Capability] = []

    def go_on(self, times: Sequence[Timestamp]) -> None:
        """Hold these times, and no others."""
        is_before = self.code.shape.less_equal
        least = {time for time in times if not any(is_before(o, time) and o != time for o in times)}
        held = [
            next(each for each in self.held if is_before(each.time, time)).delay(time)
            for time in sorted(least)
        ]
        for each in self.held:
            each.drop()
        self.held = held

    def on_open(self, capability: Capability) -> None:
        """Hold the first time, at the root."""
        self.held = [capability]

    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        """Hold the first time, in a loop."""
        self.held = [self.hold(time)]

    def symbols(self, mark: Mark) -> None:
        """Show nothing: it keeps no words."""


class _FirstVertex(Vertex):
    """A source that says once that the feeders of loops begin."""

    def on_open(self, capability: Capability) -> None:
        """Say it."""
        self.send_by(0, [0], capability.time)
        capability.drop()

    def symbols(self, mark: Mark) -> None:
        """Show nothing: it keeps no words."""


class _TakingVertex(Vertex):
    """Stands behind the outputs of the vertex; the harness takes what has come before it has a turn."""

    takes_only_records: ClassVar[bool] = False

    def recv_all(self, port: int, messages: Sequence[tuple[int, Batch]]) -> None:
        """Take nothing: the harness has."""

    def symbols(self, mark: Mark) -> None:
        """Show nothing: it keeps no words."""


def _dataflow(
    make: Callable[[], Vertex],
    inputs: int,
    outputs: int,
    scope: tuple[int, Literal["product", "lexicographic"]],
    worker: int,
    name: str,
) -> Dataflow:
    depth, order = scope
    flow = Dataflow("harness")
    loops: list[Loop] = []
    for level in range(1, depth):
        parent = loops[-1].scope if loops else flow.root
        loops.append(Loop.inside(flow, parent, f"loop {level}", order))
    streams: list[Stream] = []
    for number in range(inputs):
        if not loops:
            streams.append(flow.source(f"input {number}", _FeedingVertex, workers=[worker]))
            continue
        stream = flow.source(f"first {number}", _FirstVertex, workers=[worker])
        for loop in loops:
            stream = loop.enter(stream)
        streams += flow.stage(f"input {number}", _FeedingVertex, [stream.feed()])
    if inputs:
        sent = flow.stage(
            name, make, [stream.feed(port) for port, stream in enumerate(streams)], outputs=outputs
        )
    else:
        sent = [flow.source(name, make, workers=[worker])]
    if sent:
        flow.stage("taken", _TakingVertex, [stream.feed(port) for port, stream in enumerate(sent)], outputs=0)
    return flow


def _feeder(instance: Instance, number: int) -> _FeedingVertex:
    (runner,) = (each for each in instance.runners if each.name == f"input {number}")
    assert isinstance(runner.vertex, _FeedingVertex)
    return runner.vertex


def _contents(batch: Batch) -> list[object] | pa.Table | Batch:
    """Return what was sent as a test reads it. Raises `MisuseError` for what no other worker could get."""
    frames_of(batch, 0)
    if isinstance(batch, Records):
        return list(batch.records)
    return batch.table if isinstance(batch, TableBatch) else batch
