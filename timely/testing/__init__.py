"""Tests of your own vertices and dataflows, without processes: `docs/testing_vertices.md`.

VertexHarness   one vertex without a cluster
simulate        a cluster from a seed, with delays, orders and crashes
explore         all orders in which a dataflow can happen, with the shortest counterexample
Scenario        what both take, for `python -m progress.check FILE:NAME`
"""

from progress.checking.counterexample import Counterexample

from ..running.checking.reached import Explored
from .acts import UserAct, call, close, seal, send
from .harness import Sending, VertexHarness
from .moment import Moment
from .scenario import Scenario, explore, simulate
from .simulation import SimulatedRun

__all__ = [
    "Counterexample",
    "Explored",
    "Moment",
    "Scenario",
    "Sending",
    "SimulatedRun",
    "UserAct",
    "VertexHarness",
    "call",
    "close",
    "explore",
    "seal",
    "send",
    "simulate",
]
