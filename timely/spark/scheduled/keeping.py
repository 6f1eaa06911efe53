"""Starting the workers of a durable cluster in Spark again when one of them, or its task, is lost.

As the supervisor of workers that a program has started (`timely/worker/supervisor.py`), but each time it is
another job of Spark. A worker that comes to the same host listens at the same port as before, so that other
clients find it.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Sequence
from typing import Final

from timely.durable.answers.asking import fold_last
from timely.durable.folder_store import FolderStore
from timely.errors import PeerError, TimelyError
from timely.failure import as_reported, fresh_copy
from timely.limits import RESTARTS_COUNT_MAX, STEADY_SECONDS_MIN
from timely.spark.errors import SparkLostError
from timely.spark.scheduled.job import SparkJob
from timely.worker.launcher import wait_readable

__all__ = ["JobKeeper"]

_log = logging.getLogger("timely")
_LOOK_SECONDS: Final = 0.5
_PAUSE_SECONDS: Final = 0.2
"""The pause before workers that were not steady are started again; it doubles each time."""


class JobKeeper:
    """A `Keeper` of the workers of a durable cluster in Spark.

    Raise `StoreError` if another cluster uses the store, and what `start` raises the first time.

    Args:
        durable: the folder of the store.
        start: begins a job and returns it when its workers are ready; gets the addresses at which they were
            before, and a function that it calls with the job as soon as there is one.
    """

    def __init__(
        self, durable: str, start: Callable[[Sequence[str], Callable[[SparkJob], None]], SparkJob]
    ) -> None:
        self._start = start
        self._state = threading.Lock()
        self._lost: TimelyError | None = None
        """Why the workers that were ready last have ended; None while all run."""
        self._over: TimelyError | None = None
        """Why there will be no workers any more."""
        self._stopping = threading.Event()
        self._starting: SparkJob | None = None
        self._unsteady = 0
        """How many times in a row the workers have ended before they were steady."""
        self._wake_recv, self._wake_send = os.pipe()
        self._store = FolderStore(durable)
        self._store.lock()
        try:
            self._job = start([], self._note_starting)
        except BaseException:
            self._release()
            raise
        self._ready_at = time.monotonic()
        self._watch = threading.Thread(target=self._run, name="keeper of workers in Spark", daemon=True)
        self._watch.start()

    @property
    def job(self) -> SparkJob:
        """The job that hosts the workers, or has hosted them last."""
        return self._job

    # The calls of a `Keeper`.

    @property
    def addresses(self) -> Sequence[str]:
        """Where clients reach each worker, in order."""
        return self._job.addresses

    @property
    def descriptors(self) -> list[int]:
        """None: clients learn from their connections that a worker has ended, and then `check`."""
        return []

    @property
    def knows_best(self) -> bool:
        """Return False: a client need not know why a worker has ended before it looks for the next one."""
        return False

    @property
    def starts_again(self) -> bool:
        """True until the workers have ended for good."""
        return self._over is None and not self._stopping.is_set()

    def check(self) -> None:
        """Raise why not all workers run, if so."""
        with self._state:
            error = self._over or self._lost
        if error is not None:
            raise fresh_copy(error)

    def stop(self) -> None:
        """End the workers, and leave the store to others. May be called twice.

        Before that, workers that serve clients store the answers of stored outputs.
        """
        try:
            if not self._stopping.is_set():
                fold_last(self._store, self._can_fold)
        finally:
            self._end()

    def _can_fold(self) -> bool:
        is_whole = self.starts_again and self._lost is None and self._watch.is_alive()
        return is_whole and not self._job.is_in_vain

    def _end(self) -> None:
        self._stopping.set()
        if self._wake_send >= 0:
            os.write(self._wake_send, b"!")
        if (starting := self._starting) is not None:
            starting.stop()
        if self._watch is not threading.current_thread():
            self._watch.join()
        self._job.stop()
        self._release()

    # The watch over the workers.

    def _run(self) -> None:
        try:
            while not self._stopping.is_set() and self._over is None:
                wait_readable([*self._job.descriptors, self._wake_recv], _LOOK_SECONDS)
                try:
                    self._job.check()
                except TimelyError as error:
                    if not self._stopping.is_set():
                        self._again(error)
        except Exception as error:
            self._conclude(as_reported(error, "in the keeper of the workers in Spark"))
            _log.exception("the keeper of the workers in Spark has failed")

    def _again(self, error: TimelyError) -> None:
        """End what is left, and start all workers anew, until they are ready or there is no hope."""
        addresses = self._job.addresses
        while not self._stopping.is_set():
            with self._state:
                self._lost = error
            steady = time.monotonic() - self._ready_at if self._ready_at else 0.0
            self._unsteady = 0 if steady >= STEADY_SECONDS_MIN else self._unsteady + 1
            self._ready_at = 0.0
            if reason := self._hopeless(error):
                self._conclude(type(error)(f"{error}\n  {reason}") if isinstance(error, PeerError) else error)
                return
            _log.warning("starting all workers again: %s", error)
            self._job.stop()
            if self._unsteady > 1:
                self._stopping.wait(_PAUSE_SECONDS * 2 ** (self._unsteady - 2))
            if self._stopping.is_set():
                return
            try:
                self._job = self._start(addresses, self._note_starting)
            except TimelyError as another:
                error = another
                continue
            finally:
                self._starting = None
            self._ready_at = time.monotonic()
            with self._state:
                self._lost = None
            _log.warning("all workers are ready again")
            return

    def _hopeless(self, error: TimelyError) -> str:
        """Return why it is no use to start the workers again; "" if it may be."""
        if isinstance(error, SparkLostError) or self._job.is_in_vain:
            return "Spark has ended, and starts no workers any more: what the store has is safe"
        if self._unsteady > RESTARTS_COUNT_MAX:
            return (
                f"The workers have ended {self._unsteady} times in a row before they were ready for "
                f"{STEADY_SECONDS_MIN:g} s: they are not started again. What the store has is safe; mend the "
                "cause, and start the cluster again with the same folder"
            )
        if "FencedError" in str(error):
            return "Another cluster has taken over the store, so this one ends"
        return ""

    def _note_starting(self, job: SparkJob) -> None:
        self._starting = job
        if self._stopping.is_set():
            job.stop()

    def _conclude(self, error: TimelyError) -> None:
        """Give up: no workers run any more."""
        with self._state:
            self._over = self._over or error
        self._job.stop()

    def _release(self) -> None:
        with self._state:
            if self._wake_send >= 0:
                os.close(self._wake_send)
                os.close(self._wake_recv)
                self._wake_send = self._wake_recv = -1
                self._store.unlock()
