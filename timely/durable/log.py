"""The log of one process in one incarnation: a thread writes records, and says which others may hear of.

    add     queues a record, and does not wait for the disk
    thread  takes all that is queued, writes it with one call, syncs once, looks for a fence, raises `told`
    wait    returns when the log has told a record

Where callers wait for most of what they add, as embedded workers do, `wait` does the work of the thread
itself, if that has nothing to do (`by="callers"`). So a change needs one sync for all its records, and no
switch of threads. The thread then writes what nobody waits for, a moment later.

A worker process has a loop (`by="loop"`), which calls `flush`, so that the records of a turn share a sync.
Where nothing is synced, `flush` writes them itself, which takes less time than to wake the thread.

*Sync, look, tell.* A process may tell others only what rests on records that are durable, and only if no
later incarnation had put its fence after they were. The fence comes before that incarnation reads the logs,
and the look comes after the sync: so either the look sees the fence, or the reader sees the records.

*A failed sync is never repeated.* The system may have dropped the pages that it could not write, and a second
sync would succeed without them. The log leaves that file as it is, and writes what is not durable to a new
segment, whose header says how many bytes of the old one count.

*Symbols.* A log is a peer that never answers: `Batch.to_frames(log.peer)` adds the values of symbols that the
segment does not have yet. With each segment `peer` becomes another one, so that every segment can be read by
itself. So no segment may begin between:

    with log.making:
        peer = log.peer
        log.add(head, batch.to_frames(peer))
        batch.on_sent(peer)    # not if `add` has raised
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from contextlib import suppress
from threading import Condition, Lock, RLock, Thread, current_thread
from time import monotonic
from typing import Final, Literal, TypeAlias

from ..dictionaries import dictionaries
from ..errors import FencedError, InternalError, StoreError, TimelyError, WaitTimeoutError
from ..failure import as_reported, fresh_copy
from ..limits import LOG_SEGMENT_BYTES_DEFAULT, LOG_UNSYNCED_BYTES_MAX, STOP_SECONDS_MAX
from ..wire.batch import Frame
from .records import FORMAT, body_of, packed, sealed
from .store import LogFile, Store, fence_path, segment_path

__all__ = ["Log", "WrittenBy", "new_peer"]

_RETRY_SECONDS: Final = 1.0
"""The time after which a log tries again to write, if nobody waits for it."""

_peers = itertools.count(-2, -1)
"""The peers of the segments of all logs of this process."""


def new_peer() -> int:
    """Return a number that no other peer of this process has, to write or to read a log."""
    return next(_peers)


_WHERE: Final = "the log of a durable cluster"
_DOZE_SECONDS: Final = 0.02
"""After this time the thread writes small records for which no caller waits."""
_SLOW_SECONDS: Final = 0.05
"""If a write took longer than this, callers leave the next one to the thread."""
_TRY_SECONDS: Final = 0.2
"""For so long a worker waits for one more try of a log that has failed."""
_PATIENCE_SECONDS: Final = 1.0
"""A caller that waits for less than this does not write: a disk that hangs would keep it for longer."""
_DOZES_MAX: Final = 50
"""The thread looks for records this many times in vain, and then sleeps until somebody adds one."""
_SMALL_BYTES_MAX: Final = 64 << 10
"""If more bytes than these are queued, the thread does not doze: callers go on with their work meanwhile."""

WrittenBy: TypeAlias = Literal["thread", "callers", "loop"]
"""Which thread writes small records: see `Log`."""

_Entry = tuple[list[Frame], int, bool]
"""A queued record: its body, the bytes of that, and whether it is the first of a segment."""


class Log:
    """The log of `process`, which begins empty.

    `syncs`: False if it is enough that the operating system has the records (`sync="system"`). The thread
    calls `on_news` after each change of `told` or `error`, unless a caller has written.

    `by` "callers": callers of `wait` write themselves. "loop": somebody calls `flush` soon after each `add`,
    and the thread leaves small records until then.
    """

    def __init__(
        self,
        store: Store,
        cluster: str,
        incarnation: int,
        process: int,
        *,
        syncs: bool = True,
        on_news: Callable[[], None] | None = None,
        segment_bytes: int = LOG_SEGMENT_BYTES_DEFAULT,
        by: WrittenBy = "thread",
    ) -> None:
        self.position = 0
        """The number of records added."""
        self.told = 0
        """Others may hear of so many records."""
        self.error: TimelyError | None = None
        """Why the log tells nothing at present; None while all is well."""
        self.size_bytes = 0
        """The bytes of all records added."""
        self._store = store
        self._incarnation = incarnation
        self._segments = _SegmentWriter(store, (cluster, incarnation, process), syncs)
        self._on_news = on_news
        self._segment_bytes = segment_bytes
        self._peer = next(_peers)
        self.making = RLock()
        """Held while a record with symbols is made and added: worker threads of one program share a log."""
        self._begins = True
        self._bytes_in_segment = 0
        self._lock = Lock()
        self._work = Condition(self._lock)
        self._news = Condition(self._lock)
        self._queued: list[_Entry] = []
        self._unsynced_bytes = 0
        self._is_idle = False
        self._is_closing = False
        self._is_over = False
        self._is_hurried = False
        self._by_callers = by == "callers"
        self._by_loop = by == "loop"
        self._leaves = by != "thread"
        """The thread leaves small records for a while: see `add`."""
        self.flushes_here = self._by_loop and not syncs
        """`flush` writes by itself."""
        self._is_writing = False
        self._writer: object | None = None
        """The thread writes; whichever call of `wait` does. One of them at a time uses `_segments` and
        `_writing`."""
        self._is_slow = False
        """True if the last write was slow: a switch of threads costs little beside it."""
        self._tries = 0
        self._writing: list[_Entry] = []
        """Records that were taken from the queue and are not durable."""
        self._released = 0
        self._thread = Thread(target=self._run, name=f"log of process {process}", daemon=True)
        self._thread.start()

    @property
    def peer(self) -> int:
        """The peer for whom the frames of the next record are made; see the module."""
        if self._bytes_in_segment >= self._segment_bytes:
            self.begin_segment()
        return self._peer

    @property
    def unsynced_bytes(self) -> int:
        """The bytes of records that are not durable yet."""
        return self._unsynced_bytes

    def add(self, head: Sequence[object], frames: Sequence[Frame] = (), waits: bool = True) -> int:
        """Queue a record, and return the new `position`. Frames must not change until they are written.

        With `waits`, waits only while `LOG_UNSYNCED_BYTES_MAX` bytes are not durable; if the disk fails
        meanwhile, raises `error` and adds nothing. After a fence the log drops records, as nothing can rest
        on them.
        """
        body, size = body_of(head, frames)
        if not frames and self._bytes_in_segment >= self._segment_bytes:
            self.begin_segment()
        with self._lock:
            if waits and self._unsynced_bytes + size > LOG_UNSYNCED_BYTES_MAX:
                self._await_room(size)
            if self._is_over or self._is_closing:
                return self._add_to_ended()
            begins, self._begins = self._begins, False
            self._unsynced_bytes += size
            self._bytes_in_segment += size
            self.size_bytes += size
            self.position += 1
            self._queued.append((body, size, begins))  # behind it a signal may come
            if self._is_idle and not self._by_loop:
                self._is_idle = False
                self._work.notify()
            elif self._leaves and self._unsynced_bytes > _SMALL_BYTES_MAX and not self._is_hurried:
                self._hasten()
            return self.position

    @property
    def is_to_flush(self) -> bool:
        """True if there are records for `flush`."""
        return bool(self._queued) and not self._is_hurried and self.error is None

    def flush(self) -> None:
        """Let the thread write what is queued, or write it here (`flushes_here`). If the disk fails, the
        thread tries again by itself. Does nothing unless the log is written by a loop.
        """
        if self._by_loop:
            self._hand_over(may_write=self.flushes_here)

    def wait(self, position: int, seconds: float) -> None:
        """Return when `told` has reached `position`.

        Raises `StoreError` if the disk fails, after one more try; `FencedError` if a later incarnation has
        taken over; `WaitTimeoutError` after `seconds`.
        """
        if self.told >= position:
            return
        deadline = monotonic() + seconds
        tries = self._hand_over(may_write=self._by_callers and seconds >= _PATIENCE_SECONDS)
        with self._lock:
            while self.told < position:
                self._check(tries)
                rest = deadline - monotonic()
                if rest <= 0:
                    raise WaitTimeoutError(
                        f"the store {self._store.name} has not synced record {position:,} of this process "
                        f"within {seconds} s; it has synced {self.told:,} of {self.position:,}"
                    )
                self._news.wait(rest)

    def try_again(self) -> None:
        """If the disk fails at present, let the thread try once more, and wait a moment for the outcome:
        there may be room by now.
        """
        deadline = monotonic() + _TRY_SECONDS
        with self._lock:
            tries = self._tries_from_now()
            while self.error is not None and not self._is_over and self._tries < tries:
                rest = deadline - monotonic()
                if rest <= 0:
                    return
                self._hasten()
                self._news.wait(rest)

    @property
    def tries(self) -> int:
        """How often it has tried to write; `error` is the outcome of the last time."""
        return self._tries

    def try_soon(self) -> int:
        """If the disk fails at present, let the thread try at once. Return the number of tries after which
        `error` is news: 0 if there is none now.
        """
        if self.error is None:
            return 0
        with self._lock:
            tries = self._tries_from_now()
            self._hasten()
        return tries

    def close(self) -> None:
        """Write and sync what is left, unless that fails, and end the thread."""
        with self._lock:
            self._is_closing = True
            self._hurry()
            self._work.notify()
        if self._thread is not current_thread():
            self._thread.join(STOP_SECONDS_MAX)
        _withdraw(self._peer)

    def begin_segment(self) -> None:
        """Let the next record be the first of another segment, which has no symbols yet."""
        with self.making:
            _withdraw(self._peer)
            self._peer = next(_peers)
            self._begins = True
            self._bytes_in_segment = 0

    # Under the lock, in the threads of callers.

    def _await_room(self, size: int) -> None:
        tries = self._tries
        while self._unsynced_bytes and self._unsynced_bytes + size > LOG_UNSYNCED_BYTES_MAX:
            if self._is_over:
                return
            self._check(tries)
            self._hurry()
            if self._leaves:
                self._hasten()
            self._news.wait()

    def _add_to_ended(self) -> int:
        if isinstance(self.error, FencedError):
            self.position += 1
            return self.position
        raise fresh_copy(self.error or InternalError("a record was added to a log that is closed"))

    def _tries_from_now(self) -> int:
        """Return the number of tries once one has ended that begins now: one that is under way may have begun
        before there was room.
        """
        return self._tries + 1 + self._is_writing

    def _hurry(self) -> None:
        """Let the thread try again at once."""
        if self.error is not None:
            self._hasten()

    def _hasten(self) -> None:
        """Let the thread not wait any longer."""
        self._is_hurried = True
        self._work.notify()

    def _is_free(self) -> bool:
        """Return True if a caller may write. Not if the disk is slow: then `wait` must end in time."""
        is_busy = self._is_writing or self._writer is not None or self._is_over or self._is_closing
        return self.error is None and not is_busy and not self._is_slow

    def _take_queued(self) -> None:
        self._writing += self._queued
        self._queued.clear()

    def _check(self, tries: int) -> None:
        """Raise `error` if it will stay, or if the log has failed since there were so many `tries`."""
        if self.error is not None and (self._is_over or self._tries > tries):
            raise fresh_copy(self.error)

    # In the thread of a caller.

    def _hand_over(self, may_write: bool) -> int:
        """Write what is queued, if the caller may and nobody else does, or let the thread do so. Return the
        number of tries before.
        """
        me = object()
        try:
            with self._lock:
                tries = self._tries
                self._hurry()
                is_mine = may_write and self._is_free()
                if is_mine:
                    self._writer = me
                    self._take_queued()
                elif self._leaves:
                    self._hasten()
            if is_mine:
                self._write_here(me)
        finally:
            if self._writer is me:  # a signal came outside of `_write_here`, or at its end
                self._give_back(me, is_whole=False)
        return tries

    def _write_here(self, me: object) -> None:
        """Write what was taken. If that is interrupted, the thread does, into another segment."""
        is_whole = False
        try:
            self._try()
            is_whole = True
        except Exception as error:
            self._end(as_reported(error, _WHERE))
        finally:
            self._give_back(me, is_whole)

    def _give_back(self, me: object, is_whole: bool) -> None:
        """Let others write; the thread does soon, unless all was written."""
        if not is_whole:
            self._segments.abandon()
            self._release()
        with self._lock:
            if self._writer is me:
                self._writer = None
            if not is_whole or self.error is not None or self._is_closing or self._is_hurried:
                self._hasten()

    # In the thread.

    def _run(self) -> None:
        try:
            while self._take():
                self._try()
        except BaseException as error:
            self._end(as_reported(error, _WHERE))
        finally:
            self._segments.close()

    def _take(self) -> bool:
        """Wait for records; take all, and return True. Return False when the log is closed, or over."""
        with self._lock:
            self._is_writing = False
            if self._is_over:
                return False
            if self.error is not None:
                self._work.wait_for(lambda: self._is_hurried or self._is_closing, _RETRY_SECONDS)
                if self._is_closing and not self._is_hurried:
                    self._is_over = True
                    return False
            self._await_records()
            self._is_idle = self._is_hurried = False
            self._take_queued()
            if self._is_closing and not (self._writing or self.error):
                self._is_over = True
                return False
            self._is_writing = True
        return True

    def _await_records(self) -> None:
        """Return when the thread has something to do, and no caller does it."""
        dozes = 0
        while True:
            if self._writer is not None:
                self._work.wait(_DOZE_SECONDS)
            elif (
                self.error
                or self._is_closing
                or self._writing
                or self._queued
                and (not self._leaves or self._is_hurried or dozes)
            ):
                return
            elif self._by_callers and (self._queued or dozes < _DOZES_MAX):
                # Whoever has added these most often waits for them next, and writes them.
                position = self.position
                self._work.wait(_DOZE_SECONDS)
                dozes = dozes + 1 if position == self.position else 0
            else:
                self._is_idle = True
                self._is_hurried = False  # it was for records that are written by now
                self._work.wait()
                dozes = 0

    def _try(self) -> None:
        """Write, sync, look, and tell."""
        began = monotonic()
        try:
            if self.error is not None:
                self._segments.probe()
            self._segments.write(self._writing)
            self._release()
            is_fenced = self._store.exists(fence_path(self._incarnation + 1))
            self._is_slow = monotonic() - began > _SLOW_SECONDS
        except OSError as error:
            self._segments.abandon()
            self._release()
            self._note(self._failure(error))
            return
        if is_fenced:
            self._end(
                FencedError(
                    f"incarnation {self._incarnation + 1} of this durable cluster has taken over the store "
                    f"{self._store.name}, and this process belongs to incarnation {self._incarnation}: "
                    "connect to the new one"
                )
            )
        else:
            self._note(None)

    def _release(self) -> None:
        """Drop the records that are durable."""
        count = self._segments.count_durable - self._released
        size = sum(entry[1] for entry in self._writing[:count])
        with self._lock:  # no signal comes between these
            del self._writing[:count]
            self._released += count
            self._unsynced_bytes -= size

    def _note(self, error: TimelyError | None) -> None:
        """Note the outcome of a try; without an error others may hear of everything durable."""
        with self._lock:
            self._tries += 1
            self.error = error
            if error is None:
                self.told = self._segments.count_durable
            self._news.notify_all()
        if self._on_news is not None and self._writer is None:  # a caller that writes sees it
            self._on_news()

    def _end(self, error: TimelyError) -> None:
        """End the log with an error that stays."""
        with self._lock:
            self._is_over = True
            self.error = error
            self._queued.clear()
            self._unsynced_bytes = 0
        self._writing.clear()
        self._note(error)

    def _failure(self, error: OSError) -> StoreError:
        return StoreError(
            f"the store {self._store.name} cannot be written: {error.strerror or error}. Nothing is lost: "
            f"this process keeps what is not synced, and tries again every {_RETRY_SECONDS:g} s. Make room, "
            "or mend the disk"
        )


class _SegmentWriter:
    """Writes records into segments, one file after another.

    After an `OSError` the caller calls `abandon`, and later `write` with the records that are not durable.
    """

    def __init__(self, store: Store, of: tuple[str, int, int], syncs: bool) -> None:
        self._store = store
        self._of = of
        self._syncs = syncs
        self._file: LogFile | None = None
        self._spare: LogFile | None = None
        """An abandoned file into which nothing was written; with a full disk there are no others."""
        self._number = -1
        self._crc = 0
        self._header_crc = 0
        self._is_synced = False
        """True if all of the file is."""
        self._durable: tuple[int, tuple[int, int] | None] = 0, None
        """How many records are durable (without `syncs`: written), the segment with the last of them, and how
        many of its bytes are durable. One value, since a signal may come between two."""

    @property
    def count_durable(self) -> int:
        """So many records are durable; without `syncs`, so many are written."""
        return self._durable[0]

    def write(self, entries: Sequence[_Entry]) -> None:
        """Write records, and make them durable."""
        start = 0
        for index, (_, _, begins) in enumerate(entries):
            if begins:
                self._put(entries[start:index])
                self._finish()
                self._open(continues=False)
                start = index
        self._put(entries[start:])

    def probe(self) -> None:
        """Find out with a segment of few bytes whether the store works again."""
        if self._file is None:
            self._open(continues=True).sync()

    def abandon(self) -> None:
        """Leave the current file as it is."""
        file = self._file
        self._file = None
        if file is not None and file.size:
            with suppress(OSError):
                file.close()
        elif file is not None:
            self._spare = file

    def close(self) -> None:
        """Close the files."""
        for file in (self._file, self._spare):
            if file is not None:
                with suppress(OSError):
                    file.close()

    def _put(self, entries: Sequence[_Entry]) -> None:
        if not entries:
            return
        file = self._file or self._open(continues=True)
        pieces: list[Frame] = []
        for body, size, _ in entries:
            front, self._crc = sealed(body, size, self._crc, self._header_crc if self._is_synced else 0)
            self._is_synced = False
            pieces.append(front)
            pieces += body
        file.write(pieces)
        if self._syncs:
            file.sync()
            self._is_synced = True
        self._durable = self._durable[0] + len(entries), (self._number, file.size)

    def _finish(self) -> None:
        """Close a segment that is full. It is durable before the next one is begun, in any mode."""
        if self._file is not None:
            if not self._is_synced:
                self._file.sync()
            file, self._file = self._file, None
            file.close()

    def _open(self, continues: bool) -> LogFile:
        cluster, incarnation, process = self._of
        if self._spare is not None:
            file, self._spare = self._spare, None
        else:
            self._number += 1
            file = self._store.create(segment_path(incarnation, process, self._number))
        self._file = file
        last = self._durable[1]
        before = None if last is None else list(last)
        continues = continues and before is not None
        head = ["segment", FORMAT, cluster, incarnation, process, self._number, continues, before]
        pieces, self._header_crc, _ = packed(head, (), 0)
        self._crc = self._header_crc
        self._is_synced = False
        file.write(pieces)
        return file


def _withdraw(peer: int) -> None:
    """Forget which symbols a segment has."""
    for dictionary in dictionaries():
        dictionary.withdraw(peer)
