"""Clusters that Spark schedules: each worker is a process below a task of a barrier stage.

    with timely.spark.cluster(spark, workers=2) as cluster:
        flow = cluster.install(query)

Spark places, limits and kills these tasks as any others, so nothing has to be installed in standalone
clusters, YARN or Kubernetes. The job runs in a thread of the driver until the cluster is closed or one of its
tasks is lost.

Read the files in this order:

    starting.py    the one call, and the cluster that it returns
    checking.py    the settings and slots that Spark must have, checked before anything starts
    facts.py       the facts of an executor: Python, packages, our release; how many threads a worker may use
    shipping.py    our packages in a zip, for executors that do not have them
    line.py        the line between a task and the driver
    task.py        the task: it hosts one worker, and watches it until the driver or the worker ends
    roster.py      the driver's state of the tasks; decides which loss explains the others
    job.py         the driver's end: the job in its thread, the lines of its tasks, the verdict

Spark sends `facts`, `line` and `task` as code, and they import nothing of ours at the top, so they also run
on executors that lack our packages.
"""
