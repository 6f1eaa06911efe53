"""A round message on the wire, and words that count from elsewhere."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from words_seen import Seen

from differential.columns.packed.block import BLOCK_ROWS, Block
from differential.columns.packed.parts import Part
from differential.columns.worker_symbols import SYMBOLS
from differential.compiled_loops.round_messages import RoundMessage
from progress.errors import InternalError, PeerError
from timely.dictionaries import Mark
from timely.operators.compiled_loop import Vote
from timely.wire.batch import absorb, decode

NUMBER = st.integers(0, 1 << 62)
SAID = st.builds(
    Vote, st.integers(0, 9), NUMBER, NUMBER, NUMBER, st.integers(-1, 99), NUMBER, st.booleans(),
    st.booleans(), st.binary(max_size=9),
)  # fmt: skip
WORD = st.integers(-(1 << 63), (1 << 63) - 1)


@st.composite
def _parts(draw: st.DrawFn) -> tuple[int, Part]:
    columns, rows = draw(st.integers(2, 5)), draw(st.integers(1, 6))
    word = draw(st.sampled_from([WORD, st.integers(0, 300), st.just(7)]))
    found = draw(st.lists(word, min_size=columns * rows, max_size=columns * rows))
    words = np.array(found, np.int64).reshape(columns, rows)
    return draw(st.integers(0, 99)), Block(words) if draw(st.booleans()) else words


BEATS = st.builds(RoundMessage, SAID, st.lists(_parts(), max_size=3).map(tuple))


def _frames(beat: RoundMessage) -> list[memoryview]:
    return [memoryview(frame) for frame in beat.to_frames(1)]


def _words(part: Part) -> np.ndarray:
    return part.words() if isinstance(part, Block) else part


def _shown(beat: RoundMessage) -> object:
    parts = [(slot, isinstance(part, Block), _words(part).tolist()) for slot, part in beat.parts]
    return beat.vote, parts


@given(BEATS)
def test_what_is_sent_is_what_arrives(beat: RoundMessage) -> None:
    frames = _frames(beat)
    arrived = decode(RoundMessage.KIND, frames, 1)
    assert isinstance(arrived, RoundMessage)
    assert _shown(arrived) == _shown(beat)
    assert arrived.rows == sum(_words(part).shape[1] for _, part in beat.parts)
    assert all(isinstance(part, Block) or part.flags.writeable for _, part in arrived.parts)
    later = decode(RoundMessage.KIND, absorb(RoundMessage.KIND, frames, 1), 1)
    assert isinstance(later, RoundMessage) and _shown(later) == _shown(beat)


@given(BEATS, st.data())
def test_a_damaged_message_is_refused_or_is_another_message(beat: RoundMessage, data: st.DataObject) -> None:
    header, rows = (bytearray(frame) for frame in _frames(beat))
    cut = data.draw(st.integers(0, len(header) - 1))
    if data.draw(st.booleans()):
        del header[cut:]
    else:
        header[cut] ^= data.draw(st.integers(1, 255))
    try:
        arrived = decode(RoundMessage.KIND, [memoryview(header), memoryview(rows)], 1)
    except PeerError as error:
        assert "worker 1 sent a round message" in str(error)
    else:
        assert isinstance(arrived, RoundMessage)
        again = RoundMessage(arrived.vote, arrived.parts)  # whatever it is now, all of it can be read
        assert _shown(again) == _shown(arrived)


def _beat_of(part: Part) -> tuple[bytes, bytearray]:
    header, rows = RoundMessage(Vote(0, 0, 0, 0, -1, 0, False, True, b""), ((3, part),)).to_frames(1)
    return bytes(header), bytearray(rows)


_PACKED = np.array([[1, 300, 5], [7, 7, 7], [0, 1, 70_000]], np.int64)
"""Columns of two bytes, of none and of three."""


@given(st.data())
def test_damaged_bytes_of_packed_rows_are_refused_or_are_other_rows(data: st.DataObject) -> None:
    """Whatever is said of them, nothing outside of what came is read."""
    header, rows = _beat_of(Block(_PACKED))
    at = data.draw(st.integers(0, len(rows) - 1))
    if data.draw(st.booleans()):
        del rows[at:]
    else:
        at -= at % 8
        rows[at : at + 8] = data.draw(WORD).to_bytes(8, "little", signed=True)
    try:
        arrived = decode(RoundMessage.KIND, [memoryview(header), memoryview(rows)], 1)
    except PeerError as error:
        assert "worker 1 sent a round message whose header does not say what is in it" in str(error)
    else:
        assert isinstance(arrived, RoundMessage)
        ((slot, block),) = arrived.parts
        assert slot == 3 and isinstance(block, Block) and block.words().shape == _PACKED.shape


@pytest.mark.parametrize(
    ("word", "value"),
    [
        (0, 0), (0, -8), (0, 1 << 62), (0, 15),  # bytes in all; there are 74
        (1, -1), (1, 1 << 40), (2, 5), (2, -1),  # where the first column lies, and how wide it is
        (7, 65), (8, 8),  # the third, which ends with the last byte but the one to spare
    ],
)  # fmt: skip
def test_packed_rows_of_which_anything_would_lie_elsewhere_are_refused(word: int, value: int) -> None:
    header, rows = _beat_of(Block(_PACKED))
    fine = decode(RoundMessage.KIND, [memoryview(header), memoryview(bytes(rows))], 1)
    assert isinstance(fine, RoundMessage)
    rows[8 * word : 8 * word + 8] = value.to_bytes(8, "little", signed=True)
    with pytest.raises(
        PeerError, match="worker 1 sent a round message whose header does not say what is in it"
    ):
        decode(RoundMessage.KIND, [memoryview(header), memoryview(rows)], 1)


@pytest.mark.parametrize(
    ("columns", "rows"), [(-1, 3), (0, 3), (-3, 0), (-3, BLOCK_ROWS + 1), (-4, 3), (-3, 4)]
)
def test_packed_rows_of_another_shape_are_refused(columns: int, rows: int) -> None:
    header, packed = _beat_of(Block(_PACKED))
    assert header[-16:] == struct.pack("<2q", -3, 3)
    header = header[:-16] + struct.pack("<2q", columns, rows)
    with pytest.raises(
        PeerError, match="worker 1 sent a round message whose header does not say what is in it"
    ):
        decode(RoundMessage.KIND, [memoryview(header), memoryview(packed)], 1)


@pytest.mark.parametrize("frames", [[], [b""], [b"", b""], [b"", b"", b"", b""]])
def test_what_is_no_round_message_is_refused(frames: list[bytes]) -> None:
    with pytest.raises(PeerError, match="worker 1 sent a round message"):
        decode(RoundMessage.KIND, [memoryview(frame) for frame in frames], 1)


@given(BEATS, st.integers(0, 1000))
def test_times_move_and_nothing_else_does(beat: RoundMessage, step: int) -> None:
    parts: list[tuple[int, Part]] = []
    for slot, part in beat.parts:
        words = _words(part).copy()
        words[-2] %= 1 << 40
        parts.append((slot, Block(words) if isinstance(part, Block) else words))
    before = RoundMessage(beat.vote, tuple(parts))
    moved = before.rebased(step)
    assert moved.vote == beat.vote
    for (slot, now), (slot_before, then) in zip(moved.parts, before.parts, strict=True):
        assert slot == slot_before and isinstance(now, Block) == isinstance(then, Block)
        later = _words(then).copy()
        later[-2] += step
        np.testing.assert_array_equal(_words(now), later)
    assert moved.latest(0, (1 << 41) - 1) == max(
        (int(_words(part)[-2].max()) for _, part in moved.parts), default=0
    )


@pytest.mark.parametrize("is_packed", [False, True])
def test_all_words_of_the_rows_are_shown_as_symbols_but_time_and_difference(is_packed: bool) -> None:
    seen = Seen()
    words = np.array([[11, 12], [13, 13], [5, 6], [1, 2]], np.int64)
    beat = RoundMessage(
        Vote(0, 0, 0, 0, -1, 0, False, True, b""), ((0, Block(words) if is_packed else words),)
    )
    beat.symbols(Mark([seen]))
    assert seen.words == {11, 12, 13}


def test_symbols_travel_along_once() -> None:
    words = SYMBOLS.intern(["in a beat", "and another"])
    rows = np.array([words, [0, 0], [1, 1]], np.int64)
    beat = RoundMessage(Vote(0, 0, 0, 0, -1, 0, False, True, b""), ((0, rows), (1, rows)), (words, words))
    peer = 77
    told = beat.to_frames(peer)
    assert len(told) == 3 and bytes(told[2]).count(b"in a beat") == 1
    beat.on_sent(peer)
    assert len(beat.to_frames(peer)) == 2


def test_no_connector_carries_a_round_message() -> None:
    beat = RoundMessage(Vote(0, 0, 0, 0, -1, 0, False, True, b""), ())
    with pytest.raises(InternalError):
        beat.shifted(-1, 1)
    with pytest.raises(InternalError):
        beat.until(0, 1, 0)
