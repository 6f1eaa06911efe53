"""From a text to a relation: what doors call."""

from __future__ import annotations

from collections.abc import Mapping

from ...columns.schema import Schema
from ..algebra.attributes import AttributeNames
from ..algebra.relations import Relation
from .queries import read_query
from .texts import SqlText

__all__ = ["read_text"]


def read_text(
    text: str, dialect: str, tables: Mapping[str, Schema], name: str = "<sql>"
) -> tuple[AttributeNames, Relation]:
    """Return one query over `tables` as a relation, and the names that it uses; raises SqlError."""
    source = SqlText(text, dialect, name)
    names = AttributeNames()
    return names, read_query(source, source.statement(), tables, names)
