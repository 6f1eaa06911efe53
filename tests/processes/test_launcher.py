"""Starting processes and saying who died: the launcher by itself."""

from __future__ import annotations

import fcntl
import os
import re
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

import timely
from timely import PeerError
from timely.own_files import ROOT
from timely.worker import launcher as launcher_module
from timely.worker.launcher import Launcher, LocalFolder, _hooks, before_launch, wait_readable
from timely.worker.settings import WorkerSettings, local_settings

pytestmark = pytest.mark.usefixtures("workers_by_command")


def settings(folder: LocalFolder, workers: int) -> list[WorkerSettings]:
    return local_settings(workers, folder.path)


def test_workers_report_ready_and_end_with_the_launcher() -> None:
    folder = LocalFolder()
    told: list[int] = []
    with Launcher(settings(folder, 2), folder=folder) as launcher:
        addresses = launcher.wait_ready(lambda index, address: told.append(index))
        assert addresses == [f"ipc://{folder.path}/c{index}" for index in range(2)] and sorted(told) == [0, 1]
        launcher.check()
        started = time.monotonic()
    assert time.monotonic() - started < 6
    assert not folder.path.exists()
    assert all(not Path(f"/proc/{pid}").exists() for pid in launcher.pids)


def test_a_killed_worker_is_the_cause_and_not_those_that_lost_it() -> None:
    folder = LocalFolder()
    with Launcher(settings(folder, 3), folder=folder) as launcher:
        launcher.wait_ready()
        os.kill(launcher.pids[2], signal.SIGKILL)
        with pytest.raises(PeerError, match=r"worker 2 \(process \d+\) was killed by SIGKILL"):
            launcher.wait_end()


def test_a_process_that_was_forked_does_not_keep_workers_from_hearing_of_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pipe = subprocess.PIPE
    monkeypatch.setattr(
        launcher_module,
        "start_process",
        lambda environment: subprocess.Popen(["cat"], stdin=pipe, stdout=pipe, stderr=pipe, text=True),
    )
    folder = LocalFolder()
    with Launcher(settings(folder, 1), folder=folder) as launcher:
        process = launcher._children[0].process
        numbers = [each.fileno() for each in (process.stdin, process.stdout, process.stderr) if each]
        if not (forked := os.fork()):
            links = {Path(f"/proc/self/fd/{number}").readlink() for number in numbers}
            os._exit(links != {Path(os.devnull)})
        assert os.waitpid(forked, 0)[1] == 0
        assert all(Path(f"/proc/self/fd/{number}").readlink() != Path(os.devnull) for number in numbers)


def test_what_a_worker_writes_is_handed_on_and_its_last_lines_are_in_the_report() -> None:
    folder = LocalFolder()
    lines: list[tuple[int, str]] = []
    (one,) = settings(folder, 1)
    broken = WorkerSettings(**{**one.__dict__, "log_level": "no such level"})
    with (
        Launcher([broken], lambda index, line: lines.append((index, line)), folder) as launcher,
        pytest.raises(PeerError, match="ended with exit status 1(.|\n)*Unknown level: 'NO SUCH LEVEL'"),
    ):
        launcher.wait_ready()
    assert any("Unknown level" in line for index, line in lines if index == 0)


def test_workers_that_never_meet_are_given_up_in_time() -> None:
    folder = LocalFolder()
    first, _ = settings(folder, 2)
    with (
        Launcher([first], folder=folder) as launcher,
        pytest.raises(PeerError, match="worker 0 was not ready within 1 s"),
    ):
        launcher.wait_ready(timeout_seconds=1.0)


def without_ports(index: int, workers: int) -> WorkerSettings:
    """A worker of a launcher of its own, as one on another host would be: nobody knows the ports before."""
    listen = "tcp://127.0.0.1:0"
    return WorkerSettings(index, workers, (listen,), (), listen, client_host="localhost")


def test_workers_of_several_launchers_take_free_ports_and_are_introduced() -> None:
    with Launcher([without_ports(0, 2)]) as first, Launcher([without_ports(1, 2)]) as second:
        peers = [*first.wait_bound(), *second.wait_bound()]
        assert all(re.fullmatch(r"tcp://localhost:[1-9]\d+", peer) for peer in peers), peers
        for launcher in (first, second):
            launcher.introduce(peers)
        addresses = [*first.wait_ready(), *second.wait_ready()]
        with timely.connect(*(address.removeprefix("tcp://") for address in addresses)) as cluster:
            assert len(cluster.stats()) == 2
        os.kill(second.pids[0], signal.SIGKILL)
        for launcher, is_cause in ((first, False), (second, True)):
            with pytest.raises(PeerError):
                launcher.wait_end()
            assert launcher.is_cause == is_cause, "the one has lost the other"


def test_workers_that_are_never_introduced_end_with_their_launcher_and_its_reason() -> None:
    launcher = Launcher([without_ports(0, 2)])
    launcher.wait_bound()
    launcher.stop("the others did not come")
    assert not Path(f"/proc/{launcher.pids[0]}").exists()


def test_workers_have_the_variables_that_they_are_given(tmp_path: Path) -> None:
    given = {"OMP_NUM_THREADS": "1", "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"}
    with Launcher([without_ports(0, 2)], environment=given) as launcher:
        launcher.wait_bound()
        environment = Path(f"/proc/{launcher.pids[0]}/environ").read_bytes().split(b"\0")
    for name, value in given.items():
        assert f"{name}={value}".encode() in environment, "as it is given, and nothing in front"


