"""Timely dataflow: vertices, workers and the wires between them. Imports `progress`.

Read `building/dataflow.py` (writing a dataflow), `operators/vertex.py` (the code that a user adds),
`running/core.py` (the loop that runs it), `wire/transport/` (the transports of messages), `worker/server.py`
(the requests of clients), `client/cluster.py` (how clients send them), in that order.
"""

from . import other_packages as _other_packages  # noqa: F401  # first: whether `progress` is ours
from .building.builders import builder
from .building.dataflow import Dataflow
from .building.exchange import Broadcast, Route, ToWorker
from .building.loop import Loop
from .building.record_hash import by
from .building.routing_input import RoutingInput
from .building.stream import Feed, Stream
from .client.cluster import Cluster, connect
from .client.session import Flow
from .errors import (
    ForgottenError,
    GraphError,
    InputClosedError,
    InternalError,
    MisuseError,
    PeerError,
    RefusedError,
    ReplacedError,
    RequestError,
    TimelyError,
    TimeOverflowError,
    TimeRegressionError,
    UninstalledError,
    VertexError,
    WaitTimeoutError,
)
from .operators.vertex import Vertex
from .wire.batch import Batch, Records
from .wire.routing import Routing

__all__ = [
    "Batch",
    "Broadcast",
    "Cluster",
    "Dataflow",
    "Feed",
    "Flow",
    "ForgottenError",
    "GraphError",
    "InputClosedError",
    "InternalError",
    "Loop",
    "MisuseError",
    "PeerError",
    "Records",
    "RefusedError",
    "ReplacedError",
    "RequestError",
    "Route",
    "Routing",
    "RoutingInput",
    "Stream",
    "TimeOverflowError",
    "TimeRegressionError",
    "TimelyError",
    "ToWorker",
    "UninstalledError",
    "Vertex",
    "VertexError",
    "WaitTimeoutError",
    "builder",
    "by",
    "connect",
]


def __dir__() -> list[str]:
    return sorted([*__all__, "errors"])
