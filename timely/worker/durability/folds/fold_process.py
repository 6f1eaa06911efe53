"""The process that folds the logs of a running cluster: when does it begin, and how does it end?

It is to harm nobody. On a machine whose cores are not all at work it runs only while one has nothing else to
do. Should that be too seldom, it is ended, and begun again with a low priority instead, which lets it go on
beside whatever runs: what has no priority at all may never end on a machine that has become busy, and the
logs would grow for as long.
"""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Final, NamedTuple

from ....durable.answers.asking import fulfil, is_for_answers, requests_in
from ....durable.store import Store
from ....limits import ANSWERS_STORED_SECONDS_DEFAULT, FOLD_INCARNATIONS_MAX, FOLD_LOG_BYTES_MIN
from ...launcher import is_stopped

__all__ = ["Before", "FoldProcess", "start_python"]

_log = logging.getLogger(__name__)

_FAILED_SECONDS: Final = 30.0
"""After a fold that has failed the next one waits for so long."""

_LOOK_SECONDS: Final = 0.2
"""How often worker 0 looks whether somebody asks for a fold."""

_STOPPED_SECONDS: Final = 10.0
"""A fold whose process was stopped (SIGSTOP) for so long is given up."""

_STARVED_SECONDS: Final = 10.0
_STARVED_SHARE: Final = 0.1
"""A fold that waits for a core with nothing else to do is begun again, with a low priority instead, if for so
long it has had less than this share of a core's time.
"""

_LOW_PRIORITY: Final = 10
"""The nice value of a fold where cores are always busy: it gets a tenth of what others get."""

_PAUSE_SHARE: Final = 20.0
"""Folds for the sake of stored answers pause for so many times as long as one takes."""

_ERROR_LENGTH_MAX: Final = 4_000


class Before(NamedTuple):
    """What there is when an incarnation begins."""

    incarnation: int
    """Its number."""
    base_bytes: int
    """Of the files of the base from which it goes on."""
    logged_bytes: int
    """Of the logs that this base does not stand for."""
    incarnations: int
    """How many have these logs."""


