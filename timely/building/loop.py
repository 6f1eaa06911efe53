"""Loops: ingress, feedback and egress, and what each does to a time.

    ingress    (e, …)        → (e, …, 0)       enters the loop
    feedback   (e, …, i)     → (e, …, i + 1)   starts the next iteration, or a later one
    egress     (e, …, i)     → (e, …)          leaves the loop

At the root a feedback leads to a later epoch: (e) → (e + 1). In a prioritised loop a time has two numbers,
priority and iteration, (e, …, p, i): feedback advances the iteration, and a vertex sends at a later priority
by itself.

Their path summaries are all that progress tracking knows of loops. Source: Naiad, section 2.1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from os import PathLike
from types import TracebackType
from typing import Literal, TypeVar, cast, get_args

from progress.errors import GraphError, MisuseError
from progress.times.path_summary import PathSummary
from progress.times.timestamp import Timestamp

from ..operators.captured.replaying import AtItsTimeVertex
from ..operators.compiled_loop import LoopMaker
from ..user_code.call_site import call_site
from ..user_code.spellings import Spelled
from ..wire.claims import shown
from .other_spellings import OF_FEEDBACKS, OF_LOOPS
from .scope import ITERATIONS_MAX, Scope
from .stream import Draft, Feed, Stream

_Record = TypeVar("_Record")

LoopOrder = Literal["product", "lexicographic", "prioritised"]


class Feedback(Spelled):
    """A way back, of a loop or of the root: a stream that exists before its source is built."""

    _internal = frozenset({"is_connected"})
    _spellings = OF_FEEDBACKS

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.is_connected = False

    def _missing(self, name: str) -> str:
        return OF_FEEDBACKS.message(f"a feedback has no {name!r}", name, dir(Feedback))

    def connect(self, stream: Stream, feed: Feed | None = None) -> None:
        """Let the rows of `stream` come out of `self.stream` one iteration later, or one epoch if this is the
        way back of the root; several streams may be connected.
        """
        scope = self.stream.scope
        if stream.scope is not scope:
            raise GraphError(f"feedback of {scope.path()!r} got a stream of {stream.scope.path()!r}")
        self.stream.dataflow.add_feed(self.stream.stage_index, feed if feed is not None else stream.feed())
        self.is_connected = True


@dataclass(frozen=True)
class _AtCounter:
    """The time at which a record enters, by the function of the user."""

    at: Callable[[object], object]
    last: int | None
    """The last number of an iteration; None: the numbers are priorities."""

    def __call__(self, record: object, time: Timestamp) -> Timestamp:
        counter = self.at(record)
        what = "a priority" if self.last is None else "the number of an iteration"
        if type(counter) is not int or counter < 0:
            raise MisuseError(
                f"enter(stream, at=function): the function returned {shown(counter)} for {shown(record)}; it "
                f"returns {what}, from 0 on"
            )
        if self.last is None:
            return (*time[:-2], counter, 0)
        if counter > self.last:
            raise MisuseError(
                f"enter(stream, at=function): the function returned {shown(counter)} for {shown(record)}, "
                f"but the last iteration of the loop is number {self.last:,}: see `times` of dataflow.loop"
            )
        return (*time[:-1], counter)


class Loop(Spelled):
    """A loop scope; use as a context manager, which checks at its end that every feedback is connected."""

    _internal = frozenset(
        {
            "check_connected",
            "dataflow",
            "inside",
            "scope",
        }
    )
    _spellings = OF_LOOPS

    def __init__(self, dataflow: Draft, scope: Scope) -> None:
        assert scope.parent is not None
        self.dataflow = dataflow
        self.scope = scope
        self._feedbacks: list[Feedback] = []

    def _missing(self, name: str) -> str:
        return OF_LOOPS.message(f"a loop has no {name!r}", name, dir(Loop))

    def __eq__(self, other: object) -> bool:
        """Return True for a loop of the same scope: a stream knows its scope, and a loop is made of that."""
        return isinstance(other, Loop) and self.scope is other.scope

    def __hash__(self) -> int:
        return hash(self.scope)

    @classmethod
    def inside(
        cls,
        dataflow: Draft,
        parent: Scope,
        name: str,
        order: LoopOrder = "product",
        iterations_max: int = ITERATIONS_MAX,
        stops: bool = False,
        compile: LoopMaker | None = None,
    ) -> Loop:
        """Make a loop named `name` in `parent`. Going on beyond `iterations_max` iterations is an error
        that ends the dataflow; if it `stops`, the loop ends after this number, and drops rows that would go
        on.

        `order` says how the new counter compares: "product" is the order of differential dataflow,
        "lexicographic" extends the counters of the loops around it as in Naiad, and "prioritised" has two
        counters, priority and iteration, of which the first counts first. `compile`: see `Scope`.
        """
        if order not in get_args(LoopOrder):
            raise GraphError(
                f"the loop {name!r} ({call_site()}) has the order {order!r:.80}: write order='product', the "
                "order of differential dataflow, order='lexicographic', that of Naiad, or "
                "order='prioritised', by a priority and an iteration. Of collections use "
                "prioritized_iterate(…)"
            )
        outside = parent.shape
        shape = (
            outside.loop()
            if order == "product"
            else outside.prioritized_loop()
            if order == "prioritised"
            else outside.lexicographic_loop()
        )
        if iterations_max < 1:
            raise GraphError(
                f"the loop {name!r} needs a limit of at least one iteration, not {iterations_max}"
            )
        return cls(dataflow, Scope(name, shape, parent, iterations_max, stops, str(call_site()), compile))

    def loop(self, name: str = "loop", *, order: LoopOrder = "product", times: int | None = None) -> Loop:
        """Add a loop in this loop; `times`: the number of iterations after which it ends."""
        limit = ITERATIONS_MAX if times is None else times
        return Loop.inside(self.dataflow, self.scope, name, order, limit, times is not None)

    def __enter__(self) -> Loop:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.check_connected()

    def check_connected(self) -> None:
        """Raise `GraphError` if a feedback was made and never connected."""
        if any(not feedback.is_connected for feedback in self._feedbacks):
            raise GraphError(
                f"the loop {self.scope.path()!r} has a feedback that nothing is connected to: call "
                "connect(stream)"
            )

    def enter(self, stream: Stream, *, at: Callable[[_Record], int] | None = None) -> Stream:
        """Return `stream`, of the scope around the loop, in the loop, at counter 0; or each record at the
        counter that `at(record)` returns. In a prioritised loop this is the priority.
        """
        if stream.scope is not self.scope.parent:
            raise GraphError(
                f"{self.scope.path()!r} can be entered from the scope around it, not from "
                f"{stream.scope.path()!r}"
            )
        summary = PathSummary.enter(stream.scope.shape, self.scope.shape)
        entered = self._time_stage("ingress", "enter", self.scope, summary, stream)
        if at is None:
            return entered
        if not callable(at):
            raise MisuseError(f"enter(stream, at=function): `at` is a function of a record, not {shown(at)}")
        is_prioritised = self.scope.shape.level_coordinates[-1] > 1
        last = None if is_prioritised else self.scope.iterations_max - self.scope.stops
        return entered.delay(_AtCounter(cast("Callable[[object], object]", at), last))

    def leave(self, stream: Stream, *, at: int | None = None) -> Stream:
        """Return `stream`, of this loop, in the scope around it, without the loop's counter. With `at` only
        records leave that are in this iteration, or in a prioritised loop at this priority; the others go on
        in the loop alone.
        """
        if stream.scope is not self.scope:
            raise GraphError(
                f"{self.scope.path()!r} can only be left by its own streams, not by one of "
                f"{stream.scope.path()!r}"
            )
        assert self.scope.parent is not None
        summary = PathSummary.leave(self.scope.parent.shape)
        if at is None:
            return self._time_stage("egress", "leave", self.scope.parent, summary, stream)
        if type(at) is not int or at < 0:
            raise MisuseError(
                f"leave(stream, at={shown(at)}): `at` is the number of an iteration, from 0 on. Which "
                "records leave by what is in them: filter them before"
            )
        last = self.scope.iterations_max - self.scope.stops
        if self.scope.shape.level_coordinates[-1] == 1 and at > last:
            raise MisuseError(
                f"leave(stream, at={at:,}): the last iteration of {self.scope.path()!r} is number {last:,}, "
                "so nothing would ever leave: see `times` of dataflow.loop"
            )
        return self._time_stage("egress", "leave", self.scope.parent, summary, stream, at)

    def replay(self, folder: str | PathLike[str]) -> Stream:
        """Return a stream that was captured in a loop as deep as this one: the same records at the same
        times, on any number of workers; see `Dataflow.replay`. Iterations of an epoch are over when it is.
        """
        stream = self.dataflow.replay_times(folder, self.scope.shape.coordinates)
        path = [self.scope]
        while (around := path[-1].parent) is not None and around.parent is not None:
            path.append(around)
        for scope in reversed(path):
            stream = Loop(self.dataflow, scope).enter(stream)
        (replayed,) = self.dataflow.stage("replay at times", AtItsTimeVertex, [stream.feed()])
        return replayed

    def feedback(self, by: int = 1) -> Feedback:
        """Add a way back: use `.stream` in the loop's body, then `.connect` the body's result. What goes
        round comes back `by` iterations later.
        """
        if type(by) is not int or by < 1:
            raise MisuseError(
                f"feedback(by={shown(by)}): `by` is a number of iterations from 1 on, or the loop would wait "
                "for itself"
            )
        summary = PathSummary.feedback(self.scope.shape, by)
        name = f"{self.scope.name} feedback"
        feedback = Feedback(self.dataflow.declare_time_stage(name, "feedback", self.scope, summary))
        self._feedbacks.append(feedback)
        return feedback

    def _time_stage(
        self,
        kind: Literal["ingress", "egress"],
        verb: str,
        scope: Scope,
        summary: PathSummary,
        stream: Stream,
        at: int | None = None,
    ) -> Stream:
        output = self.dataflow.declare_time_stage(f"{verb} {self.scope.name}", kind, scope, summary, at)
        self.dataflow.add_feed(output.stage_index, stream.feed())
        return output
