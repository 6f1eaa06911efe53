"""Of each epoch the slowest worker counts, of each output the slowest reader."""

from __future__ import annotations

import pytest

from timely.client.reports.epoch_figures import behind_seconds, epoch_seconds, reader_lags, waiting_at_inputs


def test_shares_of_the_epochs_are_those_of_the_slowest_worker() -> None:
    one = {"epochs": [[epoch, 10.0, 10.0 - epoch] for epoch in range(1, 101)]}  # epoch n took n seconds
    other = {"epochs": [[epoch, 10.0, 9.9] for epoch in range(1, 101)] + [[101, 5.0, None]]}
    assert epoch_seconds([one, other]) == [(0.5, 51.0), (0.99, 100.0)]  # type: ignore[list-item]
    assert epoch_seconds([{"epochs": [[1, 2.0, None]]}]) == []
    assert epoch_seconds([]) == [] == epoch_seconds([{"epochs": ["odd", [1], 7]}])


def test_behind_is_the_first_epoch_that_is_not_complete_anywhere() -> None:
    news = [{"epochs": [[3, 9.0, 8.0], [4, 5.0, None]]}, {"epochs": [[3, 8.5, None], [4, 4.0, None]]}]
    assert behind_seconds(news, 2) == 9.0  # type: ignore[arg-type]
    assert behind_seconds(news, 3) == 5.0  # type: ignore[arg-type]
    assert behind_seconds(news, 4) == 0.0  # type: ignore[arg-type]


def test_rows_wait_with_all_workers() -> None:
    news = [{"inputs": [{"name": "a", "rows_waiting": rows}]} for rows in (2, 5)]
    assert waiting_at_inputs(news, "rows") == {"a": 7}  # type: ignore[arg-type]


@pytest.mark.parametrize(("complete", "lags"), [(9, {"out": 6}), (2**62, {})])
def test_the_last_reader_counts(complete: int, lags: dict[str, int]) -> None:
    readers = [{"epoch": 9, "silent_seconds": 0.0}, {"epoch": 3, "silent_seconds": 1.0}]
    output = {"name": "out", "complete_before": complete, "readers": readers}
    assert reader_lags([{"outputs": [output]}]) == lags  # type: ignore[dict-item]
