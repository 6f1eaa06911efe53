"""What an interrupt of a call that waits says was waited for, at real workers and in words."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import differential as dd
import timely
from timely.client.awaited import description_of, missing, note_awaited
from timely.operators.capture import FOREVER
from timely.wire.requests import IN_OPEN, Decide, Deliver, Hello, Install, Progress, Read, Replace, Request


def numbers(flow: timely.Dataflow) -> None:
    dd.input(flow, "numbers", "n: int").output("all")


def sleepy(flow: timely.Dataflow) -> None:
    dd.input(flow, "numbers", "n: int").map(_sleep).output("all")


def _sleep(row: tuple[int]) -> tuple[int]:
    time.sleep(30)
    return row


def _pressed_once(is_time: Callable[[], bool], call: Callable[[], object]) -> KeyboardInterrupt:
    """By Ctrl-C as soon as it is time, while another thread is there that could bring what is waited for."""

    def press() -> None:
        while not is_time():
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    handler = signal.signal(signal.SIGINT, signal.default_int_handler)  # Spark, once used, has one of its own
    thread = threading.Thread(target=press)
    try:
        with pytest.raises(KeyboardInterrupt) as caught:
            thread.start()
            call()
            time.sleep(30)  # it should not have come back
    finally:
        thread.join()
        signal.signal(signal.SIGINT, handler)
    return caught.value


def _after(seconds: float) -> Callable[[], bool]:
    until = time.monotonic() + seconds
    return lambda: time.monotonic() >= until


def _told(error: BaseException) -> str:
    """What stands behind the error at the end of the traceback."""
    return "".join(traceback.format_exception(error)).rpartition("KeyboardInterrupt\n")[2]


@pytest.fixture(scope="module")
def pair() -> Iterator[timely.Cluster]:
    with timely.connect(workers=2) as cluster:
        yield cluster


@pytest.mark.parametrize("kind", ["processes", "embedded"])
def test_who_waits_and_is_interrupted_is_told_for_what_of_which_dataflow_and_from_whom(
    kind: str, pair: timely.Cluster
) -> None:
    cluster = pair if kind == "processes" else timely.connect(embedded=True)
    try:
        flow = cluster.install(numbers)
        of, output = f"dataflow {flow.index}", flow.output("all")
        calls: list[tuple[str, Callable[[], object]]] = [
            (f"epoch 3 of {of} to be complete", lambda: flow.wait(3)),
            (f"changes of output 'all' of {of} from epoch 0 on before epoch 4", lambda: output.changes(0, 4)),
            (f"epoch 0 of output 'all' of {of} to be complete", lambda: next(output.follow())),
        ]
        for what, call in calls:
            told = _told(_pressed_once(_after(0.4), call)).splitlines()
            assert len(told) == 2
            assert told[0].startswith("interrupted after ") and f" s of waiting for {what}; " in told[0]
            assert told[1] == f"{of} is 'numbers'; its open epoch, as known here, is 0"
            if kind == "processes":
                first, second = pair.addresses
                assert told[0].endswith(f"; no answer yet from worker 0 at {first}, worker 1 at {second}")
            else:
                assert "its workers, in this process, go on" in told[0]
        flow.wait(flow.seal())
    finally:
        if cluster is not pair:
            cluster.close()


def test_who_has_answered_is_not_named() -> None:
    with timely.connect(workers=2) as cluster:
        flow = cluster.install(sleepy)
        flow.input("numbers").insert([(1,)])
        flow.seal()  # from here on the worker that has the row is asleep, and the other one answers
        told = _told(_pressed_once(_after(1.0), flow.output("all").complete_before))
        assert told.count(" at ") == 1 and "of waiting for the answer to 'progress' of dataflow 0;" in told


@pytest.mark.parametrize(
    ("is_durable", "what"),
    [(False, "hold is lost, connect again"), (True, "have taken is in their store; close the cluster, and")],
)
def test_embedded_workers_that_were_at_work_say_what_becomes_of_what_they_hold(
    is_durable: bool, what: str, tmp_path: Path
) -> None:
    with timely.connect(embedded=True, durable=tmp_path / "store" if is_durable else None) as cluster:
        flow = cluster.install(sleepy)
        flow.input("numbers").insert([(1,)])
        flow.seal()
        told = _told(_pressed_once(_after(0.4), flow.wait))
        assert "s of waiting for epoch 0 of dataflow 0 to be complete; its workers, in this process" in told
        assert f"were at work: what they {what}" in told and "'sleepy'" in told


BUILDER = """
import time
from pathlib import Path
import differential as dd
import timely

@timely.builder
def slowly(flow, here):
    Path(here, "begun").touch()
    while not Path(here, "go on").exists():
        time.sleep(0.01)
    dd.input(flow, "numbers", "n: int").output("all")
"""


def test_an_install_that_is_interrupted_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "slow_builder_of_a_test.py").write_text(BUILDER)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    with timely.connect(workers=1) as cluster:
        told = _told(
            _pressed_once(
                (tmp_path / "begun").exists,
                lambda: cluster.install("slow_builder_of_a_test:slowly", here=str(tmp_path)),
            )
        )
        assert " s of waiting for the install of 'slow_builder_of_a_test:slowly'; no answer yet from" in told
        (tmp_path / "go on").touch()
        flow = cluster.install(numbers)
        flow.wait(flow.seal())


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        (Install("module:query"), "the install of 'module:query'"),
        (Install("ours:travelled", {"name": "query", "token": ""}), "the install of 'query'"),
        (Replace(3, "m:q", {}, 1.0), "'m:q' to take the place of dataflow 3"),
        (Decide(3, 7, True), "epoch 7 of dataflow 3 to be sealed"),
        (Progress(3, "", 7, 1.0), "epoch 7 of dataflow 3 to be complete"),
        (Progress(3, "o", FOREVER - 1, 1.0), "the last epoch of output 'o' of dataflow 3 to be complete"),
        (Read(3, "o", -1, 8, 1.0), "a snapshot of output 'o' of dataflow 3 as of epoch 7"),
        (Read(3, "o", 2, 7, 1.0), "changes of output 'o' of dataflow 3 from epoch 2 on before"),
        (Read(3, "o", 2, 0, 1.0, is_open_ended=True), "changes of output 'o' of dataflow 3 from epoch 2 on"),
        (Deliver(3, "i", "w", 0, IN_OPEN, 0, 1, []), "rows for input 'i' of dataflow 3 to be taken"),
        (Decide(3, -1, close=["i"]), "what becomes of epochs and staged rows of dataflow 3 to be decided"),
        (Hello(), "the answer to 'hello'"),
    ],
)
def test_requests_in_words(request_: Request, said: str) -> None:
    assert description_of(request_).startswith(said)


def test_who_asks_again_and_again_has_waited_all_the_time() -> None:
    error = KeyboardInterrupt()
    note_awaited(error, Progress(3, "", 7, 60.0, 120.0), 1.5, "and no one came")
    assert error.__notes__ == [
        "interrupted after 121.5 s of waiting for epoch 7 of dataflow 3 to be complete; and no one came"
    ]


def test_of_many_workers_some_are_named() -> None:
    addresses = [f"h:{place}" for place in range(20)]
    assert missing([3], addresses) == "no answer yet from worker 3 at h:3"
    assert missing(range(20), addresses).endswith("worker 7 at h:7 and 12 more")
