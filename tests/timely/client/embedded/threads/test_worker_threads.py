"""Workers in threads: all is done when `work` returns, nobody works after it, and it always ends."""

from __future__ import annotations

import gc
import os
import random
import signal
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import cast

import pytest
from dataflows import fails_on, word_count

import timely
from progress.times.timestamp import Timestamp
from timely.client.embedded.threads import worker_threads
from timely.client.embedded.threads.pace import Pace
from timely.client.embedded.threads.thread_transport import ThreadNetwork, ThreadTransport
from timely.client.embedded.threads.worker_threads import WorkerThreads
from timely.client.embedded.workers import EmbeddedWorkers
from timely.running.core import Worker


@contextmanager
def interrupted_once(begun: threading.Event) -> Iterator[None]:
    """Ctrl-C, once that has begun; it must come out of the block."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # it may be ignored
    interrupter = threading.Thread(target=lambda: begun.wait(60.0) and os.kill(os.getpid(), signal.SIGINT))
    interrupter.start()
    with pytest.raises(KeyboardInterrupt):
        yield
    interrupter.join()
    signal.signal(signal.SIGINT, before)


def _nothing() -> None: ...


class Passes:
    """A worker that passes on whatever it gets, each time one less of it, to a peer by chance."""

    def __init__(self, transport: ThreadTransport, index: int, workers: int, seed: int) -> None:
        self.transport, self.index, self.workers = transport, index, workers
        self.rng = random.Random(seed)
        self.waiting: list[int] = []
        self.done = self.thread = 0
        self.on_step: Callable[[], object] = _nothing

    def is_at_rest(self) -> bool:
        return not self.waiting and self.on_step is _nothing

    def may_step(self) -> bool:
        return not self.is_at_rest()

    def step(self) -> bool:
        self.thread = threading.get_ident()
        self.on_step()
        arrived = [int(bytes(frames[0])) for _, frames in self.transport.recv_nowait()]
        waiting, self.waiting = self.waiting, arrived
        for left in waiting:
            self.done += 1
            if self.rng.random() < 0.1:
                time.sleep(self.rng.random() * 1e-4)
            if left:
                peer = (self.index + self.rng.randint(1, self.workers - 1)) % self.workers
                self.transport.send(peer, [str(left - 1).encode()])
        return bool(waiting or arrived)


class Alternates(Pace):
    """Begins either way by chance, or always the same."""

    def __init__(self, in_turn: bool | None) -> None:
        super().__init__()
        self.in_turn = in_turn
        self.rng = random.Random(1)

    def begins_in_turn(self) -> bool:
        return self.rng.random() < 0.5 if self.in_turn is None else self.in_turn


def passing(
    count: int, seed: int, wants_pause: Callable[[], bool] = bool, in_turn: bool | None = False
) -> tuple[WorkerThreads, list[Passes]]:
    """Threads of such workers."""
    network = ThreadNetwork(count)
    workers = [Passes(network.transport(index), index, count, seed + index) for index in range(count)]
    pool = WorkerThreads(cast("list[Worker]", workers), network, wants_pause)
    pool._pace = Alternates(in_turn)
    return pool, workers


@pytest.mark.parametrize("in_turn", [False, None])
@pytest.mark.parametrize("count", [2, 3, 5])
def test_all_is_done_when_it_returns_and_nobody_works_after_it(
    count: int, in_turn: bool | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        worker_threads, "_IN_TURN_SECONDS", 1e-4
    )  # so that most that begins so does not end so
    rng = random.Random(count)
    pool, workers = passing(count, 7 * count, in_turn=in_turn)
    meant = 0
    for _ in range(150):
        for worker in workers:
            for _ in range(rng.choice([0, 0, 1, 3])):
                left = rng.randrange(30)
                worker.waiting.append(left)
                meant += left + 1
        has_work = any(worker.waiting for worker in workers)
        assert pool.work() == has_work and not pool.has_paused
        assert sum(worker.done for worker in workers) == meant and pool._network.in_flight() == 0
        assert [transport.is_held for transport in pool._transports] == [False] + [True] * (count - 1)
    if in_turn is False:
        assert len({worker.thread for worker in workers}) == count, "each in a thread of its own"
        assert [pool.has(worker.thread) for worker in workers] == [False] + [True] * (count - 1)
    assert workers[0].thread == threading.get_ident()
    pool.close()
    assert not any(thread.is_alive() for thread in pool._threads)


def test_a_message_between_two_looks_at_counts_is_seen() -> None:
    """Sent behind the first transport that is looked at, and taken before the last: the sums are even."""

    class Counted:
        def __init__(self, *looks: tuple[int, int]) -> None:
            self.looks = list(looks)

        @property
        def sent(self) -> int:
            return self.looks[0][0]

        @property
        def taken(self) -> int:
            return self.looks.pop(0)[1] if len(self.looks) > 1 else self.looks[0][1]

    pool = WorkerThreads.__new__(WorkerThreads)
    pool._rests = [True] * 3
    pool._threads = []
    transports = (Counted((0, 0), (2, 1)), Counted((1, 0), (1, 0)), Counted((0, 1), (0, 1)))
    pool._transports = cast("list[ThreadTransport]", transports)
    assert not pool._all_rest()
    pool._transports = cast("list[ThreadTransport]", (Counted((2, 1)), Counted((0, 1))))
    assert pool._all_rest()
    pool._rests = [True, False]
    assert not pool._all_rest()
    pool._rests = [True, True]
    pool._transports = cast("list[ThreadTransport]", (Counted((2, 1)), Counted((0, 0))))
    assert not pool._all_rest(), "one is under way"


@pytest.mark.parametrize("in_turn", [False, True])
@pytest.mark.parametrize("who", [0, 1])
def test_a_pause_leaves_the_rest_to_the_next_call(who: int, in_turn: bool) -> None:
    wants = [False]
    pool, workers = passing(2, 3, lambda: wants[0], in_turn)

    def on_step() -> None:
        wants[0] = workers[who].done > 5

    workers[who].on_step = on_step
    workers[who].waiting += [50]
    assert pool.work() and pool.has_paused
    done = sum(worker.done for worker in workers)
    assert done < 51
    workers[who].on_step = _nothing
    wants[0] = False
    time.sleep(0.05)
    assert sum(worker.done for worker in workers) == done, "nobody works in a pause"
    assert pool.work() and not pool.has_paused
    assert sum(worker.done for worker in workers) == 51
    pool.close()


@pytest.mark.parametrize("in_turn", [False, True])
@pytest.mark.parametrize("who", [0, 1])
def test_it_ends_at_a_moment_that_is_given(who: int, in_turn: bool) -> None:
    pool, workers = passing(2, 3, in_turn=in_turn)
    workers[who].on_step = lambda: workers[who].waiting.append(0)
    assert pool.work(time.monotonic() + 0.1)
    assert pool.has_paused
    assert who == 0 or pool.has(workers[1].thread)
    workers[who].on_step = _nothing
    pool.work()
    assert not pool.has_paused
    pool.close()


def test_a_pause_that_is_wanted_in_turn_is_one_at_once() -> None:
    pool, workers = passing(2, 3, lambda: True, in_turn=True)
    workers[0].on_step = lambda: workers[0].waiting.append(0)
    assert pool.work() and pool.has_paused and workers[0].done == 1
    pool.close()


def test_who_works_without_an_end_hears_of_a_pause_that_another_wants() -> None:
    wants = threading.Event()
    pool, workers = passing(2, 3, lambda: threading.get_ident() == workers[1].thread and wants.is_set())
    workers[0].on_step = lambda: workers[0].waiting.append(0)
    workers[1].on_step = wants.set
    workers[1].waiting.append(0)
    assert pool.work() and pool.has_paused
    workers[0].on_step = workers[1].on_step = _nothing
    wants.clear()
    pool.work()
    assert not pool.has_paused
    pool.close()


def test_who_is_about_to_sleep_hears_of_a_pause_that_another_wants(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_threads, "_LOOK_SECONDS", 120.0)
    wants = threading.Event()
    pool, workers = passing(2, 3, wants.is_set)
    transport, wait, paused = pool._transports[0], pool._transports[0].wait, threading.Event()

    def waits(timeout_seconds: float, is_awaited: Callable[[], bool] = bool) -> None:
        wants.set()  # only now: it has seen nothing of it
        assert paused.wait(60.0)
        wait(timeout_seconds, is_awaited)

    def is_woken() -> None:
        if pool._must_pause:
            paused.set()

    def is_slow() -> None:
        assert wants.wait(60.0)

    monkeypatch.setattr(transport, "wait", waits)
    monkeypatch.setattr(transport, "wake", is_woken)
    workers[1].on_step = is_slow
    workers[1].waiting.append(0)
    pool.work()  # for ever, if it slept
    assert pool.has_paused
    pool.close()


@pytest.mark.parametrize("in_turn", [False, True])
def test_what_a_call_took_is_noted_of_the_way_in_which_it_began(in_turn: bool) -> None:
    pool, workers = passing(2, 3, in_turn=in_turn)
    noted: list[bool] = []
    pool._pace.note = lambda way, seconds: noted.append(way)  # type: ignore[method-assign]
    held: list[list[bool]] = []
    workers[0].on_step = lambda: held.append([transport.is_held for transport in pool._transports])
    workers[0].waiting.append(0)
    assert pool.work()
    assert noted == [in_turn]
    assert held[0] == [in_turn] * 2, "who takes turns with all others waits for nobody"
    workers[0].on_step = _nothing
    assert not pool.work() and noted == [in_turn], "nothing was done"
    pool.close()


@pytest.mark.parametrize("who", [0, 1])
@pytest.mark.parametrize("in_turn", [False, True])
@pytest.mark.parametrize("kind", [ZeroDivisionError, KeyboardInterrupt, SystemExit])
def test_what_comes_out_of_a_worker_comes_out_and_all_is_over(
    who: int, kind: type[BaseException], in_turn: bool, looks_often: None
) -> None:
    pool, workers = passing(3, 3, in_turn=in_turn)

    def fails() -> None:
        raise kind("of a worker")

    workers[who].on_step = fails
    workers[2].waiting += [10_000]
    with pytest.raises(kind, match="of a worker"):
        pool.work()
    for thread in pool._threads:
        thread.join(10.0)
    assert pool.is_over and not pool.is_at_work


def test_an_interrupt_of_who_waits_comes_out_at_once_and_others_end_after_their_step() -> None:
    pool, workers = passing(2, 3)
    begun, ends = threading.Event(), threading.Event()

    def is_long() -> None:
        begun.set()
        assert ends.wait(60.0)

    workers[1].on_step = is_long
    workers[1].waiting += [3]

    with interrupted_once(begun):
        pool.work()
    assert pool.is_at_work
    assert pool.close() == [workers[0]], "nobody may touch the other one yet"
    ends.set()
    for thread in pool._threads:
        thread.join(10.0)
    assert not pool.is_at_work and pool.close() == [*workers]


def _introduced(count: int) -> ThreadNetwork:
    """A network in which all have taken in what others say first."""
    network = ThreadNetwork(count)
    for transport in network.transports:
        transport.recv_nowait()
    return network


def test_who_is_called_on_its_way_to_sleep_does_not_sleep(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has waited for its turn in vain, and is given it before it says that it sleeps."""
    monkeypatch.setattr(worker_threads, "_LOOK_SECONDS", 120.0)
    network = _introduced(2)
    on_its_way, is_called = threading.Event(), threading.Event()
    transport = network.transport(1)
    wait = transport.wait

    def waits(timeout_seconds: float, is_awaited: Callable[[], bool] = bool) -> None:
        on_its_way.set()
        assert is_called.wait(60.0)
        wait(timeout_seconds, is_awaited)

    monkeypatch.setattr(transport, "wait", waits)
    workers = [Passes(network.transport(index), index, 2, 5) for index in range(2)]
    pool = WorkerThreads(cast("list[Worker]", workers), network, bool)
    pool._pace = Alternates(False)
    assert on_its_way.wait(60.0)
    workers[0].on_step = is_called.set
    workers[1].waiting.append(0)
    pool.work(time.monotonic() + 30.0)
    assert not pool.has_paused and workers[1].done == 1
    pool.close()


