"""A client hears from worker 0 that a dataflow runs, perhaps before another worker has heard it.

using_*   what it asks of that worker is answered once the dataflow has begun there
"""

from __future__ import annotations

import msgpack
import pyarrow as pa
import pytest

from timely.errors import WaitTimeoutError
from timely.requests import Changes, Insert, Install, Reply, Request, Wait
from timely.server import Later, Server
from timely.transport.memory import MemoryNetwork
from timely.worker.core import Worker

TABLE = pa.table({"record": [msgpack.packb("a")]})


def judged_by_the_first_only() -> tuple[list[Worker], list[Server]]:
    """Two workers of which the first has judged dataflow 0, and the second has not heard it."""
    network = MemoryNetwork(2)
    workers = [Worker(index, 2, network.transport(index)) for index in range(2)]
    servers = [Server(worker) for worker in workers]
    for server in servers:
        server.greet()
    assert isinstance(servers[0].handle(Install("dataflows:word_count")), Later)
    workers[1].step()
    workers[0].step()
    assert 0 not in workers[1].instances and 0 not in workers[1].ended
    return workers, servers


@pytest.mark.parametrize(
    "request_",
    [
        Insert(0, "lines", 0, "writer", 0, 1),
        Changes(0, "counts", "reader", 0, 0, True, 1.0),
        Wait(0, "counts", -1, -1.0),
    ],
)
def test_using_a_dataflow_that_is_about_to_begin_waits_for_it(request_: Request) -> None:
    workers, servers = judged_by_the_first_only()
    answer = servers[1].handle(request_, TABLE)
    assert isinstance(answer, Later) and answer.ready() is None
    workers[1].step()
    assert isinstance(answer.ready(), Reply)
    if isinstance(request_, Insert):
        assert answer.ready() == Reply({"is_new": True, "epoch": 0})
        assert workers[1].instance(0).input("lines").rows_waiting == 1


def test_using_a_dataflow_that_does_not_begin_in_time_is_a_time_out() -> None:
    workers, servers = judged_by_the_first_only()
    answer = servers[1].handle(Wait(0, "counts", 5, 1.0))
    assert isinstance(answer, Later)
    assert "has not begun on worker 1" in str(answer.late())
    workers[1].step()
    assert answer.ready() is None
    assert isinstance(answer.late(), WaitTimeoutError) and "epoch 5" in str(answer.late())
