"""The call that starts a cluster in Spark, and the cluster that it returns."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from pathlib import Path

from pyspark import SparkContext
from pyspark.sql import SparkSession

from timely.client.cluster import Cluster
from timely.client.connection import RemoteWorkers, greeted
from timely.errors import MisuseError
from timely.keys import new_client, new_cluster
from timely.keys.folder import save_client
from timely.limits import SILENCE_SECONDS_DEFAULT
from timely.spark.errors import ScheduleError
from timely.spark.lost import java_watched
from timely.spark.scheduled.checking import SLOT_SECONDS_MAX, check_settings, check_slots
from timely.spark.scheduled.facts import NAIAD, difference, facts
from timely.spark.scheduled.job import SparkJob
from timely.spark.scheduled.shipping import ship
from timely.spark.scheduled.task import Shared
from timely.worker.launcher import hook_names
from timely.worker.settings import check_silence, check_workers

__all__ = ["ScheduledCluster", "cluster"]

_running: weakref.WeakSet[ScheduledCluster] = weakref.WeakSet()


class ScheduledCluster(Cluster):
    """A cluster whose workers are tasks of Spark. Made by `cluster`; `close` ends them, and the job.

    When a task is lost, every later call raises the same `ClusterLostError`, which names the task; `restart`
    returns another cluster.
    """

    def __init__(self, workers: RemoteWorkers, job: SparkJob, again: Callable[[], ScheduledCluster]) -> None:
        super().__init__(workers)
        self._driver_keys = workers.keys
        self._job = job
        self._again = again
        _running.add(self)

    def check(self) -> None:
        """Raise `ClusterLostError` if the cluster is over because a task is lost."""
        self._job.check()

    def save_keys(self, folder: Path | str) -> Path:
        """Write the keys of this program into `folder`, readable by its owner only, and return the folder:
        for Spark's data source, `.option("keys", folder)`, and for other programs, `timely.connect(…,
        keys=folder)`.

        The cluster admits everyone who can read them until it ends. Every other cluster, also one that
        `restart` returns, has other keys: save them anew. Raises `MisuseError` if the cluster is `insecure`,
        or if the folder holds other keys.
        """
        if self._driver_keys is None:
            raise MisuseError("an insecure cluster has no keys: leave out the option 'keys', and keys=")
        return save_client(self._driver_keys, Path(folder))

    def restart(self) -> ScheduledCluster:
        """End the rest of this cluster, and start another with as many workers.

        The new workers are empty: install the dataflows, and feed the epochs after the last commit. Errors
        are those of `timely.spark.cluster`.
        """
        self.close()
        return self._again()

    def close(self) -> None:
        """End the workers and their job. May be called twice."""
        super().close()
        _running.discard(self)


@java_watched()
def cluster(
    spark: SparkSession,
    *,
    workers: int,
    wait: float = SLOT_SECONDS_MAX,
    log_level: str = "warning",
    check_progress: bool = False,
    silence_seconds: float = SILENCE_SECONDS_DEFAULT,
    insecure: bool = False,
) -> ScheduledCluster:
    """Start `workers` workers as tasks of Spark, and return their cluster once they accept clients.

    Each takes a slot of Spark (`spark.task.cpus` cores) until the cluster is closed, and uses as many threads
    as the slot has cores; its memory is bounded by `spark.executor.pyspark.memory`, if set, and by the limit
    of the executor. One more slot has to stay free for tasks that feed. Executors without our packages get
    them; the versions of NumPy, numba, pyzmq, msgpack, pyarrow and Python must be the same as here. Functions
    of queries are sent as with `timely.connect(workers=…)`.

    Workers admit only one another, this program, and connections that its tasks open by `append_target`, by
    keys that are made for this cluster and sent inside the job; with `insecure` there are no keys. Every
    other client, `format("naiad")` too, reads the keys from a folder: `save_keys`.

    `silence_seconds`: as with `timely.connect`. `wait`: how many seconds executors may take to come, and the
    tasks to be scheduled. Raises `ScheduleError`, which names the setting, if Spark cannot run the workers,
    and `ClusterLostError` if one ends while the cluster starts.
    """
    check_workers(workers)
    context = check_settings(spark, workers)
    own = facts()
    shared = Shared(log_level, check_progress, check_silence(silence_seconds, "silence_seconds"))
    keys, driver = (None, None) if insecure else new_client(new_cluster(), "driver")

    def again() -> ScheduledCluster:
        return cluster(
            spark,
            workers=workers,
            wait=wait,
            log_level=log_level,
            check_progress=check_progress,
            silence_seconds=silence_seconds,
            insecure=insecure,
        )

    for _ in range(2):
        check_slots(context, workers, _taken(context), wait)
        job = SparkJob(context, workers, shared, hook_names(), keys)
        try:
            tasks = job.wait_for_tasks(wait)
            differing = [
                f"{task.host} has {text}" for task in tasks.values() if (text := difference(own, task.facts))
            ]
            if differing:
                raise ScheduleError(_other_versions(differing))
            if all(task.facts.get(NAIAD) for task in tasks.values()):
                job.begin()
                remote = RemoteWorkers(
                    job.wait_ready(), job, job.token, driver, silence_seconds=shared.silence_seconds
                )
                greeted(remote)
                return ScheduledCluster(remote, job, again)
        except BaseException:
            job.stop()
            raise
        job.stop()
        ship(context)
    raise ScheduleError(
        "executors do not find our packages, although addPyFile has passed them to Spark: install naiad "
        "there, or pass its zip by --py-files"
    )


def _taken(context: SparkContext) -> int:
    """Return the number of slots that the other clusters of this program take."""
    return sum(other.workers for other in _running if other._job.is_of(context))


def _other_versions(differing: list[str]) -> str:
    return (
        f"executors differ from the driver: {'; '.join(sorted(set(differing)))}. Install the same there, or "
        "ship one environment to all with spark.archives and spark.pyspark.python"
    )
