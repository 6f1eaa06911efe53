"""Operators that guard collections: delays, claims, and errors as rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

from timely.errors import GraphError
from timely.user_code.call_site import call_site

from ..errors import ExpressionError
from ..expressions.expression import col
from ..plan.nodes import AssertEmpty, Consolidate, Delay, Filter, Node, ReduceFunction, Select
from ..plan.nodes.guarded import ERRORS, GUARDED, Guarded, Provided
from .conditions.joins_on_conditions import ConditionJoins
from .handle import Handle, in_innermost_loop

__all__ = ["CheckingOperators"]


class CheckingOperators(ConditionJoins):
    """Delays, claims, errors as rows."""

    def delay(self, by: int | Callable[[int], int]) -> Self:
        """The same collection, later: changes of epoch e come at epoch e + `by`, or `by(e)`.

        Law: at epoch t it is this collection at the latest epoch e with by(e) ≤ t; before there is one, it is
        empty. So `by` must not go back (by(e) ≥ e) and must keep the order of epochs; a function that does
        not ends the dataflow. Inside loops only the epoch moves. Rust: `delay`.

        No state of its own; an operator that stores rows until they are complete stores them that much
        longer.
        """
        if isinstance(by, int):
            if by < 0:
                raise GraphError(f"delay({by}) ({call_site()}): changes cannot come earlier; write 0 or more")
            return self.with_node(Delay(self.node, by)) if by else self
        if not callable(by):
            raise ExpressionError(f"delay({by!r}) ({call_site()}) takes a number of epochs, or a function.")
        return self.with_node(Delay(self.node, 0, self.plan.function(by)))

    def assert_empty(self, what: str = "") -> Self:
        """The same collection; each of its rows (inside a loop: in any iteration) is a failure.

        While there is a row, the outputs behind the collection have no answer, but a NotEmptyError that names
        it. If no output reads the returned collection, this holds for all outputs. `what` is the text of the
        claim in the message. Rust: `assert_empty`. Stores rows until their epoch is complete.
        """
        claim = AssertEmpty(self.plan.add(Consolidate(self.node)), what or f"assert_empty ({call_site()})")
        return self.with_node(Provided(self.node, self.plan.effect(claim)))

    def assert_equal(self, other: Self, what: str = "") -> Self:
        """This collection; each row that it and `other` do not have equally often is a failure.

        While there is such a row, the outputs behind this collection have no answer, but a NotEmptyError that
        names it. If no output reads the returned collection, this holds for all outputs. Rust: `assert_eq`.
        Stores rows until their epoch is complete.
        """
        left, right = in_innermost_loop((self, other))
        difference = left.concat(right.conformed(left.schema, "assert_equal").negate())
        claim = difference.assert_empty(what or f"assert_equal ({call_site()})")
        return left.with_node(Provided(left.node, claim.node))

    def attempt(self, step: Callable[[Self], Self]) -> tuple[Self, Self]:
        """Two collections: the rows that `step` makes where it does not fail, and errors for the other rows.

            good, errors = lines.attempt(lambda c: c.map(parse, "n: int"))

        `step` is called once, with this collection, and returns the result of map, flat_map, map_batches,
        select, with_columns and filter, one after another; or of one `reduce(fn)` or `cogroup`. Without
        `attempt`, the outputs behind have no answer while a row fails.

        Columns of errors, all text: record (the argument, or key and group), stage (which operators), line
        (of the user's function, counted from its first), error, traceback. Addresses and positions in files
        are left out, so that the text is the same every time.

        Law: a row is in one of the two, at its time and with its multiplicity; a removal goes to the one that
        the row was in. Groups alike: while a group fails it has an error and no rows. Inside a loop both are
        inside; errors leave the loop as a part of what is iterated, or `inspect` observes them. Only two
        things are errors: what functions and expressions of `step` raise, and results that do not fit its
        columns.

        Costs what `step` costs, for each of the two that is read; a batch with bad rows is tried again in
        halves.
        """
        result = step(self)
        if not isinstance(result, Handle):
            raise GraphError(f"attempt ({call_site()}): its function must return a collection")
        node = result.node
        if isinstance(node, ReduceFunction) and not node.collects:
            return self._grouped_apart(result, node)
        steps: list[Node] = []
        while node.digest != self.node.digest:
            if not isinstance(node, GUARDED):
                raise GraphError(
                    f"attempt ({call_site()}) takes select, with_columns, filter, map, flat_map, map_batches "
                    f"and negate of this collection, or one reduce(fn); not {node.describe()}"
                )
            steps.append(node)
            node = node.source
        if not steps:
            raise GraphError(f"attempt ({call_site()}): its function does nothing")
        chain = tuple(each for each in reversed(steps) if isinstance(each, GUARDED))
        good = self.with_node(Guarded(self.node, chain, "good"))
        return good, self.with_node(Guarded(self.node, chain, "errors"))

    def _grouped_apart(self, result: Self, node: ReduceFunction) -> tuple[Self, Self]:
        """Split a function of groups, whose answers come with an error that is empty for good groups."""
        with_errors = result.with_node(
            ReduceFunction(node.source, node.keys, node.function, node.columns, collects=True)
        )
        errors = {name: f"error: {name}" for name in ERRORS.names}
        is_good = col(errors["stage"]) == ""
        columns = tuple((name, col(name)) for name in node.schema.names)
        good = result.with_node(Select(Filter(with_errors.node, is_good), columns))
        error_columns = tuple((name, col(column)) for name, column in errors.items())
        bad = result.with_node(Select(Filter(with_errors.node, ~is_good), error_columns))
        return good, bad
