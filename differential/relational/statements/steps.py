"""What statements do, once they have been read: plain data for the session, which carries them out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from ...columns.schema import Schema
from .catalogue import CatalogueEntry
from .queries import ReadQuery
from .scripts import Piece

__all__ = [
    "AddRows",
    "AlterTable",
    "CreateTable",
    "CreateTableOf",
    "CreateView",
    "DeleteRows",
    "DropEntries",
    "Explain",
    "InsertQuery",
    "NothingToDo",
    "RunQuery",
    "ScriptStep",
    "ShowTable",
    "Subscribe",
    "UpdateRows",
]


@dataclass(frozen=True)
class ScriptStep:
    """One statement, and where it stands."""

    piece: Piece


@dataclass(frozen=True)
class NothingToDo(ScriptStep):
    """IF EXISTS, IF NOT EXISTS: it is so already; `status` says what."""

    status: str


@dataclass(frozen=True)
class CreateTable(ScriptStep):
    """A new table; with `keys` it keeps the last row of each key."""

    name: str
    schema: Schema
    keys: tuple[str, ...]
    note: str


@dataclass(frozen=True)
class AlterTable(ScriptStep):
    """A table with other columns; then the views `over` it, in order, which are made again."""

    before: CatalogueEntry
    table: CreateTable
    over: tuple[tuple[CatalogueEntry, ReadQuery], ...]


@dataclass(frozen=True)
class CreateView(ScriptStep):
    """A new view, in place of `replaces` if there is one; then the views `over` it, in order."""

    name: str
    query: ReadQuery
    note: str
    replaces: CatalogueEntry | None = None
    over: tuple[tuple[CatalogueEntry, ReadQuery], ...] = ()


@dataclass(frozen=True)
class DropEntries(ScriptStep):
    """Tables or views that go; with `cascade` all that reads them, too."""

    entries: tuple[CatalogueEntry, ...]
    status: str
    cascade: bool = False


@dataclass(frozen=True)
class AddRows(ScriptStep):
    """Rows that a statement writes out."""

    table: CatalogueEntry
    rows: pa.Table


@dataclass(frozen=True)
class InsertQuery(ScriptStep):
    """The answer of a query as rows of a table, with the columns of the table, or some of them; `defaults`
    has values of others.
    """

    table: CatalogueEntry
    query: ReadQuery
    defaults: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class CreateTableOf(ScriptStep):
    """A new table, and the answer of a query as its rows."""

    table: CreateTable
    rows: InsertQuery


@dataclass(frozen=True)
class DeleteRows(ScriptStep):
    """The rows that a query finds go."""

    table: CatalogueEntry
    query: ReadQuery


@dataclass(frozen=True)
class UpdateRows(ScriptStep):
    """The query has the rows that change, and behind them the new values of `columns`."""

    table: CatalogueEntry
    query: ReadQuery
    columns: tuple[str, ...]


@dataclass(frozen=True)
class RunQuery(ScriptStep):
    """SELECT: the answer as it is now."""

    query: ReadQuery


@dataclass(frozen=True)
class Subscribe(ScriptStep):
    """The answer as it is, and then each change of it."""

    query: ReadQuery


@dataclass(frozen=True)
class Explain(ScriptStep):
    """How a query is computed; with `analyze` what each stage has done, and keeps."""

    query: ReadQuery | None
    view: CatalogueEntry | None
    analyze: bool


@dataclass(frozen=True)
class ShowTable(ScriptStep):
    """A table that is there already: of names, of columns, or of a statement."""

    shown: pa.Table
