"""Starting the worker processes of one host, watching them, stopping them.

If a worker ends unasked, the others end, too: a cluster cannot go on with fewer. The launcher reports which
worker ended first, why, and what it wrote last. Workers also end with their launcher, however that ends: each
watches the pipe that is its standard input.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import IO, Final
from weakref import WeakSet

from ..cores import shared_out
from ..errors import InternalError, PeerError
from ..forking import leave_to_parent
from ..limits import (
    SILENCE_SECONDS_DEFAULT,
    START_SECONDS_MAX,
    STDERR_COUNT_MAX,
    STOP_SECONDS_MAX,
    VERDICT_SECONDS_MAX,
)
from ..own_files import ROOT
from .settings import TAKE_OVER, WorkerSettings

__all__ = [
    "HASH_SEED",
    "Launcher",
    "LocalFolder",
    "before_launch",
    "hook_names",
    "is_stopped",
    "read_report",
    "start_process",
    "wait_readable",
]

_SIGNAL_SECONDS_MAX: Final = 0.2
"""How long a process may take to end after a signal that it does not handle."""

_LOOK_SECONDS: Final = 1.0
"""How often the launcher looks whether a worker has ended: what it has forked keeps its pipe open."""

_REASON_CHARS_MAX: Final = 8_192
"""A pipe holds so many: the launcher must not wait for a worker that is stopped, and reads nothing."""

HASH_SEED: Final = "0"
"""PYTHONHASHSEED of workers, unless their launcher has its own. PySpark gives its workers the same."""

_hooks: list[Callable[[], None]] = []


def before_launch(hook: Callable[[], None]) -> Callable[[], None]:
    """Call `hook` in this process each time before workers are started, for example to compile kernels once.

    Can be used as a decorator. The hook should return at once if there is nothing to do.
    """
    _hooks.append(hook)
    return hook


def hook_names() -> list[str]:
    """Return the hooks as "module:function", for programs that start workers on other hosts."""
    return [f"{hook.__module__}:{hook.__qualname__}" for hook in _hooks if "<" not in hook.__qualname__]


class LocalFolder:
    """A folder with a short name for ipc sockets, removed at the end."""

    def __init__(self) -> None:
        # The path of an ipc socket has at most 107 bytes, and a user's TMPDIR may be longer than that.
        base = tempfile.gettempdir() if len(tempfile.gettempdir()) < 60 else "/tmp"
        self.path = Path(tempfile.mkdtemp(prefix="naiad-", dir=base))

    def clear(self) -> None:
        """Remove the files that workers which were killed have left; make the folder if the last of them has
        removed it.
        """
        with suppress(FileNotFoundError):
            for each in self.path.iterdir():
                each.unlink(missing_ok=True)
            return
        self.path.mkdir(mode=0o700)

    def remove(self) -> None:
        """Remove the folder with its files."""
        shutil.rmtree(self.path, ignore_errors=True)


@dataclass
class _Child:
    """One worker process, and what it has reported."""

    index: int
    process: subprocess.Popen[str]
    last_lines: deque[str] = field(default_factory=lambda: deque(maxlen=STDERR_COUNT_MAX))
    reader: threading.Thread | None = None
    unread: str = ""
    mesh_address: str | None = None
    address: str | None = None
    silence_seconds: float = SILENCE_SECONDS_DEFAULT
    stopped_since: float | None = None
    is_abreast: bool = False
    failure: str = ""
    is_cause: bool = False
    has_hung_up: bool = False


class Launcher:
    """Starts one process per entry of `settings`; a context manager that leaves none of them behind.

    Args:
        settings: the workers of this host.
        forward: gets each line that a worker writes to its error stream, with the worker's index; called from
            threads.
        folder: removed when all processes have ended.
        environment: variables for the workers, beside those of this process.
    """

    def __init__(
        self,
        settings: Sequence[WorkerSettings],
        forward: Callable[[int, str], None] | None = None,
        folder: LocalFolder | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._environment = _environment(environment or {})
        self._forward = forward
        self._folder = folder
        self._children: list[_Child] = []
        self._is_stopping = False
        self._reason = ""
        _launchers.add(self)
        try:
            for hook in _hooks:
                hook()
            for own, core in zip(settings, shared_out(len(settings)), strict=True):
                self._children.append(self._start(replace(own, core=core)))
        except BaseException:
            self.stop()
            raise

    def __enter__(self) -> Launcher:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def descriptors(self) -> list[int]:
        """File descriptors that become readable when a worker reports or ends."""
        return [_output(child).fileno() for child in self._children if not child.has_hung_up]

    @property
    def pids(self) -> list[int]:
        """Process numbers, in order of the workers."""
        return [child.process.pid for child in self._children]

    @property
    def knows_best(self) -> bool:
        """Return False: a worker that ends in order tells clients itself why."""
        return False

    @property
    def starts_again(self) -> bool:
        """Return False: workers that have ended are not started again."""
        return False

    @property
    def addresses(self) -> list[str | None]:
        """Where clients reach each worker; None if it has not reported that it is ready."""
        return [child.address for child in self._children]

    @property
    def are_abreast(self) -> bool:
        """True if all workers follow another cluster, and have done what that has done."""
        self._read_reports()
        return all(child.is_abreast for child in self._children)

    def take_over(self) -> None:
        """Let workers that follow become the next incarnation of the cluster; they report as ready then."""
        _say(self._children[0].process.stdin, TAKE_OVER)

    @property
    def has_ended(self) -> bool:
        """True if all workers have ended in order, as requested."""
        return all(child.has_hung_up and child.process.wait() == 0 for child in self._children)

    @property
    def is_ending(self) -> bool:
        """True if a worker has ended in order, and none in another way: the others are about to follow it."""
        return not self.has_failed and any(child.has_hung_up for child in self._children)

    @property
    def has_failed(self) -> bool:
        """True if a worker has ended in another way than in order."""
        return any(child.has_hung_up and child.process.wait() != 0 for child in self._children)

    @property
    def is_cause(self) -> bool:
        """True if one of its workers has ended by itself, and not because it lost one of another host."""
        return any(self._is_cause(child) for child in self._children)

    def wait_bound(self, timeout_seconds: float = START_SECONDS_MAX) -> list[str]:
        """Return where each of this host's workers listens for its peers; raise `PeerError` if one ends or is
        not in time. For workers whose settings name no peers.
        """
        self._wait_until(lambda child: child.mesh_address is not None, "listening", timeout_seconds)
        return [child.mesh_address or "" for child in self._children]

    def introduce(self, peers: Sequence[str]) -> None:
        """Tell the workers where all workers of the cluster listen, in order."""
        for child in self._children:
            _say(child.process.stdin, json.dumps(list(peers)) + "\n")

    def wait_ready(
        self, on_ready: Callable[[int, str], None] | None = None, timeout_seconds: float = START_SECONDS_MAX
    ) -> list[str]:
        """Return the client addresses of this host's workers once all are ready; raise `PeerError` if one
        ends or is not in time. `on_ready` gets the index and address of each.
        """
        reported: set[int] = set()

        def is_ready(child: _Child) -> bool:
            if child.address is not None and child.index not in reported:
                reported.add(child.index)
                if on_ready is not None:
                    on_ready(child.index, child.address)
            return child.address is not None

        self._wait_until(is_ready, "ready", timeout_seconds)
        return [child.address or "" for child in self._children]

    def check(self) -> None:
        """Read the reports of workers; raise `PeerError` if one has ended unasked."""
        self._read_reports()
        if not self._is_stopping and any(child.has_hung_up for child in self._children):
            self._reason = self.verdict()
            raise PeerError(self._reason)

    def check_stopped(self) -> None:
        """Raise `PeerError` if a worker has been stopped (SIGSTOP) for longer than it may be silent. Call it
        again and again. The other workers, if there are any, notice that only once they know the worker.
        """
        now = time.monotonic()
        for child in self._children:
            if not is_stopped(child.process.pid):
                child.stopped_since = None
            elif child.stopped_since is None:
                child.stopped_since = now
            elif now - child.stopped_since > child.silence_seconds:
                raise PeerError(
                    f"worker {child.index} (process {child.process.pid}) has been stopped for more than "
                    f"{child.silence_seconds:g} s"
                )

    def wait_end(self) -> None:
        """Block until all workers have ended in order; raise `PeerError` if one ends in another way."""
        while True:
            self._read_reports()
            if self.has_failed:
                self._reason = self.verdict()
                raise PeerError(self._reason)
            if not self.descriptors:
                return
            wait_readable(self.descriptors, _LOOK_SECONDS)

    def verdict(self) -> str:
        """Return which worker ended first, why, and what it wrote last. Wait a moment before: the worker that
        is the cause may report later than others.
        """
        deadline = time.monotonic() + VERDICT_SECONDS_MAX
        while (
            time.monotonic() < deadline
            and self.descriptors
            and not any(self._is_cause(child) for child in self._children)
        ):
            wait_readable(self.descriptors, 0.05)
            self._read_reports()
        ended = [child for child in self._children if child.has_hung_up or child.failure]
        if not ended:
            return "no worker has ended"
        # If others have lost a peer, one that has ended without a report is that peer, whatever its status.
        silent = [child for child in ended if not child.failure]
        cause = next((child for child in ended if self._is_cause(child)), [*silent, *ended][0])
        return self._obituary(cause)

    def stop(self, reason: str = "", grace_seconds: float = STOP_SECONDS_MAX / 2) -> None:
        """End all workers: ask, then insist, then kill. Return when none is left.

        If a worker has ended unasked, or there is another `reason`, the launcher tells the others, so that
        they can tell their clients. A worker that is asked to end finishes its current step first: so what
        the step does outside (a file that a function of the user writes) is complete, if that takes no longer
        than `grace_seconds`.
        """
        self._is_stopping = True
        self._reason = self._reason or reason
        for child in self._children:
            _say(child.process.stdin, self._reason[:_REASON_CHARS_MAX])
            _close(child.process.stdin)
        self._reap(grace_seconds)
        # The signal is for workers that do not listen yet: they end at once. The others already know that
        # they shall end: to wait once more for one that is still in a step would not help.
        for end, seconds in ((signal.SIGTERM, _SIGNAL_SECONDS_MAX), (signal.SIGKILL, STOP_SECONDS_MAX / 2)):
            for child in self._children:
                if child.process.poll() is None:
                    child.process.send_signal(end)
            self._reap(seconds)
        until = time.monotonic() + VERDICT_SECONDS_MAX
        for child in self._children:
            if child.reader is not None:  # it goes on while processes live that the worker has started
                child.reader.join(max(0.0, until - time.monotonic()))
            _close(child.process.stdout)
        if self._folder is not None:
            self._folder.remove()

    def kill(self) -> None:
        """Kill all workers at once; for a cluster that is broken already."""
        for child in self._children:
            if child.process.poll() is None:
                child.process.kill()
        self.stop()

    def pipes(self) -> list[int]:
        """Return the descriptors of all pipes to and from workers."""
        pipes: list[int] = []
        for child in self._children:
            for pipe in (child.process.stdin, child.process.stdout, child.process.stderr):
                with suppress(ValueError):  # it is closed
                    if pipe is not None:
                        pipes.append(pipe.fileno())
        return pipes

    def _start(self, settings: WorkerSettings) -> _Child:
        process = start_process(self._environment)
        child = _Child(settings.index, process, silence_seconds=settings.silence_seconds)
        child.reader = threading.Thread(target=self._read_errors, args=(child,), daemon=True)
        child.reader.start()
        os.set_blocking(_output(child).fileno(), False)
        if process.stdin is None:
            raise InternalError("a child without standard input")
        _say(process.stdin, settings.to_json() + "\n")
        return child

    def _wait_until(self, has: Callable[[_Child], bool], what: str, timeout_seconds: float) -> None:
        deadline = time.monotonic() + timeout_seconds
        while True:
            self.check()
            lacking = [str(child.index) for child in self._children if not has(child)]
            if not lacking:
                return
            rest = deadline - time.monotonic()
            if rest <= 0:
                raise PeerError(f"worker {', '.join(lacking)} was not {what} within {timeout_seconds:.0f} s")
            wait_readable(self.descriptors, min(rest, _LOOK_SECONDS))

    def _read_errors(self, child: _Child) -> None:
        assert child.process.stderr is not None
        with child.process.stderr as stream:  # another thread could not close it before the next line comes
            for line in stream:
                child.last_lines.append(line.rstrip("\n"))
                if self._forward is not None:
                    # Go on if the error stream is closed, or its disk is full: once its pipe is full, the
                    # worker would wait for ever until somebody reads.
                    with suppress(Exception):
                        self._forward(child.index, line.rstrip("\n"))

    def _read_reports(self) -> None:
        for child in self._children:
            # Look before reading: whatever an ended worker has reported is in the pipe by then.
            has_ended = not child.has_hung_up and child.process.poll() is not None
            while not child.has_hung_up:
                try:
                    text = os.read(_output(child).fileno(), 65_536).decode(errors="replace")
                except BlockingIOError:
                    child.has_hung_up = has_ended  # a process that it has forked keeps the pipe open
                    break
                child.has_hung_up = not text
                child.unread += text
                *lines, child.unread = child.unread.split("\n")
                for line in lines:
                    _note_report(child, line)

    def _is_cause(self, child: _Child) -> bool:
        """Return True if the end of this worker explains that of the others: it failed by itself, or was
        killed.
        """
        if child.is_cause:
            return True
        return child.has_hung_up and (
            child.process.wait() < 0 or (child.process.wait() != 0 and not child.failure)
        )

    def _obituary(self, child: _Child) -> str:
        status = None
        if child.has_hung_up:
            status = child.process.wait()
        who = f"worker {child.index} (process {child.process.pid})"
        if child.failure:
            return f"{who} failed: {child.failure}"
        if status is None:
            return f"{who} is ending"
        how = (
            f"was killed by {signal.Signals(-status).name}"
            if status < 0
            else f"ended with exit status {status}"
        )
        if child.reader is not None:
            child.reader.join(VERDICT_SECONDS_MAX)
        last = "\n    ".join(list(child.last_lines)[-10:])
        return f"{who} {how}; a cluster cannot go on without one of its workers" + (
            f". It wrote last:\n    {last}" if last else ""
        )

    def _reap(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        for child in self._children:
            try:
                child.process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                pass


_launchers: WeakSet[Launcher] = WeakSet()
"""All launchers of this process."""


def _leave_pipes() -> None:
    """In a process that was just forked, as by `multiprocessing`: leave the workers to its parent. Otherwise
    they would not hear of the end of that as long as this process goes on.
    """
    leave_to_parent([pipe for launcher in [*_launchers] for pipe in launcher.pipes()])
    _launchers.clear()


os.register_at_fork(after_in_child=_leave_pipes)


def start_process(environment: Mapping[str, str]) -> subprocess.Popen[str]:
    """Start a process that waits on its standard input for the settings of a worker."""
    return subprocess.Popen(
        [sys.executable, "-m", "timely.worker.process"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        env=environment,
    )


def wait_readable(descriptors: Iterable[int], seconds: float) -> set[int]:
    """Wait until some of these descriptors can be read, for so many seconds at most; return those that can.

    `select.select` refuses numbers from 1,024 on, which a program gets that has opened as many files.
    """
    poll = select.poll()
    for each in descriptors:
        poll.register(each, select.POLLIN)
    return {descriptor for descriptor, _ in poll.poll(max(0.0, 1_000 * seconds))}


def read_report(index: int, line: str) -> dict[str, object]:
    """Return a report of a worker from its standard output: where it is bound, that it is ready, or that it
    has failed. Raise `InternalError` for anything else.
    """
    try:
        values: object = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InternalError(f"worker {index} reported {line[:200]!r}, which is not JSON") from error
    kinds = ({"ready", "address"}, {"bound"}, {"failed"}, {"following"})
    if not isinstance(values, dict) or sum(kind <= values.keys() for kind in kinds) != 1:
        raise InternalError(f"worker {index} reported {line[:200]!r}, which is no report of a worker")
    return values


def _note_report(child: _Child, line: str) -> None:
    values = read_report(child.index, line)
    if "ready" in values:
        child.address = str(values["address"])
    elif "following" in values:
        child.is_abreast = True
    elif "bound" in values:
        child.mesh_address = str(values["bound"])
    else:
        child.failure = str(values["failed"])
        child.is_cause = bool(values.get("is_cause"))


def _environment(more: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of workers: that of the launcher, with `more`. This package is on the path,
    unless `more` has a path: workers must import the same release. There is one seed for the hashes of text,
    so that functions that call `hash` return the same in all workers, on this host and on others.
    """
    root = str(ROOT)
    path = os.environ.get("PYTHONPATH", "")
    paths = f"{root}{os.pathsep}{path}" if path else root
    seed = os.environ.get("PYTHONHASHSEED", "random")
    seed = HASH_SEED if seed in ("", "random") else seed
    return {**os.environ, "PYTHONPATH": paths, "PYTHONHASHSEED": seed, **more}


def is_stopped(pid: int) -> bool:
    """Return True if a process is stopped by a signal; False where the system does not tell."""
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] == b"T"
    except OSError:
        return False


def _output(child: _Child) -> IO[str]:
    assert child.process.stdout is not None
    return child.process.stdout


def _say(stream: IO[str] | None, text: str) -> None:
    if text and stream is not None and not stream.closed:
        try:
            stream.write(text)
            stream.flush()
        except BrokenPipeError:
            pass  # the worker has ended already; `check` reports why


def _close(stream: IO[str] | None) -> None:
    if stream is not None and not stream.closed:
        try:
            stream.close()
        except BrokenPipeError:
            pass