def test_hooks_run_before_each_launch() -> None:
    ran: list[str] = []
    hook = before_launch(lambda: ran.append("warm"))
    try:
        folder = LocalFolder()
        with Launcher(settings(folder, 1), folder=folder):
            assert ran == ["warm"]
    finally:
        _hooks.remove(hook)


@pytest.mark.parametrize(("outside", "seed"), [(None, "0"), ("random", "0"), ("", "0"), ("7", "7")])
def test_workers_have_one_seed_for_the_hashes_of_text(
    outside: str | None, seed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTHONHASHSEED", raising=False)
    if outside is not None:
        monkeypatch.setenv("PYTHONHASHSEED", outside)
    started: list[Mapping[str, str]] = []
    start = launcher_module.start_process
    monkeypatch.setattr(launcher_module, "start_process", lambda env: [started.append(env), start(env)][1])
    with Launcher([without_ports(0, 1)]) as one:
        one.introduce(one.wait_bound())
        one.wait_ready()
    assert [environment["PYTHONHASHSEED"] for environment in started] == [seed]


def playing(monkeypatch: pytest.MonkeyPatch, program: str) -> None:
    """In place of workers, processes that run this program."""

    def start(environment: Mapping[str, str]) -> subprocess.Popen[str]:
        pipe = subprocess.PIPE
        command = [sys.executable, "-S", "-c", program]
        return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)

    monkeypatch.setattr(launcher_module, "start_process", start)


READY = 'print(\'{"ready": 0, "address": "%d"}\' % number, flush=True); sys.stdin.read()'


def test_a_worker_whose_lines_cannot_be_handed_on_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error stream of a program may be closed, as if its terminal is gone, or its disk full."""
    lines = "for number in range(20_000): print('a line of some length', number, file=sys.stderr)"
    playing(monkeypatch, f"import sys\n{lines}\n{READY}")

    def refuse(index: int, line: str) -> None:
        raise BrokenPipeError

    folder = LocalFolder()
    with Launcher(settings(folder, 1), refuse, folder) as launcher:
        assert launcher.wait_ready(timeout_seconds=10) == ["19999"]


NOTHING = "subprocess.DEVNULL"
STARTS = f"number = subprocess.Popen(['sleep', '20'], stdin={NOTHING}, stdout={NOTHING}).pid"
FORKS = "number = os.fork() or (time.sleep(20), os._exit(0))"


@pytest.mark.parametrize("begins", [STARTS, FORKS])
def test_a_killed_worker_is_noticed_and_replaced_though_its_own_processes_go_on(
    begins: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """These may have its pipes: so nobody must wait for the end of a pipe."""
    playing(monkeypatch, f"import os, subprocess, sys, time\n{begins}\n{READY}")
    monkeypatch.setattr(launcher_module, "VERDICT_SECONDS_MAX", 0.1)
    monkeypatch.setattr(launcher_module, "_LOOK_SECONDS", 0.1)
    folder = LocalFolder()
    launcher = Launcher(settings(folder, 1), folder=folder)
    (number,) = launcher.wait_ready()
    try:
        began = time.monotonic()
        os.kill(launcher.pids[0], signal.SIGKILL)
        with pytest.raises(PeerError, match="was killed by SIGKILL"):
            launcher.wait_end()
        launcher.stop()
        assert time.monotonic() - began < 5
    finally:
        os.kill(int(number), signal.SIGKILL)


def test_a_worker_is_stopped_only_once_it_has_been_so_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    playing(monkeypatch, "import sys; sys.stdin.read()")
    folder = LocalFolder()
    (one,) = settings(folder, 1)
    with Launcher([replace(one, silence_seconds=30.0)], folder=folder) as launcher:

        def send(number: signal.Signals) -> None:
            os.kill(launcher.pids[0], number)
            while launcher_module.is_stopped(launcher.pids[0]) != (number is signal.SIGSTOP):
                time.sleep(0.001)

        def check_after(*seconds: float) -> None:
            began = time.monotonic()
            for passed in seconds:
                with monkeypatch.context() as patch:
                    patch.setattr(time, "monotonic", lambda: began + passed)  # noqa: B023 - called at once
                    launcher.check_stopped()

        for _ in range(2):
            send(signal.SIGSTOP)
            check_after(0.0, 10.0, 20.0)
            send(signal.SIGCONT)
            check_after(21.0)
        send(signal.SIGSTOP)
        with pytest.raises(PeerError, match=r"worker 0 \(process \d+\) has been stopped for more"):
            check_after(0.0, 20.0, 31.0)


def test_a_worker_that_reads_nothing_is_not_waited_for_however_long_the_reason_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    playing(monkeypatch, "import time; time.sleep(20)")
    folder = LocalFolder()
    launcher = Launcher(settings(folder, 1), folder=folder)
    began = time.monotonic()
    launcher.stop("because " * 50_000, grace_seconds=0.1)
    assert time.monotonic() - began < 5
    assert not Path(f"/proc/{launcher.pids[0]}").exists()


def test_descriptors_may_have_any_number() -> None:
    """A program that has opened a thousand files gets numbers that `select` refuses."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(limits[0], 2_048), limits[1]))
    receiving, sending = os.pipe()
    large = fcntl.fcntl(receiving, fcntl.F_DUPFD_CLOEXEC, 2_000)
    try:
        assert wait_readable([large], 0.0) == set()
        os.write(sending, b"!")
        assert wait_readable([large, receiving], 10.0) == {large, receiving}
        os.read(large, 1)
        os.close(sending)
        assert wait_readable([large], 10.0) == {large}, "it has ended"
    finally:
        os.close(large)
        os.close(receiving)
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
