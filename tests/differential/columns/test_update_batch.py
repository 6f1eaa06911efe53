"""Updates in flight: over a wire and back unchanged, shifted along connectors, routed by key.

wire_*    frames, also malformed ones
route_*   which worker gets which rows
packed_*  what an update batch is in fewer bytes
"""

from __future__ import annotations

import msgpack
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference.words import Row, as_words, consolidated, rows_of
from strategies_words import CODES, rows
from words_seen import Seen

from differential.columns import update_batch
from differential.columns.packed.block import Block
from differential.columns.symbols.entries import SymbolEntries
from differential.columns.update_batch import (
    KeyRoute,
    PackedBatch,
    UnitRoute,
    UpdateBatch,
    as_batch,
    parts_of,
    words_of,
)
from differential.columns.worker_symbols import SYMBOLS
from differential.expressions.projection import Projection
from differential.kernels.rows import sort
from differential.kernels.rows.hashing import hash_of_key
from differential.kernels.rows.sort import sort_still_packed
from timely.dictionaries import Mark
from timely.errors import InternalError, PeerError
from timely.wire.batch import Records, decode
from timely.wire.routing import BUCKETS, Routing


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


@given(rows(2), st.integers(1, 4), st.integers(0, 2))
def test_route_every_row_once_and_a_key_to_one_worker(some: list[Row], workers: int, kw: int) -> None:
    parts = KeyRoute(kw).split(UpdateBatch(as_words(some, 4)), 0, Routing.default(workers))
    assert len(parts) == workers
    found = [(worker, row) for worker, part in enumerate(parts) if part for row in rows_of(words_of(part))]
    assert sorted(row for _, row in found) == sorted(some)
    keys = {(worker, row[:kw]) for worker, row in found}
    assert len(keys) == len({key for _, key in keys})


def test_route_default_buckets_are_the_low_bits_of_the_hash_and_go_round_the_workers() -> None:
    some = [(key, 0, 0, 1) for key in range(3_000)]
    words = as_words(some, 4)
    for workers in (1, 2, 3):
        parts = KeyRoute(1).split(UpdateBatch(words), 0, Routing.default(workers))
        found = {row[0]: worker for worker, part in enumerate(parts) if part for row in rows_of(part.words)}
        assert found == {key: hash_of_key(words, key, 1) % 1_024 % workers for key in range(3_000)}


def test_route_the_time_of_a_row_decides_and_not_that_of_its_envelope() -> None:
    words = as_words([(7, 0, 5, 1), (7, 0, 9, 1), (7, 0, 10, 1)], 4)
    bucket = hash_of_key(words, 0, 1) % BUCKETS
    routing = Routing.default(3).changed(9, {bucket: 2}).changed(10, {bucket: 0})
    parts = KeyRoute(1).split(UpdateBatch(words), 5, routing)
    found = {row[2]: worker for worker, part in enumerate(parts) if part for row in rows_of(words_of(part))}
    assert found == {5: bucket % 3, 9: 2, 10: 0}


def test_route_by_units_takes_a_word_as_it_is() -> None:
    words = as_words([(unit, 7, 0, 1) for unit in (0, 1, 2, 3, 4, 1_025, -1)], 4)
    for workers in (1, 2, 3):
        parts = UnitRoute().split(UpdateBatch(words), 0, Routing.default(workers))
        found = {row[0]: worker for worker, part in enumerate(parts) if part for row in rows_of(part.words)}
        assert found == {unit: unit % 1_024 % workers for unit in (0, 1, 2, 3, 4, 1_025, -1)}
    behind = as_words([(7, unit, 0, 1) for unit in range(5)], 4)
    parts = UnitRoute((), 1).split(UpdateBatch(behind), 0, Routing.default(3))
    assert [len(rows_of(part.words)) if part else 0 for part in parts] == [2, 2, 1]
    assert UnitRoute((), 1).describe() != UnitRoute().describe()


