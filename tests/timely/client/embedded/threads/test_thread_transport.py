"""Messages from thread to thread: in order, whichever way, and whoever sleeps is woken."""

from __future__ import annotations

import gc
import random
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from timely.client.embedded.threads import thread_transport
from timely.client.embedded.threads.thread_transport import ThreadNetwork
from timely.wire.transport import neighbours
from timely.wire.transport.ring import InboundRing


def _descriptors() -> int:
    """How many this process has."""
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.fixture(params=["rings", "none"])
def has_rings(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[bool]:
    """Also on hosts without."""
    if request.param == "none":
        monkeypatch.setattr(neighbours, "IS_POSSIBLE", False)
    yield request.param == "rings"


def test_messages_of_a_pair_arrive_in_order_whatever_their_sizes(has_rings: bool) -> None:
    network = ThreadNetwork(3)
    sizes = [1, 10, 3_000_000, 5, 200_000, 0, 7] * 9
    for number, size in enumerate(sizes):
        for source in (0, 1):
            network.transport(source).send(2, [str((source, number)).encode(), bytes(size)])
    assert network.in_flight() == 2 * len(sizes)
    found: list[tuple[int, str, int]] = []
    while network.in_flight():
        assert network.transport(2).has_come()
        for peer, (name, rest) in network.transport(2).recv_nowait():
            found.append((peer, bytes(name).decode(), len(rest)))
    for source in (0, 1):
        meant = [(source, str((source, number)), size) for number, size in enumerate(sizes)]
        assert [each for each in found if each[0] == source] == meant
    assert not network.transport(2).has_come()
    assert (network.transport(0).lend() is None) == (not has_rings)
    network.close()
    network.close()


def test_messages_arrive_in_order_while_workers_change_between_turns_and_threads(has_rings: bool) -> None:
    network = ThreadNetwork(2)
    rng = random.Random(11)
    source, target = network.transport(0), network.transport(1)
    sent: list[bytes] = []
    found: list[bytes] = []
    for number in range(400):
        source.is_held = target.is_held = rng.random() < 0.5
        target.is_lent_in_turn = source.is_held and rng.random() < 0.5
        sent.append(str(number).encode().ljust(rng.choice([5, 40, 3_000_000])))
        source.send(1, [sent[-1]])
        if rng.random() < 0.2:
            found += [bytes(frame) for _, (frame,) in target.recv_nowait()]
    while network.in_flight():
        arrived = target.recv_nowait()
        assert arrived, "a message is missing, and those behind it wait for it"
        found += [bytes(frame) for _, (frame,) in arrived]
    assert found == sent
    network.close()


def test_what_is_large_is_handed_over_without_a_copy() -> None:
    network = ThreadNetwork(2)
    large = bytearray(5_000_000)
    network.transport(0).send(1, [large])
    ((_, (frame,)),) = network.transport(1).recv_nowait()
    large[7] = 1
    assert frame[7] == 1
    network.close()


@pytest.mark.parametrize("count", [3, 300_000])
def test_frames_are_bytes_whatever_the_memory_is_of(count: int, has_rings: bool) -> None:
    network, numbers = ThreadNetwork(2), np.arange(count, dtype=np.int64)
    network.transport(0).send(1, [numbers.data])
    ((_, (frame,)),) = network.transport(1).recv_nowait()
    assert len(frame) == numbers.nbytes and bytes(frame) == numbers.tobytes()
    network.close()


def test_what_there_was_no_more_room_for_has_come(has_rings: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thread_transport, "RECV_COUNT_MAX", 1)
    network = ThreadNetwork(2)
    for size in (3_000_000, 2_000_000, 1):
        network.transport(0).send(1, [bytes(size)])
    transport, sizes = network.transport(1), []
    while transport.has_come():
        sizes += [len(frame) for _, (frame,) in transport.recv_nowait()]
    assert sizes == [3_000_000, 2_000_000, 1]
    network.close()


@pytest.mark.parametrize("size", [10, 3_000_000])
def test_who_sleeps_is_woken_by_a_message(has_rings: bool, size: int) -> None:
    network = ThreadNetwork(2)
    heard: list[int] = []

    def listen() -> None:
        while len(heard) < 50:
            network.transport(1).wait(60.0)
            for _, (frame,) in network.transport(1).recv_nowait():
                heard.append(len(frame))
                network.transport(1).send(0, [b"heard"])

    thread = threading.Thread(target=listen)
    begin = time.monotonic()
    thread.start()
    for _ in range(50):
        network.transport(0).send(1, [bytes(size)])
        while not network.transport(0).recv_nowait():
            network.transport(0).wait(60.0)
    thread.join()
    assert heard == 50 * [size]
    assert time.monotonic() - begin < 60.0, "nobody has slept until it was over"
    network.close()


def test_nobody_sleeps_over_what_is_there_or_awaited() -> None:
    network = ThreadNetwork(2)
    begin = time.monotonic()
    network.transport(1).wake()  # nobody sleeps: nothing to do
    network.transport(0).send(1, [b"x"])
    network.transport(1).wait(100.0)
    network.transport(1).recv_nowait()
    network.transport(1).wait(100.0, lambda: True)
    assert time.monotonic() - begin < 100.0
    network.close()


def test_many_workers_take_no_more_descriptors_than_they_may(monkeypatch: pytest.MonkeyPatch) -> None:
    import resource

    before = _descriptors()
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (before + 100, before + 100))
    network = ThreadNetwork(8)
    assert _descriptors() - before <= 50
    network.transport(0).send(7, [b"all the same"])
    assert [frames[0] == b"all the same" for _, frames in network.transport(7).recv_nowait()] == [True]
    network.close()


