"""An append as a request, of whoever sends it."""

from __future__ import annotations

import numpy as np
import pytest

from timely import MisuseError
from timely.client.appending import append_request
from timely.wire.requests import BY_COLUMN, IN_EPOCH, Deliver


@pytest.mark.parametrize("epoch", [3, np.int64(3)])
def test_a_number_is_one_epoch_and_a_text_a_column_that_says_many(epoch: object) -> None:
    request = append_request(1, "rows", epoch, "w", 7)
    assert request == Deliver(1, "rows", "w", 7, IN_EPOCH, 3, 0) and type(request.epoch) is int  # type: ignore[union-attr]
    assert append_request(1, "rows", "day", "w", 7) == Deliver(
        1, "rows", "w", 7, BY_COLUMN, 0, 0, column="day"
    )


@pytest.mark.parametrize("epoch", [True, 1.0, None, b"day"])
def test_what_is_neither_is_refused_before_it_is_sent(epoch: object) -> None:
    with pytest.raises(MisuseError, match=r"append\(epoch=…\) takes the number of an epoch, or the name of"):
        append_request(1, "rows", epoch, "w", 7)
