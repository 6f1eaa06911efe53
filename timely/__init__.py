"""Timely dataflow: vertices, workers and the wires between them. Imports `progress`.

Read `dataflow.py` (building), `vertex.py` (what a user writes), `worker/core.py` (the loop that runs it),
`transport/` (what carries messages), `server.py` (what clients can ask), `cluster.py` (how they ask), in that
order.
"""

from .batch import Batch, Records
from .builders import builder
from .cluster import Cluster, connect
from .dataflow import Dataflow
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
from .exchange import Broadcast, Route, ToWorker
from .loop import Loop
from .session import Flow
from .stream import Feed, Stream
from .vertex import Vertex

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
