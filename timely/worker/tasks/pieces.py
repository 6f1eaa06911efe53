"""Answers for readers that take an output in pieces: `Progress` with a reader, and `Read` of a piece
(`wire/requests.py`).

The epochs are complete by then: these functions only cut, filter and pack rows.
"""

from __future__ import annotations

import pyarrow as pa

from ...errors import RequestError, RestartedError
from ...failure import full_text_of
from ...limits import READER_SECONDS_MAX
from ...operators.capture import CaptureVertex
from ...operators.outputs.conditions import columns_of, fulfilling
from ...operators.outputs.output_log import CountedLog, check_kept
from ...operators.outputs.pieces import PieceRequest
from ...wire.arrow import int64s_of
from ...wire.claims import shown
from ...wire.requests import Progress, Read, Reply, Value

__all__ = ["check_origin", "drop", "held", "hold", "piece"]

_PARTS_MAX = 65_536
_DIFF = "diff"


def hold(capture: CaptureVertex, request: Progress) -> None:
    """Move a reader to its position; raise if changes that it needs are gone."""
    if request.reader:
        first_epoch, _ = capture.log.extent()
        check_kept(request.keep_from, first_epoch)
        seconds = max(0.0, min(request.keep_seconds, READER_SECONDS_MAX))
        capture.places.come(request.reader, request.keep_from, seconds)


def drop(capture: CaptureVertex, request: Progress, complete: int) -> int:
    """Drop changes before epoch `keep_from` that no reader needs, and move the reader, if any, to it. If that
    epoch is behind `complete`, the first that nobody was shown, that one counts in its place. Return the
    first epoch whose changes are still there.
    """
    complete = min(request.keep_from, complete)
    if request.reader:
        capture.places.come(request.reader, complete)
    bound = capture.places.forget(complete)
    capture.forget(bound)
    return bound


def held(capture: CaptureVertex, complete: int, origin: str, start: int = 0) -> Reply:
    """Return the extent of an output that began at `origin`, as far as epochs before `complete` go, with
    failures from epoch `start` on.
    """
    first_epoch, last = capture.extent()
    last = max(first_epoch, min(last, complete))
    failures = capture.failures
    failed = [] if failures is None else failures.without(max(start, 0), complete)
    spans: list[Value] = [[each.start, each.stop] for each in failed]
    return Reply(
        {
            "complete": complete,
            "kept": first_epoch,
            "last": last,
            "rows": capture.log.rows_kept if isinstance(capture.log, CountedLog) else -1,
            "without": spans,
            "why": full_text_of(failed[-1].error) if failed else "",
            "origin": origin,
        }
    )


def check_origin(request: Read, origin: str, incarnation: int) -> None:
    """Raise `RequestError` if the request reads an output that did not begin at `origin`, and
    `RestartedError` if the piece before it came from another incarnation.
    """
    if request.origin not in ("", origin):
        raise RequestError(
            f"output {request.output!r} of dataflow {request.dataflow} is not the one that is being read: "
            "the dataflow, or the cluster, was started anew meanwhile. Read it again"
        )
    if request.after not in (0, incarnation):
        raise RestartedError(
            f"the cluster has started again while output {request.output!r} of dataflow {request.dataflow} "
            "was being read: read it again from its first piece"
        )


def piece(capture: CaptureVertex, request: Read, incarnation: int = 0) -> Reply:
    """Return one piece; no row of it may pass the filters. The reader shows `incarnation` for the next."""
    columns = [name for name in request.columns if isinstance(name, str)]
    if len(columns) < len(request.columns) or not columns:
        raise RequestError(f"a piece has columns, by their names, not {shown(request.columns)}")
    if not 0 <= request.part < request.parts <= _PARTS_MAX or request.first < 0:
        raise RequestError(
            f"a piece begins at a row, in one share of several, not at {request.first} in {request.part} of "
            f"{request.parts}"
        )
    if request.reader:
        capture.places.hear(request.reader)
    capture.check_answer(request.stop - 1)
    sifting = dict.fromkeys(columns_of(request.filters))  # several conditions may be on one column
    columns_read = [*columns, *(name for name in sifting if name not in columns)]
    cut = capture.log.piece(
        PieceRequest(
            request.start, request.stop, request.first, request.part, request.parts, tuple(columns_read)
        )
    )
    table = fulfilling(cut.table, request.filters).select(columns)
    is_one = _DIFF in columns[1:] and _is_one(table)
    return Reply(
        {
            "next": cut.next if cut.next < cut.rows else -1,
            "rows": cut.rows,
            "is_negative": cut.is_negative,
            "is_one": is_one,
            "incarnation": incarnation,
        },
        table.drop_columns([_DIFF]) if is_one else table,
    )


def _is_one(table: pa.Table) -> bool:
    return bool((int64s_of(table.column(_DIFF)) == 1).all())
