"""What does each algorithm on graphs mean? By networkx, or by definition: from multisets of rows to one.

The twins of `differential/algorithms`: no times, no changes. A row that is there is there, however often.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import cast

import networkx as nx
from reference.collection import Collection as Rows
from reference.collection import collection

__all__ = [
    "cliques_of_three",
    "communities",
    "components",
    "core",
    "directed",
    "distances",
    "distances_between",
    "edges_inside",
    "greedy_colours",
    "least_that_reaches",
    "numbers",
    "pairs_reached",
    "ranks",
    "running_totals",
    "strong_components",
    "total_up_to",
    "undirected",
    "weighted_distances",
]


def numbers(rows: Rows) -> dict[tuple[int, ...], int]:
    """The rows and their multiplicities, for those that hold whole numbers only."""
    return cast(dict[tuple[int, ...], int], rows)


def directed(edges: Rows) -> nx.DiGraph:
    """The edges that are there; a third column is the weight, the least of several."""
    graph = nx.DiGraph()
    for src, dst, *weight in sorted(edges, reverse=True):
        assert edges[src, dst, *weight] > 0
        graph.add_edge(src, dst, **({"weight": weight[0]} if weight else {}))
    return graph


def undirected(edges: Rows) -> nx.Graph:
    """The simple graph: without directions, and without edges to oneself, whose ends are nodes yet."""
    graph = nx.Graph()
    for src, dst in edges:
        graph.add_nodes_from((src, dst))
        if src != dst:
            graph.add_edge(src, dst)
    return graph


def distances(edges: Rows, roots: Rows, most: int | None = None) -> Rows:
    """(node, edges from the nearest root), up to `most`; roots need not occur in edges."""
    graph = directed(edges)
    graph.add_nodes_from(node for (node,) in roots)
    sources = {node for (node,) in roots}
    if not sources:
        return Rows()
    found = nx.multi_source_dijkstra_path_length(graph, sources, most, lambda *edge: 1)
    return collection(list(found.items()))


def weighted_distances(edges: Rows, roots: Rows) -> Rows:
    """(node, length): Bellman and Ford's, from a node with an edge of no weight to every root."""
    graph = directed(edges)
    graph.add_node("source")
    graph.add_edges_from((("source", node) for (node,) in roots), weight=0)
    found = dict(nx.single_source_bellman_ford_path_length(graph, "source"))
    return collection([(node, length) for node, length in found.items() if node != "source"])


def pairs_reached(edges: Rows) -> Rows:
    """(src, dst) with a way of at least one edge."""
    return collection(list(nx.transitive_closure(directed(edges), reflexive=False).edges))


def components(edges: Rows) -> Rows:
    """(node, least of its component), directions aside."""
    found = nx.connected_components(undirected(edges))
    return collection([(node, min(nodes)) for nodes in found for node in nodes])


def strong_components(edges: Rows) -> Rows:
    """(node, least of its component)."""
    found = nx.strongly_connected_components(directed(edges))
    return collection([(node, min(nodes)) for nodes in found for node in nodes])


def edges_inside(edges: Rows) -> Rows:
    """The edges whose ends are in one component, as often as they are there."""
    component = dict(cast(Iterable[tuple[object, int]], strong_components(edges).keys()))
    return collection({row: n for row, n in edges.items() if component[row[0]] == component[row[1]]})


def core(edges: Rows, k: int) -> Rows:
    """(node,) of those in the k-core."""
    return collection([(node,) for node in nx.k_core(undirected(edges), k)])


def cliques_of_three(edges: Rows) -> Rows:
    """(a, b, c), each once, its nodes in order."""
    graph = undirected(edges)
    return collection(
        [(a, b, c) for a, b in map(sorted, graph.edges) for c in set(graph[a]) & set(graph[b]) if c > b]
    )


def greedy_colours(edges: Rows) -> Rows:
    """(node, colour): nodes in order, each with the first colour that is free."""
    colours = nx.greedy_color(undirected(edges), lambda graph, colours: sorted(graph))
    return collection(list(colours.items()))


def least_that_reaches(edges: Rows, labels: Rows) -> Rows:
    """(node, label): the least of its own labels and those of its ancestors."""
    graph = directed(edges)
    graph.add_nodes_from(node for node, _ in labels)
    own: dict[int, int] = {}
    for node, label in numbers(labels):
        own[node] = min(own.get(node, label), label)
    found = {
        node: [own[each] for each in {node, *nx.ancestors(graph, node)} if each in own] for node in graph
    }
    return collection([(node, min(known)) for node, known in found.items() if known])


def ranks(edges: Rows, iterations: int, unit: int, damping: tuple[int, int]) -> Rows:
    """(node, rank): the formula of `pagerank`, edges one by one, as often as they are there."""
    links = numbers(edges)
    degrees = Counter[int]()
    for (src, _), count in links.items():
        degrees[src] += count
    rank = {node: unit for edge in links for node in edge}
    for _ in range(iterations):
        share = {n: rank[n] * damping[0] // (damping[1] * degree) for n, degree in degrees.items()}
        rank = dict.fromkeys(rank, unit - unit * damping[0] // damping[1])
        for (src, dst), count in links.items():
            rank[dst] += count * share[src]
    return collection(list(rank.items()))


def communities(edges: Rows, iterations: int) -> Rows:
    """(node, label): all at once take the label that most of their neighbours and they themselves have."""
    graph = undirected(edges)
    labels = {node: node for node in graph}
    for _ in range(iterations):
        votes = {node: Counter([labels[node], *(labels[each] for each in graph[node])]) for node in graph}
        labels = {node: min(one, key=lambda label: (-one[label], label)) for node, one in votes.items()}
    return collection(list(labels.items()))


def distances_between(edges: Rows, pairs: Rows) -> Rows:
    """(source, target, edges between), for the pairs that have a way."""
    graph = directed(edges)
    graph.add_nodes_from(node for pair in pairs for node in pair)
    return collection(
        [(a, b, nx.shortest_path_length(graph, a, b)) for a, b in pairs if nx.has_path(graph, a, b)]
    )


def running_totals(values: Rows) -> Rows:
    """(position, sum): added up, for each position that has a value."""
    return collection({(p, total_up_to(values, p)): 1 for p, _ in numbers(values)})


def total_up_to(values: Rows, position: int) -> int:
    """The sum of the values at `position` and before."""
    return sum(v * count for (p, v), count in numbers(values).items() if p <= position)
