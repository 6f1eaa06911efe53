"""The call that starts a cluster in Spark, and the cluster that it returns."""

from __future__ import annotations

import secrets
import weakref
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from pyspark import SparkContext
from pyspark.sql import SparkSession

from timely.client.cluster import Cluster
from timely.client.connection import append_target, greeted
from timely.client.remote.resuming import DurableWorkers
from timely.client.remote.workers import RemoteWorkers
from timely.errors import MisuseError
from timely.keys import ClientKeys, new_client, new_cluster
from timely.keys.folder import save_client
from timely.limits import SILENCE_SECONDS_DEFAULT
from timely.spark.errors import ScheduleError
from timely.spark.lost import java_watched
from timely.spark.scheduled.checking import SLOT_SECONDS_MAX, check_settings, check_slots
from timely.spark.scheduled.facts import NAIAD, difference, facts
from timely.spark.scheduled.job import SparkJob
from timely.spark.scheduled.keeping import JobKeeper
from timely.spark.scheduled.shipping import ship
from timely.spark.scheduled.task import Shared
from timely.worker.launcher import hook_names
from timely.worker.settings import check_durable, check_silence, check_workers

__all__ = ["ScheduledCluster", "cluster"]

_running: weakref.WeakSet[ScheduledCluster] = weakref.WeakSet()


class ScheduledCluster(Cluster):
    """A cluster whose workers are tasks of Spark. Made by `cluster`; `close` ends them, and the job.

    When a task is lost, every later call raises the same `ClusterLostError`, which names the task; `restart`
    returns another cluster. If the cluster is durable, all workers start again by themselves, with what the
    store has, and calls wait for that.
    """

    def __init__(
        self, workers: RemoteWorkers, job: SparkJob | JobKeeper, again: Callable[[], ScheduledCluster]
    ) -> None:
        super().__init__(workers)
        self._driver_keys = workers.keys
        self._job = job
        self._again = again
        _running.add(self)

    def check(self) -> None:
        """Raise `ClusterLostError` if the cluster is over because a task is lost, or if it is just starting
        again.
        """
        self._job.check()

    def append_target(self, dataflow: int = 0) -> append_target:
        """See `Cluster.append_target`. A task of Spark does not wait for workers that start again: they may
        need its slot.
        """
        workers = self._workers
        assert isinstance(workers, RemoteWorkers)
        return append_target(
            workers.addresses,
            dataflow,
            workers.keys,
            workers.silence_seconds,
            workers.incarnation,
            is_patient=False,
        )

    def takes_slots_of(self, context: SparkContext) -> bool:
        """Return True if the workers are tasks of this Spark."""
        job = self._job.job if isinstance(self._job, JobKeeper) else self._job
        return job.is_of(context)

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

        The new workers are empty, unless the cluster is durable: install the dataflows, and feed the epochs
        after the last commit. Errors are those of `timely.spark.cluster`.
        """
        self.close()
        return self._again()

    def close(self) -> None:
        """End the workers and their job. May be called twice."""
        super().close()
        _running.discard(self)


@java_watched()
def cluster(  # noqa: PLR0913  # users give few of them, each by its name
    spark: SparkSession,
    *,
    workers: int,
    wait: float = SLOT_SECONDS_MAX,
    log_level: str = "warning",
    check_progress: bool = False,
    silence_seconds: float = SILENCE_SECONDS_DEFAULT,
    insecure: bool = False,
    durable: Path | str | None = None,
    sync: str | None = None,
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

    `durable`, `sync`: as with `timely.connect`; the folder must be the same for the driver and all executors.
    If a worker or its task is lost, all workers start again, as other tasks, and go on with what the folder
    has. `silence_seconds`: as with `timely.connect`. `wait`: how many seconds executors may take to come, and
    the tasks to be scheduled. Raises `ScheduleError`, which names the setting, if Spark cannot run the
    workers, and `ClusterLostError` if one ends while the cluster starts.
    """
    check_workers(workers)
    context = check_settings(spark, workers)
    silence = check_silence(silence_seconds, "silence_seconds")
    shared = Shared(log_level, check_progress, silence, *check_durable(durable, sync))
    keys, driver = (None, None) if insecure else new_client(new_cluster(), "driver")
    token = secrets.token_hex(16)

    def again() -> ScheduledCluster:
        return cluster(
            spark,
            workers=workers,
            wait=wait,
            log_level=log_level,
            check_progress=check_progress,
            silence_seconds=silence_seconds,
            insecure=insecure,
            durable=durable,
            sync=sync,
        )

    def job(addresses: Sequence[str] = ()) -> SparkJob:
        return SparkJob(context, workers, shared, hook_names(), keys, token, addresses)

    def start(addresses: Sequence[str], note: Callable[[SparkJob], None]) -> SparkJob:
        return _started(context, workers, partial(job, addresses), wait, note)

    if not shared.durable:
        runner: SparkJob | JobKeeper = start((), lambda job: None)
    else:
        runner = JobKeeper(shared.durable, start)
    try:
        return ScheduledCluster(_connected(runner, token, driver, shared), runner, again)
    except BaseException:
        runner.stop()
        raise


def _started(
    context: SparkContext,
    workers: int,
    new_job: Callable[[], SparkJob],
    wait: float,
    note: Callable[[SparkJob], None],
) -> SparkJob:
    """Return a job whose workers are ready; call `note` with it as soon as it has begun."""
    own = facts()
    for _ in range(2):
        check_slots(context, workers, _taken(context), wait)
        job = new_job()
        try:
            note(job)
            tasks = job.wait_for_tasks(wait)
            differing = [
                f"{task.host} has {text}" for task in tasks.values() if (text := difference(own, task.facts))
            ]
            if differing:
                raise ScheduleError(_other_versions(differing))
            if all(task.facts.get(NAIAD) for task in tasks.values()):
                job.begin()
                job.wait_ready()
                return job
        except BaseException:
            job.stop()
            raise
        job.stop()
        ship(context)
    raise ScheduleError(
        "executors do not find our packages, although addPyFile has passed them to Spark: install naiad "
        "there, or pass its zip by --py-files"
    )


def _connected(
    job: SparkJob | JobKeeper, token: str, keys: ClientKeys | None, shared: Shared
) -> RemoteWorkers:
    """Return the workers, once all have answered. Closing them ends the job."""
    if not shared.durable:
        remote = RemoteWorkers(job.addresses, job, token, keys, silence_seconds=shared.silence_seconds)
        greeted(remote)
        return remote
    probe = RemoteWorkers(job.addresses, None, token, keys, silence_seconds=shared.silence_seconds)
    try:
        hello = greeted(probe)[0]
    finally:
        probe.close()
    return DurableWorkers(
        job.addresses,
        job,
        token,
        keys,
        silence_seconds=shared.silence_seconds,
        incarnation=hello.incarnation,
        cluster=hello.text("cluster"),
    )


def _taken(context: SparkContext) -> int:
    """Return the number of slots that the other clusters of this program take."""
    return sum(other.workers for other in _running if other.takes_slots_of(context))


def _other_versions(differing: list[str]) -> str:
    return (
        f"executors differ from the driver: {'; '.join(sorted(set(differing)))}. Install the same there, or "
        "ship one environment to all with spark.archives and spark.pyspark.python"
    )