def test_who_is_about_to_sleep_ends_where_all_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_threads, "_LOOK_SECONDS", 120.0)
    network = _introduced(2)
    transport = network.transport(1)
    wait, on_its_way, is_over = transport.wait, threading.Event(), threading.Event()

    def waits(timeout_seconds: float, is_awaited: Callable[[], bool] = bool) -> None:
        on_its_way.set()
        assert is_over.wait(60.0)
        wait(timeout_seconds, is_awaited)

    monkeypatch.setattr(transport, "wait", waits)
    workers = [Passes(network.transport(index), index, 2, 5) for index in range(2)]
    pool = WorkerThreads(cast("list[Worker]", workers), network, bool)
    assert on_its_way.wait(60.0)
    pool.call_off()
    is_over.set()
    pool._turns[1].release()
    pool._threads[0].join(30.0)
    assert not pool.is_at_work


def test_what_comes_while_turns_are_given_away_is_not_slept_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """One thread works already, and writes to another whose turn is just being given away."""
    monkeypatch.setattr(worker_threads, "_LOOK_SECONDS", 120.0)
    network = _introduced(3)
    workers = [Passes(network.transport(index), index, 3, 5) for index in range(3)]
    pool = WorkerThreads(cast("list[Worker]", workers), network, bool)
    pool._pace = Alternates(False)
    transport = pool._transports[2]
    let_go = transport.let_go

    def lets_go() -> None:
        workers[1].transport.send(2, [b"0"])
        let_go()

    monkeypatch.setattr(transport, "let_go", lets_go)
    while not transport._is_asleep:
        time.sleep(0.01)
    pool.work(time.monotonic() + 30.0)
    assert not pool.has_paused and workers[2].done == 1
    pool.close()


