"""What has Spark to be like before workers start in it? Refused here within seconds, naming the setting.

A *slot* is room for one task at a time. Each worker takes one for as long as the cluster lives, and one more
has to stay free, or nothing could ever feed them. Spark starts the tasks of a barrier stage together or not
at all, which is why it would wait for ever where slots are too few.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from pyspark import SparkContext
from pyspark.sql import SparkSession

from timely.counted import counted
from timely.spark.errors import ScheduleError
from timely.spark.lost import is_stopped
from timely.spark.scheduled.status import slots_of

__all__ = ["FIRST_SECONDS_MAX", "SLOT_SECONDS_MAX", "check_settings", "check_slots"]

SLOT_SECONDS_MAX = 8.0
"""How long the next executor may take to come, unless the caller says otherwise."""

FIRST_SECONDS_MAX = 60.0
"""How long the first executor may take, which Spark may just be starting."""

_LOOK_SECONDS = 0.1


def check_settings(spark: SparkSession, workers: int) -> SparkContext:
    """The context of `spark`; `ScheduleError` names the setting that forbids workers in it."""
    if workers < 1:
        raise ScheduleError(f"a cluster has at least one worker, not {workers}")
    try:
        context = spark.sparkContext
    except Exception as error:  # a session of Spark Connect has none, and says so in its own way
        raise ScheduleError(
            "this session is one of Spark Connect, which starts no barrier tasks: make one with "
            "SparkSession.builder.master(…), or run the program with spark-submit"
        ) from error
    if is_stopped(context):
        raise ScheduleError(
            "this session of Spark was stopped: make another one, by SparkSession.builder.getOrCreate() or "
            "local_session(), and start the cluster in that"
        )
    conf = context.getConf()
    if (conf.get("spark.dynamicAllocation.enabled") or "false").lower() == "true":
        raise ScheduleError(
            "spark.dynamicAllocation.enabled is true: executors that come and go would end workers. Set it "
            "to false, and spark.executor.instances to what the job needs"
        )
    return context


def check_slots(
    context: SparkContext,
    workers: int,
    taken: int = 0,
    seconds: float = SLOT_SECONDS_MAX,
    count: Callable[[SparkContext], int] = slots_of,
) -> int:
    """How many slots there are; `ScheduleError` unless they are enough for `workers` and one more. `taken`:
    those of other clusters of this program.

    Waits `seconds` for more of them, counted from when the last ones came; for the first of all a minute.
    """
    begun = changed = time.monotonic()
    found = count(context)
    while found - taken < workers + 1:
        now = time.monotonic()
        if now >= changed + seconds and (found or now >= begun + FIRST_SECONDS_MAX):
            raise ScheduleError(_too_few(context, workers, taken, found, now - begun))
        time.sleep(_LOOK_SECONDS)
        before, found = found, count(context)
        changed = changed if found == before else time.monotonic()
    return found


def _too_few(context: SparkContext, workers: int, taken: int, found: int, seconds: float) -> str:
    others = f", {taken} of them for other clusters of this program" if taken else ""
    conf = context.getConf()
    master = conf.get("spark.master") or ""
    if master.startswith("local["):
        mend = f"raise the number in spark.master, which is {master}"
    else:
        known = ", ".join(
            f"{name} is {conf.get(name) or 'not set'}"
            for name in (
                "spark.executor.instances",
                "spark.executor.cores",
                "spark.cores.max",
                "spark.task.cpus",
            )
        )
        mend = f"raise what limits them ({known}), or let executors have more time to come with wait=…"
    return (
        f"{counted(workers, 'worker')} and one task that feeds them need {workers + 1} slots, and Spark has "
        f"{found}{others} after {seconds:.0f} s: {mend}"
    )
