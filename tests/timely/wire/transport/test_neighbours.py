"""Messages through memory and through sockets: each pair's arrive in the order in which they were sent."""

from __future__ import annotations

import os
import random
import resource
import struct
import time
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from timely import PeerError
from timely.limits import RING_BYTES_MAX, RINGS_BYTES_MAX, ROUND_SPIN_SECONDS_MAX, SPIN_SECONDS_MAX
from timely.wire.batch import Frame
from timely.wire.transport import neighbours
from timely.wire.transport.neighbours import Neighbours
from timely.wire.transport.ring import (
    IS_POSSIBLE,
    L_IN,
    L_IN_SIZE,
    L_KNOWN_READ,
    L_OUT,
    L_OUT_SIZE,
    L_PEER,
    L_READ,
    L_SENT,
    L_SLEEPS,
    L_TAKEN,
    L_WRITTEN,
    InboundRing,
)

SMALL_RING = 1 << 12

needs_rings = pytest.mark.skipif(not IS_POSSIBLE, reason="a host without rings uses sockets alone")


class Host:
    """Neighbours whose sockets are lists, of which a test says when something comes through them."""

    def __init__(self, count: int) -> None:
        self.sockets: dict[tuple[int, int], deque[list[bytes]]] = {
            (source, target): deque() for source in range(count) for target in range(count)
        }
        self.workers = [Neighbours(index, self._sender(index)) for index in range(count)]
        for index, worker in enumerate(self.workers):
            worker.join([peer for peer in range(count) if peer != index])

    def _sender(self, index: int):  # type: ignore[no-untyped-def]
        def send(peer: int, frames: Sequence[Frame]) -> None:
            self.sockets[index, peer].append([bytes(frame) for frame in frames])

        return send

    def through_socket(self, source: int, target: int, count: int = 1 << 30) -> None:
        queue = self.sockets[source, target]
        for _ in range(min(count, len(queue))):
            self.workers[target].by_socket(source, [memoryview(frame) for frame in queue.popleft()])

    def meet(self) -> None:
        """All offers come."""
        for source, target in self.sockets:
            self.through_socket(source, target)

    def close(self) -> None:
        for worker in self.workers:
            worker.close()
            worker.close()


@pytest.fixture
def host() -> Iterator[Host]:
    made = Host(2)
    yield made
    made.close()


def _number(frames: Sequence[memoryview]) -> int:
    return int.from_bytes(frames[0], "little")


_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("send"), st.integers(0, 2), st.sampled_from([0, 8, 100, 600, 5_000])),
        st.tuples(st.just("socket"), st.integers(0, 2), st.integers(1, 3)),
        st.tuples(st.just("take"), st.integers(0, 2), st.integers(1, 5)),
    ),
    max_size=150,
)


