"""Asks the workers for all pages: one thread, one answer, one frame of bytes, however many pages look.

Nobody asks while no page looks. The next question waits until the last one is answered, and then four times
as long as that took, so that workers and this process have most of their time for other things. A second
thread says how old the last answer is while a worker does not answer.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from ..client.cluster import Cluster
from ..client.reports.figures import Stats
from ..errors import PeerError, ReplacedError, TimelyError, UninstalledError, WaitTimeoutError
from .content.frames import frame_of, shape_of
from .content.lookers import Lookers, packed
from .content.told import Json

__all__ = ["ClusterWatch"]

_EVERY_SECONDS: Final = 0.25
_REST: Final = 4
"""Times as long as an answer took, until the next question."""

_LATE_SECONDS: Final = 1.0
"""An answer that takes longer is late: pages say how old their numbers are."""

_WHO_SECONDS: Final = 2.0
"""Between two questions who does not answer."""

_AGAIN_SECONDS: Final = 1.0
"""Until the next try to connect to a cluster that has ended."""

_IDLE_SECONDS: Final = 3.0
"""Without a question: then nobody has looked, and the last frame is no news for a page that comes."""

_FRESH_SECONDS: Final = 0.5
_ENDED_MAX: Final = 50
_QUERY: Final = "(select)"
"""The name of the dataflow of a query, which ends with its answer: there may be thousands."""

_PATIENCE_SECONDS: Final = 5.0
"""How long a request waits while workers do not answer: others need its thread."""

_ERROR_CHARS_MAX: Final = 4_000


class ClusterWatch:
    """A cluster that pages look at.

    cluster  a connection that its caller closes; None: `connect` makes one, and another one after it was lost
    """

    def __init__(self, cluster: Cluster | None, connect: Callable[[], Cluster] | None = None) -> None:
        self.lookers = Lookers()
        self.asked = 0
        """How often the workers have answered."""
        self.shape: tuple[int, bytes] = (0, b"{}")
        """Its version, and the bytes of its event."""
        self.frame: tuple[int, bytes] = (0, b"{}")
        self.status: tuple[int, bytes] = (0, packed({"state": "starts"}))
        self._cluster, self._connect = cluster, connect
        self._is_ours = cluster is None
        self._stats: Stats = []
        self._answered = self._since = 0.0
        self._began: float | None = None
        self._shape: dict[str, Json] = {}
        self._ended: list[dict[str, Json]] = []
        self._is_over = threading.Event()
        self._asking = threading.Lock()
        self._saying = threading.RLock()
        self._threads = [
            threading.Thread(target=self._run, name="console asks the workers", daemon=True),
            threading.Thread(target=self._look_out, name="console looks out", daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    @property
    def cluster(self) -> Cluster:
        """The cluster; raises PeerError if it is lost."""
        cluster = self._cluster
        if cluster is None:
            raise PeerError("the cluster does not answer at present")
        return cluster

    def stats(self) -> Stats:
        """Return the last answer of the workers, or a new one if that is older than half a second. Raise
        `WaitTimeoutError` if another thread waits for an answer already, and none comes.
        """
        if self._is_old():
            if not self._asking.acquire(timeout=_PATIENCE_SECONDS):
                raise WaitTimeoutError(f"the workers have not answered for {_PATIENCE_SECONDS:.0f} s")
            try:
                if self._is_old():
                    self._ask()
            finally:
                self._asking.release()
        return self._stats

    def recent(self) -> Stats:
        """Return the last answer of the workers, also an old one while they are asked: `status` says how old
        it is.
        """
        stats = self._stats
        return stats if stats and self._began is not None else self.stats()

    def _is_old(self) -> bool:
        return time.monotonic() - self._answered > _FRESH_SECONDS or not self._stats

    @property
    def is_stale(self) -> bool:
        """True if nobody has looked for a while, so that the frame is an old one."""
        return self._began is None and time.monotonic() - self._answered > _IDLE_SECONDS

    def close(self) -> None:
        """Ask no more."""
        self._is_over.set()
        self.lookers.came.set()
        self._close_ours()

    def _run(self) -> None:
        while True:
            self.lookers.came.wait()
            if self._is_over.is_set():
                return
            began = time.monotonic()
            try:
                with self._asking:
                    self._ask()
            except Exception as error:  # a page shows it: the thread must go on
                if self._is_over.is_set():
                    return
                self._lose(error)
                self._is_over.wait(_AGAIN_SECONDS)
                continue
            taken = time.monotonic() - began
            self._is_over.wait(max(_EVERY_SECONDS - taken, _REST * taken))

    def _ask(self) -> None:
        if self._cluster is None:
            assert self._connect is not None, "a cluster that a caller has made is kept"
            self._cluster = self._connect()
            self._stats, self._shape = [], {}  # dataflows of another cluster, perhaps, with these numbers
            if self._is_over.is_set():  # `close` has found no cluster to close
                self._close_ours()
                raise PeerError("the console has ended")
        self._began = began = time.monotonic()
        # After a while in which nobody looked, rates begin anew. And outputs note how far they are only when
        # somebody asks: the first answer may tell of epochs as late that have been complete for long.
        is_new = not self._stats or began - self._answered > _IDLE_SECONDS
        try:
            stats = self._cluster.stats()
            if is_new:
                self._stats, self._answered = stats, time.monotonic()
                self._since = self._answered
                self._is_over.wait(_EVERY_SECONDS / 2)
                began = time.monotonic()
                stats = self._cluster.stats()
        finally:
            self._began = None
        self.asked += 1
        before, since = self._stats, self._answered
        self._stats, self._answered = stats, time.monotonic()
        shape = shape_of(stats)
        if shape != self._shape or self.shape[0] == 0:
            self._note_ended(shape)
            self._shape = shape
            ended: Json = list(self._ended)
            self.shape = (self.shape[0] + 1, packed({"flows": shape, "ended": ended}))
        seconds = max(self._answered - since, 1e-3)
        frame = frame_of(before, stats, seconds, self._answered - self._since)
        frame |= {"at": time.time(), "asked_seconds": self._answered - began, "shape": self.shape[0]}
        self.frame = (self.frame[0] + 1, packed(frame))
        self._say({"state": "answers"})
        self.lookers.wake()

    def _note_ended(self, shape: dict[str, Json]) -> None:
        """Note how the dataflows have ended that are not there any more."""
        assert self._cluster is not None
        if not self._shape and self.shape[0] == 0:  # what ended before anybody looked
            last = max(map(int, shape), default=-1)
            gone = [str(index) for index in range(max(0, last - _ENDED_MAX), last + 3)]
        else:
            gone = [index for index in self._shape if index not in shape]
        for index in gone:
            if index not in shape:
                self._ended += self._end_of(index, is_known=index in self._shape)
        del self._ended[:-_ENDED_MAX]

    def _end_of(self, index: str, is_known: bool) -> list[dict[str, Json]]:
        assert self._cluster is not None
        kind, message = "replaced", ""
        try:
            flow = self._cluster.flow(int(index))
            if flow.index == int(index):  # it has come since the workers have answered
                return []
            message = f"dataflow {flow.index} has taken its place"
        except (UninstalledError, ReplacedError) as error:
            kind, message = "uninstalled", str(error)
        except TimelyError as error:
            kind, message = "error", str(error)
            if not error.ends_dataflow:  # another cluster answers at that address by now, say
                return []
        before = self._shape.get(index)
        name = str(before.get("name")) if isinstance(before, dict) else ""
        if kind == "uninstalled" and (not is_known or name.startswith(_QUERY)):
            return []
        return [
            {
                "dataflow": int(index),
                "name": name,
                "kind": kind,
                "message": message[:_ERROR_CHARS_MAX],
                "at": time.time() if is_known else None,
            }
        ]

    def _lose(self, error: Exception) -> None:
        self._close_ours()
        self._stats = []
        message = f"{error}"[:_ERROR_CHARS_MAX]
        again = "the page connects again as soon as workers answer there" if self._is_ours else ""
        self._say({"state": "lost", "message": message, "again": again, "age": self._age()})
        self.lookers.wake()

    def _close_ours(self) -> None:
        cluster = self._cluster
        if self._is_ours and cluster is not None:
            self._cluster = None
            with suppress(Exception):  # it is lost already, most often
                cluster.close()

    def _age(self) -> float | None:
        return round(time.monotonic() - self._answered, 1) if self._answered else None

    def _say(self, status: dict[str, Json]) -> None:
        told = packed(status)
        with self._saying:
            if told != self.status[1]:
                self.status = (self.status[0] + 1, told)

    def _look_out(self) -> None:
        """Say for how long no answer has come, and which worker does not answer, until it comes."""
        who: list[str] = []
        asked = 0.0
        while not self._is_over.wait(_EVERY_SECONDS):
            self.lookers.came.wait()
            began = self._began
            if began is None or time.monotonic() - began < _LATE_SECONDS:
                who = []
                continue
            if time.monotonic() - asked > _WHO_SECONDS:
                asked = time.monotonic()
                who = self._who()
            waited = round(time.monotonic() - began, 1)
            told: list[Json] = list(who)
            with self._saying:  # an answer that comes now is said after this, not before
                if self._began is not began:
                    continue
                self._say({"state": "late", "seconds": waited, "who": told, "age": self._age()})
            self.lookers.wake()

    def _who(self) -> list[str]:
        """Return a line for each worker that is in a long call, or does not answer."""
        cluster = self._cluster
        if cluster is None:
            return []
        try:
            return cluster.at_work()
        except Exception as error:  # whatever it is: the page must go on saying how old its numbers are
            return [str(error)[:_ERROR_CHARS_MAX]]
