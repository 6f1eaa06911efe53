"""The network in memory: FIFO for each pair, copies, and delays by a seed."""

from __future__ import annotations

import pytest

from timely.running.checking.actions import OneByOne
from timely.wire.transport import Transport
from timely.wire.transport.memory import MemoryNetwork


def texts(arrived: list[tuple[int, list[memoryview]]]) -> list[tuple[int, bytes]]:
    return [(peer, b"".join(map(bytes, frames))) for peer, frames in arrived]


@pytest.mark.parametrize("seed", [None, *range(20)])
def test_what_one_sends_another_arrives_in_order(seed: int | None) -> None:
    network = MemoryNetwork(3, seed)
    doors: list[Transport] = [network.transport(worker) for worker in range(3)]
    for number in range(30):
        doors[number % 2].send(2, [b"%d" % number])
    arrived: list[tuple[int, bytes]] = []
    for _ in range(1000):
        arrived += texts(doors[2].recv_nowait())
    for source in (0, 1):
        assert [int(text) for peer, text in arrived if peer == source] == list(range(source, 30, 2))
    assert network.in_flight() == 0


def test_sender_and_receiver_share_no_memory() -> None:
    network = MemoryNetwork(2)
    frame = bytearray(b"before")
    network.transport(0).send(1, [frame])
    frame[:] = b"after!"
    assert texts(network.transport(1).recv_nowait()) == [(0, b"before")]


def test_a_seed_holds_messages_back_and_the_same_seed_the_same_ones() -> None:
    def delays(seed: int) -> list[int]:
        network = MemoryNetwork(2, seed)
        for _ in range(50):
            network.transport(0).send(1, [b"x"])
        return [len(network.transport(1).recv_nowait()) for _ in range(20)]

    assert delays(3) == delays(3)
    assert len({tuple(delays(seed)) for seed in range(10)}) > 5


def test_waiting_returns_at_once_since_nobody_else_runs() -> None:
    door = MemoryNetwork(2).transport(0)
    door.wait(1000.0)
    door.close()


def test_messages_can_be_taken_one_by_one_from_a_chosen_peer() -> None:
    network = MemoryNetwork(3, seed=1)
    doors = [network.transport(worker) for worker in range(3)]
    door: OneByOne = doors[2]
    assert door.heard() == []
    for text in (b"first", b"second"):
        doors[0].send(2, [text])
    doors[1].send(2, [b"other"])
    assert door.heard() == [0, 1]
    assert [bytes(*door.recv_one(peer)) for peer in (0, 1, 0)] == [b"first", b"other", b"second"]
    assert door.heard() == [] and network.in_flight() == 0
