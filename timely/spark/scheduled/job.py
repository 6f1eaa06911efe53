"""The driver's end of a cluster in Spark: the job in its thread, the lines of its tasks, the verdict.

    job thread     runs the barrier stage, and ends when that is over
    line thread    accepts tasks, receives their messages, and decides what has ended the cluster

A program that uses the cluster calls `check`, and polls a file descriptor. The door closes as soon as all
tasks have come. After the first loss the cluster is over: this module sends the reason to the other tasks, so
that their workers send the same reason to every client, and cancels the job, before Spark tries the stage
again.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import selectors
import socket
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence

from pyspark import SparkContext, cloudpickle

from timely.counted import counted
from timely.errors import TimelyError
from timely.failure import fresh_copy
from timely.keys import ClusterKeys
from timely.limits import INSTALL_SECONDS_MAX, START_SECONDS_MAX, STOP_SECONDS_MAX
from timely.spark.errors import ClusterLostError, ScheduleError, first_line
from timely.spark.lost import is_stopped, spark_lost
from timely.spark.scheduled import facts, line, task
from timely.spark.scheduled.line import LINE_BYTES_MAX, Line, is_proof, proof
from timely.spark.scheduled.roster import End, Roster, Task, Trouble
from timely.spark.scheduled.status import busy_slots, reason_of, running_tasks, slots_of
from timely.spark.scheduled.task import BarrierTask, Shared

__all__ = ["SparkJob"]

for _module in (facts, line, task):
    cloudpickle.register_pickle_by_value(_module)

_LOOK_SECONDS = 0.2
_VERDICT_SECONDS_MAX = 10.0
"""How long `check` waits for a verdict, once there is trouble: it takes three seconds, unless this machine is
slow.
"""
_GUEST_SECONDS_MAX = 5.0
_GUESTS_MAX = 64
_HELLO_BYTES_MAX = 65_536


class _Guest:
    """A connection that has not proved yet that it has the token."""

    def __init__(self, stream: socket.socket) -> None:
        self.line = Line(stream, _HELLO_BYTES_MAX)
        self.nonce = secrets.token_hex(16)
        self.since = time.monotonic()
        self.line.say(nonce=self.nonce)


class SparkJob:
    """The workers of one cluster, as a job of Spark; a `Keeper` of them.

    Args:
        context: of Spark.
        workers: their number.
        shared: settings that are the same for all workers.
        hooks: functions to call once on each host before workers start.
        keys: of the cluster; without them its workers accept every client.
        token: shows workers that a client may send functions; by default a new one.
        addresses: where workers that these replace were reached; those that come to the same host listen at
            the same port.
    """

    def __init__(
        self,
        context: SparkContext,
        workers: int,
        shared: Shared,
        hooks: Sequence[str] = (),
        keys: ClusterKeys | None = None,
        token: str = "",
        addresses: Sequence[str] = (),
    ) -> None:
        self.token = token or secrets.token_hex(16)
        self._context = context
        self._group = f"naiad-{secrets.token_hex(8)}"
        self._roster = Roster(workers)
        self._shared = shared
        self._changed = threading.Condition()
        self._failure: TimelyError | None = None
        self._is_stopping = False
        self._is_over = False
        self._is_closed = False
        self._signal_recv, self._signal_send = os.pipe()
        self._wake_recv, self._wake_send = os.pipe()
        self._selector = selectors.DefaultSelector()
        self._looking = selectors.DefaultSelector()
        self._lines: dict[int, Line] = {}
        self._saying = threading.Lock()
        conf = context.getConf()
        host = conf.get("spark.driver.host") or "localhost"
        self._door: socket.socket | None = _door(conf.get("spark.driver.bindAddress") or host)
        self._selector.register(self._door, selectors.EVENT_READ, None)
        self._selector.register(self._wake_recv, selectors.EVENT_READ, None)
        port = self._door.getsockname()[1]
        keys_text = "" if keys is None else keys.to_text()
        self._task = BarrierTask((host, port), self.token, shared, hooks, keys_text, addresses)
        self._threads = [
            threading.Thread(target=work, name=f"naiad in Spark: {name}", daemon=True)
            for name, work in (("job", self._run), ("lines", self._listen))
        ]
        for thread in self._threads:
            thread.start()

    # Calls of a program that starts a cluster.

    def wait_for_tasks(self, seconds: float) -> dict[int, Task]:
        """Return the tasks, once all have come; raises `ScheduleError`, which says what Spark waits for, if
        not all have come within `seconds`.
        """
        begun = time.monotonic()

        def is_late(waited: float) -> bool:
            """Return True after `seconds`; later if Spark has started tasks, or has the slots for them: then
            Python may still be starting.
            """
            if waited < seconds:
                return False
            is_coming = bool(self._roster.tasks) or running_tasks(self._context, self._group) > 0
            free = slots_of(self._context) - busy_slots(self._context)
            has_room = is_coming or free >= self._roster.count
            return not has_room or waited >= seconds + START_SECONDS_MAX

        self._wait(lambda: self._roster.is_complete, begun, is_late, self._not_scheduled)
        return dict(self._roster.tasks)

    def begin(self) -> None:
        """Let all tasks start their workers."""
        self._send_order(start=True)

    def wait_ready(self, seconds: float = START_SECONDS_MAX + INSTALL_SECONDS_MAX) -> list[str]:
        """Return the client addresses of the workers, once all are ready; a fresh host compiles kernels
        first.
        """
        begun = time.monotonic()
        self._wait(lambda: self._roster.is_ready, begun, lambda waited: waited >= seconds, self._not_ready)
        return self._roster.addresses

    def is_of(self, context: SparkContext) -> bool:
        """Return True if the job runs in this Spark, and takes slots there."""
        return context is self._context and not self._is_over and self._failure is None

    # The calls of a `Keeper`.

    @property
    def descriptors(self) -> list[int]:
        """A descriptor that becomes readable when the cluster is over; none afterwards."""
        return [] if self._failure is not None or self._is_over else [self._signal_recv]

    @property
    def knows_best(self) -> bool:
        """True: a worker whose task is lost knows only that it has to end."""
        return True

    @property
    def starts_again(self) -> bool:
        """Return False: `ScheduledCluster.restart` makes another cluster, or a `JobKeeper` another job."""
        return False

    @property
    def addresses(self) -> list[str]:
        """Where clients reach the workers, in order; empty before all are ready."""
        return self._roster.addresses if self._roster.is_ready else []

    @property
    def is_in_vain(self) -> bool:
        """True if Spark runs no job any more."""
        return is_stopped(self._context)

    def check(self) -> None:
        """Raise `ClusterLostError` if the cluster has ended without `stop`; wait for the verdict if one
        is due.
        """
        with self._changed:
            if (
                self._failure is None
                and not self._is_stopping
                and (self._has_news() or self._roster.is_troubled)
            ):
                self._changed.wait_for(
                    lambda: self._failure is not None or self._is_idle(), _VERDICT_SECONDS_MAX
                )
            if self._failure is not None:
                raise fresh_copy(self._failure)

    def stop(self) -> None:
        """End the workers and the job. May be called twice."""
        with self._changed:
            if self._is_over:
                return
            self._is_stopping = True
        self._send_order(end="")
        job, lines = self._threads
        job.join(STOP_SECONDS_MAX)
        if job.is_alive():
            self._cancel()
            job.join(STOP_SECONDS_MAX)
        with self._changed:
            self._is_over = True
            self._wake()
        if lines is not threading.current_thread():
            lines.join(STOP_SECONDS_MAX)

    # The threads.

    def _run(self) -> None:
        """Run the job thread."""
        context, count = self._context, self._roster.count
        try:
            context.setJobGroup(self._group, f"naiad: {counted(count, 'worker')}")
            stage = context.parallelize(range(count), count).barrier()
            stage.mapPartitionsWithIndex(self._task).collect()
            text = "Spark has ended the job of the workers"
        except Exception as error:  # Py4J's, PySpark's
            text = _of_spark(error)
        with self._changed:
            self._roster.job_ends(text, time.monotonic())
            self._wake()

    def _listen(self) -> None:
        """Run the line thread."""
        guests: list[_Guest] = []
        while not self._is_over:
            for key, _ in self._selector.select(_LOOK_SECONDS):
                self._answer(key.fileobj, key.data, guests)
            for guest in [one for one in guests if time.monotonic() - one.since > _GUEST_SECONDS_MAX]:
                self._turn_away(guest, guests)
            with self._changed:
                if self._roster.is_complete:
                    self._shut(guests)
                trouble = self._roster.verdict(time.monotonic())
                is_news = trouble is not None and self._failure is None and not self._is_stopping
                self._changed.notify_all()
            if is_news and trouble is not None:
                self._conclude(trouble)
        self._close(guests)

    def _answer(self, source: object, whose: object, guests: list[_Guest]) -> None:
        if source is self._door:
            self._let_in(guests)
        elif source == self._wake_recv:
            os.read(self._wake_recv, 64)
        elif isinstance(whose, _Guest):
            self._greet(whose, guests)
        elif isinstance(whose, int):
            self._hear(whose)

    def _let_in(self, guests: list[_Guest]) -> None:
        """Accept a guest; if there are too many, hang up on the oldest, so that strangers keep no task
        out.
        """
        assert self._door is not None
        with contextlib.suppress(OSError), contextlib.ExitStack() as stack:
            stream, _ = self._door.accept()
            stack.callback(stream.close)
            guest = _Guest(stream)
            self._selector.register(guest.line, selectors.EVENT_READ, guest)
            guests.append(guest)
            stack.pop_all()
        if len(guests) > _GUESTS_MAX:
            self._turn_away(guests[0], guests)

    def _greet(self, guest: _Guest, guests: list[_Guest]) -> None:
        """Take in the hello of a guest: one that proves the token is a task, any other is hung up on."""
        try:
            for hello in guest.line.hear():
                mine, theirs = guest.nonce, hello.get("nonce")
                if not is_proof(hello.get("proof"), self.token, "task", mine, theirs):
                    raise EOFError("a stranger")
                who = _introduced(hello)
                guest.line.bytes_max = LINE_BYTES_MAX
                guest.line.say(proof=proof(self.token, "driver", str(theirs), mine))
                with self._changed:
                    if not self._roster.comes(who):
                        raise EOFError("it is there already")
                    self._lines[who.index] = guest.line
                    self._looking.register(guest.line, selectors.EVENT_READ)
                guests.remove(guest)
                self._selector.modify(guest.line, selectors.EVENT_READ, who.index)
                return
        except (EOFError, OSError):
            self._turn_away(guest, guests)

    def _turn_away(self, guest: _Guest, guests: list[_Guest]) -> None:
        if guest in guests:
            guests.remove(guest)
            self._selector.unregister(guest.line)
            guest.line.close()

    def _hear(self, index: int) -> None:
        its = self._lines[index]
        try:
            heard = its.hear()
        except EOFError:
            self._selector.unregister(its)
            with self._changed:
                self._looking.unregister(its)
                self._roster.hangs_up(index, time.monotonic())
            return
        with self._changed:
            for message in heard:
                self._roster.says(index, message, time.monotonic())

    def _shut(self, guests: list[_Guest]) -> None:
        """Close the door, and hang up on all guests: all tasks have come."""
        if self._door is not None:
            self._selector.unregister(self._door)
            self._door.close()
            self._door = None
        for guest in list(guests):
            self._turn_away(guest, guests)

    def _conclude(self, trouble: Trouble) -> None:
        """End the cluster, and report the reason to its users."""
        text = trouble.text
        if trouble.end == End.GONE:
            lost = self._roster.tasks[trouble.index]
            reason = reason_of(self._context, lost.stage, lost.index)
            text = f"Spark's task of {text}{f' ({reason})' if reason else ''}"
        mend = "restart() starts all workers anew"
        if is_stopped(self._context):
            text = f"the session of Spark was stopped, and the tasks of the workers with it ({text})"
            mend = "start another one in another session"
        over = f"The cluster of {counted(self._roster.count, 'worker')} that Spark ran is over"
        if self._shared.durable:
            over += f". What it held is in its store, {self._shared.durable}."
        else:
            over += f", and what it held is gone: {mend}, to be fed behind the last commit."
        error = ClusterLostError(f"{text}\n{over}")
        with self._changed:
            self._failure = error
            self._changed.notify_all()
        os.write(self._signal_send, b"!")
        self._send_order(end=text)
        self._cancel()

    def _close(self, guests: list[_Guest]) -> None:
        self._shut(guests)
        for its in self._lines.values():
            its.close()
        self._selector.close()
        with self._changed:  # keeps `_wake` from writing to a closed descriptor, whose number may be reused
            self._is_closed = True
            self._looking.close()
            for each in (self._wake_recv, self._wake_send, self._signal_recv, self._signal_send):
                os.close(each)

    # Calls of both threads.

    def _wake(self) -> None:
        """Wake the line thread; the caller holds the lock."""
        if not self._is_closed:
            os.write(self._wake_send, b"!")

    def _send_order(self, **order: object) -> None:
        with self._saying:
            for its in list(self._lines.values()):
                with contextlib.suppress(OSError):
                    its.say(**order)

    def _cancel(self) -> None:
        with contextlib.suppress(Exception):  # Java may have ended
            self._context.cancelJobGroup(self._group)

    def _has_news(self) -> bool:
        """Return True if some task has sent a message, or hung up, and the line thread has not taken it
        in yet.
        """
        return not self._is_over and bool(self._looking.get_map()) and bool(self._looking.select(0))

    def _is_idle(self) -> bool:
        return not self._roster.is_troubled and not self._has_news()

    def _wait(
        self,
        has: Callable[[], bool],
        begun: float,
        is_late: Callable[[float], bool],
        late: Callable[[float], TimelyError],
    ) -> None:
        with self._changed:
            while not has():
                if self._failure is not None:
                    raise fresh_copy(self._failure)
                if self._is_stopping:
                    raise ClusterLostError("the cluster was closed while its workers were starting")
                waited = time.monotonic() - begun
                if is_late(waited):
                    raise late(waited)
                self._changed.wait(_LOOK_SECONDS)

    def _not_scheduled(self, waited: float) -> ScheduleError:
        count, come = self._roster.count, len(self._roster.tasks)
        busy = busy_slots(self._context)
        return ScheduleError(
            f"Spark has not started the tasks of {counted(count, 'worker')} within {waited:.0f} s ({come} of "
            f"them are there). It starts them together, and waits for {counted(count, 'slot')} to be free at "
            f"once: of {slots_of(self._context)} slots {busy} are busy with other jobs. Let those end first, "
            "raise spark.cores.max or spark.executor.instances, or wait longer with wait=…"
        )

    def _not_ready(self, waited: float) -> TimelyError:
        late = ", ".join(task.who for task in self._roster.unready)
        return ClusterLostError(f"not ready within {waited:.0f} s: {late}; its executor's log may say why")


def _introduced(hello: Mapping[str, object]) -> Task:
    """Return the task of a hello; raises `EOFError` for one that no task sends."""
    match hello:
        case {
            "task": int(index), "stage": int(stage), "process": int(process), "host": str(host),
            "facts": dict(pairs),
        }:  # fmt: skip
            texts = {str(name): str(value) for name, value in pairs.items()}
            return Task(index, host, process, stage, texts)
        case _:
            raise EOFError("no hello of a task")


def _door(bind: str) -> socket.socket:
    family, _, _, _, address = socket.getaddrinfo(bind.strip("[]"), 0, type=socket.SOCK_STREAM)[0]
    return socket.create_server(address[:2], family=family)


def _of_spark(error: Exception) -> str:
    """Return why Spark has ended the job, in a line."""
    lost = spark_lost(error)
    if lost is not None:
        return str(lost)
    text = str(error)
    if "PYTHON_VERSION_MISMATCH" in text:
        own = f"{sys.version_info.major}.{sys.version_info.minor}"
        return (
            f"an executor has another Python than the driver, which has {own}: set spark.pyspark.python (or "
            "PYSPARK_PYTHON) to the same version on both, or ship one with spark.archives"
        )
    return f"Spark has ended the job of the workers: {first_line(error)}"
