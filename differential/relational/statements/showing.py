"""SHOW and DESCRIBE: what the catalogue has, as tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from .catalogue import Catalogue, CatalogueEntry

__all__ = ["shown_columns", "shown_statement", "shown_tables", "shown_views", "text_table"]


def shown_tables(catalogue: Catalogue) -> pa.Table:
    """Return the tables, and what dataflows in Python export."""
    rows = [
        {
            "name": each.name if each.kind == "table" else each.key,
            "kind": each.kind,
            "key": ", ".join(each.keys),
            "read_by": ", ".join(catalogue.readers(each.key)),
        }
        for each in sorted(catalogue.entries.values(), key=_by_kind)
        if each.kind != "view"
    ]
    return text_table(("name", "kind", "key", "read_by"), rows)


def shown_views(catalogue: Catalogue) -> pa.Table:
    """Return the views."""
    rows = [
        {
            "name": each.name,
            "reads": ", ".join(sorted(each.reads)),
            "read_by": ", ".join(catalogue.readers(each.key)),
        }
        for each in sorted(catalogue.entries.values(), key=_by_kind)
        if each.kind == "view"
    ]
    return text_table(("name", "reads", "read_by"), rows)


def shown_columns(entry: CatalogueEntry) -> pa.Table:
    """Return the columns of a table, a view or an export."""
    rows = [
        {
            "column": column.name,
            "type": str(column.type.not_null()),
            "null": "" if column.type.nullable else "NOT NULL",
            "key": "PRIMARY KEY" if column.name in entry.keys else "",
        }
        for column in entry.schema
    ]
    return text_table(("column", "type", "null", "key"), rows)


def shown_statement(entry: CatalogueEntry) -> pa.Table:
    """Return the statement that made a table or view."""
    return text_table(("statement",), [{"statement": entry.statement}])


def text_table(columns: Sequence[str], rows: Sequence[Mapping[str, str]]) -> pa.Table:
    """Return rows of texts as a table."""
    return pa.table({name: pa.array([row[name] for row in rows], pa.string()) for name in columns})


def _by_kind(entry: CatalogueEntry) -> tuple[bool, str]:
    return entry.kind == "export", entry.key
