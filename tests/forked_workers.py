"""Worker processes that begin with everything imported: forked from a process that has done nothing else.

Of the second of a processor that a worker takes to start, nine tenths are imports and machine code that is
loaded, alike each time, and the tests start some hundreds of workers. What is forked is a process like any
other: its own number, pipes, sockets and end; it reads its settings, works and leaves as one that was started
by its command (`process.main`), and it is known by the same interface (`subprocess.Popen`).

There are two such *nurseries*, used in turn, so that workers of one cluster have objects at different
addresses, as they do otherwise: `hash(None)` tells them. Both hash text by the seed that a launcher gives.
By their command start the first few, so that who runs one test waits for no nursery; those whose environment
is not that of these tests, for modules may look at it while they are imported; and those of tests that ask
for the fixture `workers_by_command`.

Programs of documents are forked, too (`Nurseries.program`): half a second of each is imports.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import NoReturn

from timely.worker.launcher import HASH_SEED

__all__ = ["CAN_FORK", "Forked", "Nurseries", "Nursery"]

_BY_COMMAND = 4
CAN_FORK = sys.platform == "linux"
"""Elsewhere none is: macOS may end a forked process at its first call of the system's libraries."""
_LONGEST = 1 << 20
_NOT_OF_IMPORTS = ("PYTEST_CURRENT_TEST", "PYTHONPATH")
_SEED = "PYTHONHASHSEED"


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


class Nursery:
    """The process that workers are forked from; started with the first of them."""

    def __init__(self) -> None:
        self._one_at_a_time = threading.Lock()
        self._asking, theirs = socket.socketpair()
        command = [sys.executable, __file__, "timely.worker", str(theirs.fileno())]
        path = os.pathsep.join([path for path in sys.path if path])
        self._process = subprocess.Popen(
            command,
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            env={_SEED: HASH_SEED, **os.environ, "PYTHONPATH": path},
        )
        theirs.close()

    def start(
        self, environment: Mapping[str, str], folder: Path | None = None, command: Sequence[str] = ()
    ) -> subprocess.Popen[str]:
        """Fork a worker whose environment is this; with a command, the program of that file and arguments."""
        ours, theirs = zip(*(os.pipe() for _ in range(4)), strict=True)
        (stdin, stdout, stderr, told), (stdin_end, stdout_end, stderr_end, told_end) = ours, theirs
        given = [stdin, stdout_end, stderr_end, told_end]
        text = json.dumps([dict(environment), str(folder or Path.cwd()), list(command)]).encode()
        with self._one_at_a_time:
            socket.send_fds(self._asking, [struct.pack("i", len(text))], given)
            self._asking.sendall(text)
            (pid,) = struct.unpack("i", self._asking.recv(4))
        for descriptor in given:
            os.close(descriptor)
        return Forked(pid, (stdin_end, stdout, stderr), told)

    def end(self) -> None:
        """No more workers; those that there are go on."""
        self._asking.close()
        self._process.wait()


class Nurseries:
    """Two of them, in turn; `start` is what a launcher starts a worker by."""

    def __init__(self, by_command: Callable[[Mapping[str, str]], subprocess.Popen[str]]) -> None:
        self.by_command = by_command
        self._all: list[Nursery] = []
        self._environment = _comparable(os.environ)
        self._count = 0

    def start(self, environment: Mapping[str, str]) -> subprocess.Popen[str]:
        """A worker in this environment."""
        self._count += 1
        is_as_here = CAN_FORK and _comparable(environment) == self._environment
        if self._count <= _BY_COMMAND or not is_as_here:
            return self.by_command(environment)
        if len(self._all) < 2:
            self._all.append(Nursery())
        return self._all[self._count % len(self._all)].start(environment)

    def program(
        self, command: Sequence[str], environment: Mapping[str, str], folder: Path
    ) -> subprocess.Popen[str]:
        """Fork a program, by its file and arguments, which runs in this folder, in a session of its own."""
        if not self._all:
            self._all.append(Nursery())
        return self._all[0].start(environment, folder, command)

    def end(self) -> None:
        """No more workers."""
        for each in self._all:
            each.end()
        self._all = []


def _comparable(environment: Mapping[str, str]) -> dict[str, str]:
    """What imports may depend on; where modules are looked for is set anew in each worker."""
    kept = [name for name in environment if name not in _NOT_OF_IMPORTS and not name.startswith("SPARK_")]
    return {_SEED: HASH_SEED, **{name: environment[name] for name in kept}}


def _serve(asked: socket.socket) -> list[str]:
    """Fork whenever it is asked for, and tell how each has ended, until nobody can ask any more. In a process
    that is forked for a program, return its command.
    """
    from differential.warming import warm

    importlib.import_module("timely.worker.process")
    warm()  # machine code is loaded where it is called
    gc.collect()
    gc.freeze()  # else each worker looks through all of this for garbage, and copies every page of it
    awake, waking = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    signal.set_wakeup_fd(waking)
    telling: dict[int, int] = {}
    while True:
        ready = select.select([asked.fileno(), awake], [], [])[0]
        if awake in ready:
            os.read(awake, 1024)
            _tell_ended(telling)
        if asked.fileno() in ready:
            size, given, _, _ = socket.recv_fds(asked, 4, 4)
            if not size:
                return []
            (length,) = struct.unpack("i", size)
            text = b""
            while len(text) < length:
                text += asked.recv(min(length - len(text), _LONGEST))
            pid = os.fork()
            if pid == 0:
                signal.set_wakeup_fd(-1)
                for descriptor in (asked.detach(), awake, waking, *telling.values()):
                    os.close(descriptor)
                environment, folder, command = json.loads(text)
                _live(given, environment, folder)
                if command:
                    os.setsid()
                    return list(command)
                _work()
            telling[pid] = given.pop()
            for descriptor in given:
                os.close(descriptor)
            asked.sendall(struct.pack("i", pid))


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
    before = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:] = list(dict.fromkeys([folder, *before, *_plain_path]))


def _work() -> NoReturn:
    """Be a worker: what `python -m timely.worker.process` is, from here on."""
    from timely.worker import process

    sys.argv[:] = [str(process.__file__)]
    sys.modules["__main__"] = process
    process._end(process.main())


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
    if program := _serve(socket.socket(fileno=int(sys.argv[2]))):
        sys.argv[:] = program
        runpy.run_path(program[0], run_name="__main__")
