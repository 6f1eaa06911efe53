"""Carries out a query of a page, which may only read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, cast

from ...building.builders import load_function
from ...client.cluster import Cluster
from ...client.session import Flow
from ...client.shown.first_rows import count_shown
from ...client.statements.results import SqlResult
from ...errors import TimelyError
from ...limits import SHOWN_ROWS_MAX
from .cells import columns_of, rows_of
from .told import Json

__all__ = ["answered", "plan_of_view"]

_PLAN: Final = "differential.relational.statements.session:explain_view"
_OF_VIEW: Final = "-- SQL view,"
_READS: Final = "differential.relational.statements.session:run_reads"


def plan_of_view(cluster: Cluster, flow: Flow) -> str:
    """Return the plan of a view of SQL, as written and after the rules; an empty text for other dataflows,
    whose plan no worker has, and if it cannot be read.
    """
    if not flow.note.startswith(_OF_VIEW):
        return ""
    try:
        explain = load_function(_PLAN, "SQL")
        return cast("Callable[[Cluster, str], str]", explain)(cluster, flow.name)
    except (ImportError, TimelyError):  # sqlglot is missing, or the view has just been replaced
        return ""


def answered(cluster: Cluster, text: str, timeout: float) -> Json:
    """Return the rows of the last statement of a text, as a page shows them. Raises `differential.SqlError`
    if it is no SQL, or if a statement of it is not SELECT, EXPLAIN or SHOW: then none is carried out.
    """
    run = load_function(_READS, "SQL")
    result = SqlResult("")
    for result in cast("Iterator[SqlResult]", run(cluster, text, "spark", {}, timeout, "<prompt>")):  # noqa: B007
        pass
    if not result.has_rows:
        return {"status": result.status, "epoch": None, "columns": [], "rows": [], "total": 0, "matching": 0}
    table = result.to_arrow()
    return {
        "status": result.status,
        "epoch": result.epoch if result.epoch >= 0 else None,
        "columns": columns_of(table.schema),
        "rows": rows_of(table.slice(0, count_shown(SHOWN_ROWS_MAX, table.num_columns))),
        "total": table.num_rows,
        "matching": table.num_rows,
    }
