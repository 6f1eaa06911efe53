"""What does a task of the barrier stage do? It hosts one worker.

    1. send the facts of this executor to the driver, and wait for its order
    2. compile kernels, once on each host, while the other tasks of the host wait at the barrier
    3. start the worker, whose port the system chooses; exchange ports with all tasks (allGather)
    4. send the worker's client address to the driver, and watch the worker and the driver

The worker ends with the task, however that ends (it watches a pipe), and the task with the driver. The reason
for the worker's end becomes the task's error. Spark tries a barrier stage again as a whole: a second try
finds the driver's door closed, since a cluster whose task is lost is over.

Spark sends this module as code, so it imports nothing of ours at the top.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pyspark import BarrierTaskContext

from timely.spark.scheduled.facts import facts, own_root, threads_of, unpacked
from timely.spark.scheduled.line import Line, connected

if TYPE_CHECKING:
    from timely.worker.launcher import Launcher
    from timely.worker.settings import WorkerSettings

__all__ = ["BarrierTask", "Shared"]

_ORDER_SECONDS_MAX = 3600.0
_LOOK_SECONDS = 1.0
"""How often a task looks whether its worker has ended, or is stopped: see `Launcher`."""
_PORT_SECONDS_MAX = 2.0
"""How long the worker before may take to leave its port: it ends with its task."""
_WARM = (
    "import os, sys, threading\n"
    "threading.Thread(target=lambda: (sys.stdin.read(), os._exit(1)), daemon=True).start()\n"
    "from timely.building.builders import load_function\n"
    "for name in sys.argv[1:]: load_function(name, 'a hook')()\n"
)


class Shared(NamedTuple):
    """The settings that are the same for all workers of a cluster."""

    log_level: str = "warning"
    check_progress: bool = False
    silence_seconds: float = 2.5  # `SILENCE_SECONDS_DEFAULT`, which cannot be imported here
    durable: str = ""
    sync: str = "disk"


class BarrierTask:
    """Called by Spark with the number of the task; pickled to get there.

    Args:
        driver: host and port of the driver's door.
        token: proves that both ends belong to this job, and later that a client may send functions.
        shared: the settings of all workers.
        hooks: functions to call once on each host before workers start, "module:function".
        keys: of the cluster, as text; empty: every program that reaches the workers is a client.
        addresses: where clients have reached the workers before, in order; empty: they are new.
    """

    def __init__(
        self,
        driver: tuple[str, int],
        token: str,
        shared: Shared,
        hooks: Iterable[str] = (),
        keys: str = "",
        addresses: Iterable[str] = (),
    ) -> None:
        self._driver = driver
        self._addresses = list(addresses)
        self._token = token
        self._keys = keys
        self._shared = shared
        self._hooks = list(hooks)

    def __repr__(self) -> str:
        return "BarrierTask()"  # no secret in a log

    def __call__(self, index: int, rows: Iterable[object]) -> Iterator[object]:
        """Host a worker until the driver ends the cluster."""
        del rows
        context = BarrierTaskContext.get()
        host, port = self._driver
        hello = {
            "task": index,
            "stage": context.stageId(),
            "process": os.getpid(),
            "host": socket.gethostname(),
            "facts": facts(),
        }
        try:
            line = connected(self._driver, self._token, hello)
        except (OSError, EOFError) as error:
            raise ConnectionError(
                f"{socket.gethostname()} cannot reach the driver at {host}:{port} ({error}): "
                "spark.driver.host must be known to the executors, or the cluster is over"
            ) from error
        try:
            if "start" in line.wait(_ORDER_SECONDS_MAX):
                self._host(context, index, line)
        finally:
            line.close()
        return iter(())

    def _host(self, context: BarrierTaskContext, index: int, line: Line) -> None:
        """Host one worker. Send the error that has ended it to the driver before raising it: Spark reports of
        an error in Python only that there was one.
        """
        from timely.errors import PeerError
        from timely.worker.launcher import Launcher

        hosts = [info.address.rpartition(":")[0].strip("[]") for info in context.getTaskInfos()]
        environment = self._environment(context.cpus())
        if hosts.index(hosts[index]) == index:
            try:
                self._warm(environment)
            except RuntimeError as error:
                line.say(failed=f"worker {index} cannot start on {hosts[index]}: {error}", is_cause=True)
                raise
        context.barrier()
        with Launcher([self._worker(index, hosts)], _show, environment=environment) as launcher:
            try:
                launcher.introduce(context.allGather(launcher.wait_bound()[0]))
                _watch(line, launcher)
            except PeerError as error:
                line.say(failed=str(error), is_cause=launcher.is_cause)
                raise

    def _environment(self, cpus: int) -> dict[str, str]:
        """Return the worker's environment variables: the folder of our packages, and its number of
        threads.
        """
        root = own_root()
        assert root is not None, "the driver has checked that our packages are there"
        folder = unpacked(root)
        is_ours = {str(root), *([root.name] if folder != root else [])}  # a zip has several paths
        others = [path for path in sys.path if path and not {path, Path(path).name} & is_ours]
        paths = [str(folder), *others]
        return {**threads_of(cpus), "PYTHONPATH": os.pathsep.join(paths)}

    def _warm(self, environment: Mapping[str, str]) -> None:
        """Call the hooks in a process of their own, which ends with this one."""
        if not self._hooks:
            return
        command = [sys.executable, "-c", _WARM, *self._hooks]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=sys.stderr, env={**os.environ, **environment}
        ) as warming:
            if warming.wait() != 0:
                raise RuntimeError(f"{', '.join(self._hooks)} failed; its error is in the executor's log")

    def _worker(self, index: int, hosts: list[str]) -> WorkerSettings:
        from timely.worker.settings import WorkerSettings

        host = hosts[index]
        listen = f"tcp://{_numeric(host)}:0"
        before = self._addresses[index] if self._addresses else ""
        return WorkerSettings(
            index,
            len(hosts),
            (listen,),
            (),
            _same_port(host, before) or listen,
            host,
            log_level=self._shared.log_level,
            check_progress=self._shared.check_progress,
            silence_seconds=self._shared.silence_seconds,
            token=self._token,
            keys=self._keys,
            durable=self._shared.durable,
            sync=self._shared.sync,
        )


def _watch(line: Line, launcher: Launcher) -> None:
    """Watch until the driver ends the worker, or hangs up, or the worker ends; raises `PeerError` if the
    worker ends without an order.
    """
    from timely.errors import PeerError
    from timely.worker.launcher import wait_readable

    is_ready = False
    while True:
        try:
            launcher.check()
            launcher.check_stopped()
        except PeerError:
            if launcher.has_ended:
                line.say(ended=True)
                return
            raise
        (address,) = launcher.addresses
        if address is not None and not is_ready:
            line.say(ready=address)
            is_ready = True
        if line.fileno() not in wait_readable([line.fileno(), *launcher.descriptors], _LOOK_SECONDS):
            continue
        try:
            heard = line.hear()
        except EOFError:
            launcher.stop("the driver of the cluster is gone")
            raise
        for order in heard:
            if "end" in order:
                launcher.stop(str(order["end"]))
                return


def _same_port(host: str, before: str) -> str:
    """Return where a worker listens for the clients of one that was at `before`; "" if that was on another
    host, or another program has its port.
    """
    name, _, port = before.removeprefix("tcp://").rpartition(":")
    if name.strip("[]") != host or not port.isdecimal():
        return ""
    until = time.monotonic() + _PORT_SECONDS_MAX
    numeric = _numeric(host)
    while True:
        try:
            family = socket.AF_INET6 if ":" in numeric else socket.AF_INET
            socket.create_server((numeric.strip("[]"), int(port)), family=family).close()
            return f"tcp://{numeric}:{port}"
        except OSError:
            if time.monotonic() >= until:
                return ""
            time.sleep(_PORT_SECONDS_MAX / 20)


def _numeric(host: str) -> str:
    """Return the numeric address of a host name."""
    address = str(socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0][4][0])
    return f"[{address}]" if ":" in address else address


def _show(index: int, line: str) -> None:
    """Write a worker's line of output to the executor's log."""
    sys.stderr.write(f"worker {index}: {line}\n")
    sys.stderr.flush()
