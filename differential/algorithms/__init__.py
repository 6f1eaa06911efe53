"""Graph algorithms, and a few others, written with the public operators only; each is an example of them.

A graph is a collection of edges with the columns `src` and `dst`; other names are given in the call, as in
`bfs(calls, roots, src="caller", dst="callee")`. All of them follow changes: at every time the result is the
answer for the edges of that time. `docs/algorithms.md` has a table of all.
"""

from differential.algorithms.components import connected_components
from differential.algorithms.paths.bfs import bfs
from differential.algorithms.paths.bidirectional import bidirectional_shortest_paths
from differential.algorithms.paths.closure import transitive_closure
from differential.algorithms.paths.weighted import weighted_shortest_paths
from differential.algorithms.rules.datalog import datalog
from differential.algorithms.sequences.prefix_sums import prefix_sums
from differential.algorithms.strong_components import (
    edges_inside_components,
    strongly_connected_components,
)
from differential.algorithms.structure.colouring import graph_colouring
from differential.algorithms.structure.communities import label_propagation
from differential.algorithms.structure.k_core import k_core
from differential.algorithms.structure.labels import propagate
from differential.algorithms.structure.pagerank import pagerank
from differential.algorithms.structure.triangles import triangles

__all__ = [
    "bfs",
    "bidirectional_shortest_paths",
    "connected_components",
    "datalog",
    "edges_inside_components",
    "graph_colouring",
    "k_core",
    "label_propagation",
    "pagerank",
    "prefix_sums",
    "propagate",
    "strongly_connected_components",
    "transitive_closure",
    "triangles",
    "weighted_shortest_paths",
]
