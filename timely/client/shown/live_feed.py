"""Reads an output in a thread of its own, and shows its rows again whenever they have changed.

The thread has its own position in the output. It asks for what is complete, and waits between two questions:
neither the program nor another reader waits for it, and it holds back nothing once it is closed.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from time import monotonic
from typing import Final, Protocol

import pyarrow as pa

from ...errors import ForgottenError, PeerError, RestartedError, TimelyError, WaitTimeoutError
from ...limits import LIVE_SENT_BYTES_MAX
from ...wire.arrow import int64_array
from .first_rows import check_size
from .live_rows import Frame, LiveRows, RowOrder

__all__ = ["Followed", "LiveFeed"]

_LOOK_SECONDS: Final = 0.1
"""How long the thread waits until it asks again."""
_REST: Final = 4
"""Times as long as it took to merge and show an answer it waits at least: with a million rows that takes a
second, in the kernel of the user."""
_SNAPSHOT_SECONDS: Final = 1.0


class Followed(Protocol):
    """An output with a position that nobody else moves; see `FlowOutput`."""

    @property
    def has_ended(self) -> bool:
        """True if the dataflow, or the cluster, takes no calls any more."""
        ...

    def complete_before(self) -> int:
        """Return the first epoch that is not complete."""
        ...

    def rows_kept(self) -> int:
        """Return about how many rows it has; -1: not known."""
        ...

    def follow(
        self, *, snapshot: bool = False, empty: bool = True, timeout: float | None = None
    ) -> Iterator[tuple[int, pa.Table | TimelyError]]:
        """Yield the collection, then each epoch with its changes."""
        ...

    def changes_nowait(self) -> pa.Table:
        """Return the changes since the last call."""
        ...

    def leave(self) -> None:
        """Give up the position."""
        ...


class _ReadingThread(threading.Thread):
    """A thread that never inserts or seals: no other one waits for it to do that."""

    only_reads = True


class LiveFeed:
    """The thread that keeps a live table current.

    Args:
        output: what to read.
        rows: what the table keeps.
        show: takes each frame, in the thread.
    """

    def __init__(self, output: Followed, rows: LiveRows, show: Callable[[Frame], None]) -> None:
        self._output = output
        self._rows = rows
        self._show = show
        self._woken = threading.Event()
        self._is_closed = False
        self._order: RowOrder | None = None
        self._error = ""
        self._thread = _ReadingThread(target=self._run, name="keeps a live table current", daemon=True)

    def start(self) -> None:
        """Show that there is nothing yet, and begin."""
        self._show(self._rows.frame())
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        """True as long as the thread reads."""
        return self._thread.is_alive()

    def sort(self, order: RowOrder) -> None:
        """Let the next frame be in another order."""
        self._order = order
        self._woken.set()

    def close(self) -> None:
        """Read no more. Does not wait for a question that is under way."""
        self._is_closed = True
        self._woken.set()

    def _run(self) -> None:
        try:
            while not self._is_closed and not self._read():
                pass
        except Exception as error:  # the cluster is gone, or there are too many rows
            self._fail(error)
        finally:
            with suppress(TimelyError):  # the dataflow may be gone, and with it the position
                self._output.leave()

    def _read(self) -> bool:
        """Read from a snapshot on. Return True if nothing more will come, False to begin anew."""
        try:
            self._begin()
            while not self._is_closed:
                changes, error = self._changes()
                began = monotonic()  # embedded workers work in that call: it is not to be rare
                self._rows.change(changes)
                order, self._order = self._order, None
                is_sorted = order is not None and self._rows.sort(order)
                pause = 0.0
                if changes.num_rows or is_sorted or error != self._error:
                    self._error = error
                    pause = self._show_rows()
                self._wait(max(pause + _LOOK_SECONDS, _REST * (monotonic() - began)))
        except (ForgottenError, RestartedError):
            self._wait(_LOOK_SECONDS)
            return False
        return True

    def _begin(self) -> None:
        """Take the collection as it is, once an epoch is complete that has an answer."""
        while not self._is_closed:
            if self._output.complete_before() > 0:
                check_size(self._output.rows_kept())
                try:
                    first = self._output.follow(snapshot=True, empty=False, timeout=_SNAPSHOT_SECONDS)
                    epoch, table = next(first, (-1, None))
                except WaitTimeoutError:
                    continue
                if isinstance(table, pa.Table):
                    self._rows.begin(table, epoch)
                    self._show_rows()
                    return
                if table is not None:
                    self._fail(table)
            self._wait(_LOOK_SECONDS)

    def _changes(self) -> tuple[pa.Table, str]:
        """Return what has changed, and the error of an epoch that has no answer."""
        try:
            return self._output.changes_nowait(), ""
        except (ForgottenError, RestartedError, PeerError):
            raise
        except TimelyError as error:
            if error.ends_dataflow or self._output.has_ended:
                raise
            return pa.Table.from_arrays([int64_array([])], ["epoch"]), _line(error)

    def _show_rows(self) -> float:
        """Show the rows; return how long the next frame has to wait, because of the bytes of this one."""
        frame = {**self._rows.frame(), "error": self._error}
        self._show(frame)
        return len(json.dumps(frame)) / LIVE_SENT_BYTES_MAX

    def _fail(self, error: Exception) -> None:
        if not self._is_closed:
            self._show({**self._rows.frame(), "note": "", "error": _line(error)})

    def _wait(self, seconds: float) -> None:
        self._woken.wait(seconds)
        if not self._is_closed:
            self._woken.clear()


def _line(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:2_000]
