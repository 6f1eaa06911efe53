"""Finding keys: the same rows as a scan finds, with and without a directory."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference.words import Row, as_words, consolidated
from strategies_words import CODES, rows

from differential.kernels.search import cursors_of, locate
from differential.trace import run as run_module
from differential.trace.run import Run

GUARDS = CODES[2].guards


def _check(held: list[Row], wanted: list[Row], kw: int) -> None:
    run = Run.from_words(as_words(held, len(held[0])), GUARDS)
    table = run.line.reshape(1, -1).copy()
    cursors = cursors_of(table)
    keys = sorted({row[:kw] for row in wanted})
    for at, key in enumerate(keys):
        found = locate(
            table, cursors, as_words(keys, kw) if kw else np.empty((0, len(keys)), np.int64), at, kw
        )
        matching = [index for index, row in enumerate(held) if row[:kw] == key]
        assert found == len(matching)
        if matching:
            assert cursors[:, 0].tolist() == [matching[0], matching[-1] + 1]


@pytest.mark.parametrize("packed_from", [1, 10**9])
@pytest.mark.parametrize("kw", [0, 1, 2])
@pytest.mark.parametrize("wide", [False, True])
@given(data=st.data())
def test_a_key_is_found_where_it_is(packed_from: int, kw: int, wide: bool, data: st.DataObject) -> None:
    held = consolidated(data.draw(rows(2, wide=wide)))
    wanted = held[::2] + data.draw(rows(2, wide=wide))
    if held:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(run_module, "PACKED_ROWS_MIN", packed_from)
            _check(held, wanted, kw)
