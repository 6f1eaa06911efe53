"""A stream: what leaves one output of one stage, as the handle that building uses.

Nothing flows while a dataflow is built. A `Stream` names its source; operators take it and return new
streams.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..wire.batch import Batch
from .exchange import RecordRoute, Route
from .scope import Scope

if TYPE_CHECKING:
    from .dataflow import Dataflow
    from .vertex import Vertex

Transform = Callable[[Batch], Batch | None]
"""A stateless step run by the sender: a batch in, a batch or nothing out."""


@dataclass(frozen=True, eq=False)
class Stream:
    """Output `output` of stage `stage`, in `scope`."""

    dataflow: Dataflow
    stage_index: int
    output: int
    scope: Scope

    def feed(
        self,
        port: int = 0,
        *,
        route: Route | None = None,
        transform: Transform | None = None,
        detail: str = "",
    ) -> Feed:
        """This stream as one source of input `port` of a stage that is being built."""
        return Feed(self, port, route, transform, detail)

    def stage(
        self,
        name: str,
        vertex: Callable[[], Vertex],
        *,
        exchange: Callable[[object], int] | Route | None = None,
    ) -> Stream:
        """A new stage with this stream as its only input; its only output is returned.

        `vertex` makes one vertex per worker (usually the class itself). `exchange` decides which worker each
        record goes to: a function of the record that returns an integer, a `Route`, or `None` to stay on the
        worker.
        """
        route = exchange if exchange is None or not callable(exchange) else RecordRoute(exchange)
        (output,) = self.dataflow.stage(name, vertex, [self.feed(route=route)])
        return output


@dataclass(frozen=True, eq=False)
class Feed:
    """One source of one input port: several feeds of the same port are merged at no cost."""

    stream: Stream
    port: int
    route: Route | None = None
    transform: Transform | None = None
    detail: str = ""