def test_a_thread_that_cannot_even_wait_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    """In place of waiting for it for ever; whether it fails before or while somebody asks."""
    pool, workers = passing(2, 3)
    transport = pool._transports[1]
    ends = threading.Event()

    def fails(*_: object) -> None:
        ends.wait(60.0)
        raise MemoryError("no kernel")

    monkeypatch.setattr(transport, "wait", fails)
    workers[0].on_step = ends.set
    workers[0].waiting.append(3)
    with pytest.raises(MemoryError, match="no kernel"):
        for _ in range(3):  # the first call may find it in the old way of waiting
            pool.work(time.monotonic() + 30.0)
            workers[1].waiting.append(3)
    assert pool.is_over


def test_threads_may_be_closed_twice() -> None:
    pool, _ = passing(3, 3)
    pool.close()
    for turn in pool._turns[1:]:
        if turn.locked():  # as by a thread that ends without it
            turn.release()
    pool.close()
    assert not pool.is_at_work


def test_threads_that_nobody_refers_to_end(looks_often: None) -> None:
    pool, workers = passing(3, 1)
    workers[1].waiting += [9]
    pool.work()
    threads, gone = pool._threads, weakref.ref(pool)
    del pool
    gc.collect()
    assert gone() is None
    for thread in threads:
        thread.join(10.0)
    assert not any(thread.is_alive() for thread in threads)