def test_who_forgets_a_network_gives_back_its_descriptors() -> None:
    gc.collect()
    before = _descriptors()
    network = ThreadNetwork(3)
    assert _descriptors() > before
    del network
    gc.collect()
    assert _descriptors() <= before


def test_who_sleeps_while_its_turn_is_held_is_woken_by_what_comes_afterwards(has_rings: bool) -> None:
    """What came meanwhile, and was taken by who had the turn, had asked in vain for it to be woken."""
    network = ThreadNetwork(2)
    transport, heard = network.transport(1), threading.Event()
    for each in network.transports:
        each.recv_nowait()  # else nothing goes by a ring yet
    transport.is_held = True

    def listen() -> None:
        while not transport.recv_nowait():
            transport.wait(60.0)
        heard.set()

    thread = threading.Thread(target=listen)
    thread.start()
    while not transport._is_asleep:
        time.sleep(0.001)
    network.transport(0).send(1, [b"held"])
    time.sleep(0.1)
    assert not heard.is_set(), "nobody wakes it"
    assert len(transport.recv_nowait()) == 1, "taken by who has the turn"
    transport.let_go()
    network.transport(0).send(1, [b"free"])
    assert heard.wait(30.0)
    thread.join()
    network.close()


def test_nothing_is_lent_to_who_takes_turns(has_rings: bool) -> None:
    network = ThreadNetwork(2)
    for transport, other in zip(network.transports, reversed(network.transports), strict=True):
        other.recv_nowait()
        transport.is_held = True
        assert transport.lend() is None
        transport.is_held = False
        assert (transport.lend() is None) != has_rings
    network.close()


def test_who_waits_without_the_turn_touches_nothing_that_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its thread is on its way to sleep while who has the turn takes message after message."""
    network = ThreadNetwork(2)
    transport = network.transport(1)
    network.transport(0).recv_nowait()
    transport.recv_nowait()
    for number in range(6):
        network.transport(0).send(1, [str(number).encode()])
    taken: list[bytes] = []
    has_more = InboundRing.has_more

    def is_taken_meanwhile(ring: InboundRing) -> bool:
        found = has_more(ring)
        if found and len(taken) < 6:
            taken.extend(bytes(frame) for frame in ring.take(len(taken)) or ())
        return found

    with monkeypatch.context() as patched:
        patched.setattr(InboundRing, "has_more", is_taken_meanwhile)
        for _ in range(6):
            transport.wait(0.0)
    assert taken == [str(number).encode() for number in range(6)]
    network.close()


def test_who_waits_without_the_turn_does_not_go_round_the_end_of_a_ring() -> None:
    network = ThreadNetwork(2)
    transport, other = network.transport(1), network.transport(0)
    other.recv_nowait()
    transport.recv_nowait()
    ring = transport.neighbours._lines[0].ring
    assert ring is not None
    size = ring._size // 8 - 4096
    seen = set()
    for _ in range(40):
        other.send(1, [bytes(size)])
        head = ring._head
        transport.wait(0.0)
        transport.has_come()
        assert ring._head == head, "moved by who takes only"
        seen.add(ring._words[32 + (head & (ring._size - 1)) // 8] < 0)
        transport.recv_nowait()
    assert seen == {True, False}
    network.close()