@given(_STEPS, st.randoms(use_true_random=False))
def test_each_pair_keeps_its_order_whichever_way_messages_go(
    steps: list[tuple[str, int, int]], draw: random.Random
) -> None:
    """Offers come at any time, rings are full now and then, sockets are late."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(neighbours, "RING_BYTES_MAX", SMALL_RING)
        host = Host(3)
    sent = dict.fromkeys(host.sockets, 0)
    taken = dict.fromkeys(host.sockets, 0)

    def take(target: int, count: int) -> None:
        found = host.workers[target].take(count, 1 << 30)
        assert len(found) <= count
        for source, frames in found:
            assert _number(frames) == taken[source, target], "in order, none twice"
            assert bytes(frames[1]) == random.Random(_number(frames)).randbytes(len(frames[1]))
            taken[source, target] += 1
        assert len(found) == count or not host.workers[target].has_more()

    for what, worker, amount in steps:
        other = (worker + draw.randint(1, 2)) % 3
        if what == "send":
            number = sent[worker, other]
            host.workers[worker].send(
                other, [number.to_bytes(8, "little"), random.Random(number).randbytes(amount)]
            )
            sent[worker, other] += 1
        elif what == "socket":
            host.through_socket(other, worker, amount)
        else:
            take(worker, amount)
    host.meet()
    for target in range(3):
        take(target, 1 << 30)
    assert taken == sent
    host.close()


@needs_rings
def test_small_ones_go_through_memory_once_both_know_of_it_and_large_ones_do_not(host: Host) -> None:
    host.workers[0].send(1, [b"a"])
    assert len(host.sockets[0, 1]) == 2, "the offer, and what came before the other one's"
    host.meet()
    host.workers[0].send(1, [b"b"])
    assert not host.sockets[0, 1]
    host.workers[0].send(1, [bytes(RING_BYTES_MAX // 8)])
    host.workers[0].send(1, [b"c"])
    assert len(host.sockets[0, 1]) == 1
    assert [bytes(frames[0]) for _, frames in host.workers[1].take(9, 1 << 30)] == [b"a", b"b"]
    assert not host.workers[1].has_more(), "what comes next is on its way"
    host.meet()
    assert [len(frames[0]) for _, frames in host.workers[1].take(9, 1 << 30)] == [RING_BYTES_MAX // 8, 1]


def test_a_host_without_rings_sends_all_through_sockets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neighbours, "IS_POSSIBLE", False)
    host = Host(2)
    assert host.workers[0].wake_descriptor is None
    for number in range(5):
        host.workers[0].send(1, [b"%d" % number])
    assert not host.workers[1].has_more()
    assert host.workers[1].fall_asleep() and not host.workers[1].spin()
    host.meet()
    assert [bytes(frames[0]) for _, frames in host.workers[1].take(9, 1 << 30)] == [
        b"0",
        b"1",
        b"2",
        b"3",
        b"4",
    ]
    host.workers[1].wake_up(was_woken=False)
    host.close()


@needs_rings
def test_no_memory_is_no_error(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    def refused(*about: object) -> None:
        raise OSError(12, "Cannot allocate memory")

    monkeypatch.setattr(os, "posix_fallocate", refused)
    caplog.set_level("INFO", "timely")
    host = Host(2)
    assert caplog.messages[0] == "worker 0: no shared memory, sockets do: [Errno 12] Cannot allocate memory"
    host.workers[0].send(1, [b"x"])
    host.meet()
    assert [bytes(frames[0]) for _, frames in host.workers[1].take(9, 1 << 30)] == [b"x"]
    host.close()


@needs_rings
def test_memory_that_cannot_be_opened_is_no_error(host: Host, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "timely")
    number, offer = host.sockets[1, 0].popleft()
    told = list(struct.unpack("<qqqqq", offer))
    told[1] = 1 << 20
    host.workers[0].by_socket(1, [memoryview(number), memoryview(struct.pack("<qqqqq", *told))])
    assert caplog.messages[0].startswith("worker 0: no shared memory with worker 1: ")
    host.workers[0].send(1, [b"x"])
    host.meet()
    assert [bytes(frames[0]) for _, frames in host.workers[1].take(9, 1 << 30)] == [b"x"]


@pytest.mark.parametrize(
    ("frames", "message"),
    [
        ([], "without a number"),
        ([b"1234567"], "without a number"),
        ([struct.pack("<q", -1)], "twice, or without saying where"),
        ([struct.pack("<q", -1), b"", b""], "twice, or without saying where"),
        ([struct.pack("<q", -1), b"short"], "a malformed offer of shared memory"),
    ],
)
def test_what_no_worker_sends_is_an_error_that_names_it(
    host: Host, frames: list[bytes], message: str
) -> None:
    with pytest.raises(PeerError, match=f"worker 1 has .*{message}"):
        host.workers[0].by_socket(1, [memoryview(frame) for frame in frames])


@needs_rings
def test_a_second_offer_is_an_error(host: Host) -> None:
    offer = [memoryview(frame) for frame in host.sockets[1, 0][0]]
    host.workers[0].by_socket(1, offer)
    with pytest.raises(PeerError, match="worker 1 has offered shared memory twice"):
        host.workers[0].by_socket(1, offer)


@needs_rings
def test_a_message_that_was_lost_or_comes_twice_is_an_error_and_no_gap(host: Host) -> None:
    host.meet()
    large = bytes(RING_BYTES_MAX)
    for frame in (b"a", large, b"b", large):
        host.workers[0].send(1, [frame])
    lost = host.sockets[0, 1].popleft()
    assert len(host.workers[1].take(9, 1 << 30)) == 1
    host.meet()
    with pytest.raises(
        PeerError, match=r"worker 0 has sent message 3 by its socket, and 2 through shared memory: 1"
    ):
        host.workers[1].take(9, 1 << 30)
    other = Host(2)
    other.meet()
    other.workers[0].send(1, [large])
    other.sockets[0, 1].append(other.sockets[0, 1][0])
    other.meet()
    with pytest.raises(PeerError, match="worker 0 has sent message 0 by its socket: 1 is next"):
        other.workers[1].take(9, 1 << 30)
    other.close()
    assert lost


@needs_rings
def test_who_sends_without_a_pause_does_not_keep_others_from_being_heard() -> None:
    host = Host(3)
    host.meet()
    for limits in ((10, 1 << 30), (1 << 30, 80)):
        for source in (0, 1):
            host.workers[2].take(1 << 30, 1 << 30)
            for _ in range(50):
                host.workers[source].send(2, [b"12345678"])
            host.workers[1 - source].send(2, [b"a word"])
            heard = {peer for _ in range(2) for peer, _ in host.workers[2].take(*limits)}
            assert heard == {0, 1}
    host.close()


def test_who_joins_later_is_heard_as_well_as_who_came_first() -> None:
    worker = Neighbours(0, lambda peer, frames: None)
    for peer in (1, 2):
        worker.join([peer])
    for peer in (1, 2):
        worker.by_socket(peer, [memoryview(bytes(8)), memoryview(b"x")])
    assert [peer for peer, _ in worker.take(9, 1 << 30)] == [1, 2]
    worker.close()


@needs_rings
def test_what_cannot_be_sent_has_no_number(host: Host) -> None:
    host.meet()
    with pytest.raises(TypeError):
        host.workers[0].send(1, [memoryview(b"in pieces")[::2]])
    host.workers[0].send(1, [b"x"])
    assert [bytes(frames[0]) for _, frames in host.workers[1].take(9, 1 << 30)] == [b"x"]


@needs_rings
def test_who_falls_asleep_is_woken_or_does_not_sleep(host: Host) -> None:
    host.meet()
    writer, reader = host.workers
    assert reader.fall_asleep()
    writer.send(1, [b"x"])
    assert reader.wake_descriptor is not None
    assert os.read(reader.wake_descriptor, 10) == b"!"
    reader.wake_up(was_woken=False)
    assert not reader.fall_asleep(), "something is there"
    reader.wake_up(was_woken=False)
    assert len(reader.take(9, 1 << 30)) == 1


@needs_rings
def test_who_waits_for_what_the_socket_brings_sleeps_until_it_is_there_and_then_no_more(host: Host) -> None:
    host.meet()
    writer, reader = host.workers
    writer.send(1, [bytes(RING_BYTES_MAX)])
    writer.send(1, [b"behind it"])
    assert reader.take(9, 1 << 30) == [] and reader.fall_asleep(), "else it would look without a pause"
    reader.wake_up(was_woken=False)
    host.meet()
    assert not reader.fall_asleep()
    reader.wake_up(was_woken=False)
    assert len(reader.take(1, 1 << 30)) == 1 and not reader.fall_asleep()
    reader.wake_up(was_woken=False)
    assert len(reader.take(9, 1 << 30)) == 1 and reader.fall_asleep()
    reader.wake_up(was_woken=False)


@needs_rings
def test_what_comes_while_one_falls_asleep_is_not_slept_over(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    host.meet()
    writer, reader = host.workers
    monkeypatch.setattr(neighbours, "fence", lambda: writer.send(1, [b"x"]))
    assert not reader.fall_asleep()
    assert reader.wake_descriptor is not None
    assert os.read(reader.wake_descriptor, 10) == b"!", "it had said so before it looked"
    reader.wake_up(was_woken=False)
    assert reader._rings[0]._words[16] == 0
    monkeypatch.undo()
    assert not reader.fall_asleep()
    reader.wake_up(was_woken=False)
    writer.send(1, [b"y"])
    with pytest.raises(BlockingIOError):
        os.read(reader.wake_descriptor, 10)


@needs_rings
def test_looking_out_for_more_is_short_and_only_after_something_came(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    host.meet()
    writer, reader = host.workers
    reader.spins = True  # whatever this machine has
    took = []
    for _ in range(5):
        started = time.monotonic()
        assert not reader.spin()
        took.append(time.monotonic() - started)
    assert min(took) < 10 * SPIN_SECONDS_MAX + 0.01, "on a machine that is busy, too, for once"
    monkeypatch.setattr(neighbours, "SPIN_SECONDS_MAX", 60.0)  # on a machine that is busy, too
    assert reader.take(9, 1 << 30) == []
    writer.send(1, [b"x"])
    assert not reader.spin(), "nothing has come before"
    assert len(reader.take(9, 1 << 30)) == 1
    writer.send(1, [b"y"])
    assert reader.spin()
    reader.spins = False
    assert not reader.spin(), "there are not cores for all"


@needs_rings
def test_nobody_looks_out_where_there_are_not_cores_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 1, 2})
    for peers, spins in (([1, 2], True), ([1, 2, 3], False)):
        worker = Neighbours(0, lambda peer, frames: None)
        worker.join(peers)
        assert worker.spins == spins
        worker.close()


@needs_rings
def test_with_many_peers_each_has_less(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    ring = InboundRing

    def counted(size: int, writer: str, wake: int) -> object:
        made.append(size)
        return ring(size, writer, wake)

    monkeypatch.setattr(neighbours, "InboundRing", counted)
    _allow_descriptors(monkeypatch, resource.RLIM_INFINITY)
    most = RINGS_BYTES_MAX // RING_BYTES_MAX
    for count, size in (
        (1, RING_BYTES_MAX),
        (most, RING_BYTES_MAX),
        (most + 1, RING_BYTES_MAX // 2),
        (255, 1 << 16),
    ):
        made.clear()
        worker = Neighbours(0, lambda peer, frames: None)
        worker.join(range(1, count + 1))
        assert made == [size] * count and size * count <= max(RINGS_BYTES_MAX, count << 16)
        worker.close()


@needs_rings
def test_with_more_peers_than_descriptors_suffice_for_sockets_do(monkeypatch: pytest.MonkeyPatch) -> None:
    _allow_descriptors(monkeypatch, 64)
    for count, has_rings in ((4, True), (5, False)):
        worker = Neighbours(0, lambda peer, frames: None)
        before = _open_files()
        worker.join(range(1, count + 1))
        made = _open_files() - before
        assert (worker.wake_descriptor is not None) == has_rings and (made > 0) == has_rings
        worker.close()
        assert _open_files() == before


def _open_files() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def _allow_descriptors(monkeypatch: pytest.MonkeyPatch, limit: int) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda what: (limit, limit))


@needs_rings
def test_memory_is_lent_where_all_goes_through_it(host: Host) -> None:
    first, second = host.workers
    assert first.lend() is None, "offers have not come"
    host.meet()
    second.send(0, [b"by memory"])
    lines = first.lend()
    assert lines is not None and lines[:, L_PEER].tolist() == [1]
    assert first.take_back() == (0, 0)
    assert [bytes(frames[0]) for _, frames in first.take(9, 1 << 30)] == [b"by memory"], "nothing is lost"
    second.send(0, [bytes(RING_BYTES_MAX)])
    host.through_socket(1, 0)
    assert first.lend() is None, "what has come by a socket is first"
    first.take(9, 1 << 30)
    assert first.lend() is not None


@needs_rings
def test_what_was_lent_is_taken_back_as_far_as_it_was_used(host: Host) -> None:
    host.meet()
    first, second = host.workers
    for number in range(3):
        second.send(0, [bytes([number])])
    lines = first.lend()
    assert lines is not None and first._lines[1].ring is not None
    length = first._lines[1].ring._header()[0]
    lines[0, L_READ] += length
    lines[0, L_TAKEN] += 1
    first.spins = True
    assert not first.spin(), "nothing was taken by then"
    assert first.take_back() == (0, 1)
    assert first.spin(), "who has taken something looks out for what follows"
    assert [bytes(frames[0]) for _, frames in first.take(9, 1 << 30)] == [b"\1", b"\2"]


@needs_rings
def test_a_line_says_of_each_peer_how_far_both_ways_are() -> None:
    """Three workers, two peers, and no number of the first one's lines is that of another place."""
    host = Host(3)
    host.meet()
    first, second, third = host.workers
    for peer, count in ((1, 3), (2, 4)):
        for _ in range(count):
            first.send(peer, [b"x"])
    second.take(2, 1 << 30)
    third.take(1, 1 << 30)
    for worker, count in ((second, 6), (third, 7)):
        for _ in range(count):
            worker.send(0, [b"x"])
    assert len(first.take(8, 1 << 30)) == 8, "six of the one, two of the other"
    lines = first.lend()
    assert lines is not None
    record = -(-(3 * 8 + 8 + 1) // 8) * 8
    ways = [L_PEER, L_TAKEN, L_READ, L_SENT, L_WRITTEN, L_KNOWN_READ, L_SLEEPS]
    # How far a peer has read is looked up when there seems to be no room.
    assert lines[:, ways].tolist() == [
        [1, 6, 6 * record, 3, 3 * record, 0, 0],
        [2, 2, 2 * record, 4, 4 * record, 0, 0],
    ]
    assert lines[:, [L_IN_SIZE, L_OUT_SIZE]].tolist() == [[RING_BYTES_MAX] * 2] * 2
    assert np.unique(lines[:, [L_IN, L_OUT]]).size == 4
    first.take_back()
    host.close()


@needs_rings
def test_what_was_written_into_lent_memory_is_followed_by_what_comes_next_and_wakes_who_sleeps(
    host: Host,
) -> None:
    host.meet()
    first, second = host.workers
    assert second.fall_asleep()
    lines = first.lend()
    assert lines is not None
    out = first._lines[1].out
    assert out is not None
    assert out.put(0, [b"by a kernel"]), "as one writes: without asking who sleeps"
    written = lines[0, L_WRITTEN] + out._tail
    second.ask_to_be_woken()
    os.read(second.wake_descriptor or -1, 9)
    assert first.take_back() == (0, 0), "who wrote nothing wakes nobody"
    with pytest.raises(BlockingIOError):
        os.read(second.wake_descriptor or -1, 9)
    lines = first.lend()
    assert lines is not None
    lines[0, [L_WRITTEN, L_SENT, L_SLEEPS]] = written, 1, 1
    lines[0, L_KNOWN_READ] = 8
    assert first.take_back() == (1, 0)
    assert out._tail == written and out._head == 8
    assert os.read(second.wake_descriptor or -1, 9) == b"!", "it slept when that was written"
    first.send(1, [b"next"])
    found = [bytes(frames[0]) for _, frames in second.take(9, 1 << 30)]
    assert found == [b"by a kernel", b"next"]


@needs_rings
def test_who_waits_in_vain_looks_out_once_in_a_while(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    host.meet()
    first, second = host.workers
    now = [0.0]
    monkeypatch.setattr(neighbours.time, "monotonic", lambda: now[0])

    def looks(number: int) -> int:
        """How often it looks, if each look takes a tenth of what it may."""
        assert first.lend() is not None
        count = 0
        while first.looks_out(number):
            count += 1
            now[0] += ROUND_SPIN_SECONDS_MAX / 10
        first.take_back()
        return count

    first.spins = False
    assert looks(1) == 0, "there are too few cores"
    first.spins, first._in_vain = True, 0
    assert [looks(1) > 8 for _ in range(36)] == [True] * 4 + [place % 16 == 0 for place in range(4, 36)]
    second.send(0, [b"x"])
    lines = first.lend()
    assert lines is not None
    lines[0, L_TAKEN] += 1
    first.take_back()
    assert looks(1) > 8, "something came"
