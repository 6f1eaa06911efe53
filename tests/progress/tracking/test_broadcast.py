"""Broadcaster: what workers tell one another, and what they refuse to believe.

round_*     what is told arrives as it was told
refuses_*   every way in which a payload can be wrong, with who and what in the message
"""

from __future__ import annotations

import struct
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from progress.errors import MisuseError, PeerError
from progress.times.anchor import EPOCH_MAX, Anchor
from progress.tracking.broadcast import Broadcaster, changes_in
from progress.tracking.count_changes import Change

CHANGES = st.lists(
    st.tuples(
        st.integers(0, 9),
        st.integers(0, 2**63 - 1),
        st.integers(-(2**63), 2**63 - 1).filter(lambda d: d != 0),
    ),
    min_size=1,
    max_size=200,
)


def told(changes: list[Change] | None = None) -> bytes:
    """The first payload of worker 0 of 2."""
    payload = Broadcaster(0, 2).on_step_done(changes or [(3, 5, 1)])
    assert payload is not None
    return payload


@given(st.lists(CHANGES, max_size=4))
def test_round_trip_keeps_changes_and_their_order(steps: list[list[Change]]) -> None:
    speaker, listener = Broadcaster(0, 2, 10), Broadcaster(1, 2, 10)
    for changes in steps:
        payload = speaker.on_step_done(changes)
        assert payload is not None
        assert listener.on_message(payload) == changes
    speaker.check_invariants()
    listener.check_invariants()


@given(
    CHANGES, st.integers(0, EPOCH_MAX), st.integers(0, 20), st.lists(st.integers(8, EPOCH_MAX), max_size=3)
)
def test_round_words_of_another_anchor_count_from_the_own_one(
    changes: list[Change], anchor: int, behind: int, far: list[int]
) -> None:
    shift = 4
    speaker = Broadcaster(0, 2, 10, Anchor(anchor + behind), shift)
    told_changes = [(at, word & 127, delta) for at, word, delta in changes]
    told_changes += [(1, (epoch << shift) + 3, 5) for epoch in far if anchor + epoch <= EPOCH_MAX]
    payload = speaker.on_step_done(told_changes)
    assert payload is not None
    for receiver in (anchor, anchor + behind):
        listener = Broadcaster(1, 2, 10, Anchor(receiver), shift)
        ahead = (anchor + behind - receiver) << shift
        expected = [(at, word + ahead, delta) for at, word, delta in told_changes]
        assert sorted(listener.on_message(payload)) == sorted(expected)
    base = (anchor + behind) << shift
    assert sorted(changes_in(payload)) == sorted((at, word + base, delta) for at, word, delta in told_changes)
    if behind and any(word < 16 for _, word, _ in told_changes):
        ahead_of_all = Broadcaster(1, 2, 10, Anchor(anchor + behind + 1), shift)
        with pytest.raises(PeerError, match="words ≥ 0"):
            ahead_of_all.on_message(payload)


def test_round_payloads_may_come_as_views_of_a_frame() -> None:
    assert Broadcaster(1, 2).on_message(memoryview(bytearray(told()))) == [(3, 5, 1)]


def test_round_a_step_without_changes_says_nothing() -> None:
    assert Broadcaster(0, 2).on_step_done([]) is None


def test_round_a_worker_alone_has_nobody_to_tell() -> None:
    assert Broadcaster(0, 1).on_step_done([(0, 0, 1)]) is None


def test_round_each_peer_counts_for_itself() -> None:
    listener = Broadcaster(2, 3)
    for speaker in (Broadcaster(0, 3), Broadcaster(1, 3)):
        payload = speaker.on_step_done([(1, 1, 1)])
        assert payload is not None and listener.on_message(payload) == [(1, 1, 1)]


def _broken(payload: bytes, offset: int, value: bytes) -> bytes:
    return payload[:offset] + value + payload[offset + len(value) :]


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda p: p[:10], "10 bytes"),
        (lambda p: _broken(p, 0, b"XXXX"), "magic b'XXXX'"),
        (lambda p: _broken(p, 4, struct.pack("<H", 9)), "version 9"),
        (lambda p: _broken(p, 6, struct.pack("<H", 1)), "with the sender 1"),
        (lambda p: _broken(p, 6, struct.pack("<H", 7)), "with the sender 7"),
        (lambda p: _broken(p, 8, struct.pack("<Q", 1)), "progress 1 of worker 0, where 0 was next"),
        (lambda p: p[:32], "0 bytes of changes"),
        (lambda p: p + b"\0" * 8, "32 bytes of changes"),
        (lambda p: _broken(p, 32, struct.pack("<q", 10)), r"worker 0 has \(10, 5, 1\)"),
        (lambda p: _broken(p, 32, struct.pack("<q", -1)), r"worker 0 has \(-1, 5, 1\)"),
        (lambda p: _broken(p, 40, struct.pack("<q", -5)), r"worker 0 has \(3, -5, 1\)"),
        (lambda p: _broken(p, 48, struct.pack("<q", 0)), r"worker 0 has \(3, 5, 0\)"),
        (lambda p: _broken(p, 16, struct.pack("<Q", 1 << 63)), "count from epoch -9223372036854775808"),
        (lambda p: _broken(p, 24, struct.pack("<I", 9)), "the epoch at bit 9"),
        (lambda p: _broken(p, 28, struct.pack("<I", 9)), "not 9 × 24"),
    ],
)
def test_refuses_what_a_peer_may_not_say(damage: Callable[[bytes], bytes], message: str) -> None:
    listener = Broadcaster(1, 2, 10)
    with pytest.raises(PeerError, match=message):
        listener.on_message(damage(told()))
    assert listener.on_message(told()) == [(3, 5, 1)], "a refused payload does not count as received"


def test_refuses_a_payload_that_comes_twice_or_is_overtaken() -> None:
    speaker, listener = Broadcaster(0, 2), Broadcaster(1, 2)
    first, second = speaker.on_step_done([(1, 1, 1)]), speaker.on_step_done([(1, 1, -1)])
    assert first is not None and second is not None
    with pytest.raises(PeerError, match="overtaken"):
        listener.on_message(second)
    listener.on_message(first)
    with pytest.raises(PeerError, match="doubled"):
        listener.on_message(first)


def test_refuses_a_worker_that_cannot_be() -> None:
    for worker, workers in ((2, 2), (-1, 2), (0, 0), (0, 70_000)):
        with pytest.raises(MisuseError):
            Broadcaster(worker, workers)
