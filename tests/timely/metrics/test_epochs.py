"""Of each epoch the slowest worker counts, of each output the slowest reader."""

from __future__ import annotations

import pytest

from timely.metrics.epochs import epoch_seconds, reader_lags, rows_at_inputs


def told(**flow: object) -> dict[str, object]:
    return {"dataflows": {3: flow}}


def test_shares_of_the_epochs_are_those_of_the_slowest_worker() -> None:
    one = [[epoch, 10.0, 10.0 - epoch] for epoch in range(1, 101)]  # epoch n took n seconds
    other = [[epoch, 10.0, 9.9] for epoch in range(1, 101)] + [[101, 5.0, None]]
    stats = [told(epochs=one), told(epochs=other)]
    assert list(epoch_seconds(stats, 3)) == [(0.5, 51.0), (0.99, 100.0)]  # type: ignore[arg-type]
    assert list(epoch_seconds([told(epochs=[[1, 2.0, None]])], 3)) == []  # type: ignore[list-item]
    assert list(epoch_seconds(stats, 4)) == []  # type: ignore[arg-type]


def test_rows_wait_with_all_workers() -> None:
    stats = [told(inputs=[{"name": "a", "rows_waiting": 2}]), told(inputs=[{"name": "a", "rows_waiting": 5}])]
    assert list(rows_at_inputs(stats, 3)) == [("a", 7)]  # type: ignore[arg-type]


@pytest.mark.parametrize(("complete", "lags"), [(9, [("out", 6)]), (2**62, [])])
def test_the_last_reader_counts(complete: int, lags: list[tuple[str, int]]) -> None:
    readers = [{"epoch": 9, "silent_seconds": 0.0}, {"epoch": 3, "silent_seconds": 1.0}]
    output = {"name": "out", "complete_before": complete, "readers": readers}
    assert list(reader_lags([told(outputs=[output])], 3)) == lags  # type: ignore[list-item]
