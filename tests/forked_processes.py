"""Forking processes from one that has imported what they need, a *nursery*, instead of starting each by its
command.

A script of the tests is a nursery: it imports, and calls `serve`. A forked process is like any other: it has
its own number, pipes, sockets and end, and the same interface (`subprocess.Popen`). Nothing here imports this
project, so that processes which import it themselves can be forked, too.
"""

from __future__ import annotations

import gc
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
from types import ModuleType

__all__ = ["CAN_FORK", "Forked", "Nursery", "fork", "run_program", "serve"]

CAN_FORK = sys.platform == "linux"
"""Elsewhere none is: macOS may end a forked process at its first call of the system's libraries."""
_LONGEST = 1 << 20
_WAITING_MAX = 64


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


def fork(
    nursery: str,
    environment: Mapping[str, str],
    folder: Path,
    command: Sequence[str],
    more: Sequence[str] = (),
) -> Forked:
    """Fork a process from the nursery of this name, for a program (`run_program`), in this folder.

    `more`: for what the nursery calls in the process before that.
    """
    ours, theirs = zip(*(os.pipe() for _ in range(4)), strict=True)
    (stdin, stdout, stderr, told), (stdin_end, stdout_end, stderr_end, told_end) = ours, theirs
    given = [stdin, stdout_end, stderr_end, told_end]
    text = json.dumps([dict(environment), str(folder), list(command), list(more)]).encode()
    with socket.socket(socket.AF_UNIX) as asking:
        asking.connect(_address(nursery))
        socket.send_fds(asking, [struct.pack("i", len(text))], given)
        asking.sendall(text)
        (pid,) = struct.unpack("i", asking.recv(4))
    for descriptor in given:
        os.close(descriptor)
    return Forked(pid, (stdin_end, stdout, stderr), told)


def _address(name: str) -> str:
    """Return that of a socket which is in no folder, and gone with its processes."""
    return f"\0{name}"


class Nursery:
    """A process that others are forked from.

    Args:
        script: what it runs; `serve` gets its arguments.
        environment: its variables.
        arguments: for the script.
    """

    def __init__(self, script: str, environment: Mapping[str, str], *arguments: str) -> None:
        self.name = f"naiad-tests-{secrets.token_hex(8)}"
        self._living, theirs = socket.socketpair()
        path = os.pathsep.join([path for path in sys.path if path])
        with theirs, socket.socket(socket.AF_UNIX) as listening:
            listening.bind(_address(self.name))
            listening.listen(_WAITING_MAX)
            given = [theirs.fileno(), listening.fileno()]
            self._process = subprocess.Popen(
                [sys.executable, script, *arguments, *map(str, given)],
                pass_fds=given,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                env={**environment, "PYTHONPATH": path},
            )

    def end(self) -> None:
        """No more processes; those that there are go on."""
        self._living.close()
        self._process.wait()


def serve(
    arguments: Sequence[str], begin: Callable[[Sequence[str]], None] = lambda more: None
) -> list[str] | None:
    """Fork whenever somebody asks for it, and tell how each process has ended, until nobody can ask any more.
    In a forked process, call `begin` and return its command; at the end return None.
    """
    living, listening = (socket.socket(fileno=int(number)) for number in arguments[-2:])
    plain_path = _plain_path()
    gc.collect()
    gc.freeze()  # else each process looks through all of this for garbage, and copies every page of it
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
            return None
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
                environment, folder, command, more = json.loads(text)
                _live(given, environment, folder, plain_path)
                begin(more)
                return list(command)
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


def _live(given: list[int], environment: dict[str, str], folder: str, plain_path: list[str]) -> None:
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
    sys.path[:] = list(dict.fromkeys([folder, *before, *plain_path]))
    sys.dont_write_bytecode = bool(environment.get("PYTHONDONTWRITEBYTECODE"))


def _plain_path() -> list[str]:
    """Return where modules are looked for whatever the environment says."""
    started_with = os.environ["PYTHONPATH"].split(os.pathsep)
    return [
        path
        for path in sys.path
        if path.startswith((sys.base_prefix, sys.prefix))
        or path.endswith("site-packages")  # of an environment that this one borrows from
        or (path not in started_with and path != str(Path(__file__).parent))
    ]


def run_program(command: Sequence[str]) -> None:
    """Be a program, in a session of its own: a file, a module behind `-m`, or a text behind `-c`."""
    os.setsid()
    if command[0] == "-m":
        sys.argv[:] = command[1:]
        runpy.run_module(command[1], run_name="__main__", alter_sys=True)
    elif command[0] == "-c":
        sys.argv[:] = [command[0], *command[2:]]
        sys.modules["__main__"] = main = ModuleType("__main__")
        exec(compile(command[1], "<string>", "exec"), vars(main))
    else:
        sys.argv[:] = command
        sys.path[0] = str(Path(command[0]).absolute().parent)
        runpy.run_path(command[0], run_name="__main__")
