"""Clusters, dataflows and outputs as HTML, which notebooks show at the end of a cell.

A picture asks workers at most for what they have at hand, waits about a second, and takes nothing from the
next call: rows that were refused, or the end of a dataflow, are still raised there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import pyarrow as pa

from ...limits import PICTURE_ROWS_MAX
from ...operators.capture import FOREVER
from ...user_code.html_tables import ROWS_SHOWN_MAX, html_table, html_text
from ...wire.requests import Reply, Why
from ..tables import InputForm

__all__ = ["cluster_picture", "columns_of", "flow_picture", "output_picture", "table_picture"]


class _AnsweringWorkers(Protocol):
    """Workers that say what they are at; see `Workers`."""

    @property
    def end(self) -> str:
        """Why workers take no requests any more; empty as long as they do."""
        ...

    def reasons(self, request: Why) -> list[Reply | str]:
        """Return what each worker says, or why it says nothing."""
        ...


class _DescribedOutput(Protocol):
    """An output; see `FlowOutput`."""

    name: str
    description: str
    schema: pa.Schema | None


def cluster_picture(title: str, workers: _AnsweringWorkers) -> str:
    """Return the dataflows of a cluster, with the last sealed epoch of each as worker 0 knows it."""
    if workers.end:
        return html_text(title)
    answers = workers.reasons(Why(-1, -1))
    rows: list[tuple[object, ...]] = []
    for entry in answers[0].items("dataflows") if isinstance(answers[0], Reply) else ():
        match entry:
            case [int(number), str(name), int(sealed)]:
                rows.append((number, name, max(-1, sealed) + 1))
    silent = [answer for answer in answers if isinstance(answer, str)]
    left = f"{len(rows) - ROWS_SHOWN_MAX:,} more dataflows" if len(rows) > ROWS_SHOWN_MAX else ""
    note = "; ".join([*([left] if left else []), *silent])
    if not rows and not note:
        note = "no dataflow is installed"
    columns = [("number", ""), ("dataflow", ""), ("open epoch", "")]
    return html_table(title, columns if rows else [], rows, note)


def flow_picture(title: str, inputs: Sequence[InputForm], outputs: Sequence[_DescribedOutput]) -> str:
    """Return the inputs and outputs of a dataflow with their columns. No worker is asked."""
    rows: list[tuple[str, str, str]] = [("input", form.name, form.description) for form in inputs]
    rows += [("output", output.name, output.description) for output in outputs]
    left = f"{len(rows) - ROWS_SHOWN_MAX:,} more" if len(rows) > ROWS_SHOWN_MAX else ""
    return html_table(title, [("", ""), ("name", ""), ("rows", "")] if rows else [], rows, left)


def output_picture(
    title: str,
    schema: pa.Schema | None,
    asked: Callable[[], Sequence[Reply]],
    snapshot: Callable[[int], pa.Table],
) -> str:
    """Return the first rows of an output as of its last complete epoch.

    Args:
        title: a line above them.
        schema: the columns; None for records, which are not shown.
        asked: asks all workers for the extent of the output.
        snapshot: reads the rows as of a complete epoch, each once, with the columns `epoch` and `diff`.
            Called if they are few: otherwise it takes seconds.
    """
    if schema is None:
        return html_table(title, [], [], "records: read changes()")
    replies = asked()
    complete = min(reply.integer("complete") for reply in replies)
    counts = [reply.integer("rows") for reply in replies]
    columns = columns_of(schema)
    if complete == 0:
        return html_table(title, columns, [], "no epoch is complete yet")
    if min(counts) < 0 or sum(counts) > PICTURE_ROWS_MAX:
        many = "rows" if min(counts) < 0 else f"about {sum(counts):,} rows"
        return html_table(title, columns, [], f"{many}: show() reads them, and prints the first")
    if complete >= FOREVER:  # no input is open
        complete = max(1, *(reply.integer("last") for reply in replies))
    rows, count, is_table = _repeated(snapshot(complete - 1).drop_columns(["epoch"]))
    as_of = f"as of epoch {complete - 1}"
    if not is_table:
        as_of += "; some rows are there a negative number of times: changes() has them"
    return html_table(title, columns, rows, _counted(count, len(rows), as_of))


def _repeated(table: pa.Table) -> tuple[list[Sequence[object]], int, bool]:
    """Return the first rows, each as often as `diff` says; how many there are; and whether no `diff` is below
    0. A row may be there a billion times.
    """
    diffs = table.column("diff").to_pylist()
    rows: list[Sequence[object]] = []
    table = table.drop_columns(["diff"])
    for place, diff in enumerate(diffs):
        if len(rows) >= ROWS_SHOWN_MAX:
            break
        row = tuple(column[place].as_py() for column in table.columns)
        rows += [row] * min(max(0, diff), ROWS_SHOWN_MAX - len(rows))
    return rows, sum(max(0, diff) for diff in diffs), min(diffs, default=0) >= 0


def table_picture(title: str, table: pa.Table, note: str = "") -> str:
    """Return the first rows of a table, and how many there are."""
    first = table.slice(0, ROWS_SHOWN_MAX)
    rows = list(zip(*(column.to_pylist() for column in first.columns), strict=True))
    return html_table(title, columns_of(table.schema), rows, _counted(table.num_rows, len(rows), note))


def _counted(count: int, shown: int, note: str) -> str:
    left = [f"{count - shown:,} not shown"] if count > shown else []
    return ", ".join([f"{count:,} row{'s' * (count != 1)}", *left, *([note] if note else [])])


def columns_of(schema: pa.Schema) -> list[tuple[str, str]]:
    """Return name and type of each column; a type with "?" also has null."""
    return [(field.name, f"{_type_text(field)}{'?' if field.nullable else ''}") for field in schema]


def _type_text(field: pa.Field) -> str:
    kind = (field.metadata or {}).get(b"differential.type")
    if kind is not None:
        return str(kind, errors="replace")
    return str(getattr(field.type, "extension_name", field.type))
