"""bench/dataflow/exchanged.py: all rows arrive, whatever their form."""

from __future__ import annotations

import pytest

import timely
from bench.dataflow.exchanged import FORMS, seconds_of


@pytest.mark.parametrize("form", FORMS)
def test_all_rows_are_counted(form: str) -> None:
    with timely.connect(workers=2, embedded=True) as cluster:
        assert seconds_of(cluster, form, 2_500) > 0
