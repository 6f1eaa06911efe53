"""Memory that two processes share: what is written is read, whole, in order, and nothing else."""

from __future__ import annotations

import os
import random
import select
import struct
import subprocess
import sys
import zlib
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from house import ROOT
from hypothesis import given
from hypothesis import strategies as st

from timely import PeerError
from timely.wire.batch import Frame
from timely.wire.transport.ring import IS_POSSIBLE, InboundRing, OutboundRing, fence

SIZE = 4096
LARGEST = SIZE // 8
WORD = 8

pytestmark = pytest.mark.skipif(not IS_POSSIBLE, reason="a host without rings uses sockets alone")


@dataclass
class Pair:
    inbound: InboundRing
    outbound: OutboundRing
    wake: int

    @property
    def words(self) -> memoryview:
        """The memory itself: tail, head, asleep, cookie, then data."""
        return self.inbound._words  # a test looks behind the curtain

    def is_woken(self) -> bool:
        return bool(select.select([self.wake], [], [], 0)[0])


@pytest.fixture
def pair() -> Iterator[Pair]:
    made = _pair()
    yield made
    _close(made)


def _pair() -> Pair:
    read, write = os.pipe()
    os.set_blocking(write, False)
    inbound = InboundRing(SIZE, "worker 7", write)
    outbound = OutboundRing(inbound.offer)
    os.close(write)  # who writes has its own
    return Pair(inbound, outbound, read)


def _close(pair: Pair) -> None:
    for ring in (pair.inbound, pair.outbound):
        ring.close()
        ring.close()
    os.close(pair.wake)


