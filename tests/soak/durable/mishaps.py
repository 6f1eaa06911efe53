"""What may happen to a durable cluster. After each mishap it goes on by itself, or by the same command.

worker, workers    one worker is killed, or all
worker twice       one is killed, and another one while all start again
stop               a worker is stopped for some seconds, with clients that ask it when it wakes
rescale            the program that has the cluster lets it go on with another number of workers
rescale and killed the same, and a worker is killed meanwhile
program            a program of clients is killed in a call; if it has the cluster, its workers end, too
program twice      the same, and once more while it starts again
supervisor         the supervisor of the workers is killed, and the command is given again
supervisor twice   the same, and once more while it starts
zombie             a worker is stopped, its supervisor is killed, and the cluster started elsewhere; then the
                   worker wakes, and clients ask it
second             another cluster is started with the same folder
slow, fails, torn  the disk is slow, its syncs fail, or its writes end in the middle
full               the disk is full; or, if there is none to be filled, files may not grow
full and killed    the same, and a worker is killed meanwhile
fold               a process that folds the logs is killed, perhaps with all workers
folded             the logs are folded, and all start again from the base
link               the link between two hosts is cut, and mended some seconds later
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable

from .commands import Stuck
from .scene import Scene

__all__ = ["MISHAPS", "Mishaps"]

_GOES_ON_SECONDS_MAX = 60.0

_FOLDS_SECONDS_MAX = 300.0
"""After a fold that has failed the next one begins half a minute later."""

_OF_ALL = ("program", "program twice", "slow", "fails", "torn", "full", "second", "fold", "folded")
_OF_WORKERS = ("worker", "worker", "workers", "worker twice", "stop", "full and killed")
_OF_SERVERS = ("supervisor", "supervisor twice", "zombie")
_OF_HOSTS = ("link", "link", "link", "supervisor", "stop", "workers", "worker twice", "program", "fold")
MISHAPS = {
    "embedded": _OF_ALL,
    "threads": _OF_ALL,
    "processes": (*_OF_ALL, *_OF_WORKERS, "rescale", "rescale", "rescale and killed"),
    "server": (*_OF_ALL, *_OF_WORKERS, *_OF_SERVERS),
    "hosts": _OF_HOSTS,
}
"""The mishaps of each kind of cluster."""


class Mishaps:
    """Lets mishaps happen in a scene."""

    def __init__(self, scene: Scene, choose: random.Random) -> None:
        self._scene = scene
        self._choose = choose
        self._acts: dict[str, Callable[[], None]] = {
            "worker": self._worker,
            "workers": self._workers,
            "worker twice": self._worker_twice,
            "stop": self._stop,
            "rescale": self._rescale,
            "rescale and killed": lambda: self._rescale(kills=True),
            "program": self._program,
            "program twice": self._program_twice,
            "supervisor": self._supervisor,
            "supervisor twice": self._supervisor_twice,
            "zombie": self._zombie,
            "second": self._second,
            "slow": lambda: self._disk(f"slow {self._choose.choice([0.01, 0.1, 0.4])}"),
            "fails": lambda: self._disk("sync"),
            "torn": lambda: self._disk("write"),
            "full": self._full,
            "full and killed": lambda: self._full(kills=True),
            "fold": self._fold,
            "folded": self._folded,
            "link": self._link,
        }

    def let(self, name: str) -> None:
        """Let one happen, and wait until clients get on with their work."""
        judge = self._scene.judge
        self._acts[name]()
        # What clients do behind it counts only.
        took, read = judge.took, judge.read
        until = time.monotonic() + _GOES_ON_SECONDS_MAX
        while judge.took < took + 3 or judge.read < read + 1:
            time.sleep(0.02)
            if not self._scene.check(may_be_lost="full" in name or name in ("fails", "torn")):
                self._start_again()
            if time.monotonic() > until:
                raise Stuck(f"after {name!r} nothing goes on\n{self._scene.last_errors()}")

    def _pause(self, least: float, most: float) -> None:
        time.sleep(self._choose.uniform(least, most))

    def _start_again(self) -> None:
        """Give the same command again, after a cluster has given up."""
        scene = self._scene
        for name in [*scene.programs]:
            scene.kill_program(name)
        scene.kill_server()
        scene.start()

    def _kill_one(self) -> None:
        pids = self._scene.worker_pids()
        if pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._choose.choice(pids), signal.SIGKILL)

    # Workers.

    def _worker(self) -> None:
        self._kill_one()

    def _workers(self) -> None:
        for pid in self._scene.worker_pids():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def _worker_twice(self) -> None:
        self._kill_one()
        for _ in range(self._choose.randint(1, 2)):
            self._pause(0.0, 1.5)
            self._kill_one()

    def _stop(self) -> None:
        pids = self._scene.worker_pids()
        if not pids:
            return
        pid = self._choose.choice(pids)
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
            self._pause(3.0, 8.0)
            os.kill(pid, signal.SIGCONT)

    def _rescale(self, kills: bool = False) -> None:
        for program in self._scene.programs.values():
            program.say(f"rescale {self._choose.choice([1, 2, 3, 4])}")
        if kills:
            self._pause(0.0, 1.5)
            self._kill_one()

    # Programs.

    def _program(self) -> None:
        scene = self._scene
        scene.kill_program(self._choose.choice([*scene.programs]))
        self._other_size()
        scene.start_programs()

    def _program_twice(self) -> None:
        scene = self._scene
        scene.kill_program(name := self._choose.choice([*scene.programs]))
        self._other_size()
        scene.start_programs(waits=False)
        self._pause(0.0, 2.5)
        scene.kill_program(name)
        self._other_size()
        scene.start_programs()

    def _other_size(self) -> None:
        """Let a program that starts its own workers start another number of them."""
        if not self._scene.has_server:
            self._scene.workers = self._choose.choice([1, 2, 3])

    def _second(self) -> None:
        """A second cluster gets one error, and the first one goes on."""
        scene = self._scene
        code = f"import timely; timely.connect(workers=1, embedded=True, durable={str(scene.folder)!r})"
        result = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, env=scene.environment
        )
        last = (result.stderr.strip().splitlines() or [""])[-1]
        if result.returncode == 0 or "is in use by process" not in last:
            raise Stuck(f"a second cluster with the same store ended with {last!r}")

    # The command.

    def _supervisor(self) -> None:
        scene = self._scene
        scene.kill_server()
        self._restart(1.0)

    def _supervisor_twice(self) -> None:
        scene = self._scene
        scene.kill_server()
        scene.start_server(waits=False)
        self._pause(0.0, 2.5)
        scene.kill_server()
        self._restart(1.0)

    def _restart(self, pause: float) -> None:
        """Give the command again, perhaps for another number of workers; clients go on, or others do."""
        scene = self._scene
        self._pause(0.0, pause)
        if self._choose.random() < 0.3:
            for name in [*scene.programs]:
                scene.kill_program(name)
        scene.workers = self._choose.choice([1, 2, 3])
        scene.start_server()
        scene.start_programs()

    def _zombie(self) -> None:
        scene = self._scene
        pids = scene.worker_pids()
        if not pids:
            return
        pid = self._choose.choice(pids)
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
        scene.kill_server()
        old = [scene.programs.pop(name) for name in [*scene.programs]]
        scene.use_other_ports()
        scene.workers = self._choose.choice([1, 2, 3])
        scene.start_server()
        scene.start_programs_beside(old)
        self._pause(1.0, 3.0)
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)
        self._pause(0.5, 1.5)
        for program in old:
            program.kill()

    # The disk.

    def _disk(self, state: str) -> None:
        scene = self._scene
        scene.let_fail()
        scene.set_disk(state)
        self._pause(0.5, 2.5)
        scene.set_disk("")
        scene.must_work_soon()

    def _full(self, kills: bool = False) -> None:
        scene = self._scene
        scene.let_fail()
        is_full = scene.fill()
        if not is_full:
            scene.limit_files(0)
        self._pause(0.3, 1.5)
        if kills:
            self._kill_one()
            self._pause(0.5, 2.0)
        if is_full:
            scene.make_room()
        else:
            scene.limit_files(-1)
        scene.must_work_soon()

    # Folds, and links.

    def _fold(self) -> None:
        scene = self._scene
        asking = scene.ask_for_fold()
        until = time.monotonic() + _FOLDS_SECONDS_MAX
        while not (pids := scene.fold_pids()):
            scene.check()
            if time.monotonic() > until or asking.poll() is not None:
                asking.kill()
                raise Stuck(f"no fold has begun\n{scene.last_errors()}")
            time.sleep(0.01)
        self._pause(0.0, 1.5)
        for pid in [*pids, asking.pid]:  # the request stays: the cluster folds later
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        asking.wait()
        if self._choose.random() < 0.5:
            self._workers()

    def _folded(self) -> None:
        scene = self._scene
        asking = scene.ask_for_fold()
        until = time.monotonic() + _FOLDS_SECONDS_MAX
        while asking.poll() is None:
            scene.check()
            scene.fold_pids()
            if time.monotonic() > until:
                asking.kill()
                asking.wait()
                raise Stuck(f"a fold does not end\n{scene.last_errors()}")
            time.sleep(0.02)
        if asking.returncode:
            raise Stuck(f"the command that folds has failed\n{scene.last_errors()}")
        if scene.worker_pids():
            self._workers()
        else:
            self._program()

    def _link(self) -> None:
        cable = self._scene.cable
        assert cable is not None
        cable.cut()
        self._pause(0.2, 8.0)
        cable.mend()
