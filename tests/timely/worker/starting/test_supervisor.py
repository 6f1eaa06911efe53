"""Workers of a durable cluster are started again, whoever ends them, and however."""

from __future__ import annotations

import errno
import logging
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

import timely
from timely.durable import folder_store
from timely.durable.folder_store import FolderStore
from timely.limits import RESTARTS_COUNT_MAX
from timely.worker import launcher, supervisor
from timely.worker.following.standby import Standby
from timely.worker.launcher import Launcher, LocalFolder
from timely.worker.settings import WorkerSettings, local_settings
from timely.worker.supervisor import Supervisor


@pytest.fixture(autouse=True)
def prompt(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pauses are short."""
    monkeypatch.setattr(supervisor, "_PAUSE_SECONDS", 0.001)


@pytest.fixture
def folder() -> Iterator[LocalFolder]:
    """Where sockets are."""
    made = LocalFolder()
    yield made
    made.remove()


def settings(folder: LocalFolder, store: Path, workers: int = 2) -> list[WorkerSettings]:
    """Workers on a store."""
    return [replace(each, durable=str(store)) for each in local_settings(workers, folder.path)]


@pytest.fixture
def watched(folder: LocalFolder, tmp_path: Path) -> Iterator[Supervisor]:
    """Two workers that are watched."""
    with Supervisor(settings(folder, tmp_path / "store"), folder=folder) as made:
        made.watch()
        yield made


def until(holds: Callable[[], bool], seconds: float = 30.0) -> None:
    """Wait until something holds."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def runs(keeper: Supervisor) -> bool:
    """Whether all workers run."""
    try:
        keeper.check()
    except timely.PeerError:
        return False
    return True


def is_gone(pid: int) -> bool:
    """Whether there is no such process any more."""
    return not Path(f"/proc/{pid}").exists()


@pytest.mark.parametrize("victim", [0, 1])
def test_a_killed_worker_is_started_again_with_all_others(
    victim: int, watched: Supervisor, caplog: pytest.LogCaptureFixture
) -> None:
    addresses, before = watched.addresses, watched.pids
    watched.check()
    os.kill(before[victim], signal.SIGKILL)
    until(lambda: watched.restarts == 1)
    assert all(map(is_gone, before)), "none of the new ones meets an old one"
    until(lambda: runs(watched))
    assert watched.addresses == addresses and not set(watched.pids) & set(before)
    with timely.connect(addresses[0]) as cluster:
        assert len(cluster.stats()) == 2
    (told,) = [record for record in caplog.records if "starting all workers again" in record.message]
    assert told.levelno == logging.WARNING
    assert f"worker {victim} (process {before[victim]}) was killed by SIGKILL" in told.message


def test_a_worker_is_started_again_where_the_first_one_was(
    folder: LocalFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("at first", "later"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "at first")
    with Supervisor(settings(folder, tmp_path / "store", 1), folder=folder) as keeper:
        keeper.watch()
        monkeypatch.chdir(tmp_path / "later")  # as a notebook does
        os.kill(keeper.pids[0], signal.SIGKILL)
        until(lambda: keeper.restarts == 1 and runs(keeper))
        assert Path(f"/proc/{keeper.pids[0]}/cwd").readlink() == tmp_path / "at first"


def test_meanwhile_its_clients_are_told_why(watched: Supervisor) -> None:
    os.kill(watched.pids[0], signal.SIGSTOP)  # so that it takes a while
    os.kill(watched.pids[1], signal.SIGKILL)
    until(lambda: not runs(watched))
    with pytest.raises(timely.PeerError, match="worker 1 .* was killed by SIGKILL"):
        watched.check()
    assert watched.starts_again
    until(lambda: runs(watched))


def test_a_stopped_worker_does_not_wake_up_beside_the_new_ones(watched: Supervisor) -> None:
    before = watched.pids
    os.kill(before[1], signal.SIGSTOP)
    until(lambda: watched.restarts == 1)
    assert all(map(is_gone, before))
    until(lambda: runs(watched))


def test_a_worker_that_is_stopped_before_it_is_ready_holds_nobody_up(
    watched: Supervisor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others wait for it for minutes: they do not know it yet."""
    stopped: list[int] = []
    start = launcher.start_process

    def start_stopped(environment: Mapping[str, str]) -> subprocess.Popen[str]:
        process = start(environment)
        if not stopped:
            stopped.append(process.pid)
            os.kill(process.pid, signal.SIGSTOP)
        return process

    monkeypatch.setattr(launcher, "start_process", start_stopped)
    os.kill(watched.pids[0], signal.SIGKILL)
    until(lambda: watched.restarts == 2 and runs(watched))
    assert is_gone(stopped[0])


def test_a_lone_worker_that_is_stopped_is_started_again(folder: LocalFolder, tmp_path: Path) -> None:
    with Supervisor(settings(folder, tmp_path / "store", 1), folder=folder) as made:
        made.watch()
        os.kill(made.pids[0], signal.SIGSTOP)
        until(lambda: not runs(made))
        with pytest.raises(timely.PeerError, match=r"has been stopped for more than 2\.5 s"):
            made.check()
        until(lambda: runs(made))


def test_a_client_ends_the_cluster_for_good(
    watched: Supervisor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unlock = FolderStore.unlock
    monkeypatch.setattr(FolderStore, "unlock", lambda store: time.sleep(0.2) or unlock(store))  # others look
    timely.connect(watched.addresses[0]).shutdown()
    until(lambda: not watched.starts_again)
    with pytest.raises(timely.PeerError, match="a client or a signal asked for that"):
        watched.check()
    assert watched.restarts == 0 and all(map(is_gone, watched.pids))
    other = LocalFolder()
    with Supervisor(settings(other, tmp_path / "store"), folder=other) as again:
        again.check()


def test_two_clusters_on_one_store_are_refused(watched: Supervisor, tmp_path: Path) -> None:
    other = LocalFolder()
    with pytest.raises(timely.StoreError, match=f"in use by .*{os.getpid()}"):
        Supervisor(settings(other, tmp_path / "store"), folder=other)
    assert not other.path.exists()
    watched.stop()
    other = LocalFolder()
    with Supervisor(settings(other, tmp_path / "store"), folder=other) as again:
        again.check()


def failing(status: int = 1, text: str = "") -> Callable[[Mapping[str, str]], subprocess.Popen[str]]:
    """In place of workers, processes that end at once."""

    def start(environment: Mapping[str, str]) -> subprocess.Popen[str]:
        program = f"print({text!r}, end='', flush=True); raise SystemExit({status})"
        return subprocess.Popen(
            [sys.executable, "-S", "-c", program],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    return start


def test_workers_that_never_are_ready_again_are_given_up(
    watched: Supervisor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launcher, "start_process", failing(7))
    os.kill(watched.pids[0], signal.SIGKILL)
    until(lambda: not watched.starts_again)
    assert watched.restarts == RESTARTS_COUNT_MAX
    with pytest.raises(timely.PeerError, match=r"exit status 7(.|\n)*ended 5 times in a row before they"):
        watched.check()


def test_workers_whose_store_was_moved_are_given_up_soon(watched: Supervisor, tmp_path: Path) -> None:
    (tmp_path / "store").rename(tmp_path / "elsewhere")
    os.kill(watched.pids[0], signal.SIGKILL)
    until(lambda: not watched.starts_again)
    with pytest.raises(timely.PeerError, match=r"folder was moved(.|\n)*put it back(.|\n)*times in a row"):
        watched.check()
    assert watched.restarts == RESTARTS_COUNT_MAX


def test_workers_of_a_cluster_that_has_lost_its_store_to_another_are_not_started_again(
    watched: Supervisor, monkeypatch: pytest.MonkeyPatch
) -> None:
    fenced = '{"failed": "FencedError: a later incarnation has taken over", "is_cause": true}\n'
    monkeypatch.setattr(launcher, "start_process", failing(1, fenced))
    os.kill(watched.pids[0], signal.SIGKILL)
    until(lambda: not watched.starts_again)
    assert watched.restarts == 1
    with pytest.raises(timely.PeerError, match="Another cluster has taken over the store"):
        watched.check()


def test_a_first_start_that_fails_is_no_restart(
    folder: LocalFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launcher, "start_process", failing(3))
    for _ in range(2):  # the lock is free again
        with pytest.raises(timely.PeerError, match="exit status 3"):
            Supervisor(settings(folder, tmp_path / "store"))


def test_stop_does_not_wait_for_workers_that_start(
    watched: Supervisor, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[subprocess.Popen[str]] = []

    def start(environment: Mapping[str, str]) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-S", "-c", "import sys; sys.stdin.read()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    monkeypatch.setattr(launcher, "start_process", start)
    os.kill(watched.pids[0], signal.SIGKILL)
    until(lambda: len(started) == 2)
    began = time.monotonic()
    watched.stop()
    assert time.monotonic() - began < 4.5
    assert all(process.poll() is not None for process in started)


def test_ready_workers_are_told_once(folder: LocalFolder, tmp_path: Path) -> None:
    told: list[int] = []
    with Supervisor(
        settings(folder, tmp_path / "store"),
        folder=folder,
        on_ready=lambda index, address: told.append(index),
    ) as made:
        made.watch()
        os.kill(made.pids[0], signal.SIGKILL)
        until(lambda: made.restarts == 1 and runs(made))
    assert sorted(told) == [0, 1]


def test_ports_that_the_system_has_chosen_stay(folder: LocalFolder, tmp_path: Path) -> None:
    (one,) = settings(folder, tmp_path / "store", 1)
    one = replace(one, client_listen="tcp://127.0.0.1:0", client_host="localhost")
    with Supervisor([one], folder=folder) as made:
        made.watch()
        address = made.addresses[0].removeprefix("tcp://")
        with timely.connect(address) as cluster:
            os.kill(made.pids[0], signal.SIGKILL)
            assert len(cluster.stats()) == 1
            assert made.restarts == 1 and made.addresses == [f"tcp://{address}"]


def test_lines_beside_zeromq_are_there_again(watched: Supervisor) -> None:
    """A killed worker leaves its socket in the folder, and another cannot listen at that name."""
    path = Path(f"{watched.addresses[0].removeprefix('ipc://')}-direct")
    os.kill(watched.pids[0], signal.SIGKILL)
    until(lambda: watched.restarts == 1 and runs(watched))
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(str(path))


def test_only_the_first_host_holds_the_lock(folder: LocalFolder, tmp_path: Path) -> None:
    """The others see the same store; their workers wait for those of the first."""
    store = tmp_path / "store"
    first, second = settings(folder, store)
    made: list[Supervisor] = []

    def start_second() -> None:
        made.append(Supervisor([second]))

    thread = threading.Thread(target=start_second)
    thread.start()
    with Supervisor([first]) as one:
        thread.join()
        one.watch()
        made[0].watch()
        os.kill(one.pids[0], signal.SIGKILL)
        until(lambda: all(each.restarts and runs(each) for each in (one, *made)))
        made[0].stop()


def test_a_supervisor_that_is_gone_leaves_no_descriptors(folder: LocalFolder, tmp_path: Path) -> None:
    with Supervisor(settings(folder, tmp_path / "store", 1), folder=folder) as made:
        made.watch()
        pipes = [made._wake_recv, made._wake_send]
        assert select.select(pipes[:1], [], [], 0)[0] == []
    made.stop()
    for pipe in pipes:
        with pytest.raises(OSError):
            os.fstat(pipe)


def test_workers_of_a_supervisor_that_was_killed_may_still_be_about_to_end(
    folder: LocalFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They hold the ports until then."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        (one,) = settings(folder, tmp_path / "store", 1)
        one = replace(one, client_listen=f"tcp://127.0.0.1:{taken.getsockname()[1]}")
        threading.Timer(2.0, taken.close).start()
        with Supervisor([one], folder=folder) as made:
            made.check()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        other = LocalFolder()
        (one,) = settings(other, tmp_path / "store", 1)
        one = replace(one, client_listen=f"tcp://127.0.0.1:{taken.getsockname()[1]}")
        monkeypatch.setattr(supervisor, "STOP_SECONDS_MAX", 0.0)
        with pytest.raises(timely.PeerError, match="is in use by another program: end the other program"):
            Supervisor([one], folder=other)


# Another number of workers.


def test_a_cluster_goes_on_with_more_workers_and_with_fewer(watched: Supervisor) -> None:
    """Each has the address that it had; a restart after that is with as many."""
    folder = watched.addresses[0].rpartition("/")[0]
    for workers in (3, 1, 2):
        before = watched.pids
        watched.rescale(workers)
        assert all(map(is_gone, before)) and len(watched.pids) == workers
        assert watched.addresses == [f"{folder}/c{index}" for index in range(workers)]
        watched.check()
        with timely.connect(watched.addresses[-1]) as cluster:
            assert len(cluster.stats()) == workers
    assert watched.restarts == 0
    os.kill(watched.pids[1], signal.SIGKILL)
    until(lambda: watched.restarts == 1 and runs(watched))
    assert len(watched.pids) == 2


def test_new_workers_that_do_not_start_are_none(
    watched: Supervisor, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    start, addresses, before = launcher.start_process, watched.addresses, watched.pids
    left = [3]

    def fails_at_first(environment: Mapping[str, str]) -> subprocess.Popen[str]:
        left[0] -= 1
        return failing(7)(environment) if left[0] >= 0 else start(environment)

    monkeypatch.setattr(launcher, "start_process", fails_at_first)
    with pytest.raises(
        timely.PeerError,
        match=r"goes on with 2 workers, as before: 3 workers did not start: worker . .* exit status 7",
    ):
        watched.rescale(3)
    watched.check()
    assert watched.addresses == addresses and watched.pids == before and watched.restarts == 0
    watched.rescale(3)
    assert len(watched.pids) == 3


def test_present_workers_go_on_if_others_find_another_folder_in_place_of_their_store(
    watched: Supervisor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[Standby] = []

    class Abreast(Standby):
        def check(self) -> bool:
            is_abreast = super().check()
            if is_abreast:
                begun.append(self)
                (tmp_path / "store").rename(tmp_path / "elsewhere")
            return is_abreast

    monkeypatch.setattr(supervisor, "Standby", Abreast)
    before = watched.pids
    with pytest.raises(timely.PeerError, match=r"goes on with 2 workers, as before: (.|\n)*folder was moved"):
        watched.rescale(3)
    watched.check()
    assert watched.pids == before and watched.restarts == 0
    assert all(map(is_gone, begun[0].pids)), "nobody would end them"


def test_if_no_workers_start_any_more_that_is_what_is_told(
    watched: Supervisor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launcher, "start_process", failing(7))
    with pytest.raises(timely.PeerError, match="did not start: worker"):
        watched.rescale(3)
    watched.check()
    os.kill(watched.pids[0], signal.SIGKILL)
    until(lambda: not watched.starts_again)
    with pytest.raises(timely.PeerError, match=r"exit status 7(.|\n)*times in a row before they were"):
        watched.rescale(3)
    with pytest.raises(timely.PeerError, match=r"times in a row before they were"):
        watched.rescale(2)


def test_a_new_worker_that_is_stopped_before_it_is_ready_holds_nobody_up(
    watched: Supervisor, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped: list[int] = []
    start = launcher.start_process

    def start_stopped(environment: Mapping[str, str]) -> subprocess.Popen[str]:
        process = start(environment)
        if not stopped:
            stopped.append(process.pid)
            os.kill(process.pid, signal.SIGSTOP)
        return process

    monkeypatch.setattr(launcher, "start_process", start_stopped)
    with pytest.raises(timely.PeerError, match=r"3 workers did not start: worker 0 .* has been stopped"):
        watched.rescale(3)
    assert is_gone(stopped[0]) and len(watched.pids) == 2


def test_a_wish_waits_until_workers_are_there_again(watched: Supervisor) -> None:
    os.kill(watched.pids[1], signal.SIGKILL)
    until(lambda: not runs(watched))
    watched.rescale(3)
    watched.check()
    assert watched.restarts == 1 and len(watched.pids) == 3


def test_wishes_of_several_threads_are_carried_out_one_after_the_other(watched: Supervisor) -> None:
    threads = [threading.Thread(target=watched.rescale, args=(workers,)) for workers in (1, 3, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    watched.check()
    assert len(watched.pids) in (1, 3, 2)


def test_who_wishes_hears_of_the_end(watched: Supervisor, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if the new workers never are ready."""
    started: list[subprocess.Popen[str]] = []
    raised: list[BaseException] = []

    def start(environment: Mapping[str, str]) -> subprocess.Popen[str]:
        started.append(
            subprocess.Popen(
                [sys.executable, "-S", "-c", "import sys; sys.stdin.read()"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
        return started[-1]

    def wishes() -> None:
        try:
            watched.rescale(3)
        except timely.PeerError as error:
            raised.append(error)

    monkeypatch.setattr(launcher, "start_process", start)
    thread = threading.Thread(target=wishes)
    thread.start()
    until(lambda: len(started) == 3)
    watched.stop()
    thread.join(10)
    assert "this cluster is closed" in str(raised[0])
    with pytest.raises(timely.PeerError, match="this cluster is closed"):
        watched.rescale(3)


def test_a_rescaling_ends_nobody_if_the_disk_is_full(
    watched: Supervisor, monkeypatch: pytest.MonkeyPatch
) -> None:
    pids, is_full = watched.pids, True
    write = folder_store._write

    def fails(file: object, pieces: object) -> None:
        if is_full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write(file, pieces)  # type: ignore[arg-type]

    monkeypatch.setattr(folder_store, "_write", fails)
    with pytest.raises(timely.PeerError, match=r"goes on with 2 workers, as before: .*No space left"):
        watched.rescale(3)
    watched.check()
    assert watched.pids == pids and watched.restarts == 0
    is_full = False
    watched.rescale(3)
    assert len(watched.pids) == 3


def test_workers_that_are_too_busy_to_be_followed_are_not_waited_for(
    folder: LocalFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others may never be abreast of them."""
    with Supervisor(settings(folder, tmp_path / "store"), folder=folder) as made:
        made.watch()
        followed: list[Standby] = []

        def lags(standby: Standby) -> bool:
            made._seconds = 60.0  # for those that start then
            followed.append(standby)
            return False

        monkeypatch.setattr(Standby, "check", lags)
        made._seconds = 0.1
        made.rescale(3)
        made.check()
        assert len(made.pids) == 3 and made.restarts == 0
        assert followed and all(map(is_gone, followed[0].pids))


def test_nobody_wishes_of_workers_that_are_not_watched(folder: LocalFolder, tmp_path: Path) -> None:
    with Supervisor(settings(folder, tmp_path / "store", 1), folder=folder) as made:
        with pytest.raises(timely.MisuseError, match="1 to 1024 workers, not 0"):
            made.rescale(0)
        with pytest.raises(timely.InternalError, match="nobody watches"):
            made.rescale(2)


def test_a_cluster_that_a_client_ends_meanwhile_is_not_begun_anew_with_another_number(
    watched: Supervisor, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended: list[Standby] = []

    class Following(Standby):
        def check(self) -> bool:
            if not ended:
                ended.append(self)
                timely.connect(watched.addresses[0]).shutdown()
            super().check()
            return False

    monkeypatch.setattr(supervisor, "Standby", Following)
    with pytest.raises(timely.PeerError, match="^the cluster has ended: a client or a signal asked for that"):
        watched.rescale(3)
    until(lambda: not watched.starts_again)
    assert len(watched.pids) == 2 and all(map(is_gone, [*watched.pids, *ended[0].pids]))


@pytest.mark.parametrize("kills", [False, True])
def test_a_client_ends_a_cluster_whose_workers_come_up(
    kills: bool, watched: Supervisor, monkeypatch: pytest.MonkeyPatch
) -> None:
    check, first = Launcher.check, watched._launcher

    def check_and_end(launcher: Launcher) -> None:
        check(launcher)
        if launcher is not first and launcher.addresses[0]:
            monkeypatch.undo()
            timely.connect(launcher.addresses[0]).shutdown()
            launcher._children[0].process.wait(30.0)
            check(launcher)

    monkeypatch.setattr(Launcher, "check", check_and_end)
    with pytest.raises(timely.PeerError, match="^the cluster has ended: a client or a signal asked for that"):
        os.kill(watched.pids[1], signal.SIGKILL) if kills else watched.rescale(3)
        until(lambda: not watched.starts_again and all(map(is_gone, watched.pids)))
        watched.check()


def test_no_folder_is_made_at_the_end_where_the_store_was(watched: Supervisor, tmp_path: Path) -> None:
    """Whoever moves the store back would move it into that one."""
    (tmp_path / "store").rename(tmp_path / "elsewhere")
    watched.stop()
    assert not (tmp_path / "store").exists()
