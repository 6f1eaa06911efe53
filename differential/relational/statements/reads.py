"""Queries that run for an answer: a dataflow that imports what it reads, and ends with the answer.

Which epoch? Tables have epochs together: before a query is read, all of them are sealed as far as the one
that is furthest ahead, and as far as the dataflows whose exports the query reads. The answer is as of that
epoch, or a later one.

A client that may only read seals nothing. Its query needs tables that are sealed equally far: a dataflow that
reads them begins at the furthest one, since tables tell earlier epochs apart no more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Final
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc

from timely.building.dataflow import Dataflow
from timely.building.declarations import BRIEF
from timely.client.cluster import Cluster
from timely.client.reading import FlowOutput
from timely.client.reports.figures import StageFigures, figures
from timely.client.session import Flow
from timely.client.statements.results import SqlChanges
from timely.errors import GraphError, TimelyError
from timely.wire.requests import Uninstall

from ...columns.client_tables import declared_schema
from ...columns.schema import Schema
from ...errors import ExpressionError, SchemaError, SqlError
from .catalogue import ANSWER_NAME, CatalogueEntry, RunningDataflows
from .queries import ReadQuery, SortedBy

__all__ = ["StatementReads"]

_ANSWER = "answer"

_REPLACED_MAX: Final = 20
"""How often an answer begins again, since a view that it reads has been replaced."""


class StatementReads:
    """Runs queries of one client, and keeps the epochs of tables together, unless it seals nothing."""

    def __init__(
        self, cluster: Cluster, running: RunningDataflows, timeout: float | None, seals: bool = True
    ) -> None:
        self._cluster, self._running, self._timeout = cluster, running, timeout
        self._seals = seals

    def owners(
        self, entries: Iterable[CatalogueEntry], new: Mapping[str, Flow] | None = None
    ) -> dict[str, tuple[int, Schema]]:
        """Return the dataflow and the columns of entries, by key, as they run now; `new`: views, by key, that
        are to take the places of others.
        """
        owners = {}
        for entry in entries:
            flow = (new or {}).get(entry.key) or self._running.flow(entry)
            columns = flow.exported[entry.name]
            assert columns is not None, "entries have columns"
            owners[entry.key] = (flow.index, declared_schema(columns))
        return owners

    def flow_of(self, entry: CatalogueEntry) -> Flow:
        """Return the dataflow of an entry."""
        return self._running.flow(entry)

    def together(self, entries: Iterable[CatalogueEntry] = (), at_least: int = -1) -> int:
        """Seal all tables as far as the furthest of them, and as far as the exports among `entries` and as
        `at_least`; return that epoch.
        """
        if not self._seals:
            return self._sealed(list(entries))
        tables, through = [], at_least
        for flow in self._running.tables:
            try:
                through = max(through, flow.refresh() - 1)
            except TimelyError as error:
                if not error.ends_dataflow:
                    raise
                self._running.forget(flow)  # another client has dropped it
                continue
            tables.append(flow)
        for entry in entries:
            if entry.kind != "table":
                through = max(through, self.flow_of(entry).refresh() - 1)
        for flow in tables:
            if flow.epoch <= through:
                flow.seal(through=through, wait=False)
        return max(through, 0)

    def _sealed(self, entries: Sequence[CatalogueEntry]) -> int:
        """Return the last epoch to which all entries are sealed; raise SqlError if one is sealed further."""
        ends = sorted((self.flow_of(entry).refresh() - 1, entry.name) for entry in entries)
        if ends and ends[0][0] != ends[-1][0]:
            (least, behind), (most, ahead) = ends[0], ends[-1]
            raise SqlError(
                f"{behind} is sealed up to epoch {least}, and {ahead} up to {most}: a query of both has no "
                "answer before both are, and nothing is sealed here. A SELECT by cluster.sql or python -m "
                f"timely.sql seals all tables; your own dataflows are sealed by flow.seal(through={most})"
            )
        return max(0, ends[0][0]) if ends else 0

    def answer(self, query: ReadQuery) -> tuple[pa.Table, int]:
        """Return the rows of a query, in its order, and their epoch.

        If another client meanwhile replaces a view by one with the same columns, begin again.
        """
        for _ in range(_REPLACED_MAX):
            try:
                return self._answer(query)
            except TimelyError:
                if not self._running.have_replaced(query.reads.values()):
                    raise
        return self._answer(query)

    def _answer(self, query: ReadQuery) -> tuple[pa.Table, int]:
        flow, through = self._install(query, ANSWER_NAME)
        try:
            output = self._began(flow, through)
            table = output.snapshot(timeout=self._timeout)
            epoch = output.epoch_of(table) if query.reads else through
        finally:
            _end(flow)
        return _shown(table, query), epoch

    def stages(self, query: ReadQuery) -> list[StageFigures]:
        """Return what the stages of a query have done when it has given its first answer."""
        flow, through = self._install(query, "(explain)")
        try:
            self._began(flow, through)
            return self.stages_of(flow)
        finally:
            _end(flow)

    def stages_of(self, flow: Flow) -> list[StageFigures]:
        """Return what the stages of a dataflow have done since its start, on all workers together."""
        totals = figures([], self._cluster.stats(), 1.0)
        return [stage for stage in totals.stages if stage.dataflow == flow.index]

    def follow(self, query: ReadQuery) -> SqlChanges:
        """Return the answer of a query, and then its changes. A view that is followed as it is needs no
        dataflow of its own.
        """
        views = [each for each in query.reads.values() if each.kind == "view"]
        if len(views) == len(query.reads) == 1:
            (view,) = views
            if query.text.written(query.node).lower() == f"select * from {view.name}".lower():
                self.together(views)
                output = self._cluster.flow(self.flow_of(view).index).output(view.name)
                return self._changes(output, lambda: _leave(output))
        flow, through = self._install(query, "(subscribe)")
        try:
            output = self._began(flow, through)
        except BaseException:
            _end(flow)
            raise
        return self._changes(output, lambda: _end(flow))

    def _changes(self, output: FlowOutput, end: Callable[[], None]) -> SqlChanges:
        followed = output.follow(snapshot=True, forget=True, empty=False, timeout=self._timeout)
        schema = output.schema
        assert schema is not None, "an output of a collection has columns"
        return SqlChanges(followed, schema, end, self._running.leave)

    def _install(self, query: ReadQuery, what: str) -> tuple[Flow, int]:
        owners = self.owners(query.reads.values())
        through = self.together(query.reads.values())

        def build(flow: Dataflow) -> None:
            flow.note(BRIEF)
            query.build(flow, owners).output(_ANSWER)

        # A durable cluster knows dataflows by their names, so each query has one of its own.
        build.__name__ = build.__qualname__ = f"{what} {uuid4().hex[:8]}"
        try:
            return self._cluster.install(build), through
        except (GraphError, SchemaError, ExpressionError) as error:  # found as stages are made
            raise query.text.error(query.node, str(error).partition("\n")[0]) from None

    def _began(self, flow: Flow, through: int) -> FlowOutput:
        """Return the output of a query once it has an answer. It begins with the last epoch that all it reads
        have completed, which may be a later one than `through`, if other clients write, too.
        """
        flow.wait(through, self._timeout)
        again = self._cluster.flow(flow.index)
        again.wait(max(through, again.first_epoch), self._timeout)
        return again.output(_ANSWER)


def _end(flow: Flow) -> None:
    with suppress(TimelyError):  # it has ended with what it reads, or by its own error
        flow.ask_first(Uninstall(flow.index, False))


def _leave(output: FlowOutput) -> None:
    with suppress(TimelyError):  # the view has ended
        output.leave()


def _shown(table: pa.Table, query: ReadQuery) -> pa.Table:
    """Return rows in the order of a query, without the columns that are there for the order only."""
    for key in reversed(query.order):  # each sort is stable, and says by itself where nulls are
        table = table.take(_places(table, key))
    if query.hidden:
        table = table.select(table.column_names[: -query.hidden])
    return table


def _places(table: pa.Table, key: SortedBy) -> pa.Array:
    column = table.column(key.column).combine_chunks()
    direction = "descending" if key.descending else "ascending"
    if pa.types.is_floating(column.type):  # Arrow has NaN next to nulls; here it is the largest number
        parts = pa.table(
            [pc.is_null(column), pc.fill_null(pc.is_nan(column), False), column], ["0", "1", "2"]
        )
        nulls = "ascending" if key.nulls_last else "descending"
        return pc.sort_indices(parts, [("0", nulls), ("1", direction), ("2", direction)])
    return pc.array_sort_indices(column, direction, null_placement="at_end" if key.nulls_last else "at_start")
