"""What does Spark say of its slots, its tasks, and why one of them is lost?

Asked of the driver's Java process; nothing here changes anything, and what cannot be asked is said to be
unknown. Spark's page of the same facts need not be running.
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
    """How many tasks Spark can run at once with the executors that it has now."""
    inner = context._jsc.sc()
    return int(inner.maxNumConcurrentTasks(inner.resourceProfileManager().defaultResourceProfile()))


def busy_slots(context: SparkContext) -> int:
    """How many tasks run now."""
    return sum(_running(context, stage) for stage in context.statusTracker().getActiveStageIds())


def running_tasks(context: SparkContext, group: str) -> int:
    """How many tasks of the jobs of a group run now."""
    tracker = context.statusTracker()
    jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
    return sum(_running(context, stage) for job in jobs if job is not None for stage in job.stageIds)


def reason_of(context: SparkContext, stage: int, index: int, seconds: float = _REASON_SECONDS_MAX) -> str:
    """Why a task of a stage's first attempt has ended, in a line, once Spark knows it; empty if it does not
    tell before `seconds` are over, or is gone itself.
    """
    deadline = time.monotonic() + seconds
    with contextlib.suppress(Exception):  # Py4J's, of a Java that has ended: then nobody knows
        while time.monotonic() < deadline:
            tasks = context._jsc.sc().statusStore().taskList(stage, 0, _TASKS_MAX)
            for task in (tasks.apply(place) for place in range(tasks.size())):
                if task.index() == index and task.errorMessage().isDefined():
                    what = str(task.errorMessage().get()).strip().splitlines()[0]
                    return f"executor {task.executorId()}: {what.removeprefix(_EXCEPTION).strip()}"
            time.sleep(_LOOK_SECONDS)
    return ""


def _running(context: SparkContext, stage: int) -> int:
    info = context.statusTracker().getStageInfo(stage)
    return 0 if info is None else int(info.numActiveTasks)
