"""Clusters that Spark schedules: each worker is a process below a task of a barrier stage.

    with timely.spark.cluster(spark, workers=2) as cluster:
        flow = cluster.install(query)

Spark places, limits and kills these tasks as any other, so standalone, YARN and Kubernetes need nothing of
ours. The job runs in a thread of the driver until the cluster is closed or one of its tasks is lost.

Read in this order:

    starting.py    the one call, and the cluster that it returns
    checking.py    what Spark has to be like; refused before anything starts
    facts.py       what an executor is like: Python, packages, which of ours; what a worker may use
    shipping.py    our packages in a zip, for executors that do not have them
    line.py        the line between a task and the driver
    task.py        what a task does: one worker, watched, until the driver or the worker ends it
    roster.py      what the driver knows of the tasks, and which loss explains the others
    job.py         the driver's end: the job in its thread, the lines of its tasks, the verdict

`facts`, `line` and `task` import nothing of ours at the top, and travel as code: they run also where our
packages are still missing.
"""
