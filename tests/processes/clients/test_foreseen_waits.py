"""Waits that go along with the seal before them, with real workers: nothing depends on whether they are."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator

import pytest
from dataflows import fails_on, sleeps_on, word_count

import timely
from bench.dataflow.bfs import build
from timely.client.remote.foreseen import Foreseen
from timely.wire.requests import Seal


@pytest.fixture
def cluster() -> Iterator[timely.Cluster]:
    with timely.connect(workers=2) as made:
        yield made


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each request of several was foreseen as it was made."""
    asked: list[bool] = []
    find = Foreseen.find

    def noted(self: Foreseen, requests):  # type: ignore[no-untyped-def]
        wait = find(self, requests)
        asked.append(wait is not None)
        return wait

    monkeypatch.setattr(Foreseen, "find", noted)
    return asked


def _words(flow: timely.Flow, *words: str) -> None:
    flow.input("words").insert(list(words))


def test_who_changes_and_waits_is_foreseen_and_reads_all_that_he_has_sealed(
    cluster: timely.Cluster, found: list[bool]
) -> None:
    flow, total = cluster.install(word_count), Counter[str]()
    for epoch in range(40):
        text = f"a {'b ' * (epoch % 3)}c{epoch % 5}"
        flow.input("lines").insert([text])
        assert flow.wait(flow.seal()) == epoch
        total.update(text.split())
        changed = flow.output("counts").changes(epoch)
        assert sorted(changed) == [(epoch, (word, total[word])) for word in sorted(set(text.split()))]
    assert sum(found) >= 38, "all but the first"


def test_two_clients_that_seal_for_each_other_wait_for_what_they_mean(
    cluster: timely.Cluster, found: list[bool]
) -> None:
    flow = cluster.install(word_count)
    with timely.connect(cluster.addresses[0]) as second:
        other = second.flow(flow.index)
        for _ in range(15):
            for each in (flow, other):
                each.refresh()
                each.input("lines").insert(["x"])
                sealed = each.seal()
                assert each.wait(sealed) == sealed
        counts = [count for _, (_, count) in flow.output("counts").changes()]
        assert counts == list(range(1, 31))
    assert any(found)


def test_an_epoch_that_fails_is_an_error_of_the_wait_that_was_foreseen(
    cluster: timely.Cluster, found: list[bool]
) -> None:
    flow = cluster.install(fails_on)
    for _ in range(3):
        _words(flow, "good")
        flow.wait(flow.seal())
    _words(flow, "bad")
    sealed = flow.seal()
    with pytest.raises(timely.VertexError, match="cannot bear 'bad'"):
        flow.wait(sealed)
    assert found[-1]


def test_what_is_refused_before_the_seal_is_told_and_nothing_is_sealed(
    cluster: timely.Cluster, found: list[bool]
) -> None:
    flow = cluster.install(build)
    for node in range(3):
        flow.input("edges").insert([(node, node + 1)])
        flow.wait(flow.seal())
    with timely.connect(cluster.addresses[0]) as second:
        second.flow(flow.index).input("edges").close()
    flow.input("edges").insert([(7, 8)])
    epoch = flow.epoch
    with pytest.raises(timely.InputClosedError, match=r"insert\(…\), input 'edges'"):
        flow.seal()
    assert flow.refresh() == epoch, "nobody has sealed"
    for node in range(3):
        flow.input("roots").insert([(node,)])
        flow.wait(flow.seal())
    assert found[-1]
    assert flow.output("distances").snapshot().num_rows == 4


def test_a_wait_that_was_foreseen_has_the_time_limit_of_the_call(
    cluster: timely.Cluster, found: list[bool]
) -> None:
    flow = cluster.install(sleeps_on, seconds=3.0)
    for _ in range(3):
        _words(flow, "quick")
        flow.wait(flow.seal())
    _words(flow, "slow")
    sealed = flow.seal()
    began = time.monotonic()
    with pytest.raises(timely.WaitTimeoutError):
        flow.wait(sealed, timeout=0.8)
    assert 0.7 < time.monotonic() - began < 2.8
    assert found[-1]
    flow.wait(sealed)
    _words(flow, "quick")
    flow.wait(flow.seal())
    assert len(flow.output("words").changes()) == 5


def test_who_seals_and_does_not_wait_asks_once_in_vain_and_no_more(
    cluster: timely.Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow = cluster.install(word_count)
    flow.wait(flow.seal())
    sent: list[object] = []
    send = Foreseen.on_seal

    def noted(self: Foreseen, seal: Seal) -> None:
        before = len(self._expected)
        send(self, seal)
        sent.append(len(self._expected) > before)

    monkeypatch.setattr(Foreseen, "on_seal", noted)
    for _ in range(200):
        flow.input("lines").insert(["a"])
        flow.seal()
    flow.wait()
    assert sent.count(True) == 1
    assert len(flow.output("counts").changes()) == 200


@pytest.mark.parametrize("victim", [0, 1])
def test_a_worker_that_is_killed_between_seal_and_wait_is_told_of(
    cluster: timely.Cluster, victim: int, found: list[bool]
) -> None:
    flow = cluster.install(sleeps_on, seconds=60.0)
    for _ in range(3):
        _words(flow, "quick")
        flow.wait(flow.seal())
    process = int(str(cluster.stats()[victim]["process"]))
    _words(flow, "slow")
    sealed = flow.seal()
    threading.Timer(0.3, os.kill, (process, signal.SIGKILL)).start()
    began = time.monotonic()
    with pytest.raises(timely.PeerError, match="SIGKILL"):
        flow.wait(sealed)
    assert time.monotonic() - began < 20.0
    assert found[-1]


def test_who_is_interrupted_in_a_wait_that_was_foreseen_may_wait_again(
    cluster: timely.Cluster, found: list[bool]
) -> None:
    flow = cluster.install(sleeps_on, seconds=2.0)
    for _ in range(3):
        _words(flow, "quick")
        flow.wait(flow.seal())
    for _ in range(3):
        _words(flow, "slow")
        sealed = flow.seal()
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            flow.wait(sealed)
        assert found[-1]
        assert flow.wait(sealed) == sealed
        assert len(flow.output("words").changes(sealed)) == 1
        _words(flow, "quick")
        flow.wait(flow.seal())
