"""Where connections are opened: a dataflow of a running cluster, or nobody there."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator

import pytest

import differential as dd
import timely
from timely.errors import PeerError
from timely.spark.source.connecting import flow_of, workers_at
from timely.spark.source.options import Options


@pytest.fixture(scope="module")
def cluster() -> Iterator[timely.Cluster]:
    def passed_on(dataflow: timely.Dataflow) -> None:
        dd.input(dataflow, "rows", "n: int").output("rows")

    with timely.connect(workers=2) as cluster:
        cluster.install(passed_on)
        yield cluster


def test_one_address_is_enough_to_find_the_dataflow_and_all_workers(cluster: timely.Cluster) -> None:
    with flow_of(Options.of({"cluster": cluster.addresses[1]})) as (workers, flow):
        assert workers.addresses == cluster.addresses and flow.name.endswith("passed_on")


def test_nobody_there_is_one_error_within_seconds() -> None:
    with socket.socket() as taken:  # bound, and nobody listens
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        begun = time.monotonic()
        with (
            pytest.raises(PeerError, match=f"no worker can be reached at tcp://{address}"),
            workers_at([address]),
        ):
            pytest.fail("nobody is there")
        with (
            pytest.raises(PeerError, match="is a cluster running there"),
            flow_of(Options.of({"cluster": address})),
        ):
            pytest.fail("nobody is there")
        assert time.monotonic() - begun < 30
