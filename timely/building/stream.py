"""Streams: handles of outputs of stages while a dataflow is built.

Nothing flows while a dataflow is built. A `Stream` names its source; operators take it and return new
streams.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, cast

from progress.errors import MisuseError
from progress.times.path_summary import PathSummary

from ..operators.vertex import Vertex
from ..user_code.offered import Offered
from ..wire.batch import Transform
from .exchange import RecordRoute, Route, is_route
from .scope import DescribeIterations, Scope

TimeStageKind = Literal["ingress", "egress", "feedback"]
"""Stages that change times and nothing else."""


class Draft(Protocol):
    """The dataflow under construction, as far as its streams and loops need it: see `dataflow.py`."""

    def stage(
        self,
        name: str,
        vertex: Callable[[], Vertex],
        feeds: Sequence[Feed],
        *,
        outputs: int = 1,
        detail: str = "",
    ) -> list[Stream]:
        """Add a stage with any number of inputs and outputs; return its outputs."""
        ...

    def declare_time_stage(
        self, name: str, kind: TimeStageKind, scope: Scope, summary: PathSummary
    ) -> Stream:
        """Add an ingress, egress or feedback stage; return its output, in `scope`."""
        ...

    def add_feed(self, stage_index: int, feed: Feed) -> None:
        """Add a source to an input of a stage that exists already."""
        ...


@dataclass(frozen=True, eq=False)
class Stream(Offered):
    """Output `output` of stage `stage`, in `scope`."""

    _internal = frozenset(
        {
            "dataflow",
            "output",
            "scope",
            "stage_index",
        }
    )

    dataflow: Draft
    stage_index: int
    output: int
    scope: Scope

    def feed(
        self,
        port: int = 0,
        *,
        exchange: Callable[[object], int] | Route | None = None,
        route: Route | None = None,
        transform: Transform | None = None,
        detail: str = "",
    ) -> Feed:
        """Return this stream as one source of input `port` of a stage that is being built.

        `exchange` decides which worker each record goes to, as in `stage`. Feeds of the same port are merged:
        the vertex gets their records at one `edge`. `route` is an exchange that is a `Route`.
        """
        if exchange is not None:
            route = _route_of(f"feed({port!r:.80})", exchange)
        elif route is not None and not is_route(route) and callable(route):
            raise MisuseError(
                f"feed({port!r:.80}): `route` is a timely.Route, not a function of a record. Write "
                f"exchange=timely.by(…), as in stream.feed({port!r:.80}, exchange=timely.by(0))"
            )
        return Feed(self, port, route, transform, detail)

    def stage(
        self,
        name: str,
        vertex: Callable[[], Vertex],
        *,
        exchange: Callable[[object], int] | Route | None = None,
    ) -> Stream:
        """Add a stage with this stream as its only input; return its only output.

        `vertex` makes one vertex per worker (usually the class itself). `exchange` decides which worker each
        record goes to: `timely.by(…)`, by which equal keys meet; a function of the record that returns an
        integer, the same in every process (equal ones modulo `BUCKETS` meet); a `Route`; or `None`: each
        record stays on its worker. `hash` means `timely.by()`, the whole record as its key.
        """
        route = None if exchange is None else _route_of(f"stage {name!r:.80}", exchange)
        (output,) = self.dataflow.stage(name, vertex, [self.feed(route=route)])
        return output


def _route_of(where: str, exchange: object) -> Route:
    """Return the route that `exchange` stands for; raise MisuseError, which begins with `where`, if none."""
    if callable(exchange):
        return RecordRoute(exchange)
    if is_route(exchange):
        return cast("Route", exchange)
    raise MisuseError(
        f"{where}: `exchange` is timely.by(…), a function from a record to a whole number, or a "
        f"timely.Route, not a {type(exchange).__name__}.\n"
        "  Records with equal entries meet by exchange=timely.by('word'), or timely.by(0) of tuples."
    )


@dataclass(frozen=True, eq=False)
class Feed(Offered):
    """One source of one input port: several feeds of the same port are merged at no cost.

    `describe` is for feeds that go round a loop: it makes the text of an error about the last iterations.
    """

    _internal = frozenset(
        {
            "describe",
            "detail",
            "port",
            "route",
            "stream",
            "transform",
        }
    )

    stream: Stream
    port: int
    route: Route | None = None
    transform: Transform | None = None
    detail: str = ""
    describe: DescribeIterations | None = None
