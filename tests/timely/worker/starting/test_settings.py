"""Addresses: who listens where, and who is told which."""

from __future__ import annotations

import traceback
from dataclasses import replace
from pathlib import Path

import pytest

from timely import InternalError, MisuseError
from timely.keys import new_cluster
from timely.worker.settings import HostAddress, WorkerSettings, cluster_settings, local_settings, resized

FOLDER = Path("/tmp/x")


def test_settings_survive_the_way_to_the_process() -> None:
    for settings in local_settings(3, FOLDER, paths=["/a", "/b"], log_level="debug"):
        assert WorkerSettings.from_json(settings.to_json()) == settings
    for line in ("", "7", "[]", '{"index": 1}', '{"no": 1}'):
        with pytest.raises(InternalError, match="settings that it cannot read"):
            WorkerSettings.from_json(line)


def test_a_cluster_for_one_client_uses_no_network() -> None:
    for index, settings in enumerate(local_settings(2, FOLDER)):
        assert (settings.index, settings.workers) == (index, 2)
        assert settings.listen == (settings.peers[index],)
        assert all(address.startswith("ipc://") for address in (*settings.peers, settings.client_listen))


def test_places_of_modules_stay_when_the_client_goes_to_another_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    (settings,) = local_settings(1, FOLDER, paths=["", "lib", "/a/"])
    assert settings.paths == (str(here), str(here / "lib"), "/a/") and settings.directory == str(here)
    assert resized([settings], 2)[1].directory == str(here)
    here.rmdir()
    (settings,) = local_settings(1, FOLDER, paths=["", "/a"])
    assert (settings.paths, settings.directory) == (("/a",), "")


def test_another_number_of_workers_has_the_same_addresses_and_secrets() -> None:
    options = {"durable": "/tmp/store", "sync": "system", "silence_seconds": 7.0, "check_progress": True}
    for count in (1, 2, 4):
        before = [replace(each, **options) for each in local_settings(count, FOLDER, paths=["/a"])]  # type: ignore[arg-type]
        for workers in (1, 2, 3, 5):
            expected = [
                replace(each, token=before[0].token, **options)  # type: ignore[arg-type]
                for each in local_settings(workers, FOLDER, paths=["/a"])
            ]
            assert resized(before, workers) == expected
    for workers in (0, True, 1_025, 1.0, "2"):
        with pytest.raises(MisuseError, match="a cluster has 1 to 1024 workers, not"):
            resized(before, workers)  # type: ignore[arg-type]
    with pytest.raises(InternalError, match="not of a cluster on this machine for one client"):
        resized(cluster_settings([HostAddress("localhost", 7000)], 0, 2, 7401, FOLDER), 3)
    with pytest.raises(InternalError, match="not of a cluster on this machine for one client"):
        resized(before[:2], 3)


def test_between_hosts_all_know_each_other_by_tcp_and_neighbours_by_ipc() -> None:
    hosts = [HostAddress("alpha", 7000), HostAddress("beta", 8000)]
    first, second = cluster_settings(hosts, 1, 2, 7401, FOLDER)
    assert (first.index, second.index, first.workers) == (2, 3, 4)
    assert first.peers == ("tcp://alpha:7000", "tcp://alpha:7001", "ipc:///tmp/x/m0", "ipc:///tmp/x/m1")
    assert second.listen == ("ipc:///tmp/x/m1", "tcp://*:8001")
    assert (first.client_listen, second.client_listen) == ("tcp://*:7401", "tcp://*:7402")


def test_a_single_host_listens_to_its_own_programs_only() -> None:
    (settings,) = cluster_settings([HostAddress("localhost", 7000)], 0, 1, 0, FOLDER)
    assert settings.listen == ("ipc:///tmp/x/m0",)
    assert settings.client_listen == "tcp://127.0.0.1:0"


def test_hosts_of_ipv6_stand_in_brackets() -> None:
    hosts = [HostAddress("::1", 7000), HostAddress("fd00::2", 8000)]
    (own,) = cluster_settings(hosts, 0, 1, 7401, FOLDER)
    assert own.peers[1] == "tcp://[fd00::2]:8000" and own.listen[1] == "tcp://[::1]:7000"
    assert own.client_listen == "tcp://[::1]:7401"


def test_secrets_are_not_shown_with_the_settings() -> None:
    keys = new_cluster()
    for settings in local_settings(1, FOLDER):
        told = replace(settings, keys=keys.to_text())
        assert WorkerSettings.from_json(told.to_json()) == told
        assert keys.pair.secret.reveal() not in repr(told) and settings.token not in repr(settings)
        with pytest.raises(InternalError) as caught:
            WorkerSettings.from_json(told.to_json()[:-1])
        shown = "".join(traceback.format_exception(caught.value))
        assert keys.pair.secret.reveal() not in shown and settings.token not in shown


def test_tcp_everywhere_if_asked_for() -> None:
    hosts = [HostAddress("localhost", 7000)]
    one, two = cluster_settings(hosts, 0, 2, 7401, FOLDER, is_tcp_only=True)
    assert one.peers == ("tcp://localhost:7000", "tcp://localhost:7001") == two.peers
    assert two.listen == ("tcp://127.0.0.1:7001",)


@pytest.mark.parametrize("workers", [0, -1, 100_000])
def test_the_number_of_workers_has_bounds(workers: int) -> None:
    with pytest.raises(MisuseError, match="a cluster has 1 to 1024 workers"):
        local_settings(workers, FOLDER)
