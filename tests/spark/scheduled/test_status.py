"""status.py: what Spark says of its slots and tasks."""

from __future__ import annotations

import threading

import pytest
from pyspark.sql import SparkSession

from timely.spark.scheduled.status import busy_slots, reason_of, running_tasks, slots_of


def test_slots_are_those_of_the_session(spark: SparkSession) -> None:
    assert slots_of(spark.sparkContext) == 2
    assert busy_slots(spark.sparkContext) == 0


def test_running_tasks_are_those_of_the_group(spark: SparkSession) -> None:
    context = spark.sparkContext
    assert running_tasks(context, "nobody's") == 0

    def run() -> None:
        context.setJobGroup("a group", "sleeps")
        with pytest.raises(Exception, match="cancel"):
            context.parallelize([0], 1).foreach(lambda row: threading.Event().wait(30))

    thread = threading.Thread(target=run)
    thread.start()
    waited = threading.Event()
    while running_tasks(context, "a group") == 0 and thread.is_alive():
        waited.wait(0.05)
    assert running_tasks(context, "a group") == busy_slots(context) == 1
    context.cancelJobGroup("a group")
    thread.join(30)


def test_reason_of_a_task_that_nobody_knows_is_none(spark: SparkSession) -> None:
    assert reason_of(spark.sparkContext, 1_000_000, 0, seconds=0.0) == ""
    assert reason_of(spark.sparkContext, 1_000_000, 0, seconds=0.3) == ""