class FoldProcess:
    """Decides on worker 0 when to fold, and runs the process that does.

    Args:
        folder: of the store.
        store: the same, as this process has it.
        before: what there was when this incarnation began.
    """

    def __init__(self, folder: str, store: Store, before: Before) -> None:
        self._folder = folder
        self._incarnation = before.incarnation
        self._base_bytes = before.base_bytes
        self._from_before = before.logged_bytes
        self._incarnations = before.incarnations
        self._sizes: dict[int, int] = {}
        """The bytes that each process has logged in this incarnation."""
        self._folded = 0
        """So many of them are in front of the last cut that was folded."""
        self._cut_at = 0
        self._cuts = 0
        self._missing: set[int] = set()
        self._process: subprocess.Popen[str] | None = None
        self._again_at = 0.0
        self.has_failed = False
        """True if the last fold has failed, so that what was written for it is not stored."""
        self._store = store
        self._asked: list[str] = []
        """The requests for a fold that were there when it began."""
        self._began_at = time.monotonic()
        self._store_at = self._began_at + ANSWERS_STORED_SECONDS_DEFAULT
        self._look_at = 0.0
        self._due_since: float | None = None
        self._stopped_since: float | None = None
        self._command: list[str] = []
        """The last fold that was started."""
        self._started_at: float | None = None
        """Since when a fold runs only on cores that have nothing else to do; None if none does."""
        self._begins_again = False
        """True if the fold that runs was killed, to begin again with a low priority once it has ended."""

    @property
    def is_waiting(self) -> bool:
        """True if a fold is due that waits until the workers rest."""
        return self._due_since is not None

    def note_size(self, process: int, size_bytes: int) -> None:
        """Note how many bytes a process has logged."""
        self._sizes[process] = size_bytes

    def is_due(self, patience_seconds: float) -> bool:
        """Return True if a fold should begin: it should have done so for this long. While workers have work a
        fold would take a core from them, and they wait for one another: on two cores a load took twice as
        long beside one.
        """
        now = time.monotonic()
        is_much = self.logged_bytes() >= max(FOLD_LOG_BYTES_MIN, self._base_bytes // 2)
        if not self._is_idle or not (is_much or self.has_many_logs):
            self._due_since = None
            return False
        if self._due_since is None:
            self._due_since = now
        return now - self._due_since >= patience_seconds

    def logged_bytes(self, own_bytes: int = 0) -> int:
        """Return the bytes of logs that the last base does not stand for, as far as they are known here;
        `own_bytes`: this process has logged so many, if that is more than was noted.
        """
        more = max(0, own_bytes - self._sizes.get(0, 0))
        return self._from_before + sum(self._sizes.values()) + more - self._folded

    @property
    def has_many_logs(self) -> bool:
        """True if a fold is due for the number of incarnations that have left logs."""
        return self._incarnations >= FOLD_INCARNATIONS_MAX

    @property
    def _is_idle(self) -> bool:
        """True if a fold may begin."""
        return self._process is None and not self._missing and time.monotonic() >= self._again_at

    def is_wanted(self, has_newer: Callable[[bool], bool]) -> bool:
        """Return True if a fold should begin, however little was logged: somebody has asked for one, or
        stored answers are old, or the last fold has failed, and there are newer ones (`LogCuts.has_newer`).
        Looks once in a while.
        """
        now = time.monotonic()
        if now < self._look_at or not self._is_idle:
            return False
        self._look_at = now + _LOOK_SECONDS
        requests = requests_in(self._store)
        if not all(map(is_for_answers, requests)):
            return True
        if (requests or self.has_failed or now >= self._store_at) and has_newer(self.has_failed):
            return True
        fulfil(self._store, requests)
        return False

    def new_cut(self, processes: Sequence[int]) -> str:
        """Return the name of a new cut, which all these processes are to make."""
        self._due_since = None
        self.has_failed = False
        self._cuts += 1
        self._missing = set(processes)
        self._asked = requests_in(self._store)
        self._began_at = time.monotonic()
        return f"{self._incarnation}-{self._cuts}"

    def note_cut(self, process: int, name: str, in_use: Sequence[int]) -> None:
        """Note that a process has cut its log; start the fold if it is the last one. `in_use`: bases that
        somebody still reads. The sizes of logs that are known by now count as folded: answers that were
        written for this fold must not begin the next one.
        """
        if name == f"{self._incarnation}-{self._cuts}" and process in self._missing:
            self._missing.discard(process)
            if not self._missing:
                self._cut_at = sum(self._sizes.values())
                self._start(name, in_use)

    @property
    def is_running(self) -> bool:
        """True while a fold is known to run."""
        return self._process is not None

    def look(self) -> bool:
        """Return True if a fold has ended since the last look. One that is stopped would never end."""
        if self._process is None:
            return False
        if self._process.poll() is None:
            self._kill_stopped(self._process)
            self._hurry_if_starved(self._process)
            return False
        if self._must_begin_again(self._process):
            _close_pipes(self._process)
            self._run(yields=False)
            return False
        self._note_end(self._process)
        return True

    def _kill_stopped(self, process: subprocess.Popen[str]) -> None:
        now = time.monotonic()
        if now < self._look_at:
            return
        self._look_at = now + _LOOK_SECONDS
        if not is_stopped(process.pid):
            self._stopped_since = None
        elif self._stopped_since is None:
            self._stopped_since = now
        elif now - self._stopped_since >= _STOPPED_SECONDS:
            process.kill()

    def _hurry_if_starved(self, process: subprocess.Popen[str]) -> None:
        """Let a fold begin again if others leave it no time. Only a privileged process may raise the priority
        of one that runs; and a fold may end anywhere. Even to end, it needs a core: for a process of 100 MB
        beside two others that took seconds, for which this worker must not wait.
        """
        if self._started_at is None or self._stopped_since is not None:
            return
        waited = time.monotonic() - self._started_at
        if waited < _STARVED_SECONDS:
            return
        if _seconds_of(process.pid) >= _STARVED_SHARE * waited:
            self._started_at = None  # cores are free now and then
            return
        self._started_at = None
        self._begins_again = True
        process.kill()

    def _must_begin_again(self, process: subprocess.Popen[str]) -> bool:
        """Return True if a fold that has ended was killed to begin again, and has not done its work before
        that.
        """
        return self._begins_again and process.returncode == -signal.SIGKILL

    def _note_end(self, process: subprocess.Popen[str]) -> None:
        status, self._started_at = process.returncode, None
        size, text = _text_of(process.stdout).strip(), _text_of(process.stderr)
        self._process = None
        if status == 0:
            self._folded, self._from_before, self._incarnations = self._cut_at, 0, 0
            self._base_bytes = int(size) if size.isdecimal() else self._base_bytes
            fulfil(self._store, self._asked)
            now = time.monotonic()
            self._store_at = now + max(ANSWERS_STORED_SECONDS_DEFAULT, _PAUSE_SHARE * (now - self._began_at))
        else:
            stopped = "" if self._stopped_since is None else f"its process {process.pid} was stopped"
            self._note_failure(stopped or text.strip() or f"status {status}")
        self._stopped_since = None

    def _note_failure(self, why: str) -> None:
        self.has_failed = True
        self._again_at = time.monotonic() + _FAILED_SECONDS
        _log.warning("the logs in %s were not folded: %s", self._folder, why)

    def wait(self, seconds: float) -> None:
        """Wait for the fold that runs, for so long at most, and end it then: it may end anywhere."""
        if self._process is None:
            return
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            _end(self._process)
            self._process = None
        else:
            if self._must_begin_again(self._process):
                _close_pipes(self._process)
                self._process = None
            else:
                self._note_end(self._process)

    def _start(self, name: str, in_use: Sequence[int]) -> None:
        command = ["-m", "timely.durable", "fold", self._folder]
        command += ["--incarnation", str(self._incarnation), "--cut", name]
        for number in in_use:
            command += ["--in-use", str(number)]
        self._command = command
        self._run(yields=True)

    def _run(self, yields: bool) -> None:
        paths = os.pathsep.join(path or "." for path in sys.path)
        command = self._command if yields else [*self._command, "--nice", str(_LOW_PRIORITY)]
        self._process, self._started_at, self._begins_again = None, None, False
        try:
            self._process = start_python(command, {**os.environ, "PYTHONPATH": paths})
        except OSError as error:
            self._note_failure(str(error))
            return
        if _yield_to_others(self._process.pid, yields):
            self._started_at = time.monotonic()


def start_python(command: Sequence[str], environment: Mapping[str, str]) -> subprocess.Popen[str]:
    """Start Python with these arguments, in a session of its own."""
    return subprocess.Popen(
        [sys.executable, *command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, errors="replace", env=environment, start_new_session=True,
    )  # fmt: skip


def _yield_to_others(pid: int, entirely: bool) -> bool:
    """Let a process run on any core, but only while that has nothing else to do, as far as the system can do
    so. A low priority (nice) is not enough: a worker that wakes up would wait for the end of the other's
    slice of time. Where the machine is busy with other things the low priority has to do, since no core would
    ever be idle; and if not `entirely`. Return True if the process runs only on such a core.
    """
    count = os.cpu_count() or 1
    with suppress(OSError):
        if hasattr(os, "sched_setaffinity"):  # this worker may be pinned to a core
            os.sched_setaffinity(pid, range(count))
        if entirely and hasattr(os, "SCHED_IDLE") and os.getloadavg()[0] <= count:
            os.sched_setscheduler(pid, os.SCHED_IDLE, os.sched_param(0))
            return True
    return False


def _seconds_of(pid: int) -> float:
    """Return the processor time that a process has had; infinite where the system does not tell."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return float("inf")
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


def _end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.wait()
    _close_pipes(process)


def _close_pipes(process: subprocess.Popen[str]) -> None:
    for pipe in (process.stdout, process.stderr):
        _text_of(pipe)


def _text_of(errors: IO[str] | None) -> str:
    if errors is None:
        return ""
    with errors:
        return errors.read()[-_ERROR_LENGTH_MAX:]
