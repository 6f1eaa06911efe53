"""Kernels that are made ready before a dataflow counts as installed.

A kernel is compiled or loaded at its first call. Loading takes half a millisecond to one, compiling up to
some seconds. The first merge of a trace, the first large batch and the first read of an output come long
after the install, and a client that waits for a change would then wait for the compiler. So operators name
the kernels that they may call when they are made: those that are not in the cache are compiled then
(`prepare`). The kernels of the first merges of a trace are loaded as well (`load_kernels`): loading them
takes several times as long as a small change.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Final

import numpy as np

from differential.kernels.arithmetic import combine
from differential.kernels.history.ready import (
    lower_bounds,
    merge_pending,
    minimal_times,
    split_ready,
    work_at_once,
)
from differential.kernels.history.times import earlier_times
from differential.kernels.merging.merge import insert_into_head
from differential.kernels.merging.merge_runs import merge_runs
from differential.kernels.merging.merge_words import merge_words
from differential.kernels.overflow import negate_all
from differential.kernels.rows.columns import (
    column_bounds,
    column_ranges,
    copy_column,
    decode_column,
    decode_words,
    encode_column,
    encode_words,
)
from differential.kernels.rows.hashing import partition_by_key_hash
from differential.kernels.rows.memory import describe_words
from differential.kernels.rows.packing import pack_rows, plan_packing, survey, unpack_rows
from differential.kernels.rows.search import fill_directory
from differential.kernels.rows.sort import (
    are_modest,
    is_consolidated,
    sort_indexed,
    sort_packed,
    sort_words,
    sum_packed,
)
from differential.kernels.sums.components import components_of
from progress.compiled.kernel import compile_unless_kept, load_kept
from progress.times.word_order import word_glb, word_lub

__all__ = ["MERGES", "load_kernels", "prepare"]

_EXAMPLES: Final[dict[str, object]] = {
    "t": np.empty((0, 0), np.int64),
    "l": np.empty(0, np.int64),
    "i": 0,
    "p": (0, 0),
}
"""Arguments by letter: a table of words, a line of them, a number, a pair of numbers."""

MERGES: Final = ((merge_runs, "tllii"), (merge_words, "tltii"))
_AT_MERGES: Final = (
    # A trace's head becomes a run, runs become one, and its columns are narrowed.
    (describe_words, "titi"),
    (column_ranges, "tti"),
    (encode_words, "tti"),
    (fill_directory, "ti"),
    (word_lub, "iii"),
    (word_glb, "iii"),
    (column_bounds, "tiiiil"),
    (copy_column, "tiii"),
    (decode_column, "tiiiiti"),
    # A barrier has rows to do later; Python puts some rows into a trace.
    (merge_pending, "tt"),
    (insert_into_head, "ttiti"),
    # A large batch is sorted.
    (plan_packing, "ttl"),
    (pack_rows, "ttlili"),
    (sort_packed, "llii"),
    (sum_packed, "llii"),
    (unpack_rows, "lltlit"),
    (encode_column, "tiitii"),
)
_OF_ALL: Final = (
    # Rows come in, wait for their times, and are sorted; a client reads them.
    (are_modest, "li"),
    (survey, "tti"),
    (sort_words, "t"),
    (sort_indexed, "tt"),
    (is_consolidated, "t"),
    (partition_by_key_hash, "tiilt"),
    (lower_bounds, "tili"),
    (split_ready, "tili"),
    (work_at_once, "tii"),
    (minimal_times, "li"),
    (earlier_times, "li"),
    (components_of, "tit"),
    (combine, "illl"),
    (decode_words, "tii"),
    (negate_all, "l"),
)


@functools.cache
def load_kernels() -> None:
    """Load or compile the kernels that each trace calls sooner or later, once in a process.

    Cost: some milliseconds, if all are in the cache.
    """
    load_kept(*(kernel for kernel, _ in (*_AT_MERGES, *MERGES)))
    # The kernels that merge take longest, so they come last: a helper may have compiled them by then.
    for kernel, shape in (*_OF_ALL, *_AT_MERGES, *MERGES):
        prepare(kernel, shape)


@functools.cache
def prepare(kernel: Callable[..., object], shape: str) -> None:  # type: ignore[explicit-any]  # of any arguments
    """Compile a kernel for arguments of that shape, unless it is in the cache; once in a process."""
    compile_unless_kept(kernel, *(_EXAMPLES[letter] for letter in shape))
