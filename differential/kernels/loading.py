"""The kernels that are first called when there are many rows, or much has happened, are loaded before.

A kernel is loaded at its first call, in half a millisecond or a whole one: several times what a small change
takes. The first merge of a trace comes at some change long after its dataflow was installed, and that change
would pay for it; the first large batch is the load that its user waits for. So what is kept of these kernels
on disk is loaded with a process's first trace. What is not is compiled where it is called, if it ever is.
"""

from __future__ import annotations

import functools

from differential.kernels.history.ready import merge_pending
from differential.kernels.merging.merge import insert_into_head
from differential.kernels.merging.merge_runs import merge_runs
from differential.kernels.merging.merge_words import merge_words
from differential.kernels.rows.columns import (
    column_bounds,
    column_ranges,
    copy_column,
    decode_column,
    encode_column,
    encode_words,
)
from differential.kernels.rows.memory import describe_words
from differential.kernels.rows.packing import pack_rows, plan_packing, unpack_rows
from differential.kernels.rows.search import fill_directory
from differential.kernels.rows.sort import sort_packed, sum_packed
from progress.kernel import load_kept
from progress.times.word_order import word_glb, word_lub

__all__ = ["load_kernels"]


@functools.cache
def load_kernels() -> None:
    """Load them, once in a process. Cost: some milliseconds then."""
    load_kept(
        # A trace's head becomes a run, runs become one, and that is packed more closely.
        describe_words,
        column_ranges,
        encode_words,
        fill_directory,
        merge_runs,
        merge_words,
        word_lub,
        word_glb,
        column_bounds,
        copy_column,
        decode_column,
        # A gate has rows to do later; some rows that Python hands over come to a trace.
        merge_pending,
        insert_into_head,
        # A large batch is put in order.
        plan_packing,
        pack_rows,
        sort_packed,
        sum_packed,
        unpack_rows,
        encode_column,
    )
