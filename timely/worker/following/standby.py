"""Processes that follow the workers of a durable cluster on the same host, until they take their place."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from ...errors import TimelyError
from ..launcher import Launcher, LocalFolder
from ..settings import WorkerSettings

__all__ = ["Reserve", "Standby", "following_settings"]

_log = logging.getLogger("timely")
_PAUSE_SECONDS: Final = 1.0
_PAUSE_SECONDS_MAX: Final = 60.0
"""The pause before workers that follow are begun anew; it doubles each time, up to the maximum."""


def following_settings(settings: Sequence[WorkerSettings], folder: LocalFolder) -> list[WorkerSettings]:
    """Return the settings of workers that follow, and take the place of those with `settings`, at the same
    client addresses. Until then all their sockets are in `folder`.
    """
    mesh = tuple(f"ipc://{folder.path}/m{index}" for index in range(len(settings)))
    return [
        replace(
            one,
            listen=(mesh[index],),
            peers=mesh,
            client_listen=f"ipc://{folder.path}/n{index}",
            follows=one.client_listen,
        )
        for index, one in enumerate(settings)
    ]


class Standby:
    """Workers that follow.

    Args:
        settings: of all workers of a cluster, which is on this host.
        forward: gets each line that a worker writes to its error stream, with the worker's index.
    """

    def __init__(
        self, settings: Sequence[WorkerSettings], forward: Callable[[int, str], None] | None = None
    ) -> None:
        self.settings = list(settings)
        """Of the workers once they have taken over."""
        self.folder = LocalFolder()
        """For their sockets; it is gone when they have ended."""
        try:
            self._launcher = Launcher(following_settings(settings, self.folder), forward, self.folder)
        except BaseException:
            self.folder.remove()
            raise

    @property
    def descriptors(self) -> list[int]:
        """Become readable when a worker reports or ends."""
        return self._launcher.descriptors

    @property
    def pids(self) -> list[int]:
        """Process numbers, in order of the workers."""
        return self._launcher.pids

    def check(self) -> bool:
        """Return True if all have done what the cluster has done, but for the last moments; raise `PeerError`
        if one has ended, or is stopped.
        """
        self._launcher.check()
        self._launcher.check_stopped()
        return self._launcher.are_abreast

    def take_over(self) -> Launcher:
        """Let them take the place of the cluster, whose workers have ended; return the launcher of the new
        ones, which report when they are ready.
        """
        self._launcher.take_over()
        return self._launcher

    def stop(self) -> None:
        """End them."""
        self._launcher.stop()


class Reserve:
    """Keeps workers that follow while a cluster is at work; begins them anew if one ends.

    Args:
        forward: as for `Standby`.
    """

    def __init__(self, forward: Callable[[int, str], None] | None) -> None:
        self._forward = forward
        self._standby: Standby | None = None
        self._pause_seconds = _PAUSE_SECONDS
        """The next pause."""
        self._begin_at = 0.0
        self.is_abreast = False
        """True if the workers that follow were abreast when `look` was called last."""
        self._is_news = False
        """True if those that stood by before have taken over, or are lost."""

    @property
    def descriptors(self) -> list[int]:
        """Become readable when `look` should be called."""
        return [] if self._standby is None else self._standby.descriptors

    @property
    def pids(self) -> list[int]:
        """Process numbers of the workers that follow, in order."""
        return [] if self._standby is None else self._standby.pids

    def look(self, settings: Sequence[WorkerSettings]) -> None:
        """Begin workers if none follow, and it is time."""
        if self._standby is not None and len(self._standby.settings) != len(settings):
            self.stop()
        was_abreast = self.is_abreast
        try:
            if self._standby is None and time.monotonic() >= self._begin_at:
                self._standby = Standby(settings, self._forward)
            self.is_abreast = self._standby is not None and self._standby.check()
        except (TimelyError, OSError) as error:
            self.stop()
            pause, self._pause_seconds = self._pause_seconds, min(2 * self._pause_seconds, _PAUSE_SECONDS_MAX)
            self._begin_at = time.monotonic() + pause
            _log.warning("no workers stand by; others begin to follow in %.0f s: %s", pause, error)
        if self.is_abreast:
            self._pause_seconds = _PAUSE_SECONDS
            if not was_abreast:
                level = logging.WARNING if self._is_news else logging.INFO
                _log.log(level, "workers stand by, and take over if a worker ends")
                self._is_news = True

    def taken(self) -> Callable[[], Launcher] | None:
        """Return what lets the workers that follow take over, and forget them; None if they lag behind."""
        standby = self._standby
        try:
            if standby is not None and standby.check():
                self._standby, self.is_abreast = None, False
                _log.warning("the workers that stood by take over")
                return standby.take_over
        except TimelyError as error:
            _log.warning("the workers that stood by are lost, too: %s", error)
        self.stop()
        return None

    def stop(self) -> None:
        """End the workers that follow."""
        standby, self._standby, self.is_abreast = self._standby, None, False
        if standby is not None:
            standby.stop()
