"""Which settings and slots must Spark have before workers start in it? Errors name the setting within
seconds.

A *slot* is room for one task at a time. Each worker takes one for as long as the cluster lives, and one more
has to stay free, or no task could ever feed them. Spark starts the tasks of a barrier stage together or not
at all, so with too few slots it would wait for ever.
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
"""How long the first executor may take to come: Spark may just be starting it."""

_LOOK_SECONDS = 0.1


def check_settings(spark: SparkSession, workers: int) -> SparkContext:
    """Return the context of `spark`; raises `ScheduleError`, which names the setting, if no workers can
    run in it.
    """
    if workers < 1:
        raise ScheduleError(f"a cluster has at least one worker, not {workers}")
    try:
        context = spark.sparkContext
    except Exception as error:  # PySpark's: a session of Spark Connect has none
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
    """Return the number of slots; raises `ScheduleError` unless they suffice for `workers` and one more task.

    `taken`: the slots of other clusters of this program. Waits up to `seconds` after the last change of the
    number for more slots, and up to `FIRST_SECONDS_MAX` for the first one.
    """
    begun = changed = time.monotonic()
    slots = count(context)
    while slots - taken < workers + 1:
        now = time.monotonic()
        if now >= changed + seconds and (slots or now >= begun + FIRST_SECONDS_MAX):
            raise ScheduleError(_too_few(context, workers, taken, slots, now - begun))
        time.sleep(_LOOK_SECONDS)
        before, slots = slots, count(context)
        changed = changed if slots == before else time.monotonic()
    return slots


def _too_few(context: SparkContext, workers: int, taken: int, slots: int, seconds: float) -> str:
    others = f", {taken} of them for other clusters of this program" if taken else ""
    conf = context.getConf()
    master = conf.get("spark.master") or ""
    if master.startswith("local["):
        mend = f"raise the number in spark.master, which is {master}"
    else:
        limits = ", ".join(
            f"{name} is {conf.get(name) or 'not set'}"
            for name in (
                "spark.executor.instances",
                "spark.executor.cores",
                "spark.cores.max",
                "spark.task.cpus",
            )
        )
        mend = f"raise what limits them ({limits}), or let executors have more time to come with wait=…"
    return (
        f"{counted(workers, 'worker')} and one task that feeds them need {workers + 1} slots, and Spark has "
        f"{slots}{others} after {seconds:.0f} s: {mend}"
    )
