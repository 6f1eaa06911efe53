"""Query Spark for its slots, its tasks, and the reason for the loss of a task.

The functions query the driver's Java process and change nothing. Spark's web page with the same facts need
not be running.
"""

from __future__ import annotations

import contextlib
import time

from pyspark import SparkContext

__all__ = ["busy_slots", "reason_of", "running_tasks", "slots_of"]

_REASON_SECONDS_MAX = 2.0
_TASKS_MAX = 1_024
_LOOK_SECONDS = 0.1
_EXCEPTION = "org.apache.spark.SparkException:"


def slots_of(context: SparkContext) -> int:
    """Return how many tasks Spark can run at once with its present executors."""
    inner = context._jsc.sc()
    return int(inner.maxNumConcurrentTasks(inner.resourceProfileManager().defaultResourceProfile()))


def busy_slots(context: SparkContext) -> int:
    """Return how many tasks are running."""
    return sum(_running(context, stage) for stage in context.statusTracker().getActiveStageIds())


def running_tasks(context: SparkContext, group: str) -> int:
    """Return how many tasks of a job group are running."""
    tracker = context.statusTracker()
    jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
    return sum(_running(context, stage) for job in jobs if job is not None for stage in job.stageIds)


def reason_of(context: SparkContext, stage: int, index: int, seconds: float = _REASON_SECONDS_MAX) -> str:
    """Return why a task of a stage's first attempt has ended, in a line, once Spark knows it; empty if Spark
    does not report it within `seconds`, or has ended itself.
    """
    deadline = time.monotonic() + seconds
    with contextlib.suppress(Exception):  # Py4J's: Java has ended, so the reason is unknown
        while time.monotonic() < deadline:
            tasks = context._jsc.sc().statusStore().taskList(stage, 0, _TASKS_MAX)
            for task in (tasks.apply(at) for at in range(tasks.size())):
                if task.index() == index and task.errorMessage().isDefined():
                    what = str(task.errorMessage().get()).strip().splitlines()[0]
                    return f"executor {task.executorId()}: {what.removeprefix(_EXCEPTION).strip()}"
            time.sleep(_LOOK_SECONDS)
    return ""


def _running(context: SparkContext, stage: int) -> int:
    info = context.statusTracker().getStageInfo(stage)
    return 0 if info is None else int(info.numActiveTasks)
