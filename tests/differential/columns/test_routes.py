"""Which worker gets which rows: each once, all of a key together, as the routing of its time says."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from packed_batches import packed_and_plain
from reference.words import Row, as_words, rows_of
from strategies_words import CODES, rows

from differential.columns import routes, update_batch
from differential.columns.packed.block import Block
from differential.columns.routes import KeyRoute, UnitRoute
from differential.columns.update_batch import PackedBatch, UpdateBatch, words_of
from differential.kernels.rows.hashing import hash_of_key
from timely.errors import InternalError, PeerError
from timely.wire.batch import Records
from timely.wire.routing import BUCKETS, Routing


@given(rows(2), st.integers(1, 4), st.integers(0, 2))
def test_every_row_once_and_a_key_to_one_worker(some: list[Row], workers: int, kw: int) -> None:
    parts = KeyRoute(kw).split(UpdateBatch(as_words(some, 4)), 0, Routing.default(workers))
    assert len(parts) == workers
    found = [(worker, row) for worker, part in enumerate(parts) if part for row in rows_of(words_of(part))]
    assert sorted(row for _, row in found) == sorted(some)
    keys = {(worker, row[:kw]) for worker, row in found}
    assert len(keys) == len({key for _, key in keys})


def test_default_buckets_are_the_low_bits_of_the_hash_and_go_round_the_workers() -> None:
    some = [(key, 0, 0, 1) for key in range(3_000)]
    words = as_words(some, 4)
    for workers in (1, 2, 3):
        parts = KeyRoute(1).split(UpdateBatch(words), 0, Routing.default(workers))
        found = {row[0]: worker for worker, part in enumerate(parts) if part for row in rows_of(part.words)}
        assert found == {key: hash_of_key(words, key, 1) % 1_024 % workers for key in range(3_000)}


def test_the_time_of_a_row_decides_and_not_that_of_its_envelope() -> None:
    words = as_words([(7, 0, 5, 1), (7, 0, 9, 1), (7, 0, 10, 1)], 4)
    bucket = hash_of_key(words, 0, 1) % BUCKETS
    routing = Routing.default(3).changed(9, {bucket: 2}).changed(10, {bucket: 0})
    parts = KeyRoute(1).split(UpdateBatch(words), 5, routing)
    found = {row[2]: worker for worker, part in enumerate(parts) if part for row in rows_of(words_of(part))}
    assert found == {5: bucket % 3, 9: 2, 10: 0}


def test_by_units_takes_a_word_as_it_is() -> None:
    words = as_words([(unit, 7, 0, 1) for unit in (0, 1, 2, 3, 4, 1_025, -1)], 4)
    for workers in (1, 2, 3):
        parts = UnitRoute().split(UpdateBatch(words), 0, Routing.default(workers))
        found = {row[0]: worker for worker, part in enumerate(parts) if part for row in rows_of(part.words)}
        assert found == {unit: unit % 1_024 % workers for unit in (0, 1, 2, 3, 4, 1_025, -1)}
    behind = as_words([(7, unit, 0, 1) for unit in range(5)], 4)
    parts = UnitRoute((), 1).split(UpdateBatch(behind), 0, Routing.default(3))
    assert [len(rows_of(part.words)) if part else 0 for part in parts] == [2, 2, 1]
    assert UnitRoute((), 1).describe() != UnitRoute().describe()


def test_by_units_follows_a_routing_that_changes() -> None:
    routing = Routing.default(3).changed(9, {5: 0})
    words = as_words([(5, 0, 8, 1), (5, 0, 9, 1)], 4)
    parts = UnitRoute().split(UpdateBatch(words), 5, routing)
    found = {row[2]: worker for worker, part in enumerate(parts) if part for row in rows_of(words_of(part))}
    assert found == {8: 2, 9: 0}


@pytest.mark.parametrize("is_packed", [True, False], ids=["packed", "words"])
@given(rows(2).filter(len), st.sampled_from([1, None]), st.integers(2, 4))
def test_many_rows_of_one_time_are_divided_as_few_are(
    is_packed: bool, some: list[Row], diff: int | None, workers: int
) -> None:
    packed, plain = packed_and_plain(some, CODES[1].pack((2,)), diff)
    for route in (KeyRoute(1, (1,)), UnitRoute((0, 1))):
        wanted = route.split(plain, 0, Routing.default(workers))
        with pytest.MonkeyPatch.context() as monkeypatch:
            monkeypatch.setattr(routes, "SENT_PACKED_ROWS_MIN", 1)
            monkeypatch.setattr(update_batch, "BLOCK_ROWS", 3)
            found = route.split(packed if is_packed else plain, 0, Routing.default(workers))
        for one, other in zip(found, wanted, strict=True):
            assert (one is None) == (other is None)
            if one is not None and other is not None:
                assert isinstance(one, PackedBatch)
                assert rows_of(words_of(one)) == rows_of(words_of(other))
                assert one.symbol_words == route.symbol_words


@pytest.mark.parametrize("route", [KeyRoute(1), UnitRoute()])
def test_batches_of_other_kinds_are_refused(route: KeyRoute | UnitRoute) -> None:
    with pytest.raises(InternalError):
        route.split(Records([1]), 0, Routing.default(2))


@pytest.mark.parametrize("route", [KeyRoute(1, (), 2), UnitRoute((), 0, 2)])
def test_what_another_worker_sends_has_as_many_words_as_rows_have_here(route: KeyRoute | UnitRoute) -> None:
    words = as_words([(1, 2, 0, 1)], 4)
    route.check(UpdateBatch(words), 1)
    packed = PackedBatch((Block(np.array([[1], [2], [1]], np.int64)),), 2, 0, None)
    route.check(packed, 1)
    for wrong in (words[1:], np.repeat(words, 2, 0)):
        count = wrong.shape[0] - 2
        with pytest.raises(PeerError, match=f"worker 1 sent updates with rows of {count} words .* have 2"):
            route.check(UpdateBatch(np.ascontiguousarray(wrong)), 1)
        replace(route, width=None).check(UpdateBatch(np.ascontiguousarray(wrong)), 1)
    with pytest.raises(PeerError, match="worker 1 sent a Records where updates are exchanged"):
        route.check(Records([]), 1)
