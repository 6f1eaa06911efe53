"""A client's lines to workers of the same host: which worker is reached so?"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Final

from ...limits import DIRECT_TABLE_BYTES_MAX
from ..batch import Frame
from .direct import BrokenLineError, DirectLine, connect
from .socket_options import Poller

__all__ = ["DirectLines"]

_TRIES_MAX: Final = 16
"""A worker that has just been started may not listen yet. One that has no door is not asked for ever."""


class _DropUnlessDone:
    """Drops a line unless what is done within is done to its end. A class: a generator takes 0.5 µs more."""

    __slots__ = ("_drop", "_worker")

    def __init__(self, drop: Callable[[int], None], worker: int) -> None:
        self._drop = drop
        self._worker = worker

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if kind is not None:
            self._drop(self._worker)
        return isinstance(error, BrokenLineError)


class DirectLines:
    """Lines to the workers at `addresses`, as far as there are any; `poller` waits for them."""

    def __init__(self, addresses: Sequence[str], poller: Poller) -> None:
        self._addresses = addresses
        self._poller = poller
        self._tries = [_TRIES_MAX] * len(addresses)
        self._lines: list[DirectLine | None] = [None] * len(addresses)
        self._arrived: list[deque[list[memoryview]]] = [deque() for _ in addresses]
        self._greeted: set[int] = set()
        self._chosen: set[int] = set()
        self._full: set[int] = set()
        """Lines in which there was no room for all."""
        self.speakers: dict[int, int] = {}
        """By the descriptor of its line, the worker."""

    def choose(self, worker: int) -> None:
        """See `ClientSockets.choose`."""
        if worker in self._chosen:
            return
        if self._lines[worker] is None:
            self._try(worker)
        elif worker not in self._greeted:
            self._take(worker)
        if worker in self._greeted:
            self._chosen.add(worker)

    def send(self, worker: int, frames: Sequence[Frame]) -> bool:
        """Send a request by the line to a worker; whether it goes by that: with a large table it does not."""
        line = self._lines[worker]
        if line is None or worker not in self._chosen or not _are_small(frames):
            return False
        with self._whole(worker):
            line.send(frames)
        if worker not in self._chosen:
            return False
        if line.unsent_bytes:
            self._full.add(worker)
            self._poller.add_both_ways(line.descriptor)
        return True

    def has_unsent(self, worker: int) -> bool:
        """Whether there was no room for all of it."""
        return worker in self._full

    @property
    def is_full(self) -> bool:
        """Whether there was no room in any line for all that was sent by it."""
        return bool(self._full)

    def flush(self) -> None:
        """Send what there was no room for."""
        for worker in list(self._full):
            line = self._lines[worker]
            assert line is not None, "what is dropped is not full"
            with self._whole(worker):
                line.flush()
            if worker in self._full and not line.unsent_bytes:
                self._full.discard(worker)
                self._poller.add(line.descriptor)

    def recv_nowait(self, worker: int) -> list[memoryview] | None:
        """The next message of a worker, if one has come in by its line."""
        arrived = self._arrived[worker]
        if not arrived and self._lines[worker] is not None:
            self._take(worker)
        return arrived.popleft() if arrived else None

    def take(self, worker: int) -> list[list[memoryview]]:
        """The messages of a worker that one look finds at its line."""
        self._take(worker)
        arrived = self._arrived[worker]
        taken = [*arrived]
        arrived.clear()
        return taken

    def has_arrived(self) -> bool:
        """Whether a message was read and not asked for."""
        return any(self._arrived)

    def close(self) -> None:
        """Hang up on all. Twice is once."""
        for line in self._lines:
            if line is not None:
                line.close()

    def _try(self, worker: int) -> None:
        if self._tries[worker] <= 0:
            return
        self._tries[worker] -= 1
        line = connect(self._addresses[worker])
        if line is None:
            return
        try:
            self._lines[worker] = line
            self._poller.add(line.descriptor)
            self.speakers[line.descriptor] = worker
        except BaseException:  # a line that nobody waits for would be slow
            self.drop(worker)
            raise

    def _take(self, worker: int) -> None:
        line = self._lines[worker]
        assert line is not None
        with self._whole(worker):
            for message in line.recv():
                if message:
                    self._arrived[worker].append(message)
                else:
                    self._greeted.add(worker)

    def _whole(self, worker: int) -> _DropUnlessDone:
        """What is done to a line is done whole. Where it was interrupted (Ctrl-C) nobody knows what was read
        or sent of a message: it is dropped as one that is broken.
        """
        return _DropUnlessDone(self.drop, worker)

    def drop(self, worker: int) -> None:
        """It is broken: that the worker is gone, if it is, its other connection tells."""
        line, self._lines[worker] = self._lines[worker], None
        self._tries[worker] = 0
        if line is not None:
            if line.descriptor in self._poller:
                self._poller.remove(line.descriptor)
            self.speakers.pop(line.descriptor, None)
            line.close()
        for known in (self._greeted, self._chosen, self._full):
            known.discard(worker)


def _are_small(frames: Sequence[Frame]) -> bool:
    """Whether what comes behind the first frame is."""
    return all(memoryview(frame).nbytes <= DIRECT_TABLE_BYTES_MAX for frame in frames[1:])
