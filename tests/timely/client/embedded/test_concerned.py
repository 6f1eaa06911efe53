"""Work that never ends, in the caller's process: who gives a time is heard when it is over, and so is whoever
asks next. With workers in processes: `tests/processes/clients/test_heard_at_work.py`.

A dataflow that goes round for ever delays a call about another one by a step at most, whether a call about it
was told that its time is over or not: each call about a neighbour returns, with the right answer.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Final, cast

import pytest
from dataflows import word_count
from failing_flows import spins

import differential as dd
import timely
from timely.client import installed
from timely.client.embedded import pending_work, workers
from timely.client.embedded.answers import Answers
from timely.client.embedded.concerned import Scopes
from timely.client.embedded.workers import EmbeddedWorkers
from timely.running.core import Worker
from timely.worker.replacing import Replacements

SECONDS = 0.02
SOON = 60.0
"""For ever, to whoever waits for what takes a moment."""

CALLS: dict[str, Callable[[timely.Flow], object]] = {
    "wait": lambda flow: flow.wait(timeout=SECONDS),
    "changes": lambda flow: flow.output("behind").changes(timeout=SECONDS),
    "follow": lambda flow: next(flow.output("behind").follow(timeout=SECONDS)),
}


@pytest.fixture(params=["1", "2 in turn", "2 threads"])
def flow(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[timely.Flow]:
    """Of one worker, or several, that never get to the end of it."""
    count, _, way = str(request.param).partition(" ")
    with timely.connect(workers=int(count), threads=way == "threads", embedded=True) as cluster:
        found = cluster.install(spins)
        found.input("records").insert(["round", "and round"])
        found.seal()
        for module in (workers, installed):
            monkeypatch.setattr(module, "ANSWER_SECONDS_MAX", SECONDS)
        monkeypatch.setattr(workers, "REPLY_SECONDS_MAX", SECONDS)
        yield found
        if own(found).end:
            return  # closed
        with contextlib.suppress(timely.WaitTimeoutError):
            found.wait(timeout=0)
        found.uninstall()


def own(flow: timely.Flow) -> EmbeddedWorkers:
    assert isinstance(flow._workers, EmbeddedWorkers)
    return flow._workers


def turns(flow: timely.Flow) -> int:
    """How often something of it was done."""
    instances = [worker.instance(flow.index) for worker in own(flow)._workers]
    return sum(runner.activations for instance in instances for runner in instance.runners)


@pytest.mark.parametrize("call", CALLS)
def test_who_gives_a_time_is_told_when_it_is_over_and_the_next_call_goes_on(
    flow: timely.Flow, call: str
) -> None:
    done = [turns(flow)]
    for _ in range(2):
        with pytest.raises(timely.WaitTimeoutError) as caught:
            CALLS[call](flow)
        (why,) = caught.value.__notes__
        assert why.startswith("why: "), "it was waited for"
        done.append(turns(flow))
    assert 0 <= done[0] < done[1] < done[2]
    assert own(flow)._pending, "what is left is not forgotten"


def sooner_or_later(read: Callable[[], Sequence[object]]) -> Sequence[object]:
    """On a busy machine the time may be over before what goes on beside has had its turn."""
    for _ in range(100):
        with contextlib.suppress(timely.WaitTimeoutError):
            return read()
    raise AssertionError("it never had its turn")


def test_what_is_complete_is_read_while_something_else_goes_on(flow: timely.Flow) -> None:
    for epoch in range(1, 3):
        flow.input("others").insert([epoch])
        assert flow.seal() == epoch
        assert sooner_or_later(lambda: flow.output("beside").changes(timeout=SECONDS))[-1] == (epoch, epoch)


def test_who_seals_more_than_may_wait_goes_on_after_a_while(
    flow: timely.Flow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pending_work, "PENDING_EPOCHS_MAX", 1)
    before = turns(flow)
    assert [flow.seal(), flow.input("others").insert([1]), flow.seal()] == [1, 2, 2]
    assert turns(flow) > before


def test_another_thread_is_heard_when_the_time_of_this_one_is_over(flow: timely.Flow) -> None:
    with ThreadPoolExecutor(1) as threads:
        for epoch in range(1, 4):
            other = threads.submit(lambda: (flow.input("others").insert([1]), flow.seal()))
            with pytest.raises(timely.WaitTimeoutError):
                flow.wait(timeout=SECONDS)
            assert other.result(SOON) == (epoch, epoch)


def test_who_was_told_and_asks_for_none_of_it_is_answered_at_once(
    flow: timely.Flow, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(timely.WaitTimeoutError):
        flow.wait(timeout=SECONDS)
    steps: list[Worker] = []
    step = Worker.step

    def noted(worker: Worker) -> bool:
        steps.append(worker)
        return step(worker)

    monkeypatch.setattr(Worker, "step", noted)
    assert flow.refresh() == 1
    assert len(steps) < 1_000, "not all that it could have done in five minutes"


@pytest.mark.parametrize("at_the_end", ["of the cluster", "of the interpreter"])
def test_who_was_told_is_let_go_at_the_end(flow: timely.Flow, at_the_end: str) -> None:
    """Else the error that says so is seen by nobody: a `with` block closes, and so does who just ends."""
    with pytest.raises(timely.WaitTimeoutError):
        flow.wait(timeout=SECONDS)
    before = turns(flow)
    if at_the_end == "of the interpreter":
        own(flow).work_off()
        assert own(flow)._pending, "who goes on instead may ask for it"
    else:
        own(flow).close()
        assert not own(flow)._pending, "what is left will never be done"
        with pytest.raises(timely.MisuseError, match="closed"):
            flow.wait(timeout=SECONDS)
    assert turns(flow) > before, "it has done what it could"


def test_what_is_known_to_have_failed_is_told_before_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """While another worker, which is busy, has not answered."""
    with timely.connect(workers=2, embedded=True) as cluster:
        found = cluster.install(spins)
        found.input("records").insert(["round"])
        found.seal()
        for module in (workers, installed):
            monkeypatch.setattr(module, "ANSWER_SECONDS_MAX", SECONDS)
        failure = timely.PeerError("known")
        take = Answers.take

        def fails(answers: Answers) -> None:
            take(answers)
            answers.failure = failure

        with monkeypatch.context() as patch:
            patch.setattr(Answers, "take", fails)
            with pytest.raises(timely.PeerError, match="known"):
                found.output("behind").changes(timeout=SECONDS)
        found.uninstall()


def spins_here(flow: timely.Flow, told: list[BaseException]) -> threading.Thread:
    """A thread that waits for it without a limit, and is at work."""

    def waits() -> None:
        try:
            flow.wait()
        except BaseException as error:
            told.append(error)

    thread = threading.Thread(target=waits, daemon=True)
    before = turns(flow)
    thread.start()
    while turns(flow) < before + 3:
        time.sleep(0.001)
    return thread


@pytest.mark.parametrize("call", CALLS)
def test_who_gives_a_time_is_told_while_another_thread_waits_without_a_limit(
    flow: timely.Flow, call: str
) -> None:
    told: list[BaseException] = []
    thread = spins_here(flow, told)
    with pytest.raises(timely.WaitTimeoutError, match="another thread of this program is at work"):
        CALLS[call](flow)
    assert thread.is_alive() and not told
    own(flow).close()
    thread.join(SOON)
    assert not thread.is_alive()


def test_closing_ends_the_wait_of_another_thread(flow: timely.Flow) -> None:
    told: list[BaseException] = []
    thread = spins_here(flow, told)
    own(flow).close()
    thread.join(SOON)
    (error,) = told
    assert isinstance(error, timely.MisuseError) and str(error) == "this cluster is closed: connect again"
    with pytest.raises(timely.MisuseError, match="closed"):
        flow.wait(timeout=SECONDS)


# Beside another dataflow.

STEPS_MAX: Final = 400
"""Of one call. An endless loop takes some thousands in a second."""


def sums(dataflow: timely.Dataflow) -> None:
    rows = dd.input(dataflow, "rows", "k: int, n: int")
    rows.group_by("k").agg(n=dd.sum("n")).output("sums")


@pytest.fixture(params=["1", "2 in turn", "3 in turn", "2 threads"])
def cluster(request: pytest.FixtureRequest) -> Iterator[timely.Cluster]:
    count, _, way = str(request.param).partition(" ")
    cluster = timely.connect(workers=int(count), threads=way == "threads", embedded=True)
    yield cluster
    assert isinstance(cluster._workers, EmbeddedWorkers)
    for server in cluster._workers._servers:
        server._worker.end(0, timely.UninstalledError("the test is over"))
    cluster.close()


@pytest.fixture
def endless(cluster: timely.Cluster) -> timely.Flow:
    """Goes round for ever, on each worker, from now on; dataflow 0."""
    flow = cluster.install(spins)
    flow.input("records").insert([f"record {number}" for number in range(8)])
    flow.seal()
    return flow


def in_few_steps(call: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> object:
    """What a call returns; that it takes few steps, and returns at all."""
    steps: list[int] = []
    step = Worker.step

    def counted(worker: Worker) -> bool:
        steps.append(worker.index)
        assert len(steps) < 100 * STEPS_MAX, "it never returns"
        return step(worker)

    with monkeypatch.context() as patched:
        patched.setattr(Worker, "step", counted)
        answer = call()
    assert steps.count(0) < STEPS_MAX, f"{len(steps)} steps"
    return answer


@pytest.mark.parametrize("was_told", [True, False])
def test_each_call_about_another_dataflow_returns(
    cluster: timely.Cluster, endless: timely.Flow, was_told: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def promptly(call: Callable[[], object]) -> object:
        return in_few_steps(call, monkeypatch)

    if was_told:
        with pytest.raises(timely.WaitTimeoutError):
            endless.wait(timeout=0.05)
    flow = promptly(lambda: cluster.install(sums))
    assert isinstance(flow, timely.Flow)
    for epoch in range(3):
        promptly(lambda: flow.input("rows").insert([(1, 10), (2, 20)]))
        assert promptly(flow.seal) == epoch
        assert promptly(flow.wait) == epoch
        changes = promptly(lambda: flow.output("sums").changes().to_pylist())
        expected = {(1, 10 * (epoch + 1), 1), (2, 20 * (epoch + 1), 1)}
        expected |= {(1, 10 * epoch, -1), (2, 20 * epoch, -1)} if epoch else set()
        assert {(row["k"], row["n"], row["diff"]) for row in changes} == expected
        rows = promptly(lambda: flow.output("sums").snapshot().to_pylist())
        assert {(row["k"], row["n"]) for row in rows} == {(1, 10 * (epoch + 1)), (2, 20 * (epoch + 1))}
    with pytest.raises(timely.WaitTimeoutError, match="it is not sealed yet"):
        promptly(lambda: flow.wait(7))
    promptly(lambda: flow.output("sums").forget())
    promptly(lambda: cluster.flow(flow.index))
    promptly(lambda: flow.input("rows").close())
    promptly(flow.uninstall)
    other = promptly(lambda: cluster.install(word_count))
    assert isinstance(other, timely.Flow)
    other.input("lines").insert(["a b a"])
    other.seal()
    assert sorted(promptly(lambda: other.output("counts").changes_nowait())) == [  # type: ignore[call-overload]
        (0, ("a", 2)),
        (0, ("b", 1)),
    ]


def test_the_endless_one_goes_on_meanwhile_and_what_is_pending_of_it_is_not_forgotten(
    cluster: timely.Cluster, endless: timely.Flow
) -> None:
    flow = cluster.install(sums)
    own = cluster._workers
    assert isinstance(own, EmbeddedWorkers)
    before = turns(endless)
    for _ in range(5):
        flow.input("rows").insert([(1, 1)])
        flow.wait(flow.seal())
    assert turns(endless) > before and own._pending.epochs == 1


def test_many_seals_do_not_pay_for_another_dataflow(
    cluster: timely.Cluster, endless: timely.Flow, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow = cluster.install(sums)
    time.sleep(0.11)  # what is pending of the endless one has waited for too long
    for number in range(20):
        flow.input("rows").insert([(1, number)])
        in_few_steps(flow.seal, monkeypatch)
    assert flow.output("sums").snapshot().to_pylist() == [{"k": 1, "n": sum(range(20))}]


def test_what_a_dataflow_reads_is_worked_on_for_it_and_the_endless_one_is_not(
    cluster: timely.Cluster, endless: timely.Flow, monkeypatch: pytest.MonkeyPatch
) -> None:
    def owner(dataflow: timely.Dataflow) -> None:
        dd.input(dataflow, "rows", "n: int").export("rows")

    def reader(dataflow: timely.Dataflow) -> None:
        dd.imported(dataflow, owned.index, "rows", "n: int").output("read")

    owned = cluster.install(owner)
    owned.input("rows").insert([(7,)])
    owned.seal()
    reading = cluster.install(reader)
    owned.input("rows").insert([(8,)])
    owned.seal()
    rows = in_few_steps(lambda: reading.output("read").snapshot(timeout=1).to_pylist(), monkeypatch)
    assert isinstance(rows, list) and sorted(row["n"] for row in rows) == [7, 8]


class Shown:
    """What `Scopes` sees: the dataflows of a worker with what each of them reads, and their versions."""

    def __init__(self) -> None:
        self.instances: dict[int, SimpleNamespace] = {}
        self.were_any = False
        self.versions: dict[int, list[int]] = {}

    def begin(self, number: int, *reads: int) -> None:
        self.instances[number] = SimpleNamespace(reads={*reads})

    def inputs_of(self, number: int) -> int:
        return number

    def outputs_of(self, number: int) -> int:
        return number

    def beside(self, number: int) -> list[int]:
        return self.versions.get(number, [])

    def scopes(self) -> Scopes:
        return Scopes([cast("Worker", self)], cast("Replacements", self))


def test_what_calls_are_about_is_what_their_dataflows_read_now() -> None:
    shown = Shown()
    scopes = shown.scopes()
    shown.begin(0)
    shown.begin(1)
    shown.begin(2, 0)
    assert [scopes.about((1,)), scopes.about((2,)), scopes.about((2,))] == [{1}, {0, 2}, {0, 2}]
    assert scopes.about((3,)) == {3}, "it is about to begin"
    shown.begin(3, 1)
    assert scopes.about((3,)) == {1, 3}
    assert scopes.about((0, 2, 3)) is None, "these are all"
    shown.were_any, shown.versions = True, {1: [3]}
    assert scopes.about((0,)) == {0} and scopes.about((1,)) == {1, 3}
    shown.versions.clear()
    assert scopes.about((1,)) == {1}, "its new version has taken its place"


def test_what_calls_are_about_is_named_from_the_first_source_on() -> None:
    shown = Shown()
    scopes = shown.scopes()
    shown.begin(0)
    scopes.note(has_source=False)
    assert scopes.about((0,)) is None and scopes.about(None) is None
    for has_source in (True, False):
        scopes.note(has_source)
        assert scopes.about((0,)) == {0} and scopes.about(None) == {0}
