"""transform.py: a chain of linear operators as what a connector runs."""

from __future__ import annotations

import numpy as np
import pytest

from differential import col
from differential.columns.packed.block import Block
from differential.columns.update_batch import PackedBatch, UpdateBatch
from differential.columns.worker_symbols import SYMBOLS
from differential.kernels.sums.components import ROWS as ROWS_OF
from differential.kernels.sums.components import WHOLE
from differential.linear.chain import LinearChain
from differential.linear.transform import LinearTransform
from differential.thresholds import MANY_ROWS
from progress.errors import InternalError
from timely.wire.batch import Records

CHAIN = LinearChain.over("k: int, v: int")
ROWS = UpdateBatch(np.array([[1, 2, 3], [10, 20, 30], [0, 0, 5], [1, -1, 2]], dtype=np.int64))


def test_a_chain_that_changes_nothing_is_no_transform() -> None:
    assert LinearTransform.of(CHAIN) is None
    assert LinearTransform.of(CHAIN.negate().negate()) is None
    assert LinearTransform.of(CHAIN.select({"a": col.k, "b": col.v})) is None


def test_it_does_to_batches_what_the_chain_does_to_words() -> None:
    chain = CHAIN.filter(col.k > 1).select({"v": col.v + 1, "k": col.k}).negate()
    transform = LinearTransform.of(chain)
    assert transform is not None
    result = transform(ROWS)
    expected = chain.compile(SYMBOLS)(ROWS.words)
    assert isinstance(result, UpdateBatch) and expected is not None
    assert result.words.tolist() == expected.tolist() == [[21, 31], [2, 3], [0, 5], [1, -2]]
    assert ROWS.words[1].tolist() == [10, 20, 30]


def test_no_row_left_is_no_batch() -> None:
    transform = LinearTransform.of(CHAIN.filter(col.k > 99))
    assert transform is not None and transform(ROWS) is None


def test_it_says_where_words_come_from_if_they_only_move() -> None:
    moving = LinearTransform.of(CHAIN.select({"v": col.v}))
    computing = LinearTransform.of(CHAIN.select({"v": col.v + 1}))
    assert moving is not None and moving.projection is not None
    assert computing is not None and computing.projection is None


def test_a_batch_of_another_kind_is_our_mistake() -> None:
    transform = LinearTransform.of(CHAIN.negate())
    assert transform is not None
    with pytest.raises(InternalError, match="Records"):
        transform(Records([1]))


def test_it_says_which_of_the_words_that_it_makes_are_symbols() -> None:
    chain = LinearChain.over("k: int, name: string").select({"name": col.name, "k": col.k})
    transform = LinearTransform.of(chain)
    assert transform is not None
    words = np.array([[7], SYMBOLS.intern(["ada"]), [0], [1]], dtype=np.int64)
    result = transform(UpdateBatch(words, (1,)))
    assert isinstance(result, UpdateBatch) and result.symbol_words == (0,)


@pytest.mark.parametrize("same_diff", [None, 2])
@pytest.mark.parametrize("keys", [1, 5_000])
def test_very_many_packed_rows_are_accumulated_as_their_words_are(keys: int, same_diff: int | None) -> None:
    chain = CHAIN.select({"v": col.v, "k": col.k})
    if same_diff is not None:
        chain = chain.negate()
    transform = LinearTransform.of(chain.accumulate(["k"], [(ROWS_OF, 0, -1, 0), (WHOLE, 1, -1, 1)]))
    assert transform is not None
    rng = np.random.default_rng(keys)
    count = MANY_ROWS + 50
    words = np.stack([rng.integers(0, keys, count), np.arange(count) - 99, rng.choice([1, 1, 3], count)])
    kept = words if same_diff is None else words[:2]
    blocks = [Block(np.ascontiguousarray(part)) for part in np.array_split(kept, 3, axis=1)]
    batch = PackedBatch(tuple(blocks), 2, 40, same_diff, (), 8)
    made = transform(batch)
    meant = transform(UpdateBatch(batch.words))
    assert isinstance(made, PackedBatch) and isinstance(meant, UpdateBatch)
    assert made.words.tolist() == meant.words.tolist()
    assert (made.only_time(), made.moved) == (40, 8)


def test_very_many_packed_rows_that_cancel_are_no_batch() -> None:
    transform = LinearTransform.of(CHAIN.accumulate(["k"], [(ROWS_OF, 0, -1, 0)]))
    words = np.zeros((3, MANY_ROWS), np.int64)
    words[0] = np.arange(MANY_ROWS) % 9_000
    words[2] = 1
    both = tuple(Block(words * np.array([[1], [1], [sign]])) for sign in (1, -1))
    assert transform is not None and transform(PackedBatch(both, 2, 40, None)) is None
