"""Work that never ends, in the caller's process: who gives a time is heard when it is over, and so is whoever
asks next. With workers in processes: `tests/processes/clients/test_heard_at_work.py`.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest
from failing_flows import spins

import timely
from timely.client import installed
from timely.client.embedded import owed, workers
from timely.client.embedded.answers import Answers
from timely.client.embedded.workers import EmbeddedWorkers
from timely.running.core import Worker

SECONDS = 0.05
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
        assert not hasattr(caught.value, "__notes__"), "it was waited for"
        done.append(turns(flow))
    assert 0 <= done[0] < done[1] < done[2]
    assert own(flow)._owed, "what is left is not forgotten"


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
    monkeypatch.setattr(owed, "OWED_EPOCHS_MAX", 1)
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
        assert own(flow)._owed, "who goes on instead may ask for it"
    else:
        own(flow).close()
        assert not own(flow)._owed, "what is left will never be done"
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
