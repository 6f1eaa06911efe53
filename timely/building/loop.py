"""Loops: ingress, feedback and egress, and what each does to a time.

    ingress    (e, …)        → (e, …, 0)       enters the loop
    feedback   (e, …, i)     → (e, …, i + 1)   starts the next iteration
    egress     (e, …, i)     → (e, …)          leaves the loop

Their path summaries are all that progress tracking knows of loops. Source: Naiad, section 2.1.
"""

from __future__ import annotations

from types import TracebackType
from typing import Literal, get_args

from progress.errors import GraphError
from progress.times.path_summary import PathSummary

from ..operators.compiled_loop import LoopMaker
from ..user_code.call_site import call_site
from ..user_code.offered import Offered
from .scope import ITERATIONS_MAX, Scope
from .stream import Draft, Feed, Stream

LoopOrder = Literal["product", "lexicographic"]


class Feedback:
    """The way back of a loop: a stream that exists before its source is built."""

    def __init__(self, loop: Loop, stream: Stream) -> None:
        self._loop = loop
        self.stream = stream
        self.is_connected = False

    def connect(self, stream: Stream, feed: Feed | None = None) -> None:
        """Let the rows of `stream` come out of `self.stream` one iteration later; several streams may be
        connected.
        """
        if stream.scope is not self._loop.scope:
            raise GraphError(
                f"feedback of {self._loop.scope.path()!r} got a stream of {stream.scope.path()!r}"
            )
        self._loop.dataflow.add_feed(self.stream.stage_index, feed if feed is not None else stream.feed())
        self.is_connected = True


class Loop(Offered):
    """A loop scope; use as a context manager, which checks at its end that every feedback is connected."""

    _internal = frozenset(
        {
            "check_connected",
            "dataflow",
            "inside",
            "scope",
        }
    )

    def __init__(self, dataflow: Draft, scope: Scope) -> None:
        assert scope.parent is not None
        self.dataflow = dataflow
        self.scope = scope
        self._feedbacks: list[Feedback] = []

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
        "lexicographic" extends the counters of the loops around it as in Naiad. `compile`: see `Scope`.
        """
        if order not in get_args(LoopOrder):
            raise GraphError(
                f"the loop {name!r} ({call_site()}) has the order {order!r:.80}: write order='product', the "
                "order of differential dataflow, or order='lexicographic', that of Naiad. Which rows of a "
                "loop set out first is no order of its times: connected_components(…, prioritised=True)"
            )
        shape = parent.shape.loop() if order == "product" else parent.shape.lexicographic_loop()
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

    def enter(self, stream: Stream) -> Stream:
        """Return `stream`, of the scope around the loop, in the loop, at counter 0."""
        if stream.scope is not self.scope.parent:
            raise GraphError(
                f"{self.scope.path()!r} can be entered from the scope around it, not from "
                f"{stream.scope.path()!r}"
            )
        summary = PathSummary.enter(stream.scope.shape, self.scope.shape)
        return self._time_stage("ingress", "enter", self.scope, summary, stream)

    def leave(self, stream: Stream) -> Stream:
        """Return `stream`, of this loop, in the scope around it, without the loop's counter."""
        if stream.scope is not self.scope:
            raise GraphError(
                f"{self.scope.path()!r} can only be left by its own streams, not by one of "
                f"{stream.scope.path()!r}"
            )
        assert self.scope.parent is not None
        summary = PathSummary.leave(self.scope.parent.shape)
        return self._time_stage("egress", "leave", self.scope.parent, summary, stream)

    def feedback(self) -> Feedback:
        """Add a way back: use `.stream` in the loop's body, then `.connect` the body's result."""
        summary = PathSummary.feedback(self.scope.shape)
        name = f"{self.scope.name} feedback"
        feedback = Feedback(self, self.dataflow.declare_time_stage(name, "feedback", self.scope, summary))
        self._feedbacks.append(feedback)
        return feedback

    def _time_stage(
        self,
        kind: Literal["ingress", "egress"],
        verb: str,
        scope: Scope,
        summary: PathSummary,
        stream: Stream,
    ) -> Stream:
        output = self.dataflow.declare_time_stage(f"{verb} {self.scope.name}", kind, scope, summary)
        self.dataflow.add_feed(output.stage_index, stream.feed())
        return output
