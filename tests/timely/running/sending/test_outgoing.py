"""The sending half of a worker: what it counts, and which mode it says it has."""

from __future__ import annotations

from dataflows import frozen, word_count

from timely.running.core import Worker
from timely.running.sending.telling import Telling
from timely.wire.transport.memory import MemoryNetwork


def test_a_worker_says_how_it_tells_others_of_progress() -> None:
    network = MemoryNetwork(2)
    assert Worker(0, 2, network.transport(0)).progress_mode == "eager"
    assert Worker(0, 2, network.transport(0), telling=Telling(0, 2, 1)).progress_mode == "demand"
    assert Worker(telling=Telling(0, 1, 1)).progress_mode == "eager", "there is nobody to tell"


def test_what_a_worker_sends_is_counted_by_it_and_by_the_dataflow() -> None:
    network = MemoryNetwork(3)
    worker = Worker(0, 3, network.transport(0))
    instance = worker.install(frozen(word_count))
    instance.input("lines").seal()
    worker.step()
    assert worker.messages_sent == instance.messages_sent == 2 == network.in_flight()
    worker.send_control(b"payload", to=1)
    assert (worker.controls_sent, worker.messages_sent, instance.messages_sent) == (1, 3, 2)
