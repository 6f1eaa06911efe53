"""The loop of notifications goes round as often as it says, on every worker."""

from __future__ import annotations

import pytest

import timely
from bench.dataflow.rounds import build, microseconds


@pytest.mark.parametrize("workers", [1, 2])
def test_every_worker_is_notified_of_every_round(workers: int) -> None:
    with timely.connect(workers=workers, embedded=True) as cluster:
        flow = cluster.install(build)
        for epoch, rounds in enumerate((7, 3)):
            took, busy = microseconds(flow, rounds)
            assert took > 0 and busy > 0
            assert flow.output("done").changes() == [(epoch, rounds)] * workers
