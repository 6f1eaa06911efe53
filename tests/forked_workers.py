"""Processes that begin with everything imported: forked from a process that has done nothing else.

Of the second of a processor that a worker takes to start, nine tenths are imports and machine code that is
loaded, alike each time, and the tests start some hundreds of workers. A forked process is like any other: it
has its own number, pipes, sockets and end; it reads its settings, works and leaves as one that was started
by its command (`process.main`), and it has the same interface (`subprocess.Popen`).

There are two such *nurseries*, used in turn, so that workers of one cluster have objects at different
addresses, as they do otherwise: `hash(None)` tells them. Both hash text by the seed that a launcher gives.
These start by their command: the first few workers of a process that runs tests alone, so that one test waits
for no nursery; workers in another environment than that of the tests, since modules may look at it while they
are imported; and those of tests that ask for the fixture `workers_by_command`.

The folds that workers start are forked, too: nine tenths of one are imports. So are programs of documents
(`Forking.program`), and what forked processes start.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import runpy
import secrets
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import NamedTuple, NoReturn

from timely.worker.launcher import HASH_SEED

__all__ = ["CAN_FORK", "Forked", "Forking", "Nurseries", "Nursery", "Starts"]

_BY_COMMAND = 0 if "PYTEST_XDIST_WORKER" in os.environ else 4
CAN_FORK = sys.platform == "linux"
"""Elsewhere none is: macOS may end a forked process at its first call of the system's libraries."""
_LONGEST = 1 << 20
_WAITING_MAX = 64
_NOT_OF_IMPORTS = ("PYTEST_CURRENT_TEST", "PYTHONPATH", "TMPDIR")
_SEED = "PYTHONHASHSEED"


class Starts(NamedTuple):
    """How processes are started by their command."""

    worker: Callable[[Mapping[str, str]], subprocess.Popen[str]]
    python: Callable[[Sequence[str], Mapping[str, str]], subprocess.Popen[str]]


class Forked(subprocess.Popen[str]):
    """A forked process, as one that `subprocess.Popen` has started; its parent tells how it has ended."""

    def __init__(self, pid: int, pipes: tuple[int, int, int], told: int) -> None:
        self.pid = pid
        self.args = "forked worker"
        self.returncode: int | None = None
        stdin, stdout, stderr = pipes
        self.stdin = os.fdopen(stdin, "w", errors="replace")
        self.stdout = os.fdopen(stdout, errors="replace")
        self.stderr = os.fdopen(stderr, errors="replace")
        self._told = told
        self._reading = threading.Lock()  # several threads may ask, as of any process
        self._texts: list[Future[str]] = []

    def poll(self) -> int | None:
        """See `subprocess.Popen`."""
        return self._ended(0.0)

    def wait(self, timeout: float | None = None) -> int:
        """See `subprocess.Popen`."""
        status = self._ended(timeout)
        if status is None:
            raise subprocess.TimeoutExpired(self.args, timeout or 0.0)
        return status

    def communicate(self, input: str | None = None, timeout: float | None = None) -> tuple[str, str]:
        """See `subprocess.Popen`; there is no input."""
        assert input is None and self.stdin and self.stdout and self.stderr
        if not self._texts:
            self.stdin.close()
            pool = ThreadPoolExecutor(2)
            self._texts = [pool.submit(stream.read) for stream in (self.stdout, self.stderr)]
            pool.shutdown(wait=False)
        if wait(self._texts, timeout).not_done:
            raise subprocess.TimeoutExpired(self.args, timeout or 0.0)
        self.wait()
        self.stdout.close()
        self.stderr.close()
        output, errors = (text.result() for text in self._texts)
        return output, errors

    def _ended(self, seconds: float | None) -> int | None:
        if self.returncode is None and select.select([self._told], [], [], seconds)[0]:
            with self._reading:
                if self.returncode is None:
                    told = os.read(self._told, 4)
                    # A nursery that is gone has told nothing: nobody knows the status.
                    self.returncode = struct.unpack("i", told)[0] if told else 0
        return self.returncode

    def __del__(self) -> None:
        os.close(self._told)


