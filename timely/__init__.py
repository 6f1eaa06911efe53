"""Timely dataflow: vertices, workers and the wires between them. Imports `progress`.

Read `dataflow.py` (building), `vertex.py` (what a user writes), `worker/core.py` (the loop that runs it),
`transport/` (what carries messages), `server.py` (what clients can ask), `cluster.py` (how they ask), in that
order.
"""

from .building.dataflow import Dataflow
from .building.exchange import Broadcast, Route, ToWorker
from .building.loop import Loop
from .building.stream import Feed, Stream
from .building.vertex import Vertex
from .client.cluster import Cluster, connect
from .client.session import Flow
from .errors import (
    ForgottenError,
    GraphError,
    InputClosedError,
    InternalError,
    MisuseError,
    PeerError,
    RequestError,
    TimelyError,
    TimeOverflowError,
    TimeRegressionError,
    VertexError,
    WaitTimeoutError,
)
from .user_code.builders import builder
from .wire.batch import Batch, Records

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
    "RequestError",
    "Route",
    "Stream",
    "TimeOverflowError",
    "TimeRegressionError",
    "TimelyError",
    "ToWorker",
    "Vertex",
    "VertexError",
    "WaitTimeoutError",
    "builder",
    "connect",
]
