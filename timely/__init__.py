"""Timely dataflow: vertices, workers and the wires between them. Imports `progress`.

Read `building/dataflow.py` (writing a dataflow), `operators/vertex.py` (the code that a user adds),
`running/core.py` (the loop that runs it), `wire/transport/` (the transports of messages), `worker/server.py`
(the requests of clients), `client/cluster.py` (how clients send them), in that order.
"""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from . import other_packages as _other_packages  # noqa: F401  # first: whether `progress` is ours
from .building.builders import builder
from .building.dataflow import Dataflow
from .building.exchange import Broadcast, Route, ToWorker
from .building.loop import Loop
from .building.record_hash import by
from .building.routing_input import RoutingInput
from .building.stream import Feed, Stream
from .building.tables.table_stream import TableStream, tables
from .client.cluster import Cluster, connect
from .client.other_spellings import OF_MODULE as _OF_MODULE
from .client.programs.program_worker import ProgramWorker
from .client.programs.running import run
from .client.programs.stages import program
from .client.reports.retained import Retained, RetainedReport
from .client.reports.served import Console
from .client.reports.why import EpochReport
from .client.session import Flow
from .errors import (
    CaptureError,
    FencedError,
    ForgottenError,
    GraphError,
    InputClosedError,
    InternalError,
    MisuseError,
    NotRepeatableError,
    OvertakenError,
    PeerError,
    RefusedError,
    ReplacedError,
    RequestError,
    RestartedError,
    SpillError,
    StoreError,
    TimelyError,
    TimeOverflowError,
    TimeRegressionError,
    UninstalledError,
    VertexError,
    WaitTimeoutError,
)
from .operators.activator import Activator
from .operators.capability import Capability
from .operators.vertex import Vertex
from .user_code.short_traces import short_lookup as _short_lookup
from .wire.batch import Batch, Records
from .wire.reasons import Reason
from .wire.routing import Routing

__all__ = [
    "Activator",
    "Batch",
    "Broadcast",
    "Capability",
    "CaptureError",
    "Cluster",
    "Console",
    "Dataflow",
    "EpochReport",
    "Feed",
    "FencedError",
    "Flow",
    "ForgottenError",
    "GraphError",
    "InputClosedError",
    "InternalError",
    "Loop",
    "MisuseError",
    "NotRepeatableError",
    "OvertakenError",
    "PeerError",
    "ProgramWorker",
    "Reason",
    "Records",
    "RefusedError",
    "ReplacedError",
    "RequestError",
    "RestartedError",
    "Retained",
    "RetainedReport",
    "Route",
    "Routing",
    "RoutingInput",
    "SpillError",
    "StoreError",
    "Stream",
    "TableStream",
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
    "program",
    "run",
    "tables",
]


def __dir__() -> list[str]:
    return sorted([*__all__, "errors"])


if not _TYPE_CHECKING:

    @_short_lookup
    def __getattr__(name: str) -> object:
        raise AttributeError(_OF_MODULE.message(f"module 'timely' has no attribute {name!r}", name, __all__))
