"""A beat on the wire, and words that count from elsewhere."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from differential.columns.worker_symbols import SYMBOLS
from differential.regions.beats import BeatBatch
from progress.errors import InternalError, PeerError
from timely.operators.region import Said
from timely.wire.batch import absorb, decode

NUMBER = st.integers(0, 1 << 62)
SAID = st.builds(
    Said, st.integers(0, 9), NUMBER, NUMBER, NUMBER, st.integers(-1, 99), NUMBER, st.booleans(),
    st.booleans(), st.binary(max_size=9),
)  # fmt: skip
WORD = st.integers(-(1 << 63), (1 << 63) - 1)


@st.composite
def _parts(draw: st.DrawFn) -> tuple[int, np.ndarray]:
    columns, rows = draw(st.integers(2, 5)), draw(st.integers(1, 6))
    words = draw(st.lists(WORD, min_size=columns * rows, max_size=columns * rows))
    return draw(st.integers(0, 99)), np.array(words, np.int64).reshape(columns, rows)


BEATS = st.builds(BeatBatch, SAID, st.lists(_parts(), max_size=3).map(tuple))


def _frames(beat: BeatBatch) -> list[memoryview]:
    return [memoryview(frame) for frame in beat.to_frames(1)]


def _shown(beat: BeatBatch) -> object:
    return beat.said, [(slot, words.tolist()) for slot, words in beat.parts]


@given(BEATS)
def test_what_is_sent_is_what_arrives(beat: BeatBatch) -> None:
    frames = _frames(beat)
    arrived = decode(BeatBatch.KIND, frames, 1)
    assert isinstance(arrived, BeatBatch)
    assert _shown(arrived) == _shown(beat)
    assert arrived.rows == sum(words.shape[1] for _, words in beat.parts)
    assert all(words.flags.writeable for _, words in arrived.parts)
    later = decode(BeatBatch.KIND, absorb(BeatBatch.KIND, frames, 1), 1)
    assert isinstance(later, BeatBatch) and _shown(later) == _shown(beat)


@given(BEATS, st.data())
def test_a_damaged_beat_is_refused_or_is_another_beat(beat: BeatBatch, data: st.DataObject) -> None:
    header, rows = (bytearray(frame) for frame in _frames(beat))
    cut = data.draw(st.integers(0, len(header) - 1))
    if data.draw(st.booleans()):
        del header[cut:]
    else:
        header[cut] ^= data.draw(st.integers(1, 255))
    try:
        arrived = decode(BeatBatch.KIND, [memoryview(header), memoryview(rows)], 1)
    except PeerError as error:
        assert "worker 1 sent a beat" in str(error)
    else:
        assert isinstance(arrived, BeatBatch)
        assert sum(words.nbytes for _, words in arrived.parts) == len(rows)


@pytest.mark.parametrize("frames", [[], [b""], [b"", b""], [b"", b"", b"", b""]])
def test_what_is_no_beat_is_refused(frames: list[bytes]) -> None:
    with pytest.raises(PeerError, match="worker 1 sent a beat"):
        decode(BeatBatch.KIND, [memoryview(frame) for frame in frames], 1)


@given(BEATS, st.integers(0, 1000))
def test_times_move_and_nothing_else_does(beat: BeatBatch, step: int) -> None:
    for _, words in beat.parts:
        words[-2] %= 1 << 40
    before = [(slot, words.copy()) for slot, words in beat.parts]
    moved = beat.rebased(step)
    assert moved.said == beat.said
    for (slot, now), (slot_before, then) in zip(moved.parts, before, strict=True):
        assert slot == slot_before
        then[-2] += step
        np.testing.assert_array_equal(now, then)
    assert moved.latest(0, (1 << 41) - 1) == max(
        (int(words[-2].max()) for _, words in moved.parts), default=0
    )


def test_symbols_travel_along_once() -> None:
    words = SYMBOLS.intern(["in a beat", "and another"])
    rows = np.array([words, [0, 0], [1, 1]], np.int64)
    beat = BeatBatch(Said(0, 0, 0, 0, -1, 0, False, True, b""), ((0, rows), (1, rows)), (words, words))
    peer = 77
    told = beat.to_frames(peer)
    assert len(told) == 3 and bytes(told[2]).count(b"in a beat") == 1
    beat.on_sent(peer)
    assert len(beat.to_frames(peer)) == 2


def test_no_connector_carries_a_beat() -> None:
    beat = BeatBatch(Said(0, 0, 0, 0, -1, 0, False, True, b""), ())
    with pytest.raises(InternalError):
        beat.shifted(-1, 1)
    with pytest.raises(InternalError):
        beat.until(0, 1, 0)
