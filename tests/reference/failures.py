"""Which outputs have no answer, and what are the answers of the others? Errors as values, node by node.

The twin of everything that brings failures to outputs. A row on which an operator fails is left out of what the
operator gives, and the operator has failed if such a row is there a number of times other than 0. In a loop it has
failed if it fails in any iteration.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import cast

from reference import collection as plainly
from reference.collection import Collection as Rows
from reference.collection import Row
from reference.expressions import NoValue
from reference.plan import ROUNDS_MAX, DidNotEnd, Interpreter, value_of

from differential.plan import nodes as n
from differential.plan.rewriting import beneath

__all__ = ["answers_of"]


def answers_of(root: n.Node, inputs: Mapping[str, Rows]) -> tuple[Rows, list[n.Node]]:
    """The rows of `root` where the inputs hold these, and what beneath it has failed."""
    failed: set[bytes] = set()
    rows = _Failing(inputs, {}, failed).rows(root)
    return rows, [node for node in beneath([root]) if node.digest in failed]


class _Failing(Interpreter):
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
                    node, rows, lambda row: [tuple(cast("int", value_of(e, row, over)) for _, e in node.columns)]
                )
            case n.Filter():
                return self._tried(
                    node, rows, lambda row: [row] if value_of(node.condition, row, over) is True else []
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
