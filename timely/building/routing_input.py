"""Stages whose rows are exchanged by a routing that changes from epoch to epoch.

    control = dataflow.routing("routing")
    counted = control.stage("count", CountVertex, words, exchange=key_of)

A client then inserts pairs (bucket, worker) into the input "routing". Pairs that it seals in epoch a hold
from epoch a + lead on, on all workers (`operators/router.py`).

This concerns only stages that are built with it, and does not move the state of a vertex: a vertex that keeps
rows by key would not find them after their bucket has got another owner. Joins, reduces and all other stages
that keep state by key therefore use the default routing, which never changes.
"""

from __future__ import annotations

from collections.abc import Callable

from progress.errors import GraphError

from ..operators.router import CONTROL, ROWS, RouterVertex
from ..operators.vertex import Vertex
from .exchange import Broadcast, RecordRoute, Route
from .stream import Stream

__all__ = ["RoutingInput"]


class RoutingInput:
    """A named input of changes of a routing, and the epochs after which they hold. Made by
    `Dataflow.routing`.
    """

    def __init__(self, control: Stream, lead: int) -> None:
        if lead < 0:
            raise GraphError(f"changes of a routing hold {lead} epochs after their own; give 0 or more")
        self.control = control
        self.lead = lead

    def stage(
        self,
        name: str,
        vertex: Callable[[], Vertex],
        stream: Stream,
        *,
        exchange: Callable[[object], int] | Route,
    ) -> Stream:
        """Add a stage as `Stream.stage` does; each row goes to the worker of the routing of its epoch."""
        if stream.scope is not self.control.scope:
            raise GraphError(
                f"stage {name!r} is in {stream.scope.path()!r}; a routing changes by epochs, so what it "
                "routes is outside of all loops"
            )
        lead = self.lead
        route = RecordRoute(exchange, moves=True) if callable(exchange) else exchange
        rows, changes = stream.feed(ROWS), self.control.feed(CONTROL, route=Broadcast())
        draft = stream.dataflow
        (ready,) = draft.stage(
            f"{name}: rows wait for their routing",
            lambda: RouterVertex(lead),
            [rows, changes],
            detail=f"lead {lead}",
        )
        (output,) = draft.stage(name, vertex, [ready.feed(route=route)])
        return output