def test_route_by_units_follows_a_routing_that_changes() -> None:
    routing = Routing.default(3).changed(9, {5: 0})
    words = as_words([(5, 0, 8, 1), (5, 0, 9, 1)], 4)
    parts = UnitRoute().split(UpdateBatch(words), 5, routing)
    found = {row[2]: worker for worker, part in enumerate(parts) if part for row in rows_of(words_of(part))}
    assert found == {8: 2, 9: 0}


def test_other_batches_and_other_arrays_are_refused() -> None:
    with pytest.raises(InternalError):
        words_of(Records([1]))
    with pytest.raises(InternalError):
        KeyRoute(1).split(Records([1]), 0, Routing.default(2))
    with pytest.raises(InternalError):
        UnitRoute().split(Records([1]), 0, Routing.default(2))
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


def _packed(some: list[Row], word: int, diff: int | None) -> tuple[PackedBatch, UpdateBatch]:
    """The same rows of two words, at one time, packed in blocks of three, and as words."""
    words = as_words([(*row[:2], word, row[-1] if diff is None else diff) for row in some], 4)
    kept = words[[0, 1, 3] if diff is None else [0, 1]]
    blocks = [Block(np.ascontiguousarray(kept[:, at : at + 3])) for at in range(0, len(some), 3)]
    return PackedBatch(tuple(blocks), 2, word, diff, (0,)), UpdateBatch(words, (0,))


@given(rows(2, wide=True).filter(len), st.sampled_from([1, -1, None]), st.integers(0, 3))
def test_packed_rows_are_those_of_the_update_batch(some: list[Row], diff: int | None, epoch: int) -> None:
    code = CODES[2]
    packed, plain = _packed(some, code.pack((epoch, 1)), diff)
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


@pytest.mark.parametrize("is_packed", [True, False], ids=["packed", "words"])
@given(rows(2).filter(len), st.sampled_from([1, None]), st.integers(2, 4))
def test_route_many_rows_of_one_time_are_divided_as_few_are(
    is_packed: bool, some: list[Row], diff: int | None, workers: int
) -> None:
    packed, plain = _packed(some, CODES[1].pack((2,)), diff)
    for route in (KeyRoute(1, (1,)), UnitRoute((0, 1))):
        wanted = route.split(plain, 0, Routing.default(workers))
        with pytest.MonkeyPatch.context() as monkeypatch:
            monkeypatch.setattr(update_batch, "_PACKED_ROWS_MIN", 1)
            monkeypatch.setattr(update_batch, "BLOCK_ROWS", 3)
            found = route.split(packed if is_packed else plain, 0, Routing.default(workers))
        for one, other in zip(found, wanted, strict=True):
            assert (one is None) == (other is None)
            if one is not None and other is not None:
                assert isinstance(one, PackedBatch)
                assert rows_of(words_of(one)) == rows_of(words_of(other))
                assert one.symbol_words == route.symbol_words


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
    packed, plain = _packed(some, word, diff)
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
    packed, _ = _packed([(1, 2, 3, 4)], CODES[2].pack((2, 1)), -(2**63))
    assert packed.projected([0], [0], -1, ()) is None
    assert packed.projected([0], [0], 1, ()) is not None


def test_packed_rows_that_are_moved_know_by_how_much_their_times_were() -> None:
    """Times among the words of a row are the receiver's to move."""
    packed, _ = _packed([(1, 2, 3, 4)], CODES[2].pack((2, 1)), 1)
    moved = packed.rebased(8).projected([0], [0], 1, ())
    assert moved is not None and moved.moved == 8


@pytest.mark.parametrize("many", [1, 1 << 20])
@given(rows(2, rows_max=40))
def test_rows_in_order_are_sent_as_they_are(many: int, some: list[Row]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sort, "MANY_ROWS", many)
        patch.setattr(update_batch, "_PACKED_ROWS_MIN", many)
        batch = as_batch(sort_still_packed([as_words(some, 4)]) if some else as_words(some, 4))
    wanted = consolidated(some)
    assert rows_of(batch.words) == wanted
    if wanted:
        assert batch.least_time() == min(row[2] for row in wanted)
