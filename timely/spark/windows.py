"""Which interactions enter and leave a sliding window in each epoch?

    T_k        = first time + (k + 1) · slide                  the end of epoch k = 0, 1, …
    window k   = the multiset of rows with T_k - window < time ≤ T_k
    last epoch = the first k with T_k ≥ last time

A row at `time` is in window k exactly for enter ≤ k < leave, where, with age = time - first time,

    enter = the first k with T_k ≥ time             = max(0, ceil(age / slide) - 1)
    leave = the first k with T_k - window ≥ time    = ceil((age + window) / slide) - 1

Only changes are sent: +1 in epoch enter and -1 in epoch leave. A row with enter = leave is in no window and
is not sent: it falls between two windows that leave a gap, or it is at the first time and the window is no
longer than the slide. A leave after the last epoch is not sent. Times are integers, all in the same unit.

A window that *grows* has no length (None): rows that have entered stay.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from timely.counted import counted
from timely.spark.errors import InputFormatError

__all__ = ["EPOCHS_MAX", "SlidingWindow"]

EPOCHS_MAX = 1_000_000
"""More epochs than this are taken for a mistake, such as times in milliseconds."""


@dataclass(frozen=True)
class SlidingWindow:
    """A window of `window` time units that moves by `slide` units an epoch over the times from first to last.
    If `window` is None, it only grows.

    Raises `ValueError` for lengths that are not positive, and `InputFormatError` for more than `EPOCHS_MAX`
    epochs.
    """

    first_time: int
    last_time: int
    window: int | None
    slide: int

    def __post_init__(self) -> None:
        if (self.window is not None and self.window < 1) or self.slide < 1:
            raise ValueError(f"window and slide are 1 or more, not {self.window} and {self.slide}")
        if self.last_time < self.first_time:
            raise ValueError(f"the last time {self.last_time} is before the first time {self.first_time}")
        if self.epochs > EPOCHS_MAX:
            raise InputFormatError(
                f"times from {self.first_time} to {self.last_time} make {counted(self.epochs, 'epoch')} of "
                f"{self.slide} s; at most {EPOCHS_MAX:,} are allowed.\n"
                "Are the times in seconds, and is none of them far off? Otherwise use a longer slide."
            )

    @property
    def epochs(self) -> int:
        """The number of epochs: the number of the last one, plus 1."""
        return self.enter_epoch(self.last_time) + 1

    def end(self, epoch: int) -> int:
        """Return T_k: the last time in the window of `epoch`."""
        return self.first_time + (epoch + 1) * self.slide

    def enter_epoch(self, time: int) -> int:
        """Return the first epoch whose end is not before `time`."""
        return max(0, -(-(time - self.first_time) // self.slide) - 1)

    def changes(
        self,
        rows: DataFrame,
        *,
        time: str = "time",
        keep: tuple[str, ...] = ("source", "target"),
        epochs: int | None = None,
    ) -> DataFrame:
        """Return the rows that enter (diff 1) and leave (diff -1): the columns `keep`, then epoch and diff,
        both bigint. If the window only grows, no row leaves, and there is no column diff.

        `rows` is a DataFrame whose bigint column `time` lies between the first and the last time. `epochs`
        limits the result to that many epochs from the first.
        """
        limit = self.epochs if epochs is None else min(epochs, self.epochs)
        age = F.col(time) - F.lit(self.first_time)
        enter = F.greatest(_ceiling(age, self.slide) - F.lit(1), F.lit(0))
        if self.window is None:
            growing = rows.select(*keep, enter.cast("bigint").alias("epoch"))
            return growing.where(F.col("epoch") < F.lit(limit))
        leave = _ceiling(age + F.lit(self.window), self.slide) - F.lit(1)
        passages = F.array(
            F.struct(enter.cast("bigint").alias("epoch"), F.lit(1).cast("bigint").alias("diff")),
            F.struct(leave.cast("bigint").alias("epoch"), F.lit(-1).cast("bigint").alias("diff")),
        )
        return (
            rows.where(enter < leave).select(*keep, F.inline(passages)).where(F.col("epoch") < F.lit(limit))
        )


def _ceiling(dividend: Column, divisor: int) -> Column:
    """Return the quotient of integers ≥ 0, rounded up, without `ceil`, which would use floating point."""
    return F.call_function("div", dividend + F.lit(divisor - 1), F.lit(divisor))
