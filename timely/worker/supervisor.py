"""Starting the workers of a durable cluster again when one of them has ended.

All that the workers of such a cluster hold is made from its store. So after the unasked end of one worker the
supervisor ends the others too, waits until all have ended, and starts as many anew, with the same settings:
clients find them at the same addresses. The new workers read the store.

A cluster on this machine can also go on with another number of workers: `rescale` lets as many as are wanted
follow (`following/`), ends the present ones in order once the others are abreast, and lets those take over.
If these do not get ready, as many as before start again. With `standby`, as many workers as the cluster has
follow all the time, and take over after the end of one.

With several hosts each has its own supervisor. A worker that loses another one ends, so all supervisors start
their workers again; these then wait for one another.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from types import TracebackType
from typing import Final

from ..counted import counted
from ..durable.answers.asking import fold_last
from ..durable.folder_store import FolderStore
from ..errors import InternalError, OvertakenError, PeerError, TimelyError
from ..failure import as_reported, fresh_copy
from ..limits import (
    INSTALL_SECONDS_MAX,
    RESTART_GRACE_SECONDS_MAX,
    RESTARTS_COUNT_MAX,
    START_SECONDS_MAX,
    STEADY_SECONDS_MIN,
    STOP_SECONDS_MAX,
    UNSTEADY_COUNT_MAX,
)
from ..wire.addresses import is_tcp
from .following.standby import Reserve, Standby
from .launcher import Launcher, LocalFolder, wait_readable
from .settings import WorkerSettings, resized

__all__ = ["Supervisor"]

_log = logging.getLogger("timely")
_PAUSE_SECONDS: Final = 0.1
_PAUSE_SECONDS_MAX: Final = 2.0
"""The pause before workers that were not steady start again; it doubles each time, up to the maximum."""
_PORT_SECONDS: Final = 0.5
_IN_USE: Final = "is in use by another program"
"""What a worker says that finds another process at its port."""
_CLOSED: Final = "this cluster is closed: connect again"
_ENDED: Final = "the cluster has ended: a client or a signal asked for that"
_WAKES_MAX: Final = 64
_TRIES: Final = 3  # so often workers begin to follow for `rescale`, if they have read what does not count
_LOOK_SECONDS: Final = 1.0
"""How often the supervisor looks at workers that say nothing."""


class _EndedInOrder(Exception):
    """A worker has ended in order while others were not ready: a client or a signal ends the cluster."""


class _Rescaling:
    """A wish for another number of workers, and what has become of it."""

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self._is_over = threading.Event()
        self._failure: TimelyError | None = None

    def end(self, failure: TimelyError | None = None) -> None:
        """Let the caller go on; the first end counts."""
        if not self._is_over.is_set():
            self._failure = failure
            self._is_over.set()

    def settle(self) -> None:
        """Return once it is done, or cannot be done."""
        self._is_over.wait()

    def wait(self) -> None:
        """Return once it is done; raise why it cannot be done."""
        self.settle()
        if self._failure is not None:
            raise fresh_copy(self._failure)


class Supervisor:
    """A `Keeper` of the workers of this host. Use it as a context manager, or call `stop`.

    Raise `StoreError` if another cluster uses the store, and `PeerError` if a worker ends before all are
    ready for the first time.

    Args:
        settings: of the workers of this host; `durable` names the folder of the store.
        forward: gets each line that a worker writes to its error stream, with the worker's index.
        folder: of the ipc sockets; the supervisor removes it at the end.
        on_ready: gets the index and address of each worker that is ready for the first time.
        seconds: how long workers may take until they are ready.
        standby: workers stand by, to take over at once; all workers of the cluster are on this host.
    """

    def __init__(
        self,
        settings: Sequence[WorkerSettings],
        forward: Callable[[int, str], None] | None = None,
        folder: LocalFolder | None = None,
        on_ready: Callable[[int, str], None] | None = None,
        seconds: float = START_SECONDS_MAX + INSTALL_SECONDS_MAX,
        standby: bool = False,
    ) -> None:
        self._settings = list(settings)
        self.reserve = Reserve(forward) if standby else None
        """The workers that stand by."""
        self._forward = forward
        self._folder = folder
        self._seconds = seconds
        self._state = threading.RLock()  # a collection of garbage within it may `abandon` this
        self._rescaling: _Rescaling | None = None
        """What `rescale` waits for."""
        self._lost: TimelyError | None = None
        """Why the workers that were ready last have ended; None while all run."""
        self._over: TimelyError | None = None
        """Why there will be no workers any more."""
        self._stopping = threading.Event()
        self._watch: threading.Thread | None = None
        self._wake_recv, self._wake_send = os.pipe()
        self._launcher: Launcher | None = None
        self._held: FolderStore | None = None
        self.addresses: list[str] = []
        """Where clients reach each worker of this host, in order; of one that there was before, the same."""
        self.restarts = 0
        """How often the workers were started again."""
        self._unready = self._unsteady = 0
        """How often in a row the workers have ended before they were ready, and before they were steady."""
        self._ready_at = 0.0
        try:
            if self._settings[0].index == 0:  # one host holds the lock for all
                store = FolderStore(self._settings[0].durable)
                store.lock()
                self._held = store
            self._start(on_ready)
        except BaseException:
            self.stop()
            raise
        self.addresses = [address or "" for address in self._running().addresses]
        self._settings = [_at(one, address) for one, address in zip(settings, self.addresses, strict=True)]

    def __enter__(self) -> Supervisor:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def is_abreast(self) -> bool:
        """True if workers stand by that have done what the cluster has done, but for the last moments."""
        return self.reserve is not None and self.reserve.is_abreast

    @property
    def pids(self) -> list[int]:
        """Process numbers, in order of the workers; of those that run, or have run last."""
        return [] if self._launcher is None else self._launcher.pids

    # The calls of a `Keeper`.

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
        """Raise `PeerError` while not all workers run: why they have ended."""
        with self._state:
            error = self._over or self._lost
        if error is not None:
            raise fresh_copy(error)

    def rescale(self, workers: int) -> None:
        """Let the cluster go on with another number of workers, and return once these are ready. They must be
        those of `local_settings`, and `watch` must have been called.

        Raise `PeerError` if the new workers do not start: then as many as before run again. Raise it also if
        there will be no workers any more.
        """
        resized(self._settings, workers)  # or raise what is wrong
        if self._watch is None:
            raise InternalError("nobody watches these workers")
        mine = _Rescaling(workers)
        while True:
            with self._state:
                if self._over is not None or self._stopping.is_set():
                    raise fresh_copy(self._over or PeerError(_CLOSED))
                before = self._rescaling
                if before is None:
                    self._rescaling = mine
                    break
            before.settle()  # of another thread
        self._wake()
        mine.wait()

    def stop(self) -> None:
        """End the workers, and give the store free; return when no worker is left. May be called twice.

        Before that, workers that serve clients store the answers of stored outputs.
        """
        try:
            self._store_answers()
        finally:
            self.abandon()
            if self._watch is not None and self._watch is not threading.current_thread():
                self._watch.join()
            self._end()

    def _store_answers(self) -> None:
        watch, held = self._watch, self._held
        if watch is not None and watch is not threading.current_thread() and held is not None:
            fold_last(held, lambda: watch.is_alive() and not self._stopping.is_set())

    def _end(self) -> None:
        if self.reserve is not None:
            self.reserve.stop()
        if self._launcher is not None:
            self._launcher.stop()
        self._give_free()
        with self._state:
            if self._wake_send >= 0:
                os.close(self._wake_send)
                os.close(self._wake_recv)
                self._wake_send = self._wake_recv = -1

    def abandon(self) -> None:
        """Let the thread that watches the workers end them; do not wait for that."""
        self._stopping.set()
        self._wake()

    # The watch over the workers.

    def watch(self) -> None:
        """Start a thread that runs `run`."""
        self._watch = threading.Thread(target=self._run, name="supervisor of workers", daemon=True)
        self._watch.start()

    def run(self) -> None:
        """Start the workers again whenever one has ended unasked. Return once all have ended in order, or
        `stop` was called; raise `PeerError` if they end again and again before they are ready.
        """
        try:
            while not self._stopping.is_set():
                try:
                    if self._wait_end():
                        break
                except TimelyError as error:  # also a report that makes no sense
                    self._again(error)
                    continue
                self._rescale()
        except _EndedInOrder:
            pass
        if not self._stopping.is_set():
            self._conclude(PeerError(_ENDED))

    def _run(self) -> None:
        try:
            self.run()
        except PeerError as error:
            _log.error("%s", error)
        except Exception as error:
            self._conclude(as_reported(error, "in the supervisor of the workers"))
            _log.exception("the supervisor of the workers has failed")
        self._end_rescaling(PeerError(_CLOSED))
        if self._stopping.is_set():
            self._end()

    def _rescale(self) -> None:
        """Carry out what `rescale` asks for."""
        rescaling, before = self._rescaling, self._settings
        assert rescaling is not None, "the wait for the workers has ended because of it"
        count, failure = rescaling.workers, None
        if count != len(before):
            after, has_switched = resized(before, count), False
            try:
                begin = self._prepared(after)
                has_switched = True
                self._switch(after, begin)
            except (TimelyError, OSError) as error:
                failure = PeerError(
                    f"the cluster goes on with {counted(len(before), 'worker')}, as before: "
                    f"{counted(count, 'worker')} did not start: {error}"
                )
                if not has_switched and self._running().is_ending:
                    failure = PeerError(_ENDED)
                if has_switched:
                    self._settings = before
                    self._again(failure)
        self._end_rescaling(failure)

    def _prepared(self, settings: Sequence[WorkerSettings]) -> Callable[[], Launcher]:
        """Let these workers follow the present ones; once they are abreast, return what lets them take over.
        If one of the present ones ends before, or they are too busy to be followed, return what starts the
        others after the end of all. Raise `PeerError` if those that are to follow end.
        """
        until = time.monotonic() + self._seconds
        if self.reserve is not None:
            self.reserve.stop()  # for memory: it has another number
        for tries_left in reversed(range(_TRIES)):
            standby = Standby(settings, self._forward)
            try:
                while not self._stopping.is_set():
                    is_lost = self._is_lost()
                    if standby.check():
                        self._check_store(for_more=True)
                        return standby.take_over
                    if is_lost or time.monotonic() >= until:
                        break
                    self._sleep([*self._running().descriptors, *standby.descriptors], _LOOK_SECONDS)
            except PeerError as error:
                standby.stop()
                if not (tries_left and OvertakenError.__name__ in str(error)):
                    raise
            except BaseException:
                standby.stop()
                raise
            else:
                standby.stop()
                break
        self._check_store(for_more=True)
        return partial(Launcher, settings, self._forward)

    def _check_store(self, for_more: bool = False) -> None:
        """Raise `StoreError` if the folder is gone: workers would begin with an empty one. With `for_more`,
        also if it takes no files: other workers could not begin.
        """
        if self._held is not None:
            self._held.check()
            if for_more:
                self._held.check_room()

    def _is_lost(self) -> bool:
        """Return True if one of the present workers has ended unasked, or is stopped. Raise `PeerError` if a
        client or a signal ends them: then no others take their place.
        """
        try:
            self._running().check()
            self._running().check_stopped()
        except PeerError as error:
            if self._running().is_ending:
                raise PeerError(_ENDED) from error
            return True
        return False

    def _switch(self, settings: list[WorkerSettings], begin: Callable[[], Launcher]) -> None:
        """End the present workers in order, and let those of `begin` take over; return once they are ready,
        or `stop` was called. Raise `PeerError` if they do not get ready; see also `_wait_ready`.
        """
        reason = f"the cluster goes on with {counted(len(settings), 'worker')}"
        with self._state:
            self._lost = PeerError(reason)
        _log.info("%s in place of %d", reason, len(self._settings))
        self._running().stop(reason)
        self._settings = settings
        self._launch(begin)
        self._wait_ready(None)
        self._go_on()

    def _go_on(self) -> None:
        """Let clients know the workers that are ready."""
        with self._state:
            if not self._stopping.is_set():
                self.addresses = [address or "" for address in self._running().addresses]
                self._lost = None

    def _end_rescaling(self, failure: TimelyError | None) -> None:
        """Let a caller of `rescale` go on."""
        with self._state:
            rescaling, self._rescaling = self._rescaling, None
        if rescaling is not None:
            rescaling.end(self._over or (PeerError(_CLOSED) if self._stopping.is_set() else failure))

    def _again(self, error: TimelyError) -> None:
        """End the workers that are left, and start all anew, until they are ready or there is no hope."""
        while not self._stopping.is_set():
            with self._state:
                self._lost = error
            steady = time.monotonic() - self._ready_at if self._ready_at else 0.0
            self._unsteady = 0 if steady >= STEADY_SECONDS_MIN else self._unsteady + 1
            self._unready = 0 if self._ready_at else self._unready + 1
            self._ready_at = 0.0
            if reason := self._hopeless(error):
                verdict = PeerError(f"{error}\n  {reason}")
                self._conclude(verdict)
                raise verdict
            _log.warning("starting all workers again: %s", error)
            try:
                self._end_all(str(error))
                self._pause()
                if self._stopping.is_set():
                    return
                self.restarts += 1
                self._check_store()
                self._launch(None if self.reserve is None else self.reserve.taken())
                self._wait_ready(None)
            except TimelyError as another:
                error = another
                continue
            except OSError as another:
                error = PeerError(f"a worker could not be started: {another}")
                continue
            self._go_on()
            if not self._stopping.is_set():
                _log.warning("all workers are ready again")
            return

    def _hopeless(self, error: TimelyError) -> str:
        """Return why it is no use to start the workers again; "" if it may be."""
        often, of = self._unready, "they were"
        if often < RESTARTS_COUNT_MAX:
            often, of = self._unsteady, f"they had been for {STEADY_SECONDS_MIN:g} s"
        if self._unready >= RESTARTS_COUNT_MAX or self._unsteady >= UNSTEADY_COUNT_MAX:
            return (
                f"The workers have ended {often} times in a row before {of} ready, so they are not started "
                "again. What the store has is safe: mend the cause, and start the cluster again with the "
                "same folder"
            )
        if "failed: FencedError:" in str(error) and len(self._settings) == self._settings[0].workers:
            return (
                "Another cluster has taken over the store, so this one ends: two clusters cannot use one "
                "store at the same time"
            )
        return ""

    def _conclude(self, error: TimelyError) -> None:
        """Give up: no workers run any more, and others may use the store."""
        with self._state:
            self._lost = error
        if self.reserve is not None:
            self.reserve.stop()
        if self._launcher is not None:
            self._launcher.stop(str(error))
        self._give_free()
        with self._state:
            self._over = self._over or error

    def _start(self, on_ready: Callable[[int, str], None] | None) -> None:
        """Start the workers for the first time. If ports are in use, try again for as long as the workers of
        a supervisor that was killed may take to end.
        """
        until = time.monotonic() + STOP_SECONDS_MAX + _PORT_SECONDS
        while True:
            self._launch()
            try:
                self._wait_ready(on_ready)
                return
            except PeerError as error:
                if _IN_USE not in str(error) or time.monotonic() >= until:
                    raise
            self._running().stop()
            time.sleep(_PORT_SECONDS)

    def _launch(self, begin: Callable[[], Launcher] | None = None) -> None:
        if self._folder is not None:
            self._folder.clear()
        self._ready_at = 0.0
        self._launcher = begin() if begin is not None else Launcher(self._settings, self._forward)

    def _end_all(self, reason: str) -> None:
        if self._launcher is not None:
            self._launcher.stop(reason, RESTART_GRACE_SECONDS_MAX)

    def _pause(self) -> None:
        """Wait before workers that were not steady start again: other hosts may not be that far."""
        if self._unsteady > 1:
            seconds = min(_PAUSE_SECONDS * 2 ** (self._unsteady - 2), _PAUSE_SECONDS_MAX)
            wait_readable([self._wake_recv], seconds)

    def _wait_ready(self, on_ready: Callable[[int, str], None] | None) -> None:
        """Return once all workers are ready, or `stop` was called; raise `PeerError` if one ends or is
        late, `_EndedInOrder` if one ends since somebody has asked for that.
        """
        launcher = self._running()
        deadline = time.monotonic() + self._seconds
        told: set[int] = set()
        while not self._stopping.is_set():
            try:
                launcher.check()
            except PeerError as error:
                if launcher.is_ending and self.addresses:  # not at the first start
                    raise _EndedInOrder from error
                raise
            lacking: list[str] = []
            for one, address in zip(self._settings, launcher.addresses, strict=True):
                if address is None:
                    lacking.append(str(one.index))
                elif on_ready is not None and one.index not in told:
                    told.add(one.index)
                    on_ready(one.index, address)
            if not lacking:
                self._ready_at = time.monotonic()
                return
            left = deadline - time.monotonic()
            if left <= 0:
                raise PeerError(f"worker {', '.join(lacking)} was not ready within {self._seconds:.0f} s")
            launcher.check_stopped()
            self._sleep(launcher.descriptors, min(left, _LOOK_SECONDS))

    def _wait_end(self) -> bool:
        """Return True once all workers have ended in order, or `stop` was called; False if another number of
        workers is wanted. Raise `PeerError` if one ends in another way.
        """
        launcher = self._running()
        while not self._stopping.is_set():
            try:
                launcher.check()
            except PeerError:
                if launcher.has_failed:
                    raise
                if launcher.has_ended:
                    return True
                # A worker that ends in order has told the others, which may be in a long step.
            else:
                if self._rescaling is not None:
                    return False
            launcher.check_stopped()
            descriptors = launcher.descriptors
            if self.reserve is not None:
                self.reserve.look(self._settings)
                descriptors += self.reserve.descriptors
            self._sleep(descriptors, _LOOK_SECONDS)
        return True

    def _sleep(self, descriptors: Sequence[int], seconds: float) -> None:
        """Wait until one of these becomes readable, or `stop` or `rescale` is called."""
        if self._wake_recv in wait_readable([*descriptors, self._wake_recv], seconds):
            os.read(self._wake_recv, _WAKES_MAX)  # else no later wait would last

    def _running(self) -> Launcher:
        if self._launcher is None:
            raise InternalError("a supervisor without a launcher")
        return self._launcher

    def _wake(self) -> None:
        with self._state:
            if self._wake_send >= 0:
                os.write(self._wake_send, b"!")

    def _give_free(self) -> None:
        with self._state:
            held, self._held = self._held, None
        if held is not None:
            held.unlock()
        if self._folder is not None:
            self._folder.remove()


def _at(settings: WorkerSettings, address: str) -> WorkerSettings:
    """Return the settings with the port at which clients know the worker, if the system has chosen it."""
    listen = settings.client_listen
    if not (is_tcp(listen) and listen.endswith(":0")):
        return settings
    return replace(settings, client_listen=f"{listen.removesuffix('0')}{address.rpartition(':')[2]}")
