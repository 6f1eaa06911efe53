"""Stages whose rows are exchanged by a routing that changes from epoch to epoch.

    control = dataflow.routing("routing")
    counted = control.stage("count", CountVertex, words, exchange=key_of)

A client then inserts pairs (bucket, worker) into the input "routing". What it seals in epoch a holds from
epoch a + lead on, on all workers (`operators/router.py`).

This is only for stages that ask for it, and does not move what a vertex has stored: one that keeps something
by key would look for it in vain after its bucket has got another owner. Joins, reduces and whatever else
keeps state by key are therefore exchanged by the default routing, which never changes.
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
    """A named input of changes of a routing, and how soon they hold. Made by `Dataflow.routing`."""

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
        """A stage like one of `Stream.stage`, whose rows go where the routing of their epoch says."""
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
