"""A plan of its bytes: whatever they are, a plan that is in order, or an error.

How plans are written: `encoding.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, cast, get_args

import msgpack

from timely.errors import TimelyError
from timely.user_code.call_site import CallSite, at_site

from ..aggregates import ADDED, Aggregate
from ..columns.column_types import boolean, integer
from ..errors import SchemaError
from ..expressions.expression import Expr
from ..expressions.nulls import not_null_where
from ..linear.sliding import TIME_MAX
from ..operators.ordered.layout import Turn
from ..skew.balance import LEAD_MAX, Balance, Purpose
from . import encoding
from . import nodes as n
from .building import Plan
from .encoding import expressions_of, identity_key
from .expressions import expr_of, schema_of
from .functions import Function
from .nodes.guarded import GUARDED, Part, Step
from .travelling import unpacked_functions

__all__ = ["decode_plan"]

_TERMS_MAX: Final = 1_000

_AddInput = Callable[[n.Input | n.Import], n.Node]
"""Declares an input or import on this worker and gives its node."""


def decode_plan(packed: bytes, plan: Plan, add_input: _AddInput, is_trusted: bool) -> list[n.Node]:
    """The roots of the plan in `packed`, whose nodes are added to `plan`.

    Raises SchemaError for bytes that are no plan, MisuseError for functions that may not be run here.
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
        return _decoded((entries, roots, functions, sites), plan, add_input, is_trusted)
    except TimelyError:
        raise
    except (ArithmeticError, AssertionError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise SchemaError(f"these bytes are no plan: {type(error).__name__}: {error}") from error


_Parts = tuple[list[object], list[object], object, list[object]]


def _decoded(parts: _Parts, plan: Plan, add_input: _AddInput, is_trusted: bool) -> list[n.Node]:
    entries, roots, functions, sites = parts
    known = unpacked_functions(functions, is_trusted)
    reader = _Reader({identity_key(function.identity): function for function in known})
    made: list[n.Node] = []
    terms: list[int] = []
    size = 0
    for number, entry in enumerate(entries):
        written = _read_sites(sites[number] if number < len(sites) else []) or [CallSite("", 0)]
        with at_site(written):  # the node, and the expressions in it
            node = reader.node(entry, made)
            terms.append(_terms(node, entry, terms))
            size += sum(expr.size for expr in expressions_of(node))
            if size > encoding.EXPRESSIONS_MAX:  # before anything walks through them
                raise SchemaError(
                    f"a plan with expressions of more than {encoding.EXPRESSIONS_MAX:,} operators"
                )
            if isinstance(node, n.Input | n.Import):
                node = add_input(node)
            for site in written:
                node = plan.add(node, site)
        made.append(node)
    found = [_child(number, made) for number in roots]
    if not found or any(root.free for root in found):
        raise SchemaError("a plan that asks for nothing, or for something inside a loop")
    return found


def _read_sites(data: object) -> list[CallSite]:
    found: list[CallSite] = []
    for each in data if isinstance(data, list) else []:
        match each:
            case [str(file), int(line)]:
                found.append(CallSite(file, line))
            case _:
                raise SchemaError(f"{each!r:.200} is no place in a program")
    return found


def _child(number: object, made: list[n.Node]) -> n.Node:
    if type(number) is not int or not 0 <= number < len(made):
        raise SchemaError(f"a node of a plan rests on number {number!r:.50}, which does not come before it")
    return made[number]


def _terms(node: n.Node, entry: object, before: list[int]) -> int:
    """How many streams a node is a sum of: sums of sums of itself would have no end."""
    if not node.is_linear:
        return 1
    numbers = cast("list[list[int]]", entry)[2]
    count = sum(before[number] for number in numbers)
    if count > _TERMS_MAX:
        raise SchemaError(f"a plan with a sum of {count:,} parts; up to {_TERMS_MAX:,}")
    return count


class _Reader:
    """Makes nodes of their entries."""

    def __init__(self, functions: dict[str, Function]) -> None:
        self._functions = functions

    def node(self, entry: object, made: list[n.Node]) -> n.Node:
        """The node of this entry; raises SchemaError if it is none."""
        match entry:
            case [str(kind), [*data], [*numbers]]:
                children = tuple(_child(number, made) for number in numbers)
            case _:
                raise SchemaError(f"{entry!r:.200} is no node of a plan")
        if kind not in ("leave", "loop") and any(isinstance(child, n.LetRec) for child in children):
            raise SchemaError("what a loop of a plan comes to has a number, which `leave` names")
        node = self._leaf(kind, data) if not children else self._inner(kind, data, children)
        if node is None:
            raise SchemaError(f"{entry!r:.200} is no operator that is known here")
        return node

    def _leaf(self, kind: str, data: list[object]) -> n.Node | None:
        match kind, data:
            case "input", [schema, str(name)]:
                return n.Input(schema_of(schema), name)
            case "one_row", []:
                return n.OneRow()
            case "empty", [schema]:
                return n.Empty(schema_of(schema))
            case "input", [schema, str(name), "upsert", [_, *_] as keys]:
                columns = schema_of(schema)
                if columns.names and set(keys) <= set(columns.names):
                    return n.Input(columns, name, "upsert", _texts(list(keys)))
            case "input", [schema, str(name), "checked", []]:
                columns = schema_of(schema)
                if columns.columns and columns.columns[-1].type == boolean:
                    return n.Input(columns, name, "checked")
            case "import", [schema, (int() | str()) as owner, str(name)]:
                return n.Import(schema_of(schema), owner, name)
            case "variable", [schema, int(depth), int(index)] if (
                1 <= depth <= encoding.LOOPS_MAX and index >= 0
            ):
                return n.Variable(schema_of(schema), depth, index)
        return None

    def _inner(self, kind: str, data: list[object], children: tuple[n.Node, ...]) -> n.Node | None:
        if kind == "concat" and not data:
            if any(child.schema != children[0].schema for child in children):
                raise SchemaError("a sum in a plan has parts with different columns")
            return n.Concat(children)
        if kind == "loop":
            return _loop(data, children)
        if kind == "accumulate":
            return _accumulate(data, children)
        if kind == "provided" and len(children) == 2 and not data:
            return n.Provided(*children)
        if kind == "join" and len(children) == 2:
            return _join(data, *children)
        if kind == "half_join" and len(children) == 2:
            return _half_join(data, *children)
        if kind == "spread" and len(children) == 3:
            return _spread(data, children)
        if kind == "join_all" and len(children) > 1:
            return _join_all(data, children)
        if len(children) != 1:
            return None
        return self._unary(kind, data, children[0])

    def _unary(self, kind: str, data: list[object], source: n.Node) -> n.Node | None:
        match kind, data:
            case "select", [_, *_]:
                columns = data
                return n.Select(source, tuple(_column(column) for column in columns))
            case "filter", [condition]:
                return n.Filter(source, expr_of(condition))
            case "by_priority", [priority, int(depth)] if (
                1 <= depth <= encoding.LOOPS_MAX and max(source.free, default=0) < depth
            ):
                return n.ByPriority(source, expr_of(priority), depth)
            case "not_null", [_, *_] if isinstance(source, n.Filter) and (
                set(data) <= set(source.schema.names) & not_null_where(source.condition)
            ):
                return n.NotNull(source, _texts(data))
            case "negate", []:
                return n.Negate(source)
            case "distinct", []:
                return n.Distinct(source)
            case "keys", [[*keys]]:
                return n.Keys(source, _texts(keys))
            case "place", [[*keys], int(side), str(purpose), [*balance]] if (
                side in (0, 1) and type(side) is int and purpose in get_args(Purpose)
            ):
                return n.Place(source, _texts(keys), side, cast("Purpose", purpose), Balance.of(balance))
            case "spread_loads", [] if isinstance(source, n.Spread):
                return n.SpreadLoads(source)
            case "weigh", [str(by)]:
                return n.Weigh(source, by)
            case "consolidate", []:
                return n.Consolidate(source)
            case "arrange", [[_, *_] as keys] if all(
                isinstance(key, str) and key in source.schema for key in keys
            ):
                return n.Arrange(source, _texts(list(keys)))
            case "apply", ["map" | "flat_map" | "map_batches" as how, identity, schema]:
                return n.Apply(source, how, self._function(identity), schema_of(schema))
            case "apply", ["filter" | "threshold" as how, identity, schema] if schema_of(
                schema
            ) == source.schema and (how == "filter" or source.schema.columns[-1].type == integer):
                return n.Apply(source, how, self._function(identity), source.schema)
            case "reduce", [[*keys], [*aggregates]] if aggregates:
                return n.Reduce(source, _texts(keys), tuple(_aggregate(each) for each in aggregates))
            case "top_k", [[*keys], [*order], int(limit), int(offset), rank] if limit > 0 <= offset:
                return _top_k(source, _texts(keys), order, (limit, offset), rank)
            case "reduce_function", [[*keys], identity, schema, bool(collects)]:
                function = self._function(identity)
                return n.ReduceFunction(source, _texts(keys), function, schema_of(schema), collects)
            case "delay", [int(epochs), identity] if epochs >= 0:
                return n.Delay(source, epochs, None if identity is None else self._function(identity))
            case "assert_empty", [str(what)]:
                return n.AssertEmpty(source, what)
            case "guarded", ["good" | "errors" as part, [_, *_] as steps]:
                return self._guarded(source, steps, part)
            case (("slide" | "during" | "on_time" | "sweep"), _):
                return _timed(kind, data, source)
            case "inspect", [identity, int(serial)]:
                return n.Inspect(source, self._function(identity), serial)
            case "output", [str(name)]:
                return n.Output(source, name)
            case "output", [str(name), True]:
                return n.Output(source, name, is_strict=True)
            case "export", [str(name), [*keys]] if set(keys) <= set(source.schema.names):
                return n.Export(source, name, _texts(keys))
            case "leave", [int(index)] if isinstance(source, n.LetRec) and 0 <= index < len(source.bodies):
                return n.Leave(source, index)
        return None

    def _guarded(self, source: n.Node, steps: Sequence[object], part: Part) -> n.Guarded:
        made: list[Step] = []
        for step in steps:
            match step:
                case [str(kind), [*data]]:
                    node = self._unary(kind, data, made[-1] if made else source)
                case _:
                    node = None
            if not isinstance(node, GUARDED):
                raise SchemaError(f"{step!r:.200} is no step of a plan")
            made.append(node)
        return n.Guarded(source, tuple(made), part)

    def _function(self, identity: object) -> Function:
        found = self._functions.get(identity_key(identity)) if isinstance(identity, list | tuple) else None
        if found is None:
            raise SchemaError(f"{identity!r:.200} is no function of this plan")
        return found


def _loop(data: list[object], children: tuple[n.Node, ...]) -> n.LetRec:
    match data:
        case [int(depth), int(count), int(limit), str(name), *rest] if (
            rest in ([], [True])
            and 1 <= depth <= encoding.LOOPS_MAX
            and 1 <= limit < 2**62
            and 1 <= count <= len(children) // 2
        ):
            initials, bodies, effects = children[:count], children[count : 2 * count], children[2 * count :]
            for initial, body in zip(initials, bodies, strict=True):
                if (
                    isinstance(initial, n.LetRec)
                    or isinstance(body, n.LetRec)
                    or initial.schema != body.schema
                ):
                    raise SchemaError(f"the loop {name!r} of a plan changes its columns")
            _check_variables((*bodies, *effects), depth, initials)
            loop = n.LetRec(name, depth, initials, bodies, limit, effects, bool(rest))
            if max(loop.free, default=0) != depth - 1:
                raise SchemaError(f"the loop {name!r} of a plan is not where it belongs")
            return loop
    raise SchemaError(f"{data!r:.200} is no loop of a plan")


def _accumulate(data: list[object], children: tuple[n.Node, ...]) -> n.Accumulate:
    match data:
        case [[*keys], int(needed), [*added]] if added and 0 <= needed <= len(children):
            return n.Accumulate(
                children, _texts(keys), needed, tuple(_added(each, len(children)) for each in added)
            )
    raise SchemaError(f"{data!r:.200} are no sums of a plan")


def _check_variables(parts: tuple[n.Node, ...], depth: int, initials: tuple[n.Node, ...]) -> None:
    """That variables of a loop have its columns; what does not depend on them has loops of its own."""
    waiting, seen = list(parts), set[bytes]()
    while waiting:
        node = waiting.pop()
        if depth not in node.free or node.digest in seen:
            continue
        seen.add(node.digest)
        if isinstance(node, n.LetRec) and node.depth <= depth:
            raise SchemaError(f"the loop {node.name!r} of a plan is not as deep as what it uses")
        if isinstance(node, n.Variable):
            if node.index >= len(initials) or node.schema != initials[node.index].schema:
                raise SchemaError(f"{node.describe()} of a plan has other columns than its loop begins with")
        waiting.extend(node.children)


def _join(data: list[object], left: n.Node, right: n.Node) -> n.Join:
    match data:
        case [[*pairs], bool(null_safe)]:
            return n.Join(left, right, tuple(_pair(pair) for pair in pairs), null_safe)
    raise SchemaError(f"{data!r:.200} is no join of a plan")


def _half_join(data: list[object], left: n.Node, right: n.Node) -> n.HalfJoin:
    match data:
        case [[*pairs], bool(null_safe), int(probing)] if probing in (0, 1) and type(probing) is int:
            return n.HalfJoin(left, right, tuple(_pair(pair) for pair in pairs), null_safe, probing)
    raise SchemaError(f"{data!r:.200} is no half join of a plan")


def _spread(data: list[object], children: tuple[n.Node, ...]) -> n.Spread:
    match data:
        case [[*pairs], bool(null_safe), [*balance], int(lead)] if (
            type(lead) is int and 0 <= lead <= LEAD_MAX
        ):
            if any(child.free for child in children):
                raise SchemaError("a join whose routing changes is in a loop of a plan")
            on = tuple(_pair(pair) for pair in pairs)
            left, right, said = children
            return n.Spread(left, right, said, on, null_safe, Balance.of(balance), lead)
    raise SchemaError(f"{data!r:.200} is no join of a plan that is spread")


def _join_all(data: list[object], parts: tuple[n.Node, ...]) -> n.JoinAll:
    match data:
        case [[*shared], bool(fewest)]:
            return n.JoinAll(parts, _texts(shared), fewest)
    raise SchemaError(f"{data!r:.200} is no join of a plan")


def _top_k(
    source: n.Node, keys: tuple[str, ...], order: list[object], span: tuple[int, int], rank: object
) -> n.TopK:
    by: list[n.OrderBy] = []
    for each in order:
        match each:
            case [str(column), bool(descending), bool(nulls_last)]:
                by.append(n.OrderBy(column, Turn(descending, nulls_last)))
            case _:
                raise SchemaError(f"{each!r:.200} is no column of an order")
    named = [*keys, *(each.column for each in by)]
    if len(set(named)) != len(named) or sum(span) > n.ALL_ROWS:
        raise SchemaError(f"an order by {named!r:.200} of a plan names a column twice, or is too long")
    match rank:
        case None:
            return n.TopK(source, keys, tuple(by), *span)
        case [str(name), "row_number" | "rank" | "dense" as kind]:
            return n.TopK(source, keys, tuple(by), *span, (name, kind))
    raise SchemaError(f"{rank!r:.200} is no rank")


def _timed(kind: str, data: list[object], source: n.Node) -> n.Node | None:
    """Operators that look at times: the columns that they look at are there, and hold what they should."""
    columns = source.schema.columns
    match kind, data:
        case "slide", [str(time), [int(size), int(every), int(origin)], [str(start), str(end)]] if (
            0 < size <= TIME_MAX and 0 < every <= TIME_MAX and abs(origin) <= TIME_MAX
        ):
            if source.schema[time].type.kind in ("int", "date", "timestamp"):
                return n.Slide(source, time, (size, every, origin), (start, end))
        case "during", [] if len(columns) > 1 and all(one.type.kind == "int" for one in columns[-2:]):
            return n.During(source)
        case "on_time", ["on time" | "late" as which] if columns and columns[-1].type.kind == "int":
            return n.OnTime(source, which)
        case "sweep", [[*keys], "sessions" | "nearest" as rule, [*options], given] if all(
            isinstance(key, str) and key in source.schema for key in keys
        ) and all(type(option) is int for option in options):
            made = n.Sweep(source, _texts(keys), rule, tuple(cast("list[int]", options)), schema_of(given))
            return made if _sweeps(made) else None
    return None


def _sweeps(node: n.Sweep) -> bool:
    """Whether a sweep reads and writes only words that are there."""
    width = node.source.schema.width - node.source.schema.picked(node.keys).width
    if node.rule == "sessions":
        return not node.options and width > 1 and node.columns.width == width + 2
    lefts, sources = node.options[4], node.options[5:]
    return (
        width > 1
        and len(sources) == node.columns.width
        and all(0 <= source < width for source in sources)
        and 0 <= lefts <= len(sources)
    )


def _pair(data: object) -> tuple[str, str]:
    match data:
        case [str(left), str(right)]:
            return left, right
    raise SchemaError(f"{data!r:.200} is no pair of columns")


def _column(data: object) -> tuple[str, Expr]:
    match data:
        case [str(name), entries]:
            return name, expr_of(entries)
    raise SchemaError(f"{data!r:.200} is no column of a plan")


def _texts(data: list[object]) -> tuple[str, ...]:
    if not all(isinstance(each, str) for each in data):
        raise SchemaError(f"{data!r:.200} are no names of columns")
    return tuple(cast("list[str]", data))


def _aggregate(data: object) -> tuple[str, Aggregate]:
    match data:
        case [str(name), "min" | "max" as kind, str(column)]:
            return name, Aggregate(kind, column)
    raise SchemaError(f"{data!r:.200} is no aggregate")


def _added(data: object, sources: int) -> n.Added:
    match data:
        case [str(name), int(source), "count", None] if 0 <= source < sources:
            return n.Added(name, source, Aggregate("count"))
        case [str(name), int(source), str(kind), str(column)] if 0 <= source < sources and kind in ADDED:
            return n.Added(name, source, Aggregate(kind, column))
    raise SchemaError(f"{data!r:.200} is nothing to be added up")
