"""Statements of SQL against a cluster, as `Cluster.sql` carries them out."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from time import sleep
from typing import Final
from weakref import WeakKeyDictionary

import pyarrow as pa

from timely.building.dataflow import Dataflow
from timely.client.cluster import Cluster
from timely.client.reports.figures import StageFigures
from timely.client.session import Flow
from timely.client.statements.results import SqlChanges, SqlResult
from timely.errors import GraphError, MisuseError

from ...collections.sources import input as input_of
from ...errors import ExpressionError, SchemaError, SqlError
from .catalogue import CatalogueEntry, RunningDataflows, statement_of
from .queries import ReadQuery
from .reads import StatementReads
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
from .writing import Writing

__all__ = ["explain_view", "run", "run_reads"]

_READERS_TRIES: Final = 100
_READERS_SECONDS: Final = 0.05
"""How often ALTER TABLE is tried while queries of other clients read the table for an answer."""

_of_cluster: WeakKeyDictionary[Cluster, RunningDataflows] = WeakKeyDictionary()
"""What this client knows of the dataflows of each cluster."""


def run(
    cluster: Cluster,
    text: str,
    dialect: str,
    parameters: Mapping[str, object],
    timeout: float | None,
    name: str,
    reads_only: bool = False,
) -> Iterator[SqlResult | SqlChanges]:
    """Carry out a script, and yield the result of each statement. Raises SqlError, in one line, before the
    first of them for what is wrong with any.
    """
    running = _of_cluster.get(cluster)
    if running is None:
        running = _of_cluster[cluster] = RunningDataflows(cluster)
    try:
        from .planning import planned
    except ModuleNotFoundError as error:
        if error.name != "sqlglot":
            raise
        raise SqlError(
            "cluster.sql needs sqlglot, which is not installed: pip install 'naiad[sql]'"
        ) from None
    running.end_left()
    steps = planned(text, dialect, name, running.look(), parameters, reads_only=reads_only)
    session = _Session(cluster, running, timeout, seals=not reads_only)
    return session.results(steps)


def run_reads(
    cluster: Cluster,
    text: str,
    dialect: str,
    parameters: Mapping[str, object],
    timeout: float | None,
    name: str,
) -> Iterator[SqlResult | SqlChanges]:
    """Carry out a script that only reads. It seals nothing either, so a query of tables that are not sealed
    equally far is refused. Raises SqlError as `run` does, and if a statement is not SELECT, EXPLAIN or SHOW;
    then none of them is carried out.
    """
    return run(cluster, text, dialect, parameters, timeout, name, reads_only=True)


def explain_view(cluster: Cluster, name: str) -> str:
    """Return the plan of a view's own query, as written and after the rules. Raises SqlError if there is no
    such view.
    """
    from .planning import query_of_view

    running = _of_cluster.get(cluster)
    if running is None:
        running = _of_cluster[cluster] = RunningDataflows(cluster)
    catalogue = running.look()
    views = [each for each in catalogue.named(name) if each.kind == "view"]
    if len(views) != 1:
        raise SqlError(f"<view>:1:1: there is no view {name[:80]}")
    return _plan_of(query_of_view(catalogue, views[0]))


def _plan_of(query: ReadQuery) -> str:
    owners = {each.key: (max(each.flow, 0), each.schema) for each in query.reads.values()}
    return query.build(Dataflow("explain"), owners).explain()


class _Session:
    def __init__(
        self, cluster: Cluster, running: RunningDataflows, timeout: float | None, seals: bool
    ) -> None:
        self._cluster, self._running = cluster, running
        self._reads = StatementReads(cluster, running, timeout, seals)
        self._writing = Writing(self._reads)

    def results(self, steps: list[ScriptStep]) -> Iterator[SqlResult | SqlChanges]:
        """Carry steps out, and yield what each has done. Rows that neighbouring statements add or remove
        count in one epoch; a statement that reads comes after it.
        """
        try:
            for place, step in enumerate(steps):
                if not isinstance(step, AddRows):
                    self._writing.commit()
                result = self._done_at(step)
                if place == len(steps) - 1 or not isinstance(step, AddRows):
                    self._writing.commit()
                if isinstance(result, SqlResult) and result.epoch < 0 and self._writing.epoch >= 0:
                    result.epoch = self._writing.epoch
                yield result
        finally:
            self._writing.commit()

    def _done_at(self, step: ScriptStep) -> SqlResult | SqlChanges:
        try:
            return self._done(step)
        except SqlError as error:
            if str(error).startswith(f"{step.piece.text.name}:"):
                raise
            raise step.piece.error(str(error)) from None

    def _done(self, step: ScriptStep) -> SqlResult | SqlChanges:
        if isinstance(step, AddRows):
            return self._writing.add(step)
        if isinstance(step, InsertQuery):
            return self._writing.insert(step)
        if isinstance(step, DeleteRows):
            return self._writing.delete(step)
        if isinstance(step, UpdateRows):
            return self._writing.update(step)
        if isinstance(step, RunQuery):
            table, epoch = self._reads.answer(step.query)
            return SqlResult("SELECT", table, epoch)
        if isinstance(step, Subscribe):
            return self._reads.follow(step.query)
        if isinstance(step, Explain):
            return self._explained(step)
        if isinstance(step, ShowTable):
            return SqlResult(step.piece.verb, step.shown)
        return self._declared(step)

    def _declared(self, step: ScriptStep) -> SqlResult:
        if isinstance(step, CreateTable):
            self._create_table(step)
            return SqlResult(f"CREATE TABLE {step.name}")
        if isinstance(step, CreateTableOf):
            title = f"CREATE TABLE {step.table.name}"
            answer = self._writing.answer(step, step.rows.query, title)  # first: a row of it may fail
            self._create_table(step.table)
            inserted = self._writing.insert_rows(step.rows, answer)
            return SqlResult(f"CREATE TABLE {step.table.name}, {inserted.status}")
        if isinstance(step, CreateView):
            self._create_view(step)
            return SqlResult(f"CREATE VIEW {step.name}")
        if isinstance(step, AlterTable):
            self._alter_table(step)
            return SqlResult(f"ALTER TABLE {step.table.name}")
        if isinstance(step, DropEntries):
            self._drop(step)
            return SqlResult(f"{step.status} {', '.join(each.name for each in step.entries)}")
        assert isinstance(step, NothingToDo), step
        return SqlResult(f"nothing to do: {step.status}")

    def _create_table(self, step: CreateTable) -> None:
        # The next SELECT asks tables for their epochs. An embedded durable cluster that begins again
        # wants to install all before any other request: see `_installed`, too.
        through = max([0, *(flow.epoch - 1 for flow in self._running.tables)])
        self._installed(_table_of(step), step.name, step).seal(through=through)

    def _alter_table(self, step: AlterTable) -> None:
        """Let a new version take the place of a table. Nothing may read it meanwhile, so the views over it
        end, and are made again, as they were if the table cannot be altered.
        """
        before = self._reads.flow_of(step.before)
        views = [(each, self._running.flow(each)) for each, _ in step.over]
        for _, flow in reversed(views):
            flow.uninstall(cascade=True)
            self._running.forget(flow)
        fresh: list[Flow] = []
        try:
            flow = self._replaced(before, step)
        except BaseException:
            self._made_again(step, [view for view, _ in views])
            raise
        self._running.forget(before)
        self._running.add(flow)
        for view, query in step.over:
            fresh.append(self._install_view(step, view.name, view.note, query, (), fresh))

    def _made_again(self, step: ScriptStep, views: Iterable[CatalogueEntry]) -> None:
        """Install views that have ended for a statement that fails."""
        from .planning import query_of_view

        fresh: list[Flow] = []
        for view in views:
            query = query_of_view(self._running.look(), view)
            fresh.append(self._install_view(step, view.name, view.note, query, (), fresh))

    def _replaced(self, before: Flow, step: AlterTable) -> Flow:
        """Replace a table by its new version. Queries that run for one answer read it only for a moment."""
        for tried in range(_READERS_TRIES):
            try:
                return self._cluster.replace(before, _table_of(step.table))
            except MisuseError as error:
                busy = not self._running.look().readers(step.before.key)
                if error.ends_dataflow or not busy or tried == _READERS_TRIES - 1:
                    raise step.piece.error(str(error).partition("\n")[0]) from None
            sleep(_READERS_SECONDS)
        raise AssertionError("the last try raises")

    def _create_view(self, step: CreateView) -> None:
        before = None if step.replaces is None else self._reads.flow_of(step.replaces)
        views = [
            (step.name, step.note, step.query),
            *((each.name, each.note, query) for each, query in step.over),
        ]
        if before is not None and self._cluster.is_durable:  # where only one dataflow may have a name
            before.uninstall(cascade=True)
            self._running.forget(before)
            before = None
        going = set() if before is None else self._running.over(before)
        fresh: list[Flow] = []
        try:
            for name, note, query in views:
                fresh.append(self._install_view(step, name, note, query, going, fresh))
        except BaseException:
            for flow in reversed(fresh):
                flow.uninstall()
                self._running.forget(flow)
            if step.replaces is not None and before is None:
                self._made_again(step, [step.replaces, *(each for each, _ in step.over)])
            raise
        if before is not None:  # not earlier: so there is a view of the name at any time
            before.uninstall(cascade=True)
            self._running.forget(before)

    def _install_view(  # what a view is made of
        self,
        step: ScriptStep,
        name: str,
        note: str,
        query: ReadQuery,
        going: Collection[int],
        fresh: Sequence[Flow],
    ) -> Flow:
        """Install a view over the `fresh` ones, not over those that are `going`."""
        new = {flow.name.lower(): flow for flow in fresh}
        owners = self._reads.owners(query.reads.values(), new)

        def build(flow: Dataflow) -> None:
            flow.note(note)
            rows = query.build(flow, owners)
            rows.export(name)
            rows.output(name)

        return self._installed(build, name, step, going)

    def _installed(self, build: object, name: str, step: ScriptStep, going: Collection[int] = ()) -> Flow:
        """Install a table or view; raise SqlError if another client has made one of that name meanwhile.
        Dataflows that are `going` may have the name, too.
        """
        build.__name__ = build.__qualname__ = name  # type: ignore[attr-defined]  # it is a function
        try:
            flow = self._cluster.install(build)  # type: ignore[arg-type]
        except (GraphError, SchemaError, ExpressionError) as error:
            raise step.piece.error(str(error).partition("\n")[0]) from None
        self._running.add(flow)
        if self._cluster.addresses or not self._cluster.is_durable:
            self._running.look()
        first = next((each for each in self._running.with_name(name) if each.index not in going), flow)
        if first.index != flow.index:
            flow.uninstall()
            raise step.piece.error(f"{name} exists already: another client has made it at the same time")
        return flow

    def _drop(self, step: DropEntries) -> None:
        flows = [self._reads.flow_of(each) for each in step.entries]
        for flow in sorted(flows, key=lambda each: -each.index):  # readers have higher numbers
            try:
                flow.uninstall(cascade=step.cascade)
            except MisuseError as error:
                if error.ends_dataflow:
                    raise
                raise step.piece.error(str(error).partition("\n")[0]) from None
        self._running.look()

    def _explained(self, step: Explain) -> SqlResult:
        if not step.analyze:
            assert step.query is not None, "EXPLAIN has a query"
            text = _plan_of(step.query)
            return SqlResult("EXPLAIN", pa.table({"plan": pa.array(text.splitlines(), pa.string())}))
        if step.query is not None:
            stages = self._reads.stages(step.query)
        else:
            assert step.view is not None, "EXPLAIN ANALYZE has a view or a query"
            stages = self._reads.stages_of(self._reads.flow_of(step.view))
        return SqlResult("EXPLAIN ANALYZE", _analyzed(stages))


def _table_of(step: CreateTable) -> Callable[[Dataflow], None]:
    """Return the builder of a table. Rows that are there when ALTER TABLE adds a column have its default."""
    from .tables import defaults_of

    values = defaults_of(*statement_of(step.note))
    defaults = {name: value for name, value in values.items() if name not in step.keys}

    def build(flow: Dataflow) -> None:
        flow.note(step.note)
        if step.keys:
            rows = input_of(flow, step.name, step.schema, key=step.keys, mode="upsert", defaults=defaults)
        else:
            rows = input_of(flow, step.name, step.schema, defaults=defaults)
        rows.export(step.name, by=step.keys)

    build.__name__ = build.__qualname__ = step.name
    return build


def _analyzed(stages: Sequence[StageFigures]) -> pa.Table:
    """Return what each stage has done, and keeps, on all workers together."""
    rows = [
        {
            "stage": f"{each.stage}. {each.name}",
            "place": each.site,
            "busy_ms": round(1_000 * each.busy, 3),
            "skew": round(each.skew, 2),
            "rows_kept": each.kept_rows,
            "bytes_kept": each.kept_bytes,
        }
        for each in stages
    ]
    return pa.Table.from_pylist(rows, _ANALYZED)


_ANALYZED = pa.schema(
    [
        ("stage", pa.string()),
        ("place", pa.string()),
        ("busy_ms", pa.float64()),
        ("skew", pa.float64()),
        ("rows_kept", pa.int64()),
        ("bytes_kept", pa.int64()),
    ]
)
