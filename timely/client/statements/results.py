"""What `Cluster.sql` returns: the rows of an answer, or its changes one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Self

import pyarrow as pa

from ...errors import MisuseError, TimelyError
from ...user_code.html_tables import html_or_text, html_text
from ...user_code.short_traces import in_short
from ...wire.arrow import to_pandas, to_polars
from ..shown.pictures import table_picture
from .drawing import drawn

__all__ = ["SqlChanges", "SqlResult"]

_ROWS_SHOWN = 20
_ROWS_IN_REPR = 40


@in_short
class SqlResult:
    """What a statement has done, in `status`, and for SELECT, EXPLAIN and SHOW rows. Printed, it is a table.

    `epoch`: the epoch as of which the rows are, or with which the change counts; -1: none. The rows do not
    change any more: create a view, or SUBSCRIBE, for an answer that is kept current.
    """

    def __init__(self, status: str, table: pa.Table | None = None, epoch: int = -1) -> None:
        self.status, self.epoch = status, epoch
        self._table = table

    def __repr__(self) -> str:
        """Return the rows as a table, or the status."""
        return self.status if self._table is None else drawn(self._table, _ROWS_IN_REPR)

    def _repr_html_(self) -> str:
        table = self._table
        return html_or_text(
            self, lambda: html_text(self.status) if table is None else table_picture(self.status, table)
        )

    def __len__(self) -> int:
        return 0 if self._table is None else int(self._table.num_rows)

    def __iter__(self) -> Iterator[dict[str, object]]:
        return iter(self.to_pylist())

    @property
    def has_rows(self) -> bool:
        """True for SELECT, EXPLAIN and SHOW, also if there are none."""
        return self._table is not None

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return [] if self._table is None else [str(name) for name in self._table.column_names]

    def to_arrow(self) -> pa.Table:
        """Return the rows as a table of Arrow; raise `MisuseError` for a statement without rows."""
        if self._table is None:
            raise MisuseError(f"{self.status} has no rows: SELECT, EXPLAIN and SHOW have")
        return self._table

    def to_pylist(self) -> list[dict[str, object]]:
        """Return the rows as dicts."""
        rows: list[dict[str, object]] = self.to_arrow().to_pylist()
        return rows

    collect = to_pylist

    def fetchall(self) -> list[tuple[object, ...]]:
        """Return the rows as tuples."""
        columns = [column.to_pylist() for column in self.to_arrow().columns]
        return list(zip(*columns, strict=True))

    def to_pandas(self) -> object:
        """Return the rows as a DataFrame of pandas, which must be installed."""
        return to_pandas(self.to_arrow())

    def to_polars(self) -> object:
        """Return the rows as a DataFrame of Polars, which must be installed."""
        return to_polars(self.to_arrow())

    def show(self, rows: int = _ROWS_SHOWN) -> None:
        """Print the rows as a table, up to so many; or the status."""
        print(self.status if self._table is None else drawn(self._table, rows))  # noqa: T201


@in_short
class SqlChanges:
    """What SUBSCRIBE returns. Iterate over it: first comes the answer as it is, as (epoch, table), then each
    epoch in which it changes, as soon as it is complete, with the changed rows and `diff`.

    An epoch at which a row fails has the error in place of a table. `close` ends it, as does leaving a
    `with`; a view that is followed goes on. If it is dropped without that, as by `break` in a loop over what
    `sql` returned, another thread ends it at once.
    """

    def __init__(
        self,
        changes: Iterator[tuple[int, pa.Table | TimelyError]],
        schema: pa.Schema,
        end: Callable[[], None],
        leave: Callable[[Callable[[], None]], None] | None = None,
    ) -> None:
        self._is_closed, self._leave = False, leave
        self.schema, self.status = schema, "SUBSCRIBE"
        self._changes, self._end = changes, end

    def __repr__(self) -> str:
        """Return the columns."""
        return f"SqlChanges({', '.join(self.schema.names)})"

    def __iter__(self) -> Iterator[tuple[int, pa.Table | TimelyError]]:
        # Each iterator refers to `self`, and ends nothing when it is dropped: another one may go on.
        for each in self._changes:  # noqa: UP028  # `yield from` would close it
            yield each

    def __del__(self) -> None:
        # This asks no worker for anything: Python may call this in the middle of another request.
        if self._leave is not None and not self._is_closed:
            self._leave(self._end)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Read no more; workers forget the query."""
        if not self._is_closed:
            self._is_closed = True
            self._end()
