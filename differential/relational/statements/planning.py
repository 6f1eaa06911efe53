"""Statements become steps. A whole script is read against a copy of the catalogue before its first step is
carried out: so a wrong statement changes nothing, wherever it stands.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from sqlglot import exp

from ...columns.schema import Column, Schema
from ...errors import SqlError
from ...expressions.expression import col
from ..reading.texts import SqlText, children_of
from ..reading.written_rows import WrittenRows
from .altering import altered_table, read_columns
from .catalogue import Catalogue, CatalogueEntry, note_of
from .parameters import bind, written_out
from .queries import ReadQuery, read_ordered, read_relation
from .scripts import Piece, pieces_of
from .showing import shown_columns, shown_statement, shown_tables, shown_views
from .steps import (
    AddRows,
    AlterTable,
    CreateTable,
    CreateTableOf,
    CreateView,
    DeleteRows,
    DropEntries,
    Explain,
    InsertQuery,
    NothingToDo,
    RunQuery,
    ScriptStep,
    ShowTable,
    Subscribe,
    UpdateRows,
)
from .tables import (
    assigned,
    constant_rows,
    declaration_of,
    declared_columns,
    defaults_of,
    listed_columns,
    plain_rows,
)

__all__ = ["planned", "query_of_view"]


_READING_VERBS: Final = frozenset(
    ("SELECT", "WITH", "VALUES", "FROM", "(", "EXPLAIN", "SHOW", "DESC", "DESCRIBE")
)


def planned(
    text: str,
    dialect: str,
    name: str,
    catalogue: Catalogue,
    parameters: Mapping[str, object],
    *,
    reads_only: bool = False,
) -> list[ScriptStep]:
    """Return the steps of a script; raises SqlError, with `reads_only` also for a statement that does more
    than read. `catalogue` is changed as the script would change it.
    """
    pieces = pieces_of(text, dialect, name)
    if not pieces:
        raise SqlError(f"{name}:1:1: there is no statement")
    for piece in pieces if reads_only else ():  # before any advice on how to write it
        if piece.verb not in _READING_VERBS:
            raise _refused(piece)
    planner = _ScriptReader(catalogue, parameters)
    steps = []
    for place, piece in enumerate(pieces):
        try:
            steps.append(planner.step(piece, is_last=place == len(pieces) - 1))
        except RecursionError:
            raise piece.error("is nested too deeply") from None
    for step in steps if reads_only else ():
        if not isinstance(step, RunQuery | Explain | ShowTable):
            raise _refused(step.piece)
    if len(steps) > 1:
        for step in steps:
            query: object = getattr(step, "query", None)
            if isinstance(query, ReadQuery):
                query.tried()
    unused = [each for each in parameters if each not in planner.used]
    if unused:
        raise pieces[-1].error(f"the text has no parameter :{unused[0]}")
    return steps


def _refused(piece: Piece) -> SqlError:
    return piece.error(
        f"{piece.verb} is refused here, where only SELECT, EXPLAIN and SHOW are carried out: give it to "
        "cluster.sql(…) or to python -m timely.sql"
    )


def query_of_view(catalogue: Catalogue, view: CatalogueEntry) -> ReadQuery:
    """Return the query of a view that is there, over the catalogue as it is now."""
    text = SqlText(view.statement, view.dialect, f"<view {view.name}>")
    tree = text.statement()
    assert isinstance(tree, exp.Create), "the note of a view has its statement"
    return _ScriptReader(catalogue, {}).query_of_view(text, tree)


class _ScriptReader:
    def __init__(self, catalogue: Catalogue, parameters: Mapping[str, object]) -> None:
        self._catalogue, self._parameters = catalogue, parameters
        self.used: set[str] = set()

    def step(self, piece: Piece, *, is_last: bool) -> ScriptStep:
        """Return what a statement does, and change the catalogue as it would."""
        if piece.verb == "SHOW" or piece.verb in ("DESC", "DESCRIBE"):
            return self._show(piece)
        if piece.verb == "EXPLAIN":
            return self._explain(piece)
        if piece.verb == "SUBSCRIBE":
            behind = piece.behind(2 if piece.words[1:2] == ("TO",) else 1)
            return Subscribe(piece, self._query_or_name(behind))
        if piece.rows is not None:
            plain = self._plain_insert(piece, piece.rows)
            if plain is not None:
                return plain
        tree = self._tree(piece)
        if isinstance(tree, exp.Create):
            return self._create(piece, tree, is_last=is_last)
        if isinstance(tree, exp.Alter):
            return self._alter(piece, tree)
        if isinstance(tree, exp.Command) and piece.verb == "ALTER":
            raise piece.error("write ALTER TABLE name ADD COLUMN …, DROP COLUMN … or ALTER COLUMN …")
        if isinstance(tree, exp.Drop):
            return self._drop(piece, tree)
        if isinstance(tree, exp.Insert):
            return self._insert(piece, tree)
        if isinstance(tree, exp.Delete):
            return self._delete(piece, tree)
        if isinstance(tree, exp.Update):
            return self._update(piece, tree)
        return RunQuery(piece, read_ordered(piece.text, tree, self._catalogue))

    def _tree(self, piece: Piece) -> exp.Expression:
        return bind(piece.text, piece.text.statement(), self._parameters, self.used)

    # SHOW, EXPLAIN, SUBSCRIBE

    def _show(self, piece: Piece) -> ScriptStep:
        words = piece.words
        if words in (("SHOW", "TABLES"), ("SHOW", "VIEWS"), ("SHOW", "MATERIALIZED", "VIEWS")):
            return ShowTable(piece, (shown_tables if words[1] == "TABLES" else shown_views)(self._catalogue))
        if words[:2] == ("SHOW", "CREATE") and words[2:3] in (("TABLE",), ("VIEW",)) and len(words) > 3:
            return ShowTable(piece, shown_statement(self._there(piece, piece.name_at(3), 3)))
        if words[:2] == ("SHOW", "COLUMNS") and words[2:3] in (("FROM",), ("IN",)) and len(words) > 3:
            return ShowTable(piece, shown_columns(self._there(piece, piece.name_at(3), 3)))
        if piece.verb != "SHOW" and len(words) > 1:
            first = 2 if words[1] == "TABLE" and len(words) > 2 else 1
            return ShowTable(piece, shown_columns(self._there(piece, piece.name_at(first), first)))
        raise piece.error(
            "write SHOW TABLES, SHOW VIEWS, SHOW CREATE TABLE name, SHOW CREATE VIEW name or SHOW COLUMNS "
            "FROM name"
        )

    def _explain(self, piece: Piece) -> ScriptStep:
        analyze = piece.words[1:2] == ("ANALYZE",)
        behind = piece.behind(2 if analyze else 1)
        if behind.verb in ("SELECT", "WITH", "VALUES", "FROM", "("):
            return Explain(
                piece, read_ordered(behind.text, self._tree(behind), self._catalogue), None, analyze
            )
        entry = self._there(behind, behind.name_at(0), 0)
        if analyze and entry.kind != "view":
            raise behind.error(f"{entry.name} is no view: EXPLAIN ANALYZE takes a view or a query")
        return Explain(piece, None if analyze else self._query_or_name(behind), entry, analyze)

    def _query_or_name(self, piece: Piece) -> ReadQuery:
        if piece.verb in ("SELECT", "WITH", "VALUES", "FROM", "("):
            tree = self._tree(piece)
            while isinstance(tree, exp.Subquery) and set(_parts(tree)) == {"this"}:
                tree = tree.this
            return read_relation(piece.text, tree, self._catalogue)
        entry = self._there(piece, piece.name_at(0), 0)
        tree = exp.select("*").from_(exp.Table(this=exp.to_identifier(_readable(entry))))
        return read_relation(piece.text, tree, self._catalogue)

    def _there(self, piece: Piece, name: str, token: int) -> CatalogueEntry:
        """Return the entry of a name; raises SqlError if there is none."""
        matches = self._catalogue.named(name)
        if len(matches) == 1:
            return matches[0]
        there = ", ".join(sorted(map(_readable, self._catalogue.entries.values()))[:20]) or "none"
        why = "means several" if matches else "is not there"
        raise piece.error(f"{name[:80]} {why}; there are: {there}", token)

    # CREATE, DROP

    def _create(self, piece: Piece, tree: exp.Create, *, is_last: bool) -> ScriptStep:
        text = piece.text
        text.parts_of(tree, "this", "kind", "expression", "exists", "replace", "properties")
        kind, target = str(tree.args.get("kind")).upper(), tree.this
        for each in children_of(tree.args.get("properties") or exp.Properties(), "expressions"):
            if not isinstance(each, exp.MaterializedProperty) or kind != "VIEW":
                raise text.error(each, f"{text.written(each)} of CREATE {kind} is not supported")
        if kind not in ("TABLE", "VIEW"):
            needless = ". Views keep the indexes that they need" if kind == "INDEX" else ""
            raise piece.error(
                f"CREATE {kind} is not supported: there are CREATE TABLE and CREATE VIEW{needless}"
            )
        name = self._new_name(text, target)
        there = [each for each in self._catalogue.named(name) if each.key == name.lower()]
        foreign = [each for each in self._catalogue.named(name) if each.key != name.lower()]
        if there and tree.args.get("exists"):
            return NothingToDo(piece, f"{there[0].title} is there already")
        if foreign:
            raise text.error(target, f"{name} is the name of {foreign[0].title}: choose another one")
        if there and not (tree.args.get("replace") and kind == "VIEW" and there[0].kind == "view"):
            raise text.error(target, f"{there[0].title} exists already")
        if kind == "TABLE":
            if tree.args.get("replace"):
                raise text.error(target, "a table cannot be replaced: DROP TABLE it, and CREATE it again")
            if tree.args.get("expression") is not None:
                return self._table_of_query(piece, tree, name)
            return self._table(piece, tree, name, target)
        return self._view(piece, tree, name, there[0] if there else None, is_last=is_last)

    def _new_name(self, text: SqlText, target: exp.Expression) -> str:
        table = target.this if isinstance(target, exp.Schema) else target
        text.parts_of(table, "this")
        if not isinstance(table.this, exp.Identifier) or not table.name or len(table.name) > 200:
            raise text.error(table, "a table or view has a name of up to 200 characters")
        return table.name

    def _table(self, piece: Piece, tree: exp.Create, name: str, target: exp.Expression) -> ScriptStep:
        if not isinstance(target, exp.Schema):
            raise piece.text.error(target, f"{name} needs columns: CREATE TABLE {name} (column type, …)")
        schema, keys = declared_columns(piece.text, target)
        written = written_out(piece.text, tree, self._parameters)
        note = note_of("table", piece.text.dialect, written)
        self._catalogue.entries[name.lower()] = CatalogueEntry(
            name.lower(), name, "table", schema, keys=keys, note=note
        )
        return CreateTable(piece, name, schema, keys, note)

    def _table_of_query(self, piece: Piece, tree: exp.Create, name: str) -> ScriptStep:
        """Return CREATE TABLE name AS query: its note declares the columns, and not the query."""
        query = self.query_of_view(piece.text, tree)
        schema = query.tried()
        for column in schema:
            if column.type.is_nested:
                raise piece.text.error(
                    tree.this, f"the column {column.name} is {column.type}: declare it, and INSERT the query"
                )
        written = declaration_of(name, schema, piece.text.dialect)
        note = note_of("table", piece.text.dialect, written)
        entry = CatalogueEntry(name.lower(), name, "table", schema, note=note)
        self._catalogue.entries[entry.key] = entry
        table = CreateTable(piece, name, schema, (), note)
        return CreateTableOf(piece, table, InsertQuery(piece, entry, query))

    def _view(
        self, piece: Piece, tree: exp.Create, name: str, before: CatalogueEntry | None, *, is_last: bool
    ) -> ScriptStep:
        text = piece.text
        query = self.query_of_view(text, tree)
        note = note_of("view", text.dialect, written_out(text, tree, self._parameters))
        if before is not None:
            self._check_no_cycle(text, tree.this, before, query)
        over = [] if before is None else self._views_over(text, tree.this, before, "replaced")
        types = [each.type for each in query.relation.attributes]
        labels = [label for label, _ in query.columns]
        schema = Schema(tuple(map(Column, labels, types)))
        if not is_last or before is not None:  # what follows reads its types
            schema = query.tried()
        self._enter(name, schema, note, query)
        return CreateView(piece, name, query, note, before, tuple(map(self._read_again, over)))

    def query_of_view(self, text: SqlText, tree: exp.Create) -> ReadQuery:
        """Return the query of CREATE VIEW, with the names of its columns."""
        body, target = tree.args.get("expression"), tree.this
        name = target.this.name if isinstance(target, exp.Schema) else target.name
        if not isinstance(body, exp.Expression):
            raise text.error(target, f"{name} needs a query: CREATE VIEW {name} AS SELECT …")
        query = read_relation(text, body, self._catalogue, by_place=isinstance(target, exp.Schema))
        if not isinstance(target, exp.Schema):
            return query
        labels = [_label_of(text, each) for each in children_of(target, "expressions")]
        if len(labels) != len(query.columns) or len({each.lower() for each in labels}) != len(labels):
            raise text.error(target, f"{name} has {len(query.columns)} columns: give each a name of its own")
        columns = tuple((label, expr) for label, (_, expr) in zip(labels, query.columns, strict=True))
        return replace(query, columns=columns)

    def _enter(self, name: str, schema: Schema, note: str, query: ReadQuery) -> None:
        reads = frozenset(each.key for each in query.reads.values())
        entry = CatalogueEntry(name.lower(), name, "view", schema, note=note, reads=reads)
        self._catalogue.entries[entry.key] = entry

    def _check_no_cycle(
        self, text: SqlText, node: exp.Expression, before: CatalogueEntry, query: ReadQuery
    ) -> None:
        over = {each.key: each.name for each in self._catalogue.views_over(before.key)}
        for each in query.reads.values():
            if each.key == before.key or each.key in over:
                why = f"{each.name}, which reads it" if each.key in over else "itself"
                raise text.error(node, f"a cycle of views: {before.name} would read {why}")

    def _views_over(
        self, text: SqlText, node: exp.Expression, before: CatalogueEntry, verb: str
    ) -> list[CatalogueEntry]:
        """Return the views that read a view or table, each behind those that it reads. They are made again
        when it is replaced or altered; other readers would end with it, so raise SqlError for them.
        """
        over = self._catalogue.views_over(before.key)
        keys = {before.key, *(each.key for each in over)}
        for other in self._catalogue.others:
            if not keys.isdisjoint(other.reads):
                raise text.error(
                    node, f"{before.title} cannot be {verb}: {other.title} reads it, or a view over it"
                )
        ordered: list[CatalogueEntry] = []
        while over:
            waiting = {each.key for each in over}
            ordered += [each for each in over if waiting.isdisjoint(each.reads)]
            over = [each for each in over if not waiting.isdisjoint(each.reads)]
        return ordered

    def _read_again(self, view: CatalogueEntry) -> tuple[CatalogueEntry, ReadQuery]:
        """Return a view with its query over the catalogue as it is now."""
        text = SqlText(view.statement, view.dialect, f"<view {view.name}>")
        tree = text.statement()
        assert isinstance(tree, exp.Create), "the note of a view has its statement"
        query = self.query_of_view(text, tree)
        self._enter(view.name, query.tried(), view.note, query)
        return view, query

    def _alter(self, piece: Piece, tree: exp.Alter) -> ScriptStep:
        text = piece.text
        text.parts_of(tree, "this", "kind", "actions", "exists")
        kind = str(tree.args.get("kind")).upper()
        if kind != "TABLE":
            instead = ": write CREATE OR REPLACE VIEW" if kind == "VIEW" else ""
            raise piece.error(f"ALTER {kind} is not supported{instead}")
        if tree.args.get("exists") and not self._catalogue.named(tree.this.name):
            return NothingToDo(piece, f"there is no table {tree.this.name}")
        table = self._target(text, tree.this)
        altered = altered_table(text, tree, table)
        over = self._views_over(text, tree.this, table, "altered")
        for view in over if altered.dropped else ():
            used = read_columns(query_of_view(self._catalogue, view), table)
            for name in altered.dropped:
                if name in used:
                    raise text.error(tree, f"the column {name} is read by {view.title}: drop that view first")
        entry = replace(table, schema=altered.schema, note=altered.note)
        self._catalogue.entries[table.key] = entry
        again = CreateTable(piece, table.name, altered.schema, table.keys, altered.note)
        return AlterTable(piece, table, again, tuple(map(self._read_again, over)))

    def _drop(self, piece: Piece, tree: exp.Drop) -> ScriptStep:
        text = piece.text
        text.parts_of(tree, "exists", "tables", "kind", "materialized", "cascade", "restrict")
        kind = str(tree.args.get("kind")).upper()
        if kind not in ("TABLE", "VIEW"):
            raise piece.error(f"DROP {kind} is not supported: there are DROP TABLE and DROP VIEW")
        entries: list[CatalogueEntry] = []
        for node in children_of(tree, "tables"):
            text.parts_of(node, "this")
            matches = self._catalogue.named(node.name)
            if not matches and tree.args.get("exists"):
                continue
            if len(matches) != 1 or matches[0].kind != kind.lower():
                what = f"{node.name} is not there" if not matches else f"{node.name} is {matches[0].title}"
                there = [each.name for each in self._catalogue.entries.values() if each.kind == kind.lower()]
                raise text.error(
                    node, f"{what}; there are the {kind.lower()}s {', '.join(there) or '(none)'}"
                )
            entries.append(matches[0])
        if not entries:
            return NothingToDo(piece, "nothing of that name is there")
        cascade = bool(tree.args.get("cascade"))
        going = {each.key for each in entries}
        for entry in entries:
            over = {each.key for each in self._catalogue.views_over(entry.key)}
            readers = [each for each in self._catalogue.readers(entry.key) if each.lower() not in going]
            if readers and not cascade:
                raise text.error(
                    tree,
                    f"{entry.title} is read by {', '.join(readers)}: drop that first, or add CASCADE",
                )
            for key in (entry.key, *over):
                self._catalogue.entries.pop(key, None)
        return DropEntries(piece, tuple(entries), f"DROP {kind}", cascade)

    # INSERT, DELETE, UPDATE

    def _target(self, text: SqlText, node: exp.Expression) -> CatalogueEntry:
        table = node.this if isinstance(node, exp.Schema) else node
        if not isinstance(table, exp.Table):
            raise text.error(node, "write the name of a table")
        text.parts_of(table, "this", "alias")
        matches = self._catalogue.named(table.name)
        if not matches:
            there = [each.name for each in self._catalogue.entries.values() if each.kind == "table"]
            raise text.error(
                table, f"there is no table {table.name}; there are: {', '.join(there) or 'none'}"
            )
        if matches[0].kind != "table":
            raise text.error(table, f"{matches[0].title} takes no rows: it is no table")
        return matches[0]

    def _plain_insert(self, piece: Piece, rows: WrittenRows) -> AddRows | None:
        """Return an INSERT of plain constants; None if its tree has to be read, or says what is wrong."""
        matches = self._catalogue.named(rows.table)
        if len(matches) != 1 or matches[0].kind != "table":
            return None
        table = matches[0]
        values = plain_rows(piece.text, rows, table.schema, defaults_of(table.statement, table.dialect))
        return None if values is None else AddRows(piece, table, values)

    def _insert(self, piece: Piece, tree: exp.Insert) -> ScriptStep:
        text = piece.text
        text.parts_of(tree, "this", "expression")
        table = self._target(text, tree.this)
        body = tree.args.get("expression")
        if not isinstance(body, exp.Expression):
            raise text.error(tree.this, f"write INSERT INTO {table.name} VALUES (…), or a query")
        defaults = defaults_of(table.statement, table.dialect)
        title = f"INSERT INTO {table.name}"
        listed = listed_columns(text, tree.this, table.schema, defaults, title)
        if isinstance(body, exp.Values):
            return AddRows(piece, table, constant_rows(text, body, listed, table.schema, defaults, title))
        query = read_relation(text, body, self._catalogue, by_place=True)
        columns = [table.schema[each] for each in listed]
        relation = assigned(text, body, query.relation, query.names, columns, title)
        named = tuple((name, col[each]) for name, each in zip(listed, relation.names, strict=True))
        return InsertQuery(piece, table, replace(query, relation=relation, columns=named), defaults)

    def _selected(
        self, text: SqlText, target: exp.Expression, tree: exp.Expression, more: Sequence[exp.Expression] = ()
    ) -> ReadQuery:
        """Return the rows of a table for which WHERE holds, and behind them more columns."""
        star = exp.Column(this=exp.Star(), table=exp.to_identifier(target.alias_or_name))
        select = exp.Select(expressions=[star, *more], from_=exp.From(this=target.copy()))
        if tree.args.get("where") is not None:
            select.set("where", tree.args["where"].copy())
        return read_relation(text, select, self._catalogue)

    def _delete(self, piece: Piece, tree: exp.Delete) -> ScriptStep:
        piece.text.parts_of(tree, "this", "where")
        table = self._target(piece.text, tree.this)
        return DeleteRows(piece, table, self._selected(piece.text, tree.this, tree))

    def _update(self, piece: Piece, tree: exp.Update) -> ScriptStep:
        text = piece.text
        text.parts_of(tree, "this", "expressions", "where")
        table = self._target(text, tree.this)
        columns: list[str] = []
        values: list[exp.Expression] = []
        for each in children_of(tree, "expressions"):
            match = []
            if isinstance(each, exp.EQ) and isinstance(each.this, exp.Column):
                match = [name for name in table.schema.names if name.lower() == each.this.name.lower()]
            if not match:
                raise text.error(
                    each, f"{text.written(each)} sets no column; there are {', '.join(table.schema.names)}"
                )
            if match[0] in table.keys:
                raise text.error(
                    each, f"{match[0]} is of the PRIMARY KEY: DELETE the row, and INSERT another"
                )
            if match[0] in columns:
                raise text.error(each, f"{match[0]} is set twice")
            columns += match
            label = exp.to_identifier(f"(new {match[0]})", quoted=True)
            values.append(exp.Alias(this=each.args["expression"].copy(), alias=label))
        if not columns:
            raise text.error(tree.this, f"write UPDATE {table.name} SET column = value")
        query = self._selected(text, tree.this, tree, values)
        target = [table.schema[each] for each in columns]
        title, first = f"UPDATE {table.name}", len(table.schema.names)
        relation = assigned(text, tree, query.relation, query.names, target, title, first)
        labels = [*table.schema.names, *(f"(new {each})" for each in columns)]
        named = tuple((label, col[name]) for label, name in zip(labels, relation.names, strict=True))
        return UpdateRows(piece, table, replace(query, relation=relation, columns=named), tuple(columns))


def _parts(node: exp.Expression) -> list[str]:
    return [name for name, part in node.args.items() if part not in (None, False, [])]


def _readable(entry: CatalogueEntry) -> str:
    """Return the name under which queries read an entry."""
    return entry.key if entry.kind == "export" else entry.name


def _label_of(text: SqlText, node: exp.Expression) -> str:
    """Return the name that CREATE VIEW, or CREATE TABLE AS, gives a column of its query."""
    comments = [
        isinstance(each.args.get("kind"), exp.CommentColumnConstraint)
        for each in children_of(node, "constraints")
    ]
    is_name = isinstance(node, exp.Identifier | exp.ColumnDef) and node.args.get("kind") is None
    if not is_name or not all(comments):
        raise text.error(
            node,
            f"{text.written(node)}: the query says the types: give the column a name only, and CAST there",
        )
    return node.name
