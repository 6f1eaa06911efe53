"""Is a time far off all others? One 0 among the times of a week makes hundreds of thousands of empty epochs.

Times are stray if there is nothing between them and the others for more than `GAP_EPOCHS_MAX` epochs and for
more than half of the whole time. There is at most one gap of that kind, and the middle of the whole time
lies in it: so it is found by one look at every row. A pause in real data is long enough for the first only if
the slide is very short, and not for the second: of the data sets that we know, the longest pause is a
twentieth of the whole.
"""

from __future__ import annotations

from datetime import UTC, datetime

from pyspark.sql import functions as F

from timely.spark.errors import InputFormatError
from timely.spark.windows import SlidingWindow

from .interactions import Interactions, line_of_time

__all__ = ["GAP_EPOCHS_MAX", "refuse_stray_times"]

GAP_EPOCHS_MAX = 1_000
"""This number of epochs without any interaction may follow one another, however long they are."""


def refuse_stray_times(source: Interactions, window: SlidingWindow) -> None:
    """Raise `InputFormatError`, which names times and lines on both sides, if there is a gap of that kind."""
    if window.epochs <= GAP_EPOCHS_MAX:
        return
    middle = F.lit((source.first_time + source.last_time) // 2)
    time = F.col("time")
    before, after, rows_before = source.times.agg(
        F.max(F.when(time <= middle, time)),
        F.min(F.when(time > middle, time)),
        F.count_if(time <= middle),
    ).collect()[0]
    empty = window.enter_epoch(after) - window.enter_epoch(before) - 1
    if empty <= GAP_EPOCHS_MAX or 2 * (after - before) <= source.last_time - source.first_time:
        return
    rows_after = source.total - rows_before
    few_before = rows_before <= rows_after
    number, line = line_of_time(source.path, None if few_before else after, before if few_before else None)
    side = "before" if few_before else "after"
    rows = min(rows_before, rows_after)
    some = "1 interaction is" if rows == 1 else f"{rows:,} interactions are"
    raise InputFormatError(
        f"{source.path}: between the times {before} ({_date(before)}) and {after} ({_date(after)}) there is "
        f"nothing for {empty:,} epochs of {window.slide} s.\n"
        f"  {some} {side} it; the first of them:\n"
        f"  {number} | {line}\n"
        "If that time is wrong, mend the line, or begin it with # to leave it out; if it is right, say so by "
        "--allow-gap, or use a longer slide."
    )


def _date(seconds: int) -> str:
    """For people; a time in other units than seconds is beyond all dates."""
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")
    except (OverflowError, ValueError, OSError):
        return "beyond the year 9999"
