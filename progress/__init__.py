"""Progress tracking: which times can still be seen, and where.

Pure: no sockets, threads or clocks. Imports nothing else of this repository, and numba in `kernel.py` only.
Read `timestamp.py`, `time_words.py`, `path_summary.py`, `graph.py`, `could_result_in.py`, `tracker.py`,
`broadcast.py`, in that order. What `could_result_in.py` defines on tuples the tracker looks up in
`summary_table.py`. What must hold of all of it is in `predicates.py`, evaluated by whoever wants to check.
"""

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
from progress.graph.could_result_in import MinimalSummaries
from progress.graph.graph import ConnectorSpec, Graph, StageSpec
from progress.graph.summary_table import SummaryTable
from progress.times.antichain import Antichain
from progress.times.path_summary import PathSummary
from progress.times.time_words import TimeCode, TimeLayout
from progress.times.timestamp import ROOT, TimeShape, Timestamp
from progress.tracking.broadcast import Broadcaster
from progress.tracking.count_changes import Change, CountChanges
from progress.tracking.tracker import Tracker

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
