"""One worker process that follows a cluster until it is to take its place: what it does step by step."""

from __future__ import annotations

import time
from typing import Final

from ...durable.folder_store import FolderStore
from ...durable.following.status import StatusFile
from ...giving_back import GivingBack
from ...limits import REST_SECONDS_MIN
from ...running.core import Worker
from ..answers.later import Later
from ..durability.durability import Durability
from ..server import Server
from ..tasks.unused_words import UnusedWords
from ..together import is_full
from .following import Following

__all__ = ["StandbyWorker"]

_STATUS_SECONDS: Final = 1.0
"""How often it says how far it is."""
_BEGIN_SECONDS: Final = 0.02
"""How often it looks whether a dataflow has begun on all workers."""


class StandbyWorker:
    """The part of a worker process that follows.

    Args:
        folder: the store of the cluster that is at work.
        worker, server, unused_words, giving_back: of this process.
    """

    def __init__(
        self,
        folder: str,
        worker: Worker,
        server: Server,
        unused_words: UnusedWords,
        giving_back: GivingBack,
    ) -> None:
        """Raise `StoreError` if there is nothing to follow."""
        self._worker = worker
        self._server = server
        self._following = Following(worker, FolderStore(folder))
        self._beginning: Later | None = None
        self._has_reported = False
        self._unused_words = unused_words
        self._giving_back = giving_back
        self._rest_at = float("inf")
        self._status = StatusFile(folder, worker.index)
        self._say_at = 0.0
        server.installations.make_durable(self._following)

    def look(self) -> bool:
        """Let the next dataflow begin, or take in what has come; return True if there was anything."""
        if self._beginning is not None:
            if self._beginning.ready() is None:
                if time.monotonic() > self._beginning.deadline:
                    raise self._beginning.late()
                return False
            self._beginning = None
            return True
        flow = self._following.next_flow()
        if flow is None:
            return self._following.look()
        answer = self._server.begin_again(flow, self._following.begun)
        self._beginning = answer if isinstance(answer, Later) else None
        return True

    def tidy(self) -> None:
        """Forget words that nothing refers to, once there are many. Call it after work."""
        self._say()
        self._rest_at = time.monotonic() + REST_SECONDS_MIN
        if self._unused_words.is_under_way:
            self._unused_words.go_on(self._following.has_read_anew, [self._following])
        elif is_full():
            self._unused_words.go_on()
            self._following.read_anew()

    def rest(self) -> float:
        """Give back memory, and do a little of the work that may wait; call it when there is no work. Return
        how many seconds it may be until the next call of `look`.
        """
        self._say()
        if self._unused_words.is_under_way:
            self._unused_words.go_on(self._following.has_read_anew, [self._following])
        self._giving_back.look(self._following.rows_since())
        if time.monotonic() >= self._rest_at:
            self._rest_at = float("inf")
            self._worker.rest()
            self._giving_back.rest()
        return 0.0 if self._worker.idle() else self._pause_seconds

    @property
    def _pause_seconds(self) -> float:
        return _BEGIN_SECONDS if self._beginning is not None else self._following.pause_seconds

    @property
    def is_newly_abreast(self) -> bool:
        """True once: this worker has done all that the cluster has done, but for the last moments."""
        is_abreast = self._following.is_abreast and not self._worker.has_work()
        if is_abreast and not self._has_reported:
            self._has_reported = True
            return True
        return False

    def _say(self) -> None:
        """Say how far this worker is, now and then."""
        now = time.monotonic()
        if now >= self._say_at:
            self._say_at = now + _STATUS_SECONDS
            is_abreast = self._following.is_abreast and not self._worker.has_work()
            self._status.write(is_abreast, self._following.complete_before())

    def finish(self, durability: Durability) -> None:
        """Become part of an incarnation, with the dataflows that have begun here."""
        self._status.remove()
        self._server.make_durable(durability)
        durability.adopt(self._following.finish(durability.incarnation, durability.past))
