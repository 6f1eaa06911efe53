"""Updates in flight: over a wire and back unchanged, shifted along connectors.

wire_*    frames, also malformed ones
packed_*  what an update batch is in fewer bytes
"""

from __future__ import annotations

import msgpack
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from packed_batches import packed_and_plain
from reference.words import Row, as_words, consolidated, rows_of
from strategies_words import CODES, rows
from words_seen import Seen

from differential.columns import update_batch
from differential.columns.packed.block import Block
from differential.columns.symbols.entries import SymbolEntries
from differential.columns.symbols.table import SymbolTable
from differential.columns.update_batch import (
    PackedBatch,
    UpdateBatch,
    as_batch,
    parts_of,
    words_of,
)
from differential.columns.worker_symbols import SYMBOLS
from differential.expressions.projection import Projection
from differential.kernels.rows import sort
from differential.kernels.rows.sort import sort_still_packed
from timely.dictionaries import Mark
from timely.errors import InternalError, PeerError
from timely.wire.batch import Records, decode


def _frames(batch: UpdateBatch | PackedBatch) -> list[memoryview]:
    return [memoryview(bytes(frame)) for frame in batch.to_frames(1)]


@given(rows(2, wide=True).filter(len))
def test_wire_rows_arrive_as_they_were_and_can_be_written(some: list[Row]) -> None:
    arrived = decode(UpdateBatch.KIND, _frames(UpdateBatch(as_words(some, 4))), 0)
    assert rows_of(words_of(arrived)) == some
    assert arrived.rows == len(some)
    assert words_of(arrived).flags.writeable, "kernels are compiled for arrays that may be written"


@pytest.mark.parametrize(
    "header",
    [
        b"\xc1",
        msgpack.packb([4, 1]),
        *(msgpack.packb({"words": w, "rows": r}) for w, r in [(4, 2), (1, 4), (True, 4)]),
    ],
)
def test_wire_a_header_that_does_not_fit_the_rows_is_refused(header: bytes) -> None:
    frames = [memoryview(header), memoryview(bytes(32))]
    with pytest.raises(PeerError):
        UpdateBatch.from_frames(frames, 0)


def test_wire_a_missing_frame_is_refused() -> None:
    for read in (UpdateBatch.from_frames, UpdateBatch.absorb):
        with pytest.raises(PeerError, match="worker 5 sent updates in frames: 1, not two"):
            read([memoryview(msgpack.packb({"words": 4, "rows": 1}))], 5)


@given(rows(1))
def test_shifting_moves_times_and_nothing_else(some: list[Row]) -> None:
    code, batch = CODES[2], UpdateBatch(as_words(some, 3))
    assert batch.shifted((1 << 63) - 1, 0) is batch
    moved = rows_of(batch.shifted(code.valid, code.unit).words)
    assert moved == [(row[0], row[1] + code.unit, row[2]) for row in some]


def test_other_batches_and_other_arrays_are_refused() -> None:
    with pytest.raises(InternalError):
        words_of(Records([1]))
    with pytest.raises(InternalError):
        UpdateBatch(np.zeros((3, 4), np.int64)[:, ::2])


def test_wire_symbols_are_those_that_rows_can_hold_and_go_along_after_a_shift() -> None:
    words = SYMBOLS.intern(["shifted"])
    batch = UpdateBatch(np.array([words, [0], [1]], dtype=np.int64), (0,))
    code = CODES[1]
    moved = batch.shifted(code.valid, code.unit)
    assert moved is not batch and moved.symbol_words == (0,)
    header, rows_sent = _frames(UpdateBatch(moved.words))
    two = SymbolEntries((1, 2), (b"a", b"b")).to_bytes()
    with pytest.raises(PeerError, match="sent 2 symbols with 2 values, for rows that hold 1 at most"):
        UpdateBatch.absorb([header, rows_sent, memoryview(two)], 3)


