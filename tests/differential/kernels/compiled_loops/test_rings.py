"""rings.py: a kernel and Python write and read the same rings, in turn."""

from __future__ import annotations

import os
from collections import deque

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from differential.kernels.compiled_loops.rings import (
    ANOTHER,
    NOTHING,
    any_sleeps,
    begin_record,
    end_record,
    next_record,
    start_of,
    take_record,
)
from timely.wire.transport.ring import (
    DATA,
    HEAD,
    IS_POSSIBLE,
    L_KNOWN_READ,
    L_READ,
    L_SENT,
    L_SLEEPS,
    L_TAKEN,
    L_WRITTEN,
    LINE,
    RECORD_PARTS,
    TAIL,
    InboundRing,
    OutboundRing,
)

SIZE = 4096

pytestmark = pytest.mark.skipif(not IS_POSSIBLE, reason="a host without rings")


class Pair:
    """Both ends of one ring, and the line of it that is lent."""

    def __init__(self) -> None:
        self.pipe = os.pipe()
        self.inbound = InboundRing(SIZE, "worker 7", self.pipe[1])
        self.outbound = OutboundRing(self.inbound.offer)
        self.lines = np.zeros((1, LINE), np.int64)
        self.records = np.zeros((1, SIZE // RECORD_PARTS // 8), np.int64)
        self.sent = self.taken = 0

    def lend(self) -> None:
        self.lines[0] = 7, *self.inbound.lent(), self.taken, *self.outbound.lent(), self.sent, 0

    def take_back(self) -> None:
        line = self.lines[0].tolist()
        self.inbound.take_back(line[L_READ])
        self.outbound.take_back(line[L_WRITTEN], line[L_KNOWN_READ], line[L_SLEEPS])
        self.sent, self.taken = line[L_SENT], line[L_TAKEN]

    def write(self, words: int) -> bool:
        """A kernel's record without frames' sizes: words behind its own three."""
        self.lend()
        length = 8 * (3 + words)
        start = start_of(self.lines, 0, length)
        if start >= 0:
            begin_record(self.lines, 0, start, length, 0)
            end_record(self.lines, 0, start + length)
        self.take_back()
        return start >= 0

    def read(self) -> int:
        """Bytes that a kernel reads."""
        self.lend()
        found = next_record(self.lines, 0, self.records)
        if found > 0:
            take_record(self.lines, 0, found)
        self.take_back()
        return found

    def close(self) -> None:
        for ring in (self.inbound, self.outbound):
            ring.close()
        for end in self.pipe:
            os.close(end)


_STEPS = st.lists(
    st.tuples(
        st.sampled_from(["kernel writes", "python writes", "kernel reads", "python reads"]),
        st.integers(0, 60),
    ),
    max_size=200,
)


@given(_STEPS)
def test_either_reads_what_either_has_written_in_order_as_long_as_there_is_room(
    steps: list[tuple[str, int]],
) -> None:
    pair = Pair()
    waiting: deque[tuple[int, int]] = deque()
    for what, words in steps:
        if what == "kernel writes":
            if pair.write(words):
                waiting.append((pair.sent - 1, 8 * (3 + words)))
            else:
                assert 8 * (3 + words) > SIZE // RECORD_PARTS or sum(n for _, n in waiting) > SIZE // 2
        elif what == "python writes":
            frame = bytes([pair.sent % 256]) * (8 * words)
            if pair.outbound.put(pair.sent, [frame]):
                waiting.append((pair.sent, 8 * (4 + words)))
                pair.sent += 1
        elif what == "kernel reads":
            found = pair.read()
            if waiting:
                number, length = waiting.popleft()
                assert found >= length and pair.records[0, :2].tolist() == [length, number]
            else:
                assert found == NOTHING
        else:
            frames = pair.inbound.take(pair.taken)
            assert (frames is not None) == bool(waiting)
            if frames is not None:
                waiting.popleft()
                pair.taken += 1
        assert pair.inbound.has_more() == bool(waiting)
    pair.close()


def test_a_record_that_is_not_the_next_one_is_anothers() -> None:
    pair = Pair()
    pair.outbound.put(3, [b"x"])
    assert pair.read() == ANOTHER and pair.taken == 0
    pair.taken = 3
    assert pair.read() > 0
    pair.close()


@pytest.mark.parametrize("at", [TAIL, DATA])
def test_lengths_that_no_worker_writes_are_left_to_who_says_so(at: int) -> None:
    for value in (-8, 7, 8, 1 << 40, -(1 << 40), SIZE + 8, -SIZE):
        pair = Pair()
        pair.outbound.put(0, [b"12345678"])
        pair.inbound._words[at] = value
        assert pair.read() == ANOTHER, value
        assert pair.inbound._words[HEAD] == 0
        pair.close()


def test_who_sleeps_is_told_and_woken_when_the_ring_is_taken_back() -> None:
    pair = Pair()
    pair.lend()
    assert not any_sleeps(pair.lines) and pair.lines[0, L_SLEEPS] == 0
    pair.inbound.set_asleep(True)
    assert any_sleeps(pair.lines) and pair.lines[0, L_SLEEPS] == 1
    pair.take_back()
    assert os.read(pair.pipe[0], 9) == b"!"
    pair.close()


def test_a_record_is_as_long_as_python_lets_one_be() -> None:
    pair = Pair()
    assert pair.write(SIZE // RECORD_PARTS // 8 - 3)
    assert not pair.write(SIZE // RECORD_PARTS // 8 - 2)
    assert pair.lines[0, L_WRITTEN] == SIZE // RECORD_PARTS
    assert pair.read() == SIZE // RECORD_PARTS == pair.lines[0, L_READ]
    pair.close()
