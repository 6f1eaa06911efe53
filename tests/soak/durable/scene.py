"""The processes of one round: a cluster that is durable, and programs that use it.

A cluster is started by a command of its own, whose supervisor starts workers again, or it belongs to the one
program. All processes of a round have a mark in their environment, by which those are found that were left
behind.
"""

from __future__ import annotations

import contextlib
import math
import os
import pickle
import random
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO, cast
from uuid import uuid4

from two_hosts import Cable, Host, free_ports, namespaces

from ..clusters import children, is_alive
from ..model import WrongAnswer
from .commands import ServerCommands, Stuck
from .judge import Judge
from .plan import Plan, events_in

__all__ = ["Program", "Scene", "Stuck"]

_ROOT = Path(__file__).resolve().parents[3]
_START_SECONDS_MAX = 90.0
_TAGS_OF_PROGRAM = 4_000
_HERE = Host("localhost")
_LEFT_SECONDS_MAX = 60.0
"""A fold whose worker was killed ends by itself; it has the lowest priority."""
_LATE_SECONDS = 6.0
"""How long after a failure of the disk calls may still raise it."""


class Program:
    """A program with clients, and the thread that hears it."""

    def __init__(
        self, plan: Plan, judge: Judge, environment: dict[str, str], errors: Path, host: Host
    ) -> None:
        self.plan = plan
        self.is_ready = threading.Event()
        self.failure: tuple[bool, str, str] | None = None
        """Why it has ended by itself: whether it has lost its cluster, the error, and where."""
        self.calls: dict[str, int] | None = None
        """What it has done, once it has ended in order."""
        self.wrong: BaseException | None = None
        with errors.open("ab") as stream:
            self.process = subprocess.Popen(
                [*host.prefix, sys.executable, "-m", "soak.durable.program"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stream,
                env=environment,
            )
        assert self.process.stdin is not None
        self.process.stdin.write(pickle.dumps(plan))
        self.process.stdin.flush()
        self._judge = judge
        self._thread = threading.Thread(target=self._hear, daemon=True)
        self._thread.start()

    def _hear(self) -> None:
        assert self.process.stdout is not None
        try:
            for event in events_in(cast("BinaryIO", self.process.stdout)):
                if event[0] == "failed":
                    _, is_lost, error, trace = event
                    self.failure = bool(is_lost), str(error), str(trace)
                elif event[0] == "done":
                    self.calls = cast("dict[str, int]", event[1])
                else:
                    self._judge.take(event)
                    if event[0] == "ready":
                        self.is_ready.set()
        except BaseException as error:
            self.wrong = error

    @property
    def is_running(self) -> bool:
        """True unless the process has ended."""
        return self.process.poll() is None

    def say(self, word: str) -> None:
        """Ask it to "stop" or to "finish"."""
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(f"{word}\n".encode())
            self.process.stdin.flush()

    def kill(self) -> None:
        """Kill it, and take in what it has told."""
        self.process.kill()
        self.join()

    def join(self, seconds: float = 120.0) -> None:
        """Wait until it has ended, and all it has told is taken in; raise what was wrong."""
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise Stuck(f"the program {self.plan.name} does not end") from None
        self._thread.join(30)
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()
        if self.wrong is not None:
            raise self.wrong


class Scene:
    """The processes of a round, and what may be done with them."""

    def __init__(
        self, kind: str, seed: int, workers: int, sync: str, judge: Judge, standby: bool = False
    ) -> None:
        """`standby`: other worker processes follow those of the cluster; mishaps happen to these, too."""
        self.kind, self.seed, self.workers, self.sync, self.judge = kind, seed, workers, sync, judge
        self.standby = standby
        self.choose = random.Random(f"{seed} scene")
        self.lives = 0
        self.home = Path(tempfile.mkdtemp(prefix="soak-durable-"))
        self.folder = self.home / "disk" / "store"
        self.folder.parent.mkdir()
        self.flag, self._disk = self.home / "may fail", self.home / "disk control"
        self.errors = self.home / "errors.txt"
        self._forgotten = self.home / "forgotten"
        self._forgotten.mkdir()
        self.programs: dict[str, Program] = {}
        self._mark = uuid4().hex
        self._is_mounted = False
        self._works_at = math.inf
        """From when on the disk may not fail."""
        self._port = free_ports([_HERE], 8)
        self.addresses: list[str] = []
        self._stack = contextlib.ExitStack()
        self.cable: Cable | None = None
        """What joins the two hosts of the cluster, if it has two."""
        self._hosts: Sequence[Host] = [_HERE]
        if kind == "hosts":
            self.cable, self._hosts = self._stack.enter_context(namespaces())
        path = [str(Path(__file__).parent / "disk"), str(_ROOT), str(_ROOT / "tests")]
        self.environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(path),
            "SOAK_DISK": str(self._disk),
            "SOAK_MARK": self._mark,
        }
        self._commands = ServerCommands(self._hosts, self.errors, self.environment)

    @property
    def has_server(self) -> bool:
        """True if the cluster was started by commands of its own."""
        return self.kind in ("server", "hosts")

    # Starting.

    def start(self) -> None:
        """Start the cluster and its programs, and wait until they are ready."""
        self.start_server()
        self.start_programs()

    def start_server(self, *, waits: bool = True) -> None:
        """Start the cluster by its command, if it is started by one."""
        if not self.has_server:
            return
        options = ["--durable", str(self.folder), "--sync", self.sync]
        options += ["--standby"] if self.standby else []
        workers = self.workers if self.cable is None else 1 + (self.workers > 2)
        self.addresses = self._commands.start(self._port, workers, options, self.home / "hosts")
        if waits and not self._commands.wait_ready():
            raise Stuck(f"the cluster does not start:\n{self.last_errors()}")

    def use_other_ports(self) -> None:
        """Let the next command use other ports, since somebody may have the old ones."""
        self._port += 4

    def start_programs(self, *, waits: bool = True) -> None:
        """Start those programs that do not run, and wait until all are ready."""
        wanted = {"only": ["writer", "writer", "reader", "reader", "witness"]}
        if self.has_server:
            wanted = {"one": ["writer", "reader", "witness"], "two": ["writer", "reader"]}
        for name, actors in wanted.items():
            if name not in self.programs:
                self.programs[name] = self._program(name, actors)
        if waits:
            self.await_programs()

    def start_programs_beside(self, others: list[Program]) -> None:
        """The same, while other programs with the same names run still, which must not fail of anything but
        their cluster.
        """
        self.start_programs()
        for program in others:
            if program.wrong is not None:
                raise program.wrong

    def await_programs(self) -> None:
        """Wait until all programs are ready; raise `Stuck` if one ends."""
        until = time.monotonic() + _START_SECONDS_MAX
        for program in self.programs.values():
            while not program.is_ready.wait(0.05):
                is_late = time.monotonic() > until
                if not program.is_running or is_late or program.wrong is not None:
                    program.kill()
                    why = f"it is not ready after {_START_SECONDS_MAX:g} s" if is_late else "it has ended"
                    what = program.failure[2] if program.failure else program.wrong or why
                    raise Stuck(f"the program {program.plan.name} does not start: {what}")

    def _program(self, name: str, actors: list[str]) -> Program:
        self.lives += 1
        judge = self.judge
        plan = Plan(
            "client" if self.has_server else self.kind,
            name,
            self.lives,
            self.seed,
            self.workers,
            str(self.folder),
            self.sync,
            self.addresses,
            [model.query.name for model in judge.models],
            actors,
            str(self.flag),
            str(self._forgotten),
            self.lives * _TAGS_OF_PROGRAM,
            {line: number for line, number in judge.numbers.items() if line.startswith(f"{name} ")},
            [one for one in judge.unanswered if one.writer.startswith(f"{name} ")],
            [dict(model.shown) for model in judge.models],
            self.standby,
            [model.sealed for model in judge.models],
        )
        host = self._hosts[-1 if name == "two" else 0]
        return Program(plan, judge, self.environment, self.errors, host)

    # Looking.

    def worker_pids(self) -> list[int]:
        """The worker processes that run now."""
        if self.has_server:
            parents = self._commands.pids
        else:
            parents = [program.process.pid for program in self.programs.values()]
        return [pid for parent in parents for pid in children(parent) if _is_worker(pid)]

    def writing_pids(self) -> list[int]:
        """The processes that write to the store."""
        if self.kind in ("embedded", "threads"):
            return [program.process.pid for program in self.programs.values()]
        return self.worker_pids()

    def check(self, *, may_be_lost: bool = False) -> bool:
        """Raise what a program has found to be wrong, or has failed of. Return False if one has lost its
        cluster, and may have.
        """
        if time.monotonic() > self._works_at:
            self.flag.unlink(missing_ok=True)
        for program in self.programs.values():
            if program.wrong is not None:
                raise program.wrong
            if not program.is_running:
                program.join()
                is_lost, error, trace = program.failure or (False, "ended without a word", "")
                if not (is_lost and may_be_lost):
                    raise WrongAnswer(f"the program {program.plan.name} has failed: {error}\n{trace}")
                return False
        if self._commands.has_ended:
            if not may_be_lost:
                raise WrongAnswer(f"the cluster has ended by itself:\n{self.last_errors()}")
            return False
        return True

    def last_errors(self) -> str:
        """The end of what all processes have written to their error streams."""
        return self.errors.read_text(errors="replace")[-4_000:]

    # Harming.

    def kill_program(self, name: str) -> None:
        """Kill a program; its workers, if it has some, end with it."""
        self.programs.pop(name).kill()

    def kill_server(self) -> None:
        """Kill the supervisor of the workers."""
        self._commands.end(signal.SIGKILL)

    def let_fail(self) -> None:
        """From now on calls may raise that the disk fails."""
        self.flag.touch()
        self._works_at = math.inf

    def must_work_soon(self) -> None:
        """The disk works again: soon calls may raise no such thing any more."""
        self._works_at = time.monotonic() + _LATE_SECONDS

    def set_disk(self, state: str) -> None:
        """See `disk/sitecustomize.py`."""
        self._disk.write_text(state)

    def limit_files(self, size: int) -> None:
        """Let processes that run write no file beyond this size; -1: without a limit."""
        for pid in self.writing_pids():
            with contextlib.suppress(OSError):
                resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

    def mount(self, megabytes: int) -> bool:
        """Put the store on a disk of its own, of this size; return False if this machine does not let us."""
        command = [
            "mount",
            "-t",
            "tmpfs",
            "-o",
            f"size={megabytes}m,mode=0700",
            "none",
            str(self.folder.parent),
        ]
        with contextlib.suppress(OSError):
            self._is_mounted = subprocess.run(command, capture_output=True).returncode == 0
        return self._is_mounted

    def fill(self) -> bool:
        """Fill the disk of the store to its last byte, if it has one of its own."""
        if not self._is_mounted:
            return False
        with (self.folder.parent / "filler").open("ab", buffering=0) as file:
            for size in (1 << 20, 4096, 64, 1):
                with contextlib.suppress(OSError):
                    while file.write(b"\0" * size) == size:
                        pass
        return True

    def make_room(self) -> None:
        """Undo `fill`."""
        (self.folder.parent / "filler").unlink(missing_ok=True)

    # Ending.

    def end_all(self, how: str) -> None:
        """End every process: "kill" them all, or "finish", so that one program reads everything once more."""
        if how == "kill":
            pids = [*self.worker_pids(), *(program.process.pid for program in self.programs.values())]
            pids += self._commands.pids
            for pid in pids:
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
        for name, program in sorted(self.programs.items(), reverse=True):  # "one" finishes, alone
            if how == "kill":
                program.kill()
                continue
            program.say("finish" if name in ("one", "only") else "stop")
            program.join()
            if program.calls is None:
                raise WrongAnswer(f"the program {name} has failed: {program.failure}")
        self.programs.clear()
        self._commands.end(signal.SIGTERM if how == "finish" else signal.SIGKILL)

    def close(self) -> list[str]:
        """End whatever is left; return what has not ended by itself: processes with their commands."""
        self.set_disk("")
        for program in self.programs.values():
            with contextlib.suppress(BaseException):
                program.kill()
        self.kill_server()
        until = time.monotonic() + _LEFT_SECONDS_MAX
        while (left := self.left_behind()) and time.monotonic() < until:
            self.fold_pids()
            time.sleep(0.1)
        commands = [f"{pid}: {_command_of(pid).decode(errors='replace')}" for pid in left]
        for pid in left:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        if self._is_mounted:
            subprocess.run(["umount", "-l", str(self.folder.parent)], capture_output=True)
        self._stack.close()
        return commands

    def ask_for_fold(self) -> subprocess.Popen[bytes]:
        """Start the command that lets the cluster fold its logs, and waits for that."""
        command = [sys.executable, "-m", "timely.durable", "fold", str(self.folder)]
        with self.errors.open("ab") as stream:
            return subprocess.Popen(command, stdout=stream, stderr=stream, env=self.environment)

    def fold_pids(self) -> list[int]:
        """The processes that fold for the cluster. From now on they run like any other, if the system lets us
        say so: on a busy machine their low priority would let a round wait for minutes.
        """
        pids = [pid for pid in self.left_behind() if b"--cut" in _command_of(pid)]
        for pid in pids:
            with contextlib.suppress(OSError):
                os.sched_setscheduler(pid, os.SCHED_OTHER, os.sched_param(0))
                os.setpriority(os.PRIO_PROCESS, pid, os.getpriority(os.PRIO_PROCESS, 0))
        return pids

    def left_behind(self) -> list[int]:
        """The processes of this round that still run."""
        left = []
        for path in Path("/proc").iterdir():
            if path.name.isdigit() and int(path.name) != os.getpid():
                with contextlib.suppress(OSError):
                    if self._mark.encode() in (path / "environ").read_bytes() and is_alive(int(path.name)):
                        left.append(int(path.name))
        return left


def _is_worker(pid: int) -> bool:
    return b"timely.worker.process" in _command_of(pid)


def _command_of(pid: int) -> bytes:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""
