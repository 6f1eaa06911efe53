"""INSERT, DELETE and UPDATE: rows for the inputs of tables, and the epoch in which they count."""

from __future__ import annotations

import pyarrow as pa

from timely.client.session import Flow
from timely.client.statements.results import SqlResult
from timely.errors import MisuseError

from ...columns.client_tables import client_table
from ...operators.table_io import DIFF
from .catalogue import CatalogueEntry
from .reads import StatementReads
from .steps import AddRows, DeleteRows, InsertQuery, ScriptStep, UpdateRows

__all__ = ["Writing"]


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
        answer, _ = self._reads.answer(step.query)
        return self.insert_rows(step, answer)

    def insert_rows(self, step: InsertQuery, answer: pa.Table) -> SqlResult:
        """Add an answer to a table; columns that it has not get their defaults, or null."""
        rows = {
            name: answer.column(name)
            if name in answer.column_names
            else pa.array([step.defaults.get(name)] * answer.num_rows)
            for name in step.table.schema.names
        }
        self._add(step.table, self._conformed(step, step.table, rows))
        return SqlResult(f"INSERT {answer.num_rows:,}")

    def delete(self, step: DeleteRows) -> SqlResult:
        """Remove the rows that a query finds now."""
        answer, _ = self._reads.answer(step.query)
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
        answer, _ = self._reads.answer(step.query)
        if not answer.num_rows:
            return SqlResult("UPDATE 0")
        names = step.table.schema.names
        after = self._conformed(
            step,
            step.table,
            {name: answer.column(f"(new {name})" if name in step.columns else name) for name in names},
        )
        flow = self._open(step.table)
        into = flow.input(step.table.name)
        if step.table.keys:
            into.upsert(after)
        else:  # in one call, so that no other client's seal comes between
            before = self._conformed(step, step.table, {name: answer.column(name) for name in names})
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

    def _conformed(self, step: ScriptStep, table: CatalogueEntry, columns: dict[str, object]) -> pa.Table:
        """Return columns as rows of a table; raise SqlError for what is none, such as nulls in NOT NULL."""
        try:
            return client_table(pa.table(columns), table.schema.to_arrow(), table.name)
        except MisuseError as error:
            raise step.piece.error(str(error).partition("\n")[0]) from None
