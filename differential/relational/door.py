"""`dd.sql`: a query as a text, in the middle of one that is written in Python."""

from __future__ import annotations

from collections.abc import Mapping

from timely.building.dataflow import Dataflow
from timely.user_code.call_site import call_site

from ..collections.collection import Collection
from ..columns.schema import Schema
from ..errors import SqlError, shown
from ..expressions.expression import col
from ..linear.shapes import Clock
from .algebra.attributes import AttributeNames
from .algebra.relations import Relation
from .lowering.lowerer import RelationLowering

__all__ = ["sql"]


def sql(
    flow: Dataflow,
    text: str,
    dialect: str = "spark",
    *,
    clock: Clock | None = None,
    **collections: Collection,
) -> Collection:
    """The answer of a SQL query over collections, kept current: `dd.sql(flow, "select …", orders=orders)`.

    text          one SELECT, VALUES or WITH query. docs/sql.md has all that it may say
    dialect       "spark", "postgres" or "duckdb": how it is read, and what / or the place of nulls means
    clock         when it is now() at the end of each epoch, `dd.clock(start, minutes=1)`
    collections   the tables of the query, by name

    The result has the columns of the query. It is a multiset, as all collections: an ORDER BY has a meaning
    together with LIMIT only. Needs sqlglot: `pip install 'naiad[sql]'`.
    Raises SqlError, in one line with line and column, for a text that cannot be read or has no meaning.
    """
    for name, collection in collections.items():
        as_passed: object = collection
        if not isinstance(as_passed, Collection):
            raise SqlError(f"dd.sql ({call_site()}): {name}={shown(collection)} is no collection")
    as_clock: object = clock
    if as_clock is not None and not isinstance(as_clock, Clock):
        raise SqlError(
            f"dd.sql ({call_site()}): clock={shown(clock)} is no clock; write dd.clock(start, minutes=1)"
        )
    names, relation = _read(text, dialect, {name: each.schema for name, each in collections.items()})
    rows = RelationLowering(flow, collections, names, clock).rows(relation)
    return rows.select(**{each.label: col[each.name] for each in relation.attributes})


def _read(text: str, dialect: str, tables: Mapping[str, Schema]) -> tuple[AttributeNames, Relation]:
    """Read a text; sqlglot is imported only here."""
    try:
        from .reading.reading import read_text
    except ModuleNotFoundError as error:
        if error.name != "sqlglot":
            raise
        raise SqlError("dd.sql needs sqlglot, which is not installed: pip install 'naiad[sql]'") from None
    return read_text(text, dialect, tables)
