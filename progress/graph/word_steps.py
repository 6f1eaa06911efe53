"""The steps from location to location on words, in the arrays that kernels walk along.

Beside the locations there may be *groups*: a group of locations of one scope is one more *node*, to which a
step leads from each of them, and which is therefore reached as soon as one of them is.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from progress.compiled.arrays import Int64s
from progress.errors import GraphError
from progress.graph.graph import Graph
from progress.times.path_summary import PathSummary

__all__ = ["WordSteps"]


class WordSteps:
    """The steps of a graph, and those into groups, sorted by where they start.

        starts    int64[M+1]   the steps from node l are the rows starts[l] … starts[l+1]-1 of `steps`
        steps     int64[E, 3]  next node, keep, add
        sources   int64[E]     where each step starts
        scopes    int64[3, M]  guards, value bits and a high probe of the scope at each node

    `column_of_group` has the node of each group. A group of one location is that location. `fields` are those
    of all scopes, each as the position of its lowest bit, and its bits; `level_guards` has the guard bits of
    all levels.

    Raises `GraphError` if a group has locations of several scopes.
    """

    def __init__(self, graph: Graph, groups: Sequence[Sequence[int]] = ()) -> None:
        self.location_count = graph.location_count
        self.column_of_group: list[int] = []
        codes = graph.location_codes()
        steps: list[tuple[int, int, int, int]] = []
        words: dict[tuple[PathSummary, int, int], tuple[int, int]] = {}
        for here, there, summary in graph.steps:
            key = summary, id(codes[here]), id(codes[there])  # the graph has one code for each shape
            if key not in words:
                words[key] = summary.to_words(codes[here], codes[there])
            steps.append((here, there, *words[key]))
        for group in groups:
            assert group, "a group of no locations has no scope"
            assert all(0 <= location < self.location_count for location in group), group
            first = codes[group[0]]
            if any(codes[location] is not first for location in group):
                raise GraphError(f"locations {list(group)} are of different scopes")
            if len(group) == 1:
                self.column_of_group.append(group[0])
                continue
            column = len(codes)
            self.column_of_group.append(column)
            codes.append(first)
            steps += [(location, column, first.valid, 0) for location in group]
        self.fields = tuple(sorted({field for code in set(graph.codes) for field in code.fields}))
        layout = graph.layout
        self.level_guards = sum(
            1 << shift + bits for shift, bits in zip(layout.shifts, layout.level_bits, strict=True)
        )
        self.count = len(codes)
        """The number of nodes: locations, then groups."""
        scopes = [(code.guards, code.valid, code.probe_high) for code in codes]
        self.scopes: Int64s = np.ascontiguousarray(np.array(scopes, dtype=np.int64).reshape(-1, 3).T)
        table = np.array(sorted(steps), dtype=np.int64).reshape(len(steps), 4)
        self.sources: Int64s = table[:, 0].copy()
        self.steps: Int64s = table[:, 1:].copy()
        self.starts: Int64s = np.searchsorted(self.sources, np.arange(self.count + 1)).astype(np.int64)
        assert self.starts.shape == (self.count + 1,), self.starts.shape
        assert int(self.starts[-1]) == len(steps), "every step starts somewhere"
        assert len(self.column_of_group) == len(groups)

    @cached_property
    def order(self) -> Int64s:
        """All nodes, in an order in which all steps lead forward but those that close a cycle (reverse
        postorder).
        """
        starts, following = self.starts.tolist(), self.steps[:, 0].tolist()
        seen = [False] * self.count
        done: list[int] = []
        for root in range(self.count):
            if seen[root]:
                continue
            seen[root] = True
            path = [(root, starts[root])]
            while path:
                here, position = path.pop()
                stop = starts[here + 1]
                while position < stop:
                    there = following[position]
                    position += 1
                    if not seen[there]:
                        seen[there] = True
                        path += [(here, position), (there, starts[there])]
                        break
                else:
                    done.append(here)
        assert len(done) == self.count, "every node is visited"
        assert all(seen), "and only once"
        return np.array(done[::-1], dtype=np.int64)
