"""A join of many collections at once, which stores nothing but the collections."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, cast

from timely.user_code.call_site import call_site

from ...errors import SchemaError
from ...expressions.expression import ColumnRef, Expr, col
from ...plan.nodes import JoinAll
from ..collection import Collection
from ..handle import in_innermost_loop

__all__ = ["Candidates", "join_all"]

Candidates = Literal["in order", "fewest"]
_CANDIDATES: Final[tuple[Candidates, ...]] = ("in order", "fewest")

_PARTS_MAX: Final = 32
"""Limit of collections: the ways and their steps are some thousand stages."""


def join_all(
    collections: Sequence[Collection],
    on: str | Expr | Sequence[str | Expr],
    *,
    candidates: Candidates = "in order",
) -> Collection:
    """Combinations of rows of `collections` that agree in the columns `on`; multiplicities multiply.

    on           the columns that two or more of them have; columns that must be equal have one name. Other
                 columns must differ in name. The columns of `on` connect all collections
    candidates   "in order": a change looks up the others one after another. "fewest": where several could
                 propose the next columns, the one with the fewest rows for this very row does, and the others
                 say whether they have them (worst-case-optimal, attribute by attribute)

        edges = dd.input(flow, "edges", "src: int, dst: int")
        ab, bc, ac = (edges.select(**{x: col.src, y: col.dst}) for x, y in ("ab", "bc", "ac"))
        triangles = dd.join_all([ab, bc, ac], on=["a", "b", "c"])

    Columns: in the order in which they first occur; those of `on` are never null, as null equals nothing. The
    same as one join after another, in any order. PySpark: `a.join(b, …).join(c, …)`. SQL: a join of many by
    USING. Rust: delta queries (`dogsdogsdogs::half_join`), and for "fewest" `extend` of its prefixes
    (propose, count, intersect).

    Law, at every time: {(r₁, …, rₙ) that agree in `on`} with |r₁|·…·|rₙ|.

    Cost: it stores each collection by the columns by which it is looked up, once for all that look it up so
    under whatever names, and no intermediate result. A change costs the rows that it meets on its way through
    the others, each of them n - 1 times the cost of a look-up; a chain of joins costs less for each change
    where it is short, and stores every intermediate result.

    Raises SchemaError for columns that do not fit. More: docs/patterns.md.
    """
    parts = list(collections)
    if not 2 <= len(parts) <= _PARTS_MAX:
        raise SchemaError(
            f"join_all ({call_site()}) joins a list of 2 to {_PARTS_MAX} collections, not {len(parts)}"
        )
    if candidates not in _CANDIDATES:
        raise SchemaError(
            f"join_all: there is no candidates={candidates!r} ({call_site()}). Write 'in order' or 'fewest'"
        )
    shared = _names(on)
    together = in_innermost_loop(tuple(parts))
    fitted = [_with_nulls(part, together, shared) for part in together]
    node = JoinAll(tuple(part.node for part in fitted), shared, candidates == "fewest")
    return fitted[0].with_node(node)


def _names(on: str | Expr | Sequence[str | Expr]) -> tuple[str, ...]:
    listed = [on] if isinstance(on, str | Expr) else list(on)
    names: list[str] = []
    for each in listed:
        if isinstance(cast("object", each), tuple):
            raise SchemaError(
                f"join_all: on={each!r} ({call_site()}) is a pair. What is to be equal has one name in all "
                "collections: rename columns before, edges.select(b=col.src, c=col.dst)"
            )
        name = each.name if isinstance(each, ColumnRef) else each
        if not isinstance(name, str):
            raise SchemaError(
                f"join_all: on takes names of columns, not {each!r} ({call_site()}). Conditions are filters "
                "of the result: join_all(…).filter(…)"
            )
        names.append(name)
    if not names:
        raise SchemaError(f"join_all ({call_site()}) needs on=: the columns that the collections share")
    if len(set(names)) != len(names):
        raise SchemaError(f"join_all: on= names a column twice in {', '.join(names)}")
    return tuple(names)


def _with_nulls(part: Collection, parts: Sequence[Collection], shared: Sequence[str]) -> Collection:
    """Return `part`; its shared columns may be null if they may be so in some other part."""
    wider = {
        name: cast("Expr", col(name)).cast(part.schema[name].type.or_null())
        for name in shared
        if name in part.schema
        and not part.schema[name].type.nullable
        and any(name in other.schema and other.schema[name].type.nullable for other in parts)
    }
    return part.with_columns(**wider) if wider else part
