"""Progress tracking: which times can still be seen, and where.

Pure: no sockets, threads or clocks. Imports nothing else of this repository, and numba in `_compile.py` only.
Read `timestamp.py`, `time_words.py`, `path_summary.py`, `graph.py`, `could_result_in.py`, `tracker.py`,
`broadcast.py`, in that order. What `could_result_in.py` defines on tuples the tracker looks up in
`summary_table.py`. What must hold of all of it is in `predicates.py`, evaluated by whoever wants to check
(`protocol_state.py`).
"""

from progress.antichain import Antichain
from progress.broadcast import Broadcaster
from progress.could_result_in import MinimalSummaries
from progress.count_changes import Change, CountChanges
from progress.errors import (
    GraphError,
    InputClosedError,
    InternalError,
    MisuseError,
    PeerError,
    TimelyError,
    TimeOverflowError,
    TimeRegressionError,
)
from progress.graph import ConnectorSpec, Graph, StageSpec
from progress.path_summary import PathSummary
from progress.summary_table import SummaryTable
from progress.time_words import TimeCode, TimeLayout
from progress.timestamp import ROOT, TimeShape, Timestamp
from progress.tracker import Tracker

__all__ = [
    "ROOT",
    "Antichain",
    "Broadcaster",
    "Change",
    "ConnectorSpec",
    "CountChanges",
    "Graph",
    "GraphError",
    "InputClosedError",
    "InternalError",
    "MinimalSummaries",
    "MisuseError",
    "PathSummary",
    "PeerError",
    "StageSpec",
    "SummaryTable",
    "TimeCode",
    "TimeLayout",
    "TimeOverflowError",
    "TimeRegressionError",
    "TimeShape",
    "TimelyError",
    "Timestamp",
    "Tracker",
]
