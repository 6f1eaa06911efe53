"""Outputs as live tables: one thread for each output that pages look at keeps its rows, and pages see a part.

The thread asks for complete epochs, and takes all changes since the last answer at once. So what it costs
goes by the answers, not by the changes: at 100,000 of them a second it merges 25,000 rows four times. It
takes no position in the output: it holds nothing back, and if another client has let workers forget what it
has not read yet, it begins again with a snapshot. `timely/client/shown/first_rows.py` says why live tables of
notebooks have a position.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa

from ...client.cluster import Cluster
from ...client.reading import FlowOutput
from ...client.shown.first_rows import check_size, merged_rows, summed_changes
from ...errors import ForgottenError, MisuseError, TimelyError
from ...giving_back import give_back_freed
from ...limits import LIVE_OUTPUTS_COUNT_MAX
from ...operators.capture import FOREVER
from ...user_code.html_tables import cell_text
from .lookers import Lookers, packed
from .views import TableView, shown

__all__ = ["LiveOutput", "LiveOutputs"]

_EVERY_SECONDS: Final = 0.25
_REST: Final = 4
_ERROR_SECONDS: Final = 1.0
_ERROR_CHARS_MAX: Final = 4_000
_RECORDS_MAX: Final = 1_000
_EPOCHS_BEFORE: Final = 10
"""An output of records begins with those of so many epochs."""
_WAIT_SECONDS: Final = 30.0
_VIEWS_MAX: Final = 64
_LEFT_SECONDS: Final = 3.0
"""How long an output is read on that no page looks at any more."""


class _Rows(NamedTuple):
    """The rows of an output.

    table    its columns, and `diff`: how often each row is there
    epoch    the last complete one; -1: none
    changes  rows that came or went, for each second
    error    why there are no newer ones; empty if there are
    """

    version: int
    table: pa.Table | None
    epoch: int
    changes: float
    error: str


class LiveOutput:
    """One output that pages look at."""

    def __init__(self, cluster: Callable[[], Cluster], dataflow: int, name: str) -> None:
        self.lookers = Lookers()
        self._cluster, self._dataflow, self._name = cluster, dataflow, name
        self._rows = _Rows(0, None, -1, 0.0, "")
        self._views: dict[TableView, tuple[int, bytes]] = {}
        self._lock = threading.Lock()
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"console reads {name}"[:60], daemon=True)
        self._thread.start()

    @property
    def version(self) -> int:
        """Grows with each change; 0: nothing is known yet."""
        return self._rows.version

    def view(self, view: TableView) -> tuple[int, bytes]:
        """Return the part of the rows that a page sees, packed, and its version. Pages that look at the same
        part get the same bytes.
        """
        with self._lock:
            rows = self._rows
            told = self._views.get(view)
            if told is None or told[0] != rows.version:
                told = (
                    rows.version,
                    packed(
                        {
                            **shown(rows.table, view),
                            "epoch": rows.epoch,
                            "changes": round(rows.changes, 1),
                            "error": rows.error,
                        }
                    ),
                )
                self._views = {each: old for each, old in self._views.items() if old[0] == rows.version}
                if len(self._views) < _VIEWS_MAX:
                    self._views[view] = told
            return told

    def close(self) -> None:
        """Read no more."""
        self._is_over.set()

    def _run(self) -> None:
        try:
            self._read()
        finally:
            if self._is_over.is_set():
                with self._lock:
                    self._rows, self._views = self._rows._replace(table=None), {}
            give_back_freed()

    def _read(self) -> None:
        while not self._is_over.is_set():
            began = time.monotonic()
            try:
                output = self._cluster().flow(self._dataflow).output(self._name)
                read = self._read_records if output.is_records else self._read_rows
                read(output)
            except ForgottenError:
                self._rest(began)
            except Exception as error:  # a page shows it, and this tries again
                self._tell(self._rows._replace(error=str(error)[:_ERROR_CHARS_MAX], changes=0.0))
                if isinstance(error, TimelyError) and error.ends_dataflow:
                    return
                self._rest(began, _ERROR_SECONDS)

    def _read_rows(self, output: FlowOutput) -> None:
        began = time.monotonic()
        try:
            check_size(output.rows_kept())
            table, position = _snapshot(output)
            self._tell(_Rows(0, table, position - 1, 0.0, ""))
            while not self._is_over.is_set():
                self._rest(began)
                asked, began = began, time.monotonic()
                complete = output.complete_before()
                if position < complete < FOREVER:
                    changes = output.changes(position, complete, timeout=_WAIT_SECONDS)
                    position = complete
                    table = merged_rows(table, summed_changes(changes))
                    count = int(np.abs(changes.column("diff").to_numpy()).sum())
                    self._tell(_Rows(0, table, position - 1, count / max(began - asked, 1e-3), ""))
                elif complete >= FOREVER:
                    table, position = _snapshot(output)
                    self._tell(_Rows(0, table, position - 1, 0.0, ""))
                    self._is_over.wait()
                elif self._rows.changes:
                    self._tell(self._rows._replace(changes=0.0))
        except MisuseError:
            self._rows = self._rows._replace(table=None)
            raise

    def _read_records(self, output: FlowOutput) -> None:
        records: list[tuple[int, str]] = []
        start = max(0, _behind_last(output) - _EPOCHS_BEFORE)
        asked = began = time.monotonic()
        is_first = True
        while not self._is_over.is_set():
            complete = _behind_last(output)
            new = output.changes(start, complete, timeout=_WAIT_SECONDS) if complete > start else []
            assert isinstance(new, list)
            records += [(epoch, cell_text(record)) for epoch, record in new[-_RECORDS_MAX:]]
            del records[:-_RECORDS_MAX]
            if complete > start or is_first or self._rows.changes:
                rate = 0.0 if is_first else len(new) / max(began - asked, 1e-3)
                self._tell(_Rows(0, _of_records(records), complete - 1, rate, ""))
            start, is_first = complete, False
            self._rest(began)
            asked, began = began, time.monotonic()

    def _rest(self, began: float, seconds: float = _EVERY_SECONDS) -> None:
        """Wait before the next question, longer if the last one, that began then, has taken long."""
        taken = time.monotonic() - began
        self._is_over.wait(max(seconds - taken, _REST * taken))

    def _tell(self, rows: _Rows) -> None:
        with self._lock:
            self._rows = rows._replace(version=self._rows.version + 1)
        self.lookers.wake()


def _behind_last(output: FlowOutput) -> int:
    """Return the first epoch that is not complete; if nothing can come any more, the one behind the last."""
    complete = output.complete_before()
    return complete if complete < FOREVER else output.complete_before_capped(_WAIT_SECONDS)


def _of_records(records: Sequence[tuple[int, str]]) -> pa.Table:
    epochs = pa.array([epoch for epoch, _ in records], pa.int64())
    return pa.table({"epoch": epochs, "record": pa.array([record for _, record in records], pa.string())})


def _snapshot(output: FlowOutput) -> tuple[pa.Table, int]:
    """Return the rows of the last complete epoch, with `diff`, and the epoch behind it."""
    complete = output.complete_before()
    if complete <= 0:
        assert output.schema is not None
        table = output.schema.empty_table()
    elif complete >= FOREVER:
        table = output.snapshot(timeout=_WAIT_SECONDS)
        complete = output.epoch_of(table) + 1
    else:
        table = output.snapshot(as_of=complete - 1, timeout=_WAIT_SECONDS)
    table = table.replace_schema_metadata(None)
    ones = pa.array(np.ones(table.num_rows, np.int64))
    return merged_rows(None, summed_changes(table.append_column("diff", ones))), complete


class _Looked:
    """An output that pages look at, or have looked at until a moment ago."""

    def __init__(self, output: LiveOutput) -> None:
        self.output = output
        self.pages = 0
        self.left = 0.0
        """When the last page left."""


class LiveOutputs:
    """The outputs that pages look at, each read once. When the last page leaves, as one does that sorts by
    another column, the next one finds the rows for a moment still: to read them anew may take seconds.
    """

    def __init__(self, cluster: Callable[[], Cluster]) -> None:
        self._cluster = cluster
        self._lock = threading.Lock()
        self._outputs: dict[tuple[int, str], _Looked] = {}
        self._timer: threading.Timer | None = None
        self._is_closed = False

    @contextmanager
    def looked_at(self, dataflow: int, name: str) -> Iterator[LiveOutput]:
        """Read an output as long as a page is within; raises MisuseError if there are too many."""
        key = dataflow, name
        with self._lock:
            looked = self._outputs.get(key)
            if looked is None:
                looked = self._outputs[key] = self._began(dataflow, name)
            looked.pages += 1
        try:
            yield looked.output
        finally:
            with self._lock:
                looked.pages -= 1
                looked.left = time.monotonic()
                self._time()

    def _began(self, dataflow: int, name: str) -> _Looked:
        if len(self._outputs) >= LIVE_OUTPUTS_COUNT_MAX:
            self._drop(-1.0)
        if len(self._outputs) >= LIVE_OUTPUTS_COUNT_MAX or self._is_closed:
            raise MisuseError(
                f"pages look at {LIVE_OUTPUTS_COUNT_MAX} outputs already, as many as a console reads: close "
                "one of them"
            )
        return _Looked(LiveOutput(self._cluster, dataflow, name))

    def _drop(self, seconds: float) -> None:
        """Close the outputs at which nobody has looked for longer."""
        now = time.monotonic()
        for key, looked in list(self._outputs.items()):
            if not looked.pages and now - looked.left > seconds:
                del self._outputs[key]
                looked.output.close()

    def _time(self) -> None:
        """Look again later, if an output is to be dropped then."""
        is_left = any(not looked.pages for looked in self._outputs.values())
        if self._timer is None and is_left and not self._is_closed:
            self._timer = threading.Timer(_LEFT_SECONDS, self._look)
            self._timer.daemon = True
            self._timer.start()

    def _look(self) -> None:
        with self._lock:
            self._timer = None
            self._drop(_LEFT_SECONDS)
            self._time()

    def close(self) -> None:
        """Read no output any more."""
        with self._lock:
            self._is_closed = True
            if self._timer is not None:
                self._timer.cancel()
            for looked in self._outputs.values():
                looked.output.close()
            self._outputs.clear()
