"""What a program gets; what it does with that on real workers is in `test_running.py`."""

from __future__ import annotations

import pytest

import timely
from timely.client.programs.common_order import CommonOrder
from timely.client.programs.program_worker import ProgramWorker
from timely.errors import MisuseError


def worker_of(cluster: timely.Cluster) -> ProgramWorker:
    order = CommonOrder()
    order.begin(bool, 1, 3)
    return ProgramWorker(order, cluster)


def test_it_knows_its_number_its_cluster_and_sequencers_by_name() -> None:
    with timely.connect(embedded=True) as cluster:
        worker = worker_of(cluster)
        assert (worker.index, worker.workers, worker.cluster) == (1, 3, cluster)
        assert repr(worker) == "ProgramWorker(1 of 3)"
        assert repr(worker.sequencer("log")) == "Sequencer('log', worker 1 of 3)"
        with pytest.raises(MisuseError, match="a sequencer has a name, a text, not 3"):
            worker.sequencer(3)  # type: ignore[arg-type]  # users may write anything
        worker.close()
        assert len(cluster.stats()) == 1, "a cluster that it was given stays open"


def test_a_connection_of_its_own_is_closed_with_it() -> None:
    with timely.connect(workers=1) as cluster:
        order = CommonOrder()
        order.begin(bool, 0, 1)
        worker = ProgramWorker(order, list(cluster.addresses))
        mine = worker.cluster
        assert mine is worker.cluster and len(mine.stats()) == 1
        worker.close()
        with pytest.raises(MisuseError, match="closed"):
            mine.stats()