@pytest.mark.parametrize("diff", [1, None])
@pytest.mark.parametrize("is_early", [False, True])
def test_wire_symbols_of_packed_rows_are_told_once_and_learned_whatever_becomes_of_the_rows(
    is_early: bool, diff: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    sender, receiver = SymbolTable(), SymbolTable()
    values = ["one", "two", "one", "three"]
    words = np.stack([np.arange(4), sender.intern(values), np.full(4, 5)])[: 2 if diff else 3]
    batch = PackedBatch((Block(np.ascontiguousarray(words)),), 2, 8, diff, (1,))
    monkeypatch.setattr(update_batch, "SYMBOLS", sender)
    frames = _frames(batch)
    assert len(_frames(batch)) == len(frames) == 3, "not told before it is sent"
    batch.on_sent(1)
    assert len(_frames(batch)) == 2
    monkeypatch.setattr(update_batch, "SYMBOLS", receiver)
    if is_early:
        left = PackedBatch.absorb(frames, 0)
        assert left == frames[:2]
    arrived = PackedBatch.from_frames(frames[:2] if is_early else frames, 0)
    assert np.array_equal(arrived.words, batch.words)
    assert receiver.lookup(words[1]) == values
    few = PackedBatch((Block(np.ascontiguousarray(words[:, :1])),), 2, 8, diff)
    with pytest.raises(PeerError, match="sent 3 symbols with 3 values, for rows that hold 2 at most"):
        PackedBatch.absorb([*_frames(few), frames[2]], 3)


def test_wire_a_packed_batch_is_sent_a_block_at_a_time() -> None:
    packed, _ = packed_and_plain([(1, 2, 3, 4)] * 3, 8, 1)
    with pytest.raises(InternalError, match="a packed batch of 2 blocks was to be sent as one message"):
        packed.to_frames(1)


@given(rows(2, wide=True).filter(len), st.sampled_from([1, -1, None]), st.integers(0, 3))
def test_packed_rows_are_those_of_the_update_batch(some: list[Row], diff: int | None, epoch: int) -> None:
    code = CODES[2]
    packed, plain = packed_and_plain(some, code.pack((epoch, 1)), diff)
    step = code.pack((1, 0))
    for one, other in (
        (packed, plain),
        (packed.rebased(step), plain.rebased(step)),
        (packed.shifted(code.keep_mask(1), 5), plain.shifted(code.keep_mask(1), 5)),
    ):
        assert np.array_equal(words_of(one), words_of(other))
        assert (one.rows, one.moved, one.symbol_words) == (other.rows, other.moved, other.symbol_words)
        assert np.array_equal(np.concatenate(list(parts_of(one)), axis=1), words_of(other))
        sent = list(one.messages())
        assert np.array_equal(np.concatenate([message.words for message in sent], axis=1), words_of(other))
        assert {message.symbol_words for message in sent} == {other.symbol_words}, "they must travel along"
        shown, wanted_words = Seen(), Seen()
        one.symbols(Mark([shown]))
        other.symbols(Mark([wanted_words]))
        assert shown.words == wanted_words.words
    shift, bits = code.fields[1]
    mask = (1 << bits) - 1
    assert packed.latest(shift, mask) == plain.latest(shift, mask) == 1
    for last in (0, 1):
        left, wanted = packed.until(shift, mask, last), plain.until(shift, mask, last)
        assert (left is None) == (wanted is None)
    same = packed.projected([0, 1], [0, 0], 1, ())
    assert same is not None
    arrived = [decode(PackedBatch.KIND, _frames(message), 0) for message in same.messages()]
    assert np.array_equal(np.concatenate([words_of(one) for one in arrived], axis=1), plain.words)
    moved = packed.projected([1], [0], 1, ())
    assert moved is not None
    arrived = [decode(PackedBatch.KIND, _frames(message), 0) for message in moved.messages()]
    assert np.array_equal(np.concatenate([words_of(one) for one in arrived], axis=1), plain.words[[1, 2, 3]])


@given(rows(2, wide=True).filter(len), st.sampled_from([1, None]), st.integers(1, 4))
def test_packed_rows_pass_some_at_a_time_where_the_ones_before_lay(
    some: list[Row], diff: int | None, many: int
) -> None:
    packed, plain = packed_and_plain(some, 5, diff)
    found: list[Row] = []
    with pytest.MonkeyPatch.context() as limits:
        limits.setattr(update_batch, "_PASSING_ROWS", many)
        for words, start, stop in packed.passing():
            assert start == 0 and 1 <= stop == words.shape[1] <= many and words.flags.c_contiguous
            found += rows_of(words)
    assert found == rows_of(plain.words)


@given(
    rows(2, wide=True).filter(len),
    st.sampled_from([1, -1, None, -(2**63)]),
    st.lists(st.sampled_from([-1, 0, 1]), max_size=3),
    st.sampled_from([1, -1]),
)
def test_packed_rows_are_moved_as_words_are(
    some: list[Row], diff: int | None, sources: list[int], sign: int
) -> None:
    word = CODES[2].pack((2, 1))
    packed, plain = packed_and_plain(some, word, diff)
    every = np.concatenate([block.words() for block in packed.packed()], axis=1)
    assert np.array_equal(every, plain.words)
    same = [7 if source < 0 else 0 for source in sources]
    moved = packed.projected(sources, same, sign, (1,))
    if sign == -1 and diff in (None, -(2**63)):
        assert moved is None
        return
    assert moved is not None and (moved.symbol_words, moved.rows) == ((1,), packed.rows)
    projection = Projection(tuple(sources), tuple(same), sign)
    assert np.array_equal(moved.words, projection.apply(plain.words))


def test_packed_rows_that_cannot_be_taken_back_are_left_to_who_says_so() -> None:
    packed, _ = packed_and_plain([(1, 2, 3, 4)], CODES[2].pack((2, 1)), -(2**63))
    assert packed.projected([0], [0], -1, ()) is None
    assert packed.projected([0], [0], 1, ()) is not None


def test_packed_rows_that_are_moved_know_by_how_much_their_times_were() -> None:
    """Times among the words of a row are the receiver's to move."""
    packed, _ = packed_and_plain([(1, 2, 3, 4)], CODES[2].pack((2, 1)), 1)
    moved = packed.rebased(8).projected([0], [0], 1, ())
    assert moved is not None and moved.moved == 8


@pytest.mark.parametrize("many", [1, 1 << 20])
@given(rows(2, rows_max=40))
def test_rows_in_order_are_sent_as_they_are(many: int, some: list[Row]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sort, "MANY_ROWS", many)
        patch.setattr(update_batch, "SENT_PACKED_ROWS_MIN", many)
        batch = as_batch(sort_still_packed([as_words(some, 4)]) if some else as_words(some, 4))
    wanted = consolidated(some)
    assert rows_of(batch.words) == wanted
    if wanted:
        assert batch.least_time() == min(row[2] for row in wanted)
