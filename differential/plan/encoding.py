"""A plan as bytes: the same bytes for the same query in every process; and an identity for it.

    [version, [node, …], [root, …], functions, [sites, …]]        in msgpack

A node is [kind, its data, the numbers of its children]. Children come first, in the order in which the roots
need them, and only nodes that roots need are included. Nodes name functions by identity; `travelling.py`
describes each function once, in `functions`. The lines where nodes were written come last. They do not enter
`query_identity`, so that a query keeps its identity while its lines move.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Final, cast

import msgpack

from timely.errors import MisuseError

from . import nodes as n
from .building import Plan
from .functions import UserFunction
from .rewriting import beneath
from .travelling import packed_functions

__all__ = [
    "EXPRESSIONS_MAX",
    "NODES_MAX",
    "PLAN_BYTES_MAX",
    "VERSION",
    "encode_plan",
    "identity_key",
    "query_identity",
]

VERSION: Final = 1
PLAN_BYTES_MAX: Final = 4 << 20
NODES_MAX: Final = 10_000
EXPRESSIONS_MAX: Final = 200_000
"""Operators, columns and constants of all expressions together, counted as if each expression were written
out.
"""
_SITES_MAX: Final = 16


def encode_plan(plan: Plan, roots: list[n.Node]) -> bytes:
    """Return the plan of `roots` as bytes; raise MisuseError if it cannot travel or is too large."""
    ordered = list(beneath(roots))
    if len(ordered) > NODES_MAX:
        raise MisuseError(f"a query has {len(ordered):,} operators; up to {NODES_MAX:,} can be installed")
    size = sum(expr.size for node in ordered for expr in node.expressions)
    if size > EXPRESSIONS_MAX:
        raise MisuseError(f"a query has expressions of {size:,} operators; up to {EXPRESSIONS_MAX:,} can be")
    functions: dict[str, UserFunction] = {}
    lines: dict[str, str] = {}
    for node in ordered:
        if isinstance(node, n.FromStream | n.IntoStream | n.ByHand):
            raise MisuseError(
                f"a query with stages that were written by hand ({_sites(plan, node)}) cannot be sent to "
                "workers. Put its builder in a module, mark it by @timely.builder, and install it by name"
            )
        for function in node.functions:
            key = identity_key(function.identity)
            functions.setdefault(key, function)
            lines.setdefault(key, _sites(plan, node))
    try:
        sources = packed_functions(functions.values(), list(lines.values()))
    except MisuseError as error:
        raise MisuseError(f"the query cannot be sent to workers: {error}") from error
    sites = [[list(site) for site in plan.sites.get(node.digest, ())][:_SITES_MAX] for node in ordered]
    packed = cast("bytes", msgpack.packb([VERSION, *_graph(ordered, roots), sources, sites]))
    if len(packed) > PLAN_BYTES_MAX:
        raise MisuseError(f"a query takes {len(packed):,} bytes; up to {PLAN_BYTES_MAX:,} can be installed")
    return packed


def query_identity(roots: list[n.Node]) -> str:
    """Return a hash that is equal for equal queries: names of inputs and outputs, operators, functions."""
    packed = cast("bytes", msgpack.packb([VERSION, *_graph(list(beneath(roots)), roots)]))
    return blake2b(packed, digest_size=16).hexdigest()


def _graph(ordered: list[n.Node], roots: list[n.Node]) -> list[object]:
    number = {node.digest: position for position, node in enumerate(ordered)}
    entries = [
        [node.kind, node.data(), [number[child.digest] for child in node.children]] for node in ordered
    ]
    return [entries, [number[root.digest] for root in roots]]


def identity_key(identity: object) -> str:
    """Return a key that is the same for the same function, before encoding and after decoding."""
    return repr(identity) if isinstance(identity, list) else repr(list(cast("tuple[object, ...]", identity)))


def _sites(plan: Plan, node: n.Node) -> str:
    return ", ".join(map(str, plan.sites.get(node.digest, ())))
