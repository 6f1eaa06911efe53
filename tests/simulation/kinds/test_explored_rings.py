"""All orders in which two workers can use the rings between them: `ring_explorer.py`.

explored_*   every state is as it must be, and every end is the right one
mutants_*    rings are broken on purpose, each way by name; what the explorer says of it

At length: `./scripts/explore rings`.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from simulation.kinds.ring_explorer import RingExplorer, RingTraffic

from progress.checking.counterexample import Counterexample
from timely.running.checking.reached import Explored
from timely.wire.batch import Frame
from timely.wire.transport.neighbours import Neighbours, _Line
from timely.wire.transport.ring import IS_POSSIBLE, OutboundRing

pytestmark = pytest.mark.skipif(not IS_POSSIBLE, reason="a host without rings uses sockets alone")

TRAFFIC = RingTraffic(((100, 450, 600), (450, 30)))
FULL = RingTraffic(((460,) * 10 + (600,), (460,)))
"""The ninth message finds no room unless one was taken, and the last one is too large for the ring."""


def explore(traffic: RingTraffic) -> Explored:
    explorer = RingExplorer(traffic)
    try:
        return explorer.run()
    finally:
        explorer.close()


# explored_


def test_explored_messages_by_ring_and_socket_come_in_order() -> None:
    """681 states."""
    explored = explore(TRAFFIC)
    assert explored.states > 600 and explored.ends >= 1, explored


def test_explored_a_ring_that_is_full_and_begins_anew() -> None:
    """13,011 states."""
    explored = explore(FULL)
    assert explored.states > 10_000 and explored.ends >= 1, explored


# mutants_


def found_by(traffic: RingTraffic) -> str:
    with pytest.raises(Counterexample) as caught:
        explore(traffic)
    return caught.value.what


def test_mutants_a_writer_wakes_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OutboundRing, "_wake_sleeper", lambda self: None)
    assert "sleeps, its next message is in the ring" in found_by(TRAFFIC)


def test_mutants_what_the_socket_brings_is_taken_before_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    following = _Line.next

    def socket_first(self: _Line) -> list[memoryview] | None:
        if self.waiting:
            self.taken += 1
            return self.waiting.popleft()[1]
        return following(self)

    monkeypatch.setattr(_Line, "next", socket_first)
    assert found_by(TRAFFIC) == "message 0 of worker 0 is another"


def test_mutants_a_writer_believes_that_all_was_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """It writes over what nobody has taken: what stands there then is a message whose turn never comes."""
    put = OutboundRing.put

    def careless(self: OutboundRing, number: int, frames: Sequence[Frame]) -> bool:
        self._head = self._tail
        return put(self, number, frames)

    monkeypatch.setattr(OutboundRing, "put", careless)
    assert found_by(FULL) == "nothing can happen, and worker 1 has taken 0 of 11 messages"


def test_mutants_a_worker_sleeps_without_asking_to_be_woken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Neighbours, "ask_to_be_woken", lambda self: None)
    assert "sleeps, its next message is in the ring" in found_by(TRAFFIC)