def _record_bytes(sizes: Iterable[int]) -> int:
    return 3 * WORD + sum(WORD + (size + WORD - 1) // WORD * WORD for size in sizes)


def _open_files() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def _taken(pair: Pair, number: int) -> list[bytes] | None:
    frames = pair.inbound.take(number)
    return None if frames is None else [bytes(frame) for frame in frames]


_FRAMES = st.lists(st.integers(0, LARGEST // 2), max_size=6)


@given(st.lists(st.one_of(st.just(None), _FRAMES), max_size=200), st.randoms(use_true_random=False))
def test_what_is_written_is_read_in_order_as_long_as_there_is_room(
    steps: list[list[int] | None], draw: random.Random
) -> None:
    pair = _pair()
    waiting: deque[tuple[int, list[bytes]]] = deque()
    taken, number = 0, 0
    for sizes in steps:
        if sizes is None:
            number_there, frames = waiting.popleft() if waiting else (-1, None)
            assert pair.inbound.has_more() == (frames is not None)
            assert pair.inbound.number() == number_there
            assert _taken(pair, taken) == frames
            taken += frames is not None
            continue
        frames = [draw.randbytes(size) for size in sizes]
        length = (
            sum(WORD * (2 + (size > 0)) - 8 + (size + 7) // 8 * 8 - (size > 0) * 8 for size in sizes) + 24
        )
        held = sum(24 + sum(8 + (len(one) + 7) // 8 * 8 for one in each) for _, each in waiting)
        if pair.outbound.put(number, frames):
            assert length <= LARGEST
            waiting.append((number, frames))
            number += 1
        else:
            assert length > LARGEST or held + 2 * length > SIZE, "there is room"
    while waiting:
        assert _taken(pair, waiting[0][0]) == waiting.popleft()[1]
    assert not pair.inbound.has_more() and pair.inbound.number() == -1
    _close(pair)


def test_frames_of_any_shape_are_bytes(pair: Pair) -> None:
    frames: list[Frame] = [np.zeros((0, 3)).data, np.arange(6).reshape(2, 3).data]
    frames += [b"", bytearray(b"abc")]
    assert pair.outbound.put(0, frames)
    assert _taken(pair, 0) == [b"", np.arange(6).tobytes(), b"", b"abc"]


def test_a_ring_holds_as_much_as_it_is_large(pair: Pair) -> None:
    """Eight records of an eighth, also when they do not begin at its beginning."""
    frame = bytes(LARGEST - 4 * WORD)
    assert not pair.outbound.put(0, [frame + b"!"])
    for first in range(0, 24, 8):
        for number in range(first, first + 8):
            assert pair.outbound.put(number, [frame])
        assert not pair.outbound.put(first + 8, [])
        for number in range(first, first + 8):
            assert _taken(pair, number) == [frame]
    for number in range(24, 32):
        assert pair.outbound.put(number, [frame])
    for number in range(24, 40):
        assert _taken(pair, number) == [frame]
        assert pair.outbound.put(number + 8, [frame]), "where one was"


def test_a_message_has_so_many_frames_and_no_more() -> None:
    read, write = os.pipe()
    inbound = InboundRing(1 << 20, "worker 7", write)
    outbound = OutboundRing(inbound.offer)
    assert not outbound.put(0, [b""] * 4097)
    assert outbound.put(0, [b""] * 4096)
    assert inbound.take(0) == [b""] * 4096
    for ring in (inbound, outbound):
        ring.close()
    os.close(read)
    os.close(write)


def test_who_falls_asleep_while_something_is_written_is_woken(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What counts is the order of stores and loads of both, at the fence, and at the bell."""
    pair.outbound.put(0, [b"x"])
    assert _taken(pair, 0)

    def falls_asleep() -> None:
        assert pair.inbound.has_more(), "who sleeps from here on has seen it, or is woken"
        pair.inbound.set_asleep(True)

    monkeypatch.setattr("timely.wire.transport.ring.fence", falls_asleep)
    pair.outbound.put(1, [b"x"])
    assert pair.is_woken()
    written = os.write

    def rings(descriptor: int, what: bytes) -> int:
        assert pair.words[16] == 0, "said once more from here on, it is not taken back"
        return written(descriptor, what)

    monkeypatch.setattr(os, "write", rings)
    pair.outbound.put(2, [b"x"])


def test_only_the_message_whose_turn_it_is_is_taken(pair: Pair) -> None:
    pair.outbound.put(3, [b"three"])
    assert _taken(pair, 2) is None and pair.inbound.number() == 3
    assert _taken(pair, 3) == [b"three"]
    assert _taken(pair, 4) is None
    pair.outbound.put(3, [b"again"])
    with pytest.raises(PeerError, match="message 3, where 4 is next"):
        pair.inbound.take(4)


def test_what_is_read_does_not_change_when_its_place_is_written_again(pair: Pair) -> None:
    kept = []
    for number in range(100):
        assert pair.outbound.put(number, [b"%100d" % number])
        kept.append(pair.inbound.take(number))
    assert [int(bytes(frames[0])) for frames in kept if frames] == list(range(100))


def test_who_sleeps_is_woken_once_and_who_does_not_is_left_alone(pair: Pair) -> None:
    pair.outbound.put(0, [b"x"])
    assert not pair.is_woken()
    pair.inbound.set_asleep(True)
    for number in range(1, 4):
        pair.outbound.put(number, [b"x"])
    assert os.read(pair.wake, 100) == b"!"
    pair.inbound.set_asleep(True)
    pair.inbound.set_asleep(False)
    pair.outbound.put(4, [b"x"])
    assert not pair.is_woken()


def test_a_bell_that_has_been_rung_often_is_rung_by_nobody_else(pair: Pair) -> None:
    write = os.open(f"/proc/self/fd/{pair.wake}", os.O_WRONLY | os.O_NONBLOCK)
    with pytest.raises(BlockingIOError):
        while True:
            os.write(write, bytes(4096))
    os.close(write)
    pair.inbound.set_asleep(True)
    assert pair.outbound.put(0, [b"x"]) and pair.is_woken()


def test_who_has_ended_is_not_woken(pair: Pair) -> None:
    pair.inbound.set_asleep(True)
    os.close(pair.wake)
    assert pair.outbound.put(0, [b"x"]), "that it has is told by its connection"
    pair.wake = os.open(os.devnull, os.O_RDONLY)


@pytest.mark.parametrize(
    ("at", "word"),
    [
        *((0, length) for length in (0, 8, 17, 24, 40, SIZE, 1 << 62, -1, -8, -SIZE, -(1 << 62))),
        *((2, count) for count in (-1, 2, 4097, 1 << 40)),
        *((3, size) for size in (-1, 9, SIZE, 1 << 62)),
    ],
)
def test_what_no_worker_writes_is_an_error_that_names_it(pair: Pair, at: int, word: int) -> None:
    pair.outbound.put(0, [b"12345678"])  # 40 bytes: length, number, count, size, frame
    pair.words[32 + at] = word
    if (at, word) == (0, 40):
        assert _taken(pair, 0) == [b"12345678"]
        return
    with pytest.raises(PeerError, match="worker 7 has written what no worker writes into shared memory"):
        pair.inbound.take(0)


@pytest.mark.parametrize("length", [41, 44, 88])
def test_a_record_ends_where_another_may_begin_and_not_behind_what_is_written(
    pair: Pair, length: int
) -> None:
    for number in range(2):
        pair.outbound.put(number, [b"12345678"])  # 40 bytes each
    pair.words[32] = length
    with pytest.raises(PeerError, match="worker 7 has written what no worker writes into shared memory"):
        pair.inbound.take(0)


def test_offers_of_what_is_not_there_are_refused() -> None:
    read, write = os.pipe()
    inbound = InboundRing(SIZE, "worker 7", write)
    OutboundRing(inbound.offer).close()  # all is there
    process, ring, wake, size, cookie = struct.unpack("<qqqqq", inbound.offer)
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    before = _open_files()
    null = os.open(os.devnull, os.O_RDWR)
    for offer in (
        (ended.pid, ring, wake, size, cookie),
        (process, 1 << 20, wake, size, cookie),
        (process, null, wake, size, cookie),
        (process, ring, wake, 2 * size, cookie),
        (process, ring, wake, size // 2, cookie),
        (process, ring, wake, size, cookie + 1),
        (process, ring, null, size, cookie),
        (process, ring, -1, size, cookie),
    ):
        with pytest.raises(OSError):
            OutboundRing(struct.pack("<qqqqq", *offer))
    os.close(null)
    for nonsense in (b"", inbound.offer[1:], inbound.offer + b"!"):
        with pytest.raises(ValueError):
            OutboundRing(nonsense)
    assert _open_files() == before
    inbound.close()
    os.close(read)
    os.close(write)


def test_memory_that_is_not_given_leaves_nothing_open(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*about: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", refused)
    before = _open_files()
    with pytest.raises(OSError):
        InboundRing(SIZE, "worker 7", 0)
    assert _open_files() == before


def test_a_python_that_knows_of_no_memory_without_a_name_has_no_rings() -> None:
    program = (
        "import os; del os.memfd_create\n"
        "from timely.wire.transport.neighbours import Neighbours, IS_POSSIBLE\n"
        "worker = Neighbours(0, None); worker.join([1]); worker.close(); assert not IS_POSSIBLE"
    )
    subprocess.run([sys.executable, "-c", program], env={**os.environ, "PYTHONPATH": str(ROOT)}, check=True)


def test_nothing_is_left_open() -> None:
    _close(_pair())
    before = _open_files()
    for _ in range(20):
        _close(_pair())
    assert _open_files() == before


_WRITER = """
import sys, zlib
from timely.wire.batch import Frame
from timely.wire.transport.ring import OutboundRing
ring, count = OutboundRing(bytes.fromhex(sys.argv[1])), int(sys.argv[2])
state = 1
for number in range(count):
    state = state * 6364136223846793005 + 1442695040888963407 & (1 << 64) - 1
    frame = state.to_bytes(8, "little") * (state >> 60)
    while not ring.put(number, [zlib.crc32(frame).to_bytes(4, "little"), frame]):
        pass
"""


@pytest.mark.parametrize("is_killed", [False, True])
def test_another_process_writes_while_this_one_reads_and_sleeps(is_killed: bool) -> None:
    count = 30_000
    read, write = os.pipe()
    ring = InboundRing(SIZE, "worker 7", write)
    command = [sys.executable, "-c", _WRITER, ring.offer.hex(), str(count)]
    with subprocess.Popen(command, env={**os.environ, "PYTHONPATH": str(ROOT)}) as writer:
        taken, sleeps = 0, 0
        while taken < count:
            frames = ring.take(taken)
            if frames is not None:
                check, frame = frames
                assert int.from_bytes(check, "little") == zlib.crc32(frame), f"message {taken}"
                taken += 1
                if is_killed and taken == count // 10:
                    writer.kill()
                    writer.wait()
                continue
            ring.set_asleep(True)
            fence()
            if not ring.has_more():
                sleeps += 1
                found, _, _ = select.select([read], [], [], 2.0)
                if found:
                    os.read(read, 4096)
                elif writer.poll() is not None and not ring.has_more():
                    break
                else:
                    assert ring.has_more() or writer.poll() is None, "nobody was woken for what came"
            ring.set_asleep(False)
    assert sleeps > 0
    assert count // 10 <= taken < count if is_killed else taken == count
    assert not ring.has_more(), "what is there is whole"
    ring.close()
    os.close(read)
    os.close(write)


def test_bytes_that_wait_are_those_of_unread_records(pair: Pair) -> None:
    assert pair.outbound.unread_bytes == 0
    assert pair.outbound.put(0, [b"x" * 100])
    first = pair.outbound.unread_bytes
    assert 100 < first < 200 and pair.outbound.put(1, [b"y" * 100])
    assert pair.outbound.unread_bytes == 2 * first
    assert pair.inbound.take(0) is not None and pair.inbound.take(1) is not None
    assert pair.outbound.unread_bytes == 0
