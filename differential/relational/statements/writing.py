"""INSERT, DELETE and UPDATE: rows for the inputs of tables, and the epoch in which they count."""

from __future__ import annotations

import re
from typing import Final

import pyarrow as pa

from timely.client.session import Flow
from timely.client.statements.results import SqlResult
from timely.counted import counted
from timely.errors import MisuseError

from ...columns.client_tables import client_table
from ...errors import SqlError
from ...linear.failures.failing import sites_in
from ...operators.table_io import DIFF
from ..algebra.relations import ProjectionOf
from .catalogue import CatalogueEntry
from .queries import ReadQuery
from .reads import StatementReads
from .steps import AddRows, DeleteRows, InsertQuery, ScriptStep, UpdateRows

__all__ = ["Writing"]

_FAILURE: Final = re.compile(r"output 'answer' has no answer at epoch [\d ,]+(?:since epoch \d+)?: (.*)")
_PLACE: Final = re.compile(r" \(([^()]*:\d+:\d+)\)")
"""Where an expression is written, in the error of a row that it fails on."""


class Writing:
    """Rows that statements of one script have added, until `commit`. `epoch`: in which the last ones count;
    -1: there were none.
    """

    def __init__(self, reads: StatementReads) -> None:
        self._reads = reads
        self._written: dict[int, Flow] = {}
        self.epoch = -1

    def commit(self) -> None:
        """Seal the open epoch of all tables, if rows were added."""
        if self._written:
            written, self._written = self._written, {}
            through = max(flow.seal() for flow in written.values())
            self.epoch = self._reads.together((), through)

    def add(self, step: AddRows) -> SqlResult:
        """Add rows to a table."""
        self._add(step.table, step.rows)
        return SqlResult(f"INSERT {step.rows.num_rows:,}")

    def insert(self, step: InsertQuery) -> SqlResult:
        """Add the answer of a query to a table."""
        return self.insert_rows(step, self.answer(step, step.query, f"INSERT INTO {step.table.name}"))

    def insert_rows(self, step: InsertQuery, answer: pa.Table) -> SqlResult:
        """Add an answer to a table; columns that it has not get their defaults, or null."""
        rows = {
            name: answer.column(name)
            if name in answer.column_names
            else pa.array([step.defaults.get(name)] * answer.num_rows)
            for name in step.table.schema.names
        }
        self._add(step.table, self._conformed(step, f"INSERT INTO {step.table.name}", rows))
        return SqlResult(f"INSERT {answer.num_rows:,}")

    def delete(self, step: DeleteRows) -> SqlResult:
        """Remove the rows that a query finds now."""
        answer = self.answer(step, step.query, f"DELETE FROM {step.table.name}")
        if answer.num_rows:
            flow = self._open(step.table)
            into = flow.input(step.table.name)
            if step.table.keys:
                into.delete(answer.select(list(step.table.keys)))
            else:
                into.remove(answer)
        return SqlResult(f"DELETE {answer.num_rows:,}")

    def update(self, step: UpdateRows) -> SqlResult:
        """Give the rows that a query finds now other values."""
        title = f"UPDATE {step.table.name}"
        answer = self.answer(step, step.query, title)
        if not answer.num_rows:
            return SqlResult("UPDATE 0")
        names = step.table.schema.names
        after = self._conformed(
            step,
            title,
            {name: answer.column(f"(new {name})" if name in step.columns else name) for name in names},
        )
        flow = self._open(step.table)
        into = flow.input(step.table.name)
        if step.table.keys:
            into.upsert(after)
        else:  # in one call, so that no other client's seal comes between
            before = self._conformed(step, title, {name: answer.column(name) for name in names})
            both = [
                rows.append_column(DIFF, pa.array([diff] * rows.num_rows, pa.int64()))
                for rows, diff in ((before, -1), (after, 1))
            ]
            into.append(pa.concat_tables(both))
        return SqlResult(f"UPDATE {answer.num_rows:,}")

    def _open(self, table: CatalogueEntry) -> Flow:
        flow = self._reads.flow_of(table)
        self._written[flow.index] = flow
        return flow

    def _add(self, table: CatalogueEntry, rows: pa.Table) -> None:
        if rows.num_rows:
            into = self._open(table).input(table.name)
            if table.keys:
                into.upsert(rows)
            else:
                into.insert(rows)

    def _conformed(
        self, step: InsertQuery | UpdateRows, title: str, columns: dict[str, pa.ChunkedArray]
    ) -> pa.Table:
        """Return columns as rows of the table; raise SqlError for what is none, such as nulls in NOT NULL."""
        schema = step.table.schema
        for name, column in columns.items():
            if column.null_count and not schema[name].type.nullable:
                raise step.piece.error(
                    f"{title}: the column {name} is NOT NULL, and the query has null in "
                    f"{counted(column.null_count, 'row')}"
                )
        try:
            return client_table(pa.table(columns), schema.to_arrow(), step.table.name)
        except MisuseError as error:
            raise step.piece.error(f"{title}: {str(error).partition(chr(10))[0]}") from None

    def answer(self, step: ScriptStep, query: ReadQuery, title: str) -> pa.Table:
        """Return the answer of the query of a statement. If a row fails, raise SqlError, which names the
        statement, the column if it is that which fails, and the line of what fails.
        """
        try:
            return self._reads.answer(query)[0]
        except MisuseError as error:
            line = str(error).partition("\n")[0]
            failure = _FAILURE.match(line)
            if failure is None:
                raise
            message, failed = failure[1], _column_at(query, failure[1])
            if failed:
                title = f"{title}: the column {failed}"
            place = _PLACE.search(message)
            if place is None or place[1].startswith("in "):  # of a view beneath
                raise step.piece.error(f"{title}: {message}") from None
            raise SqlError(f"{place[1]}: {title}: {message.replace(place[0], '')}") from None


def _column_at(query: ReadQuery, message: str) -> str:
    """Return the column of the answer that comes of an expression which a message names with its place; "" if
    none does.
    """
    relation = query.relation
    reads = [(label, expr.columns()) for label, expr in query.columns]
    while isinstance(relation, ProjectionOf):
        for attribute, expr in relation.outputs:
            label = next((each for each, names in reads if attribute.name in names), "")
            if label and any(f"({site})" in message for site in sites_in([expr]).values()):
                return label[5:-1] if label.startswith("(new ") else label
        computed = {attribute.name: expr.columns() for attribute, expr in relation.outputs}
        reads = [
            (label, frozenset[str]().union(*(computed.get(name, ()) for name in names)))
            for label, names in reads
        ]
        relation = relation.input
    return ""