class Forking:
    """Starts processes from nurseries, in turn.

    Args:
        names: those of the nurseries.
        environment: that in which they were started.
        by_command: for all that cannot be forked.
        count: how many workers start by their command at first.
    """

    def __init__(
        self,
        names: Callable[[], Sequence[str]],
        environment: Mapping[str, str],
        by_command: Starts,
        count: int = 0,
    ) -> None:
        self.by_command = by_command
        self.first = count
        self._names = names
        self._environment = _comparable(environment)
        self._count = 0

    def start(self, environment: Mapping[str, str]) -> subprocess.Popen[str]:
        """Start a worker, as `launcher.start_process` does."""
        if self.first > 0 or not self._is_as_here(environment):
            self.first -= 1
            return self.by_command.worker(environment)
        return self._fork(environment, Path.cwd())

    def python(self, command: Sequence[str], environment: Mapping[str, str]) -> subprocess.Popen[str]:
        """Start a program, as `folding.start_python` does."""
        if not self._is_as_here(environment):
            return self.by_command.python(command, environment)
        return self.program(command, environment, Path.cwd())

    def program(
        self, command: Sequence[str], environment: Mapping[str, str], folder: Path
    ) -> subprocess.Popen[str]:
        """Fork a program, by its file or module and its arguments, which runs in this folder, in a session of
        its own, and has nothing to read.
        """
        process = self._fork(environment, folder, command)
        assert process.stdin is not None
        process.stdin.close()
        return process

    def _is_as_here(self, environment: Mapping[str, str]) -> bool:
        return CAN_FORK and _comparable(environment) == self._environment

    def _fork(self, environment: Mapping[str, str], folder: Path, command: Sequence[str] = ()) -> Forked:
        self._count += 1
        names = self._names()
        ours, theirs = zip(*(os.pipe() for _ in range(4)), strict=True)
        (stdin, stdout, stderr, told), (stdin_end, stdout_end, stderr_end, told_end) = ours, theirs
        given = [stdin, stdout_end, stderr_end, told_end]
        text = json.dumps([dict(environment), str(folder), list(command), list(names)]).encode()
        with socket.socket(socket.AF_UNIX) as asking:
            asking.connect(_address(names[self._count % len(names)]))
            socket.send_fds(asking, [struct.pack("i", len(text))], given)
            asking.sendall(text)
            (pid,) = struct.unpack("i", asking.recv(4))
        for descriptor in given:
            os.close(descriptor)
        return Forked(pid, (stdin_end, stdout, stderr), told)


def _address(name: str) -> str:
    """Return that of a socket which is in no folder, and gone with its processes."""
    return f"\0{name}"


def _comparable(environment: Mapping[str, str]) -> dict[str, str]:
    """What imports may depend on; where modules are looked for is set anew in each process."""
    kept = [name for name in environment if name not in _NOT_OF_IMPORTS and not name.startswith("SPARK_")]
    return {_SEED: HASH_SEED, **{name: environment[name] for name in kept}}


class Nursery:
    """A process that others are forked from."""

    def __init__(self) -> None:
        self.name = f"naiad-tests-{secrets.token_hex(8)}"
        self._living, theirs = socket.socketpair()
        path = os.pathsep.join([path for path in sys.path if path])
        with theirs, socket.socket(socket.AF_UNIX) as listening:
            listening.bind(_address(self.name))
            listening.listen(_WAITING_MAX)
            given = [theirs.fileno(), listening.fileno()]
            self._process = subprocess.Popen(
                [sys.executable, __file__, "timely.worker", *map(str, given)],
                pass_fds=given,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                env={_SEED: HASH_SEED, **os.environ, "PYTHONPATH": path},
            )

    def end(self) -> None:
        """No more processes; those that there are go on."""
        self._living.close()
        self._process.wait()


class Nurseries(Forking):
    """Two of them, which start with the first process that is forked."""

    def __init__(self, by_command: Starts) -> None:
        super().__init__(self._started, os.environ, by_command, _BY_COMMAND)
        self._all: list[Nursery] = []

    def _started(self) -> list[str]:
        self._all = self._all or [Nursery(), Nursery()]
        return [each.name for each in self._all]

    def end(self) -> None:
        """No more processes."""
        for each in self._all:
            each.end()
        self._all = []


