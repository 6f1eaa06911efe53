"""What workers send of epochs is lists for users; nothing else of an answer changes."""

from __future__ import annotations

import numpy as np
import pytest

from timely.client.reports.epoch_lists import with_epoch_lists
from timely.errors import PeerError


def told(epochs: list[int], sealed: list[float], complete: list[float]) -> list[bytes]:
    return [np.array(epochs, np.int64).tobytes(), *(np.array(each).tobytes() for each in (sealed, complete))]


def test_epochs_are_triples_and_none_is_what_is_not_known() -> None:
    flow = {"epochs": told([7, 2**62 - 1], [2.0, 1.0], [1.5, np.nan]), "spec": "q"}
    assert with_epoch_lists({"worker": 1, "dataflows": {0: flow}}) == {  # type: ignore[dict-item]
        "worker": 1,
        "dataflows": {0: {"epochs": [[7, 2.0, 1.5], [2**62 - 1, 1.0, None]], "spec": "q"}},
    }


def test_read_twice_is_read_once() -> None:
    answer = {"dataflows": {0: {"epochs": told([1], [2.0], [1.0])}}}
    assert with_epoch_lists(with_epoch_lists(answer)) == {"dataflows": {0: {"epochs": [[1, 2.0, 1.0]]}}}  # type: ignore[arg-type]


@pytest.mark.parametrize("odd", [[b"", b"1" * 8, b""], [b"123", b"123", b"123"]])
def test_bytes_of_other_lengths_are_refused(odd: list[bytes]) -> None:
    with pytest.raises(PeerError, match="bytes for epochs"):
        with_epoch_lists({"dataflows": {0: {"epochs": odd}}})  # type: ignore[dict-item]
