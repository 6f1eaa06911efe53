"""Workers that are forked for tests are as those that a launcher starts: in how they begin, work and end.

Each claim is made of both.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import forked_processes
import pytest
from forked_workers import Nurseries

import timely
from timely import PeerError
from timely.worker import launcher
from timely.worker.launcher import Launcher, LocalFolder
from timely.worker.process import EXIT_PEER_LOST
from timely.worker.settings import WorkerSettings, local_settings

Start = Callable[[Mapping[str, str]], subprocess.Popen[str]]


@pytest.fixture(params=["by command", "forked"] if forked_processes.CAN_FORK else ["by command"])
def start(
    request: pytest.FixtureRequest, _nurseries: Nurseries, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Start]:
    """What starts the workers of this test."""
    monkeypatch.setattr(_nurseries, "first", 0)
    chosen = _nurseries.by_command.worker if request.param == "by command" else _nurseries.start
    monkeypatch.setattr(launcher, "start_process", chosen)
    yield chosen


def whose(process: int) -> str:
    return Path(f"/proc/{process}/cmdline").read_bytes().replace(b"\0", b" ").decode()


def test_they_work_and_are_gone_with_their_launcher(start: Start, request: pytest.FixtureRequest) -> None:
    is_forked = "forked" in request.node.name
    folder = LocalFolder()
    with Launcher(local_settings(2, folder.path), folder=folder) as both:
        both.wait_ready()
        assert [("forked_workers" in whose(process)) for process in both.pids] == [is_forked] * 2
        assert len({os.getpgid(process) for process in both.pids} | {os.getpgid(0)}) == 1
        with timely.connect(both.addresses[0] or "") as cluster:
            assert {counters["process"] for counters in cluster.stats()} == set(both.pids)
    assert not any(Path(f"/proc/{process}").exists() for process in both.pids)


def test_they_end_with_a_status_or_by_a_signal(start: Start) -> None:
    folder = LocalFolder()
    with Launcher(local_settings(2, folder.path), folder=folder) as both:
        both.wait_ready()
        os.kill(both.pids[1], signal.SIGKILL)
        with pytest.raises(PeerError, match=r"worker 1 \(process \d+\) was killed by SIGKILL"):
            both.wait_end()
    (one,) = local_settings(1, LocalFolder().path)
    broken = WorkerSettings(**{**one.__dict__, "log_level": "no such level"})
    with (
        Launcher([broken]) as alone,
        pytest.raises(PeerError, match="ended with exit status 1(.|\n)*Unknown level: 'NO SUCH LEVEL'"),
    ):
        alone.wait_ready()


def test_they_end_when_whoever_started_them_is_gone(start: Start) -> None:
    process = start({**os.environ})
    assert process.poll() is None and process.stdin is not None
    process.stdin.close()
    assert process.wait(20) == EXIT_PEER_LOST, "nobody has told it what to do"
    assert process.poll() == EXIT_PEER_LOST
    for stream in (process.stdout, process.stderr):
        assert stream is not None
        stream.close()


def test_forked_are_also_those_of_a_process_that_has_a_spark(
    _nurseries: Nurseries, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A session leaves variables of its own behind."""
    monkeypatch.setattr(_nurseries, "first", 0)
    with _nurseries.start({**os.environ, "SPARK_BUFFER_SIZE": "65536"}) as process:
        assert isinstance(process, forked_processes.Forked) == forked_processes.CAN_FORK
        assert process.stdin is not None
        process.stdin.close()


def test_in_another_environment_none_is_forked(
    _nurseries: Nurseries, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_nurseries, "first", 0)
    process = _nurseries.start({**os.environ, "NAIAD_TEST_OF_NURSERIES": "1"})
    with process:
        assert process.args == [sys.executable, "-m", "timely.worker.process"]


PROGRAM = """
import atexit, os, sys, own
atexit.register(print, "and the last")
print(__name__, sys.argv[1:], os.getcwd(), sys.path[0], own.number, os.environ["OF_IT"], sys.stdin.read())
print(os.getsid(0) == os.getpid())
sys.exit("it is broken")
"""


@pytest.mark.skipif(not forked_processes.CAN_FORK, reason="nothing can be forked here")
def test_programs_print_and_end_as_by_their_command(_nurseries: Nurseries, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "own.py").write_text("number = 7\n")
    command = [str(tmp_path / "program.py"), "a b"]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "OF_IT": "of it"}
    done = subprocess.run(
        [sys.executable, *command],
        cwd=tmp_path,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        start_new_session=True,
    )
    forked = _nurseries.program(command, environment, tmp_path)
    output, errors = forked.communicate(timeout=60)
    assert (forked.returncode, output, errors) == (1, done.stdout, done.stderr)
    assert output.endswith("True\nand the last\n") and errors == "it is broken\n"


STARTS = """
import timely
with timely.connect(workers=2) as cluster:
    workers = {counters["process"] for counters in cluster.stats()}
    print(["forked_workers" in open(f"/proc/{process}/cmdline").read() for process in workers])
"""


@pytest.mark.skipif(not forked_processes.CAN_FORK, reason="nothing can be forked here")
def test_what_forked_programs_start_is_forked(_nurseries: Nurseries, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(STARTS)
    forked = _nurseries.program([str(tmp_path / "program.py")], dict(os.environ), tmp_path)
    assert forked.communicate(timeout=60) == ("[True, True]\n", "") and forked.returncode == 0


def test_folds_print_and_end_as_by_their_command(_nurseries: Nurseries, tmp_path: Path) -> None:
    command = ["-m", "timely.durable", "fold", str(tmp_path)]
    by_command = _nurseries.by_command.python(command, os.environ)
    forked = _nurseries.python(command, os.environ)
    assert isinstance(forked, forked_processes.Forked) == forked_processes.CAN_FORK
    assert forked.communicate() == by_command.communicate()
    assert forked.returncode == by_command.returncode == 1


@pytest.mark.skipif(not forked_processes.CAN_FORK, reason="nothing can be forked here")
def test_programs_that_take_too_long_can_be_killed(_nurseries: Nurseries, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(
        "import time\nprint('begun', flush=True)\nopen('begun', 'x')\ntime.sleep(600)\n"
    )
    forked = _nurseries.program([str(tmp_path / "program.py")], dict(os.environ), tmp_path)
    while not (tmp_path / "begun").exists():
        with pytest.raises(subprocess.TimeoutExpired):
            forked.communicate(timeout=0.05)
    os.killpg(forked.pid, signal.SIGKILL)
    assert forked.communicate() == ("begun\n", "") and forked.returncode == -signal.SIGKILL
