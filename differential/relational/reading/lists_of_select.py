"""A list that SELECT takes apart: `SELECT id, UNNEST(tags) AS tag FROM t`, and Spark's `explode(tags)`.

It is read as a list behind FROM and WHERE: `FROM (… WHERE …) LATERAL VIEW explode(tags) …`, so that it is
made of the rows that WHERE leaves alone. That is the same where SELECT has no groups, aggregates and windows,
which count the rows before the list is taken apart; such texts are refused.
So are two lists: Postgres and DuckDB put their elements side by side, and Spark refuses them.
"""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from .expressions.calls import aggregate_kind
from .expressions.scopes import ELEMENT
from .texts import SqlText, children_of

__all__ = ["list_apart"]

_TABLE: Final = "(list of SELECT)"
"""A name that no text has, as `ELEMENT`."""

_LABELS: Final = {"spark": "col", "postgres": "unnest"}


def list_apart(text: SqlText, node: exp.Select) -> tuple[exp.Select, exp.Lateral | None]:
    """Return a SELECT with a column in place of its list, and the list as it would stand in FROM; the same
    SELECT and None if it has no list.
    """
    items = children_of(node, "expressions")
    places = [place for place, each in enumerate(items) if isinstance(_body(each), exp.Explode)]
    if not places:
        return node, None
    call = _body(items[places[0]])
    written = text.written(call)
    if isinstance(call, exp.Posexplode):
        raise text.error(
            call, f"{written} makes two columns: write FROM t LATERAL VIEW POSEXPLODE(t.x) u AS p, y"
        )
    if len(places) > 1:
        other = _body(items[places[1]])
        raise text.error(other, f"{text.written(other)}: one list stands in SELECT; write others in FROM")
    distinct = node.args.get("distinct")
    if (
        any(node.args.get(part) for part in ("group", "having", "qualify", "windows"))
        or (distinct is not None and distinct.args.get("on") is not None)
        or any(_counts_rows(each) for each in (*items, *children_of(node, "order")))
    ):
        raise text.error(
            call,
            f"{written} stands beside groups, aggregates or windows: write it in FROM, or them in a query "
            "around it",
        )
    text.parts_of(call, "this")
    return _moved(text, node, places[0])


def _moved(text: SqlText, node: exp.Select, place: int) -> tuple[exp.Select, exp.Lateral]:
    moved = node.copy()
    item = children_of(moved, "expressions")[place]
    call = _body(item)
    column = exp.Column(this=exp.to_identifier(ELEMENT, quoted=True), table=exp.to_identifier(_TABLE))
    column.meta.update(_first(call).meta)
    if isinstance(item, exp.Alias):
        call.replace(column)
    else:
        label = _LABELS.get(text.dialect) or text.label(call)
        item.replace(exp.alias_(column, label, quoted=True))
    names = exp.TableAlias(this=exp.to_identifier(_TABLE), columns=[exp.to_identifier(ELEMENT, quoted=True)])
    return moved, exp.Lateral(this=call, view=True, outer=False, alias=names)


def _body(item: exp.Expression) -> exp.Expression:
    return item.this if isinstance(item, exp.Alias) else item


def _first(node: exp.Expression) -> exp.Expr:
    """Return the first node that knows its place in the text."""
    return next((each for each in node.walk() if each.meta.get("start") is not None), node)


def _counts_rows(node: exp.Expression) -> bool:
    """Return True for an aggregate or a window of the SELECT itself, not of a subquery in it."""
    if isinstance(node, exp.Query | exp.Subquery):
        return False
    if isinstance(node, exp.Window) or aggregate_kind(node) is not None:
        return True
    return any(_counts_rows(each) for each in node.iter_expressions())