def _serve(living: socket.socket, listening: socket.socket) -> list[str]:
    """Fork whenever it is asked for, and tell how each has ended, until nobody can ask any more. In a process
    that is forked for a program, return its command.
    """
    awake, waking = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    signal.set_wakeup_fd(waking)
    telling: dict[int, int] = {}
    while True:
        ready = select.select([living.fileno(), listening.fileno(), awake], [], [])[0]
        if awake in ready:
            os.read(awake, 1024)
            _tell_ended(telling)
        if living.fileno() in ready:
            return []
        if listening.fileno() in ready:
            asked, _ = listening.accept()
            text, given = _received(asked)
            pid = os.fork()
            if pid == 0:
                signal.set_wakeup_fd(-1)
                for ours in (asked, living, listening):
                    ours.close()
                for descriptor in (awake, waking, *telling.values()):
                    os.close(descriptor)
                environment, folder, command, names = json.loads(text)
                _live(given, environment, folder)
                _fork_what_starts_here(names)
                if command:
                    os.setsid()
                    return list(command)
                _work()
            telling[pid] = given.pop()
            for descriptor in given:
                os.close(descriptor)
            asked.sendall(struct.pack("i", pid))
            asked.close()


def _received(asked: socket.socket) -> tuple[bytes, list[int]]:
    size, given, _, _ = socket.recv_fds(asked, 4, 4)
    (length,) = struct.unpack("i", size)
    text = b""
    while len(text) < length:
        text += asked.recv(min(length - len(text), _LONGEST))
    return text, given


def _prepare() -> None:
    """Import what workers, folds and programs need."""
    from differential.warming import warm

    for name in ("timely.worker.process", "timely.durable.commands"):
        importlib.import_module(name)
    warm()  # machine code is loaded where it is called
    gc.collect()
    gc.freeze()  # else each process looks through all of this for garbage, and copies every page of it


def _fork_what_starts_here(names: list[str]) -> None:
    from timely.worker import launcher
    from timely.worker.durability import folding

    by_command = Starts(launcher.start_process, folding.start_python)
    forking = Forking(lambda: names, _begun_in, by_command)
    vars(launcher)["start_process"] = forking.start
    vars(folding)["start_python"] = forking.python


def _tell_ended(telling: dict[int, int]) -> None:
    while telling:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            return
        told = telling.pop(pid)
        try:
            os.write(told, struct.pack("i", os.waitstatus_to_exitcode(status)))
        except BrokenPipeError:
            pass  # nobody has waited for it
        os.close(told)


def _live(given: list[int], environment: dict[str, str], folder: str) -> None:
    """Have pipes, environment, folder and path of one's own, as a process has that a launcher starts."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    *standard, told = given
    for number, descriptor in enumerate(standard):
        os.dup2(descriptor, number)
        os.close(descriptor)
    os.close(told)  # its parent tells
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    tempfile.tempdir = None  # as the environment says
    before = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:] = list(dict.fromkeys([folder, *before, *_plain_path]))


def _work() -> NoReturn:
    """Be a worker: what `python -m timely.worker.process` is, from here on."""
    from timely.worker import process

    sys.argv[:] = [str(process.__file__)]
    sys.modules["__main__"] = process
    process._end(process.main())


def _run(program: list[str]) -> None:
    """Be the program: a file, or a module behind `-m`."""
    if program[0] == "-m":
        sys.argv[:] = program[1:]
        runpy.run_module(program[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv[:] = program
        runpy.run_path(program[0], run_name="__main__")


if __name__ == "__main__":
    folder_of_this = str(Path(__file__).parent)
    started_with = os.environ["PYTHONPATH"].split(os.pathsep)
    _plain_path = [
        path
        for path in sys.path
        if path.startswith((sys.base_prefix, sys.prefix))
        or path.endswith("site-packages")  # of an environment that this one borrows from
        or (path not in started_with and path != folder_of_this)
    ]
    _begun_in = dict(os.environ)
    _prepare()
    if program := _serve(*(socket.socket(fileno=int(number)) for number in sys.argv[2:])):
        _run(program)
