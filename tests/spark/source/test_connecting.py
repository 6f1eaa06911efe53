"""Where connections are opened: a dataflow of a running cluster, or nobody there."""

from __future__ import annotations

import pickle
import socket
from pathlib import Path

import pytest

import differential as dd
import timely
from timely.client.remote.workers import RemoteWorkers
from timely.errors import MisuseError, PeerError
from timely.keys import new_client, new_cluster
from timely.spark.source.connecting import Whereabouts, flow_of, workers_at
from timely.spark.source.options import SourceOptions


def test_one_address_is_enough_to_find_the_dataflow_and_all_workers(cluster: timely.Cluster) -> None:
    def passed_on(dataflow: timely.Dataflow) -> None:
        dd.input(dataflow, "rows", "n: int").output("rows")

    index = cluster.install(passed_on).index
    named = SourceOptions.of({"cluster": cluster.addresses[1], "dataflow": str(index)})
    with flow_of(named) as (at, workers, flow):
        assert list(at.addresses) == workers.addresses == cluster.addresses
        assert flow.index == index and flow.name.endswith("passed_on")


def test_nobody_there_is_one_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as taken:  # bound, and nobody listens
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        monkeypatch.setattr(RemoteWorkers.join, "__defaults__", (0.1,))
        monkeypatch.setattr("timely.client.connection.CONNECT_SECONDS_MAX", 0.1)
        with (
            pytest.raises(PeerError, match=f"no worker can be reached at tcp://{address}"),
            workers_at(Whereabouts((address,))),
        ):
            pytest.fail("nobody is there")
        with (
            pytest.raises(PeerError, match="is a cluster running there"),
            flow_of(SourceOptions.of({"cluster": address})),
        ):
            pytest.fail("nobody is there")


def test_keys_are_read_on_the_driver_and_go_where_the_addresses_go(tmp_path: Path) -> None:
    options = SourceOptions.of({"cluster": "127.0.0.1:9", "keys": str(tmp_path / "none")})
    with pytest.raises(MisuseError, match="none"), flow_of(options):
        pytest.fail("there are no keys")
    _, keys = new_client(new_cluster(), "spark")
    at = Whereabouts(("127.0.0.1:9", "127.0.0.1:10"), keys)
    there = pickle.loads(pickle.dumps(at))
    assert there.only("127.0.0.1:9") == Whereabouts(("127.0.0.1:9",), keys)
    assert keys.pair.secret.reveal() not in repr(there)