# Of a cluster.


def test_an_exception_on_another_thread_ends_its_dataflow_only() -> None:
    with timely.connect(workers=3, threads=True) as cluster:
        flow, other = cluster.install(fails_on), cluster.install(word_count)
        flow.input("words").insert([f"good {n}" for n in range(100)] + ["bad"])
        flow.seal()
        with pytest.raises(timely.VertexError, match="ValueError: cannot bear 'bad'"):
            flow.wait()
        other.input("lines").insert(["a b a"])
        other.wait(other.seal())
        assert sorted(other.output("counts").changes()) == [(0, ("a", 2)), (0, ("b", 1))]


def test_what_fails_on_several_workers_at_once_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each worker has it by itself, with other words for where."""
    monkeypatch.setattr(Pace, "begins_in_turn", lambda self: False)
    together = threading.Barrier(2)

    class Fails(timely.Vertex):
        def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
            together.wait(60.0)
            raise ValueError("on both")

    def flow(flow: timely.Dataflow) -> None:
        flow.input("x").stage("fails", Fails, exchange=lambda record: hash(record))

    with timely.connect(workers=2, threads=True) as cluster:
        running = cluster.install(flow)
        running.input("x").insert(list(range(64)))
        running.seal()
        with pytest.raises(timely.VertexError, match="on both"):
            running.wait()


class Asks(timely.Vertex):
    """Asks the cluster that runs it."""

    def __init__(self, ask: Callable[[], object]) -> None:
        self.ask = ask

    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        self.ask()


def _on(worker: int, ask: Callable[[], object]) -> Callable[[timely.Dataflow], object]:
    """A dataflow that asks on one worker for each record."""
    return lambda flow: flow.input("x").stage("asks", lambda: Asks(ask), exchange=timely.ToWorker(worker))


@pytest.mark.parametrize("in_turn", [False, True])
def test_a_vertex_that_asks_its_own_cluster_is_told_so_on_whichever_thread(
    in_turn: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Pace, "begins_in_turn", lambda self: in_turn)
    with timely.connect(workers=3, threads=True) as cluster:
        for worker in range(3):
            flow = cluster.install(_on(worker, cluster.stats))
            flow.input("x").insert([0])
            flow.seal()
            with pytest.raises(timely.MisuseError, match="use what it is sent, or another cluster"):
                flow.wait()


@pytest.mark.parametrize("in_turn", [False, True])
def test_a_vertex_may_close_what_runs_it_on_whichever_thread(
    in_turn: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Pace, "begins_in_turn", lambda self: in_turn)
    for worker in range(3):
        cluster = timely.connect(workers=3, threads=True)
        flow = cluster.install(_on(worker, cluster.close))
        flow.input("x").insert([0])
        with pytest.raises(timely.MisuseError, match="this cluster is closed"):
            flow.seal()  # it may take longer than work may be pending
            flow.wait()
            flow.seal()
        pool = cluster._workers._threads  # type: ignore[attr-defined]
        cluster.close()
        assert not any(thread.is_alive() for thread in pool._threads), "now that nobody is within"


def test_threads_end_with_a_cluster_that_was_interrupted_between_two_calls(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = timely.connect(workers=2, threads=True)
    workers = cluster._workers
    assert isinstance(workers, EmbeddedWorkers) and workers._threads is not None
    flow = cluster.install(word_count)

    def is_interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(workers._servers[0], "handle", is_interrupted)
        with pytest.raises(KeyboardInterrupt):
            flow.input("lines").insert(["a"])
            flow.seal()
    cluster.close()
    assert not any(thread.is_alive() for thread in workers._threads._threads)


def test_nothing_is_forgotten_while_an_interrupted_cluster_is_still_at_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Pace, "begins_in_turn", lambda self: False)  # else who waits may be in that step
    begun, ends = threading.Event(), threading.Event()

    def is_long() -> None:
        begun.set()
        assert ends.wait(60.0)

    cluster = timely.connect(workers=2, threads=True)
    workers = cluster._workers
    assert isinstance(workers, EmbeddedWorkers)
    flow = cluster.install(_on(1, is_long))
    flow.input("x").insert([0])
    flow.seal()

    with interrupted_once(begun):
        flow.wait()
    assert workers.at_rest() is None
    with timely.connect(workers=2, threads=True) as other:
        other.install(word_count)
        idle = other._workers
        assert isinstance(idle, EmbeddedWorkers)
        assert idle.at_rest() == idle._workers, "that has threads, too, and nobody asks"
    ends.set()
    while workers.at_rest() is None:
        time.sleep(0.01)
    assert workers.at_rest() == []
    with pytest.raises(timely.MisuseError, match="this cluster was interrupted"):
        flow.wait()
    cluster.close()


def test_a_process_that_is_forked_has_not_the_threads_and_is_told_so() -> None:
    with timely.connect(workers=2, threads=True) as cluster:
        flow = cluster.install(word_count)
        flow.input("lines").insert(["a"])
        flow.seal()
        child = os.fork()
        if not child:
            status = 1
            try:
                flow.wait()
            except timely.MisuseError as error:
                status = 0 if "before this process was forked" in str(error) else 2
            cluster.close()
            os._exit(status)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 0
        flow.wait()
        assert flow.output("counts").changes() == [(0, ("a", 1))]


@pytest.mark.parametrize("in_turn", [False, True])
def test_what_is_asked_is_done_however_often_a_pause_is_wanted(
    in_turn: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Pace, "begins_in_turn", lambda self: in_turn)
    with timely.connect(workers=3, threads=True) as cluster:
        workers = cluster._workers
        assert isinstance(workers, EmbeddedWorkers) and workers._threads is not None
        flow = cluster.install(word_count)
        for wants in (True, False) * 3:
            monkeypatch.setattr(workers._threads, "_wants_pause", lambda wants=wants: wants)
            flow.input("lines").insert(["a b c d e f g"])
            flow.seal()
            workers.work_off()
            assert all(worker.is_at_rest() for worker in workers._workers)
            assert workers.at_rest() == workers._workers, "no message is under way"


def test_threads_end_with_their_cluster() -> None:
    before = threading.active_count()
    with timely.connect(workers=3, threads=True):
        assert threading.active_count() == before + 2
    assert threading.active_count() == before
