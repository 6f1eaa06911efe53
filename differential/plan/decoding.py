"""Read a plan from bytes. Any bytes give either a valid plan or an error.

`encoding.py` writes plans. Each operator reads its own data: `Node.read`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, cast

import msgpack

from timely.errors import TimelyError
from timely.user_code.call_site import CallSite, at_site

from ..errors import SchemaError
from . import encoding
from . import nodes as n
from .building import Plan
from .encoding import identity_key
from .expressions import texts_of
from .functions import UserFunction, UserFunctions
from .travelling import unpacked_functions

__all__ = ["decode_plan"]

_TERMS_MAX: Final = 1_000

_AddInput = Callable[[n.Input | n.Import], n.Node]
"""Declare an input or import on this worker and return its node."""


def decode_plan(
    packed: bytes, plan: Plan, add_input: _AddInput, is_trusted: bool, is_improved: bool = False
) -> list[n.Node]:
    """Add the nodes of the plan in `packed` to `plan`, and return its roots. `is_improved`: rules have
    improved this plan of our own, and the filter for a `NotNull` may be further beneath.

    Raises SchemaError if the bytes are no plan, MisuseError if a function in it may not be run here.
    """
    if len(packed) > encoding.PLAN_BYTES_MAX:
        raise SchemaError(f"a plan of {len(packed):,} bytes: up to {encoding.PLAN_BYTES_MAX:,}")
    try:
        data: object = msgpack.unpackb(packed, strict_map_key=False)
    except Exception as error:
        raise SchemaError("a plan that is not msgpack") from error
    match data:
        case [int(version), *_] if version != encoding.VERSION:
            raise SchemaError(f"a plan of version {version}; this release reads {encoding.VERSION}")
        case [int(), [*entries], [*roots], functions, [*sites]] if len(entries) <= encoding.NODES_MAX:
            pass
        case _:
            raise SchemaError("these bytes are no plan")
    try:
        return _decoded((entries, roots, functions, sites), plan, add_input, is_trusted, is_improved)
    except TimelyError:
        raise
    except (ArithmeticError, AssertionError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise SchemaError(f"these bytes are no plan: {type(error).__name__}: {error}") from error


_Parts = tuple[list[object], list[object], object, list[object]]


def _decoded(
    parts: _Parts, plan: Plan, add_input: _AddInput, is_trusted: bool, is_improved: bool
) -> list[n.Node]:
    entries, roots, functions, sites = parts
    sent = {identity_key(each.identity): each for each in unpacked_functions(functions, is_trusted)}

    def function_of(identity: object) -> UserFunction:
        function = sent.get(identity_key(identity)) if isinstance(identity, list | tuple) else None
        if function is None:
            raise SchemaError(f"{identity!r:.200} is no function of this plan")
        return function

    nodes: list[n.Node] = []
    terms: list[int] = []
    size = 0
    for number, entry in enumerate(entries):
        written = _read_sites(sites[number] if number < len(sites) else []) or [CallSite("", 0)]
        with at_site(written):  # errors of the node and its expressions name these lines
            node = _node(entry, nodes, function_of, is_improved)
            terms.append(_terms(node, entry, terms))
            size += sum(expr.size for expr in node.expressions)
            if size > encoding.EXPRESSIONS_MAX:  # before any code walks through them
                raise SchemaError(
                    f"a plan with expressions of more than {encoding.EXPRESSIONS_MAX:,} operators"
                )
            if isinstance(node, n.Input | n.Import):
                node = add_input(node)
            for site in written:
                node = plan.add(node, site)
        nodes.append(node)
    root_nodes = [_child(number, nodes) for number in roots]
    if not root_nodes or any(root.free for root in root_nodes):
        raise SchemaError("a plan that asks for nothing, or for something inside a loop")
    return root_nodes


def _read_sites(data: object) -> list[CallSite]:
    call_sites: list[CallSite] = []
    for each in data if isinstance(data, list) else []:
        match each:
            case [str(file), int(line)]:
                call_sites.append(CallSite(file, line))
            case _:
                raise SchemaError(f"{each!r:.200} is no place in a program")
    return call_sites


def _child(number: object, nodes: list[n.Node]) -> n.Node:
    if type(number) is not int or not 0 <= number < len(nodes):
        raise SchemaError(f"a node of a plan rests on number {number!r:.50}, which does not come before it")
    return nodes[number]


def _terms(node: n.Node, entry: object, before: list[int]) -> int:
    """Return the number of streams that a node is a sum of; raise SchemaError if it is beyond the limit.

    A sum of a sum of itself, repeated, doubles this number at each step.
    """
    if not node.is_linear:
        return 1
    numbers = cast("list[list[int]]", entry)[2]
    count = sum(before[number] for number in numbers)
    if count > _TERMS_MAX:
        raise SchemaError(f"a plan with a sum of {count:,} parts; up to {_TERMS_MAX:,}")
    return count


_KINDS: Final[dict[str, type[n.Node]]] = {
    node.kind: node
    for node in vars(n).values()
    if isinstance(node, type) and issubclass(node, n.Node) and "kind" in vars(node)
}
"""The operators by their kind in a plan."""


def _node(entry: object, nodes: list[n.Node], functions: UserFunctions, is_improved: bool) -> n.Node:
    """Return the node of this entry over `nodes`; raise SchemaError if it is no node."""
    match entry:
        case [str(kind), [*data], [*numbers]]:
            children = tuple(_child(number, nodes) for number in numbers)
        case _:
            raise SchemaError(f"{entry!r:.200} is no node of a plan")
    if kind not in ("leave", "loop") and any(isinstance(child, n.LetRec) for child in children):
        raise SchemaError("what a loop of a plan comes to has a number, which `leave` names")
    if kind == n.NotNull.kind and is_improved and len(children) == 1:
        return n.NotNull(children[0], texts_of(data))
    node = _KINDS[kind].read(data, children, functions) if kind in _KINDS else None
    if node is None:
        raise SchemaError(f"{entry!r:.200} is no operator that is known here")
    return node
