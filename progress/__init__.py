"""Progress tracking: which times can still be seen, and where.

Pure: no sockets, threads or clocks. Imports nothing else of this repository. Modules that need kernels are
imported at first use: every program that imports `timely` imports this package, and a program that only
describes a dataflow or talks to workers runs no kernel.

`compiled/` is a tenant: it compiles, stores and calls kernels for all packages, and knows nothing of
progress. It imports numba only when it has to compile.

Read `timestamp.py`, `time_words.py`, `path_summary.py`, `graph.py`, `could_result_in.py`, `tracker.py`,
`broadcast.py`, in that order. `could_result_in.py` defines on tuples the relation that the tracker looks up
in `summary_table.py`. The compiled twins of times and antichains are `word_order.py` and `word_antichain.py`.
`predicates.py` states the invariants of all of it; the simulations, the checker and the tests evaluate them.
"""

from importlib import import_module
from typing import TYPE_CHECKING

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
from progress.times.anchor import EPOCH_MAX, Anchor, Rebase
from progress.times.antichain import Antichain
from progress.times.path_summary import PathSummary
from progress.times.time_words import TimeCode, TimeLayout
from progress.times.timestamp import ROOT, TimeShape, Timestamp
from progress.tracking.broadcast import Broadcaster
from progress.tracking.count_changes import Change, CountChanges

if TYPE_CHECKING:
    from progress.graph.summary_table import SummaryTable
    from progress.tracking.tracker import Tracker

__all__ = [
    "EPOCH_MAX",
    "ROOT",
    "Anchor",
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
    "Rebase",
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

_LATE = {"SummaryTable": "progress.graph.summary_table", "Tracker": "progress.tracking.tracker"}
"""Names that need kernels, each with the module that defines it."""


def __getattr__(name: str) -> object:
    if name not in _LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    attribute: object = getattr(import_module(_LATE[name]), name)
    globals()[name] = attribute
    return attribute


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
