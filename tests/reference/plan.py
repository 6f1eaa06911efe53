"""What does a plan mean? An interpreter that computes every node from scratch: the twin of rules and stages.

Works on collections at one time: counters of rows, multiplicities of any sign. Expressions are evaluated row
by row. To `meaning` whatever fails raises `NoValue`; to `answers_of` errors are values: a row on which an
operator fails is left out of what the operator gives, and the operator has failed if such a row is there a
number of times other than 0, in a loop in any iteration.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import cast

from reference import collection as plainly
from reference import ordered_windows as windows
from reference import statistics
from reference.collection import Collection as Rows
from reference.collection import Row
from reference.expressions import NoValue, value_in_row

from differential.aggregates import Aggregate
from differential.columns.schema import Schema
from differential.expressions.expression import Expr
from differential.operators.ordered.layout import SortDirection
from differential.plan import nodes as n
from differential.plan.rewriting import beneath

__all__ = ["DidNotEnd", "answers_of", "meaning"]

ROUNDS_MAX = 40


class DidNotEnd(Exception):
    """A loop goes on changing."""


def meaning(root: n.Node, inputs: Mapping[str, Rows]) -> Rows:
    """The rows of `root` where the inputs hold these; raises NoValue, or DidNotEnd."""
    return _Interpreter(inputs, {}).rows(root)


def _name(aggregate: Aggregate) -> str:
    return "count_values" if aggregate.kind == "count" and aggregate.column else aggregate.kind


class _Interpreter:
    """Computes nodes from scratch; each once."""

    def __init__(self, inputs: Mapping[str, Rows], variables: Mapping[int, Sequence[Rows]]) -> None:
        self._inputs = inputs
        self._variables = variables
        self._known: dict[bytes, Rows] = {}

    def rows(self, node: n.Node) -> Rows:
        """What a node gives."""
        if node.digest not in self._known:
            self._known[node.digest] = self._compute(node)
        return self._known[node.digest]

    def _compute(self, node: n.Node) -> Rows:
        if isinstance(node, n.Input):
            rows = self._inputs[node.name]
            if not node.declared:
                return rows
            places = [node.declared.index(name) for name in node.schema.names]
            return plainly.map_rows(rows, lambda row: tuple(row[at] for at in places))
        if isinstance(node, n.Empty):
            return plainly.collection([])
        if isinstance(node, n.ConstantRows):
            return plainly.collection([tuple(row.values()) for row in node.table.to_pylist()])
        if isinstance(node, n.OneRow):
            return plainly.collection([(1,)])
        if isinstance(node, n.Variable):
            return self._variables[node.depth][node.index]
        if isinstance(node, n.LeaveLoop):
            return self.loop(node.loop)[node.index]
        if isinstance(node, n.Provided):
            self.rows(node.claim)
            return self.rows(node.source)
        if isinstance(node, n.Concat):
            return plainly.concat(*map(self.rows, node.sources))
        if isinstance(node, n.HalfJoin) and node.probing == 1:
            return plainly.collection([])  # the two halves mean something together: here the first has all
        if isinstance(node, n.Pairs):
            return self._join(node)
        if isinstance(node, n.JoinAll):
            return plainly.join_all([(part.schema.names, self.rows(part)) for part in node.parts])
        if isinstance(node, n.Bounded):
            return self._bounded(node)
        if isinstance(node, n.Accumulate):
            return self._added(node)
        return self.unary(node, self.rows(node.children[0]))

    def unary(self, node: n.Node, rows: Rows) -> Rows:
        """What an operator over one other gives of these rows."""
        over = node.children[0].schema
        match node:
            case n.Select():
                return plainly.map_rows(
                    rows, lambda row: tuple(cast("int", _value(e, row, over)) for _, e in node.columns)
                )
            case n.Filter():
                return plainly.filter_rows(rows, lambda row: _value(node.condition, row, over) is True)
            case n.NotNull():
                places = [over.names.index(name) for name in node.names]
                assert all(row[place] is not None for row in rows for place in places), node
                return rows
            case n.Arrange() | n.ByPriority():
                return rows  # of the end of a loop; how it gets there is not told here
            case n.Negate():
                return plainly.negate(rows)
            case n.OverWindow():
                return _windowed(node, rows)
            case n.PlaceOnUnits():
                return plainly.map_rows(rows, lambda row: (0, *row))  # as if there was one unit
            case n.Distinct():
                return plainly.distinct(rows)
            case n.Keys():
                return plainly.distinct(_picked(rows, over, node.keys))
            case n.Weigh():
                weight = over.names.index(node.by)
                weighed = Rows({row: count * cast("int", row[weight]) for row, count in rows.items()})
                return _picked(plainly.collection(weighed), over, node.schema.names)
            case n.Apply():
                function = cast("Callable[[Row], Row]", node.function.function)
                return plainly.map_rows(rows, lambda row: tuple(function(row)))
            case n.Reduce():
                kept = _picked(rows, over, node.columns_read)
                others = node.columns_read[len(node.keys) :]
                wanted = [(a.kind, others.index(a.column) if a.column else 0) for _, a in node.aggregates]
                return plainly.aggregate(kept, wanted, keys=len(node.keys))
            case n.ReduceFunction():
                rest = [name for name in over.names if name not in node.keys]
                call = cast("Callable[[Row, list[tuple[Row, int]]], list[Row]]", node.function.function)
                return plainly.reduce(
                    _picked(rows, over, (*node.keys, *rest)),
                    lambda key, group: call(key, list(group.items())),
                    keys=len(node.keys),
                )
            case n.GroupValues():
                return _of_values(node, _picked(rows, over, node.rows.names))
            case n.TopK():
                return _top_k(node, _picked(rows, over, node.rows.names))
            case n.Consolidate() | n.Inspect() | n.IntoStream() | n.Output():
                return rows
        raise AssertionError(node)

    def _added(self, node: n.Accumulate) -> Rows:
        kw = len(node.keys)
        columns = [node.columns_read(index) for index in range(len(node.sources))]
        parts = [
            plainly.groups(_picked(self.rows(source), source.schema, names), kw)
            for source, names in zip(node.sources, columns, strict=True)
        ]
        found: Rows = Counter()
        for key in {key for part in parts for key in part}:
            if any(sum(part.get(key, Counter()).values()) == 0 for part in parts[: node.needed]):
                continue
            row: list[Hashable] = [*key]
            for _, source, aggregate in node.added:
                at = -1 if aggregate.column is None else columns[source].index(aggregate.column)
                group: Rows = Counter()
                for rest, count in parts[source].get(key, Counter()).items():
                    group[(*key, *rest)] += count
                values = plainly.values_of(group, at)
                if aggregate.kind == "only":
                    row.append(next((value for (value,) in values), None))
                else:
                    row.append(plainly.added_up(_name(aggregate), values))
            if all(not isinstance(value, int) or -(2**63) <= value < 2**63 for value in row):
                found[tuple(row)] += 1
            else:
                self.overflowed(node)
        return found

    def overflowed(self, node: n.Node) -> None:
        """A sum of a group leaves 64 bits."""
        raise NoValue(node)

    def _join(self, node: n.Pairs) -> Rows:
        left_keys, right_keys = node.keys
        sides = []
        for side, keys in ((node.left, left_keys), (node.right, right_keys)):
            rest = [name for name in side.schema.names if name not in keys]
            rows = _picked(self.rows(side), side.schema, (*keys, *rest))
            if not node.null_safe:
                rows = plainly.filter_rows(rows, lambda row: None not in row[: len(node.on)])
            sides.append(rows)
        return plainly.join(sides[0], sides[1], keys=len(node.on))

    def _bounded(self, node: n.Bounded) -> Rows:
        """The pairs for which the tests are true, without the columns of the bounds."""
        source, bounds = node.source.schema, node.bounds.schema
        width = len(source)
        pairs = plainly.join(self.rows(node.source), self.rows(node.bounds), keys=0)
        of = source.names.index(node.of)
        places = [(op, width + bounds.names.index(name)) for op, name in node.tests]
        compare = {
            "<": operator.lt,
            "<=": operator.le,
            ">": operator.gt,
            ">=": operator.ge,
            "==": operator.eq,
        }
        return plainly.map_rows(
            plainly.filter_rows(
                pairs,
                lambda row: all(compare[op](cast("int", row[of]), cast("int", row[at])) for op, at in places),
            ),
            lambda row: row[:width],
        )

    def loop(self, loop: n.LetRec) -> Sequence[Rows]:
        """What the variables of a loop become."""
        now: Sequence[Rows] = [self.rows(initial) for initial in loop.initials]
        if loop.stops:
            for _ in range(loop.iterations_max):
                inside = _Interpreter(self._inputs, {**self._variables, loop.depth: now})
                now = [inside.rows(body) for body in loop.bodies]
            return now
        for _ in range(min(loop.iterations_max, ROUNDS_MAX)):
            inside = _Interpreter(self._inputs, {**self._variables, loop.depth: now})
            after = [inside.rows(body) for body in loop.bodies]
            if after == now:
                return after
            now = after
        raise DidNotEnd


def _top_k(node: n.TopK, rows: Rows) -> Rows:
    """Rows that are equal in the order come in that of their other columns."""
    turns = [each.direction for each in node.order]
    turns += [SortDirection()] * (len(node.rows) - len(node.keys) - len(turns))

    def order(row: Row) -> list[tuple[int, int]]:
        return [_place(value, turn) for value, turn in zip(row, turns, strict=True)]

    span = (node.offset, node.offset + node.limit)
    kind = None if node.rank is None else node.rank[1]
    count = len(node.order)
    return plainly.top_k(rows, order, span, len(node.keys), kind, lambda row: row[:count], ties=node.ties)


def _of_values(node: n.GroupValues, rows: Rows) -> Rows:
    """Percentiles of whole numbers."""
    found: Rows = Counter()
    for key, group in plainly.groups(rows, len(node.keys)).items():
        there = {cast("int | None", value): count for (value,), count in group.items() if count > 0}
        values = statistics.values_there({v: count for v, count in there.items() if v is not None})
        row: list[Hashable] = [*key]
        for call in node.calls:
            fraction = cast("float", call.option)
            assert call.kind == "percentile_disc", "others are no whole numbers"
            row.append(statistics.percentile_disc(values, fraction) if values else None)
        if there:
            found[tuple(row)] += 1
    return found


def _place(value: object, turn: SortDirection) -> tuple[int, int]:
    """Where a whole number, or null, comes in an order."""
    if value is None:
        return (1 if turn.nulls_last else -1, 0)
    number = int(cast("int", value))
    return (0, -number if turn.descending else number)


def _value(expr: Expr, row: Row, schema: Schema) -> object:
    """The value of an expression in a row; raises NoValue."""
    return value_in_row(expr, dict(zip(schema.names, row, strict=True)), schema)


def _windowed(node: n.OverWindow, rows: Rows) -> Rows:
    """A row that is there less than once is nowhere."""
    names = node.source.schema.names
    listed = [dict(zip(names, row, strict=True)) for row, count in rows.items() for _ in range(max(count, 0))]
    order = [windows.By(by.column, by.direction.descending, by.direction.nulls_last) for by in node.order]
    calls = [windows.Call(each.name, each.kind, each.column, each.amount) for each in node.calls]
    frame = (node.frame.unit, node.frame.start, node.frame.stop)
    answers = windows.windowed(listed, node.keys, order, calls, frame)
    return plainly.collection([tuple(row[name] for name in node.schema.names) for row in answers])


def _picked(rows: Rows, schema: Schema, names: Sequence[str]) -> Rows:
    places = [schema.names.index(name) for name in names]
    return plainly.map_rows(rows, lambda row: tuple(row[place] for place in places))


def answers_of(root: n.Node, inputs: Mapping[str, Rows]) -> tuple[Rows, list[n.Node]]:
    """The rows of `root` where the inputs hold these, and what beneath it has failed."""
    failed: set[bytes] = set()
    rows = _Failing(inputs, {}, failed).rows(root)
    return rows, [node for node in beneath([root]) if node.digest in failed]


class _Failing(_Interpreter):
    def __init__(
        self, inputs: Mapping[str, Rows], variables: Mapping[int, Sequence[Rows]], failed: set[bytes]
    ) -> None:
        super().__init__(inputs, variables)
        self._failed = failed

    def unary(self, node: n.Node, rows: Rows) -> Rows:
        over = node.children[0].schema
        match node:
            case n.Select():
                return self._tried(
                    node,
                    rows,
                    lambda row: [tuple(cast("int", _value(e, row, over)) for _, e in node.columns)],
                )
            case n.Filter():
                return self._tried(
                    node, rows, lambda row: [row] if _value(node.condition, row, over) is True else []
                )
            case n.Apply():
                function = cast("Callable[[Row], Row]", node.function.function)
                return self._tried(node, rows, lambda row: [tuple(function(row))])
            case n.AssertEmpty():
                if rows:
                    self._failed.add(node.digest)
                return rows
            case n.Answered():
                return rows
            case n.ReduceFunction():
                return self._grouped(node, rows)
        return super().unary(node, rows)

    def overflowed(self, node: n.Node) -> None:
        """Of such a group there is no row."""
        self._failed.add(node.digest)

    def _tried(self, node: n.Node, rows: Rows, give: Callable[[Row], list[Row]]) -> Rows:
        found: Rows = Counter()
        for row, count in rows.items():
            try:
                given = give(row)
            except (NoValue, ZeroDivisionError):
                self._failed.add(node.digest)
                continue
            for each in given:
                found[each] += count
        return plainly.collection(found)

    def _grouped(self, node: n.ReduceFunction, rows: Rows) -> Rows:
        """Of groups on which the function fails there are no rows."""
        call = cast("Callable[[Row, list[tuple[Row, int]]], list[Row]]", node.function.function)
        over = node.source.schema
        rest = [name for name in over.names if name not in node.keys]

        def tried(key: Row, group: Rows) -> list[Row]:
            try:
                return call(key, list(group.items()))
            except ZeroDivisionError:
                self._failed.add(node.digest)
                return []

        places = [over.names.index(name) for name in (*node.keys, *rest)]
        picked = plainly.map_rows(rows, lambda row: tuple(row[place] for place in places))
        return plainly.reduce(picked, tried, keys=len(node.keys))

    def loop(self, loop: n.LetRec) -> Sequence[Rows]:
        now: Sequence[Rows] = [self.rows(initial) for initial in loop.initials]
        for number in range(loop.iterations_max if loop.stops else ROUNDS_MAX):
            inside = _Failing(self._inputs, {**self._variables, loop.depth: now}, self._failed)
            after = [inside.rows(body) for body in loop.bodies]
            if not loop.stops and after == now:
                return after
            now = after
            del number
        if loop.stops:
            return now
        raise DidNotEnd
