"""Changes that are kept: few as words, many packed, and read the same."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference.words import Row, as_words, consolidated, rows_of
from strategies_words import CODES, rows
from words_seen import Seen

from differential.columns.schema import Schema
from differential.operators.edge import kept_changes
from differential.operators.edge.kept_changes import KeptChanges
from differential.trace.run import Run
from timely.dictionaries import Mark


@pytest.fixture(params=[1, 1 << 20], ids=["packed", "as words"])
def _limit(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_changes, "PACKED_ROWS_MIN", request.param)
    monkeypatch.setattr(kept_changes, "BLOCK_ROWS", 3)


@pytest.mark.usefixtures("_limit")
@given(rows(2, wide=True).filter(len), st.data())
def test_any_stretch_of_the_rows_is_as_they_came(some: list[Row], data: st.DataObject) -> None:
    kept = KeptChanges(as_words(some, 4))
    first = data.draw(st.integers(0, len(some)))
    last = data.draw(st.integers(first, len(some)))
    assert rows_of(kept.between(first, last)) == some[first:last]
    assert (rows_of(kept.words()), kept.rows) == (some, len(some))


@pytest.mark.usefixtures("_limit")
def test_a_stretch_may_be_written_to() -> None:
    words = as_words([(1, 2, 3, 4), (5, 6, 7, 8)], 4)
    kept = KeptChanges(words)
    kept.between(0, 2)[:] = 0
    assert rows_of(kept.words()) == [(1, 2, 3, 4), (5, 6, 7, 8)]
    assert isinstance(kept.words(), np.ndarray)


@pytest.mark.usefixtures("_limit")
@given(rows(2, wide=True).filter(len))
def test_all_words_of_the_rows_are_shown_and_no_times_nor_diffs(some: list[Row]) -> None:
    """Else what they stand for would be forgotten while readers may still ask for it."""
    seen = Seen()
    KeptChanges(as_words(some, 4)).symbols(Mark([seen]))
    assert seen.words == {word for row in some for word in row[:2]}


@given(rows(2, wide=True).map(consolidated).filter(len), st.booleans())
def test_all_words_of_a_run_are_shown(some: list[Row], packed: bool) -> None:
    """The trace that it is in may have merged it with others, and so cancelled its rows."""
    seen = Seen()
    KeptChanges(Run.from_words(as_words(some, 4), CODES[2].guards, packed=packed)).symbols(Mark([seen]))
    assert seen.words == {word for row in some for word in row[:2]}


@given(rows(2, wide=True).map(consolidated).filter(len), st.data())
def test_any_stretch_of_a_run_is_as_it_is_there(some: list[Row], data: st.DataObject) -> None:
    kept = KeptChanges(Run.from_words(as_words(some, 4), CODES[2].guards, packed=data.draw(st.booleans())))
    first = data.draw(st.integers(0, len(some)))
    last = data.draw(st.integers(first, len(some)))
    assert rows_of(kept.between(first, last)) == some[first:last]
    assert (rows_of(kept.words()), kept.rows) == (some, len(some))


@pytest.mark.usefixtures("_limit")
@pytest.mark.parametrize("kind", ["int", "string"])
def test_batches_have_all_rows_and_few_of_them_if_they_have_texts(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_changes, "TEXT_ROWS", 2)
    some = [(number, number + 10, 7, 1) for number in range(8)]
    batches = [*KeptChanges(as_words(some, 4)).batches(Schema.of(f"a: int, b: {kind}"))]
    assert sum(batch.rows for batch in batches) == 8
    if len(batches) > 1:
        assert {batch.rows for batch in batches} <= ({2} if kind == "string" else {3, 2})
