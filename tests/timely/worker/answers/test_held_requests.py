"""Requests that wait until other workers have received what was sent to them.

(Those that wait for a new version are in `test_new_versions.py`.)
"""

from __future__ import annotations

from one_worker import LINES, answer

from timely.errors import WaitTimeoutError
from timely.running.core import Worker
from timely.running.progress_messages import CreditNews
from timely.wire.requests import IN_OPEN, Decide, Deliver, Describe, Install, Read, Reply, Stats
from timely.wire.transport.memory import MemoryNetwork
from timely.worker.answers.held_requests import not_received
from timely.worker.answers.later import Later
from timely.worker.server import Server

WORKERS = 3
ROWS = LINES.select(["record"])


def serving(keeps_back: bool) -> tuple[list[Server], list[Worker]]:
    network = MemoryNetwork(WORKERS)
    workers = [Worker(index, WORKERS, network.transport(index)) for index in range(WORKERS)]
    servers = [Server(worker, f"worker {worker.index}", keeps_back=keeps_back) for worker in workers]
    for server in servers:
        server.greet()
    installed = servers[0].handle(Install("dataflows:word_count", {}))
    settled(workers)
    assert isinstance(installed, Later) and isinstance(installed.ready(), Reply)
    return servers, workers


def settled(workers: list[Worker]) -> None:
    while sum(worker.step() for worker in workers):
        pass


def deliver(number: int) -> Deliver:
    return Deliver(0, "lines", "w", number, IN_OPEN, 0, 1)


def test_rows_and_seals_wait_in_their_order_and_nothing_else_does() -> None:
    servers, workers = serving(keeps_back=True)
    server, worker = servers[0], workers[0]
    worker.credits.on_news(2, CreditNews.HOLD)
    held = [
        server.handle(deliver(0), ROWS),
        server.handle(Decide(0, 0, seals=True)),
        server.handle(deliver(1), ROWS),
    ]
    assert all(isinstance(one, Later) and one.ready() is None for one in held)
    handle = worker.instance(0).input("lines")
    assert (handle.epoch, handle.rows_waiting) == (0, 0)
    answer(server, Describe(0))
    answer(server, Stats())
    worker.credits.on_news(2, CreditNews.RELEASE)
    assert isinstance(server.handle(deliver(2), ROWS), Reply), "behind those that have waited"
    epochs = [one.ready() for one in held if isinstance(one, Later)]
    assert [reply and reply.values.get("epoch") for reply in epochs] == [0, None, 1]
    assert (handle.epoch, handle.rows_waiting) == (1, 2 * ROWS.num_rows)
    settled(workers)
    assert isinstance(server.handle(Read(0, "counts", 0, 1, 0.0)), Reply)


def test_a_request_that_has_waited_for_too_long_is_gone_and_says_for_whom() -> None:
    servers, workers = serving(keeps_back=True)
    server, worker = servers[0], workers[0]
    for peer in (1, 2):
        worker.credits.on_news(peer, CreditNews.HOLD)
    held = server.handle(deliver(0), ROWS)
    assert isinstance(held, Later)
    error = held.late()
    assert isinstance(error, WaitTimeoutError) and str(error) == not_received(worker)
    assert "worker 0 has kept this back, since worker 1 and 2 has not received" in str(error)
    for peer in (1, 2):
        worker.credits.on_news(peer, CreditNews.RELEASE)
    assert held.ready() is None and worker.instance(0).input("lines").rows_waiting == 0


def test_rows_of_this_process_do_not_wait_for_it() -> None:
    servers, workers = serving(keeps_back=False)
    workers[0].credits.on_news(2, CreditNews.HOLD)
    assert isinstance(servers[0].handle(deliver(0), ROWS), Reply)
    assert servers[0].seal(0, 0) == 1
    settled(workers)
    assert not workers[0].instance(0).is_at_rest(), "they wait at the input"
    workers[0].credits.on_news(2, CreditNews.RELEASE)
    settled(workers)
    assert workers[0].instance(0).is_at_rest()
