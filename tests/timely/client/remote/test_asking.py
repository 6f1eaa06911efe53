"""A client takes what each worker says, and says why one says nothing."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from timely.client.remote import asking
from timely.client.remote.asking import Asker
from timely.errors import MisuseError, PeerError, TimelyError
from timely.wire.addresses import aside
from timely.wire.frames.messages import encode_error, encode_reply, head_of
from timely.wire.requests import Reply, Why
from timely.wire.transport.server_socket import ServerSocket

WHY = Why(0, 3)


class Place:
    """Something that listens at an address, and answers all by the same."""

    def __init__(self, address: str, answer: Reply | TimelyError | None) -> None:
        self.server = ServerSocket(address)
        self.asked = 0
        self._answer = answer
        self._is_over = False
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._is_over:
            for client, frames in self.server.recv_nowait():
                self.asked += 1
                number, _ = head_of(frames)
                if isinstance(self._answer, Reply):
                    self.server.send(client, encode_reply(number, self._answer))
                elif self._answer is not None:
                    self.server.send(client, encode_error(number, self._answer))
            self.server.socket.poll(5)

    def close(self) -> None:
        self._is_over = True
        self._thread.join()
        self.server.close()


def answer(address: str, complete: int = 3) -> Reply:
    return Reply({"address": address, "process": 1, "complete": complete, "reasons": [], "view": []})


Listens = Callable[[str, Reply | TimelyError | None], Place]


@pytest.fixture
def listens() -> Iterator[Listens]:
    places: list[Place] = []

    def made(address: str, answer: Reply | TimelyError | None) -> Place:
        places.append(Place(address, answer))
        return places[-1]

    yield made
    for place in places:
        place.close()


@pytest.fixture
def address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(asking, "REASONS_SECONDS_MAX", 0.3)
    monkeypatch.setattr(asking, "BUSY_SECONDS_MAX", 0.1)
    return f"ipc://{tmp_path}/c0"


def ask(address: str, *processes: int) -> list[Reply | str]:
    asker = Asker([address], None, 2.5)
    try:
        return asker.ask(WHY, 0, processes)
    finally:
        asker.close()


def test_a_worker_that_answers_is_not_asked_beside(listens: Listens, address: str) -> None:
    listens(address, answer(address))
    beside = listens(aside(address), answer(address, 9))
    (reply,) = ask(address)
    assert isinstance(reply, Reply) and reply.integer("complete") == 3 and not beside.asked


def test_a_worker_in_a_call_answers_beside(listens: Listens, address: str) -> None:
    busy = listens(address, None)
    listens(aside(address), answer(address, 9))
    (reply,) = ask(address)
    assert isinstance(reply, Reply) and reply.integer("complete") == 9 and busy.asked == 1


def test_a_worker_that_says_nothing_is_told_with_what_its_process_does(
    listens: Listens, address: str
) -> None:
    listens(address, None)
    (unknown,) = ask(address)
    assert (
        isinstance(unknown, str) and "has not answered within 0.3 s: it is stopped, it cannot be" in unknown
    )
    (runs,) = ask(address, os.getpid())
    assert isinstance(runs, str) and f"its process {os.getpid()} is there (state R)" in runs


def test_what_has_ended_the_dataflow_is_raised_and_a_lost_worker_told(listens: Listens, address: str) -> None:
    place = listens(address, MisuseError("worker 0 has no dataflow 0"))
    with pytest.raises(MisuseError, match="has no dataflow"):
        ask(address)
    place.close()
    listens(address, PeerError("the cluster has started again"))
    (told,) = ask(address)
    assert isinstance(told, str) and told.endswith("says: the cluster has started again")


def test_another_cluster_at_the_port_beside_is_not_this_worker(listens: Listens, address: str) -> None:
    listens(address, None)
    listens(aside(address), answer("tcp://elsewhere:1", 9))
    (told,) = ask(address)
    assert isinstance(told, str) and "has not answered" in told
