"""Keys in files: written for one reader, found again, and refused where others could have read them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from timely import MisuseError
from timely.keys import ClientKeys, folder, load_client, load_cluster, new_client, new_cluster
from timely.keys.folder import (
    add_client,
    client_keys,
    clients_of,
    make_cluster,
    revoke_client,
    save_client,
)


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    make_cluster(tmp_path / "cluster")
    return tmp_path / "cluster"


def test_what_is_written_is_found_again(cluster: Path, tmp_path: Path) -> None:
    ada = add_client(cluster, "ada", tmp_path / "ada")
    bob = add_client(cluster, "bob", tmp_path / "bob")
    assert load_client(tmp_path / "ada") == ada and load_client(tmp_path / "bob") == bob != ada
    assert ada.cluster == load_cluster(cluster).pair.public
    assert clients_of(cluster) == {"ada": ada.pair.public, "bob": bob.pair.public}


@pytest.mark.parametrize("umask", [0, 0o077])
def test_secrets_are_for_their_owner_only_whatever_the_umask(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        make_cluster(tmp_path / "cluster")
        add_client(tmp_path / "cluster", "ada", tmp_path / "ada")
    finally:
        os.umask(before)
    for path in (tmp_path / "cluster" / "cluster.key", tmp_path / "ada" / "client.key"):
        assert path.stat().st_mode & 0o777 == 0o600
        assert path.parent.stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "cluster" / "clients.txt").stat().st_mode & 0o777 == 0o644
    left = sorted(path.name for path in (tmp_path / "cluster").iterdir())
    assert left == ["clients.txt", "cluster.key"], "no draft is left"


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660])
def test_a_secret_that_others_may_read_is_refused(cluster: Path, tmp_path: Path, mode: int) -> None:
    add_client(cluster, "ada", tmp_path / "ada")
    for path in (cluster / "cluster.key", tmp_path / "ada" / "client.key"):
        path.chmod(mode)
    with pytest.raises(MisuseError, match="chmod 600 .*cluster.key"):
        load_cluster(cluster)
    with pytest.raises(MisuseError, match="chmod 600 .*client.key"):
        load_client(tmp_path / "ada")


def test_the_wrong_folder_is_named_with_the_right_command(cluster: Path, tmp_path: Path) -> None:
    add_client(cluster, "ada", tmp_path / "ada")
    with pytest.raises(MisuseError, match="keys of a client, which starts no workers"):
        load_cluster(tmp_path / "ada")
    with pytest.raises(MisuseError, match="timely.keys new' makes them"):
        load_cluster(tmp_path)
    with pytest.raises(MisuseError, match="timely.keys client CLUSTER NAME' makes them"):
        load_client(tmp_path)
    assert load_client(cluster).pair == load_cluster(cluster).pair, "whoever has the cluster's key may use it"


@pytest.mark.parametrize("text", ["", "public = 7", 'public = "x"\nsecret = "y"', "\x00", "public ="])
def test_a_damaged_file_is_named_and_not_quoted(cluster: Path, text: str) -> None:
    path = cluster / "cluster.key"
    path.write_text(text)
    with pytest.raises(MisuseError) as caught:
        load_cluster(cluster)
    assert "\n" not in str(caught.value)


def test_a_cluster_and_a_client_are_made_once(cluster: Path, tmp_path: Path) -> None:
    add_client(cluster, "ada", tmp_path / "ada")
    with pytest.raises(MisuseError, match="holds the keys of a cluster already"):
        make_cluster(cluster)
    with pytest.raises(MisuseError, match="has a client 'ada' already"):
        add_client(cluster, "ada", tmp_path / "again")
    with pytest.raises(MisuseError, match="holds the keys of a client already"):
        add_client(cluster, "bob", tmp_path / "ada")
    assert list(clients_of(cluster)) == ["ada"]


def test_keys_that_a_program_has_are_put_into_a_folder_and_again_when_they_are_new(tmp_path: Path) -> None:
    _, first = new_client(new_cluster(), "driver")
    _, second = new_client(new_cluster(), "driver")
    for keys in (first, second):
        assert save_client(keys, tmp_path / "driver") == tmp_path / "driver"
        assert load_client(tmp_path / "driver") == keys
        assert (tmp_path / "driver" / "client.key").stat().st_mode & 0o777 == 0o600
    _, ada = new_client(new_cluster(), "ada")
    with pytest.raises(MisuseError, match="holds the keys of client 'driver': choose another folder"):
        save_client(ada, tmp_path / "driver")
    assert load_client(tmp_path / "driver") == second


def test_a_list_is_full_at_its_bound(cluster: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder, "CLIENT_KEYS_MAX", 1)
    add_client(cluster, "ada", tmp_path / "ada")
    with pytest.raises(MisuseError, match="1 clients already, which is as many as there may be"):
        add_client(cluster, "bob", tmp_path / "bob")
    assert not (tmp_path / "bob").exists()


def test_a_file_that_cannot_be_written_leaves_no_draft(tmp_path: Path) -> None:
    (tmp_path / "cluster" / "cluster.key" / "in the way").mkdir(parents=True)
    with pytest.raises(MisuseError, match=r"cluster.key cannot be written"):
        folder._replace(tmp_path / "cluster" / "cluster.key", "text", 0o600)
    assert [path.name for path in (tmp_path / "cluster").iterdir()] == ["cluster.key"]


def test_a_key_is_taken_away_whatever_else_is_wrong_with_the_list(cluster: Path, tmp_path: Path) -> None:
    add_client(cluster, "ada", tmp_path / "ada")
    bob = add_client(cluster, "bob", tmp_path / "bob")
    path = cluster / "clients.txt"
    path.write_text(path.read_text().rstrip("\n").replace(bob.pair.public, bob.pair.public[:-2]))
    with pytest.raises(MisuseError, match="has a line 3 that counts for nothing"):
        clients_of(cluster)
    revoke_client(cluster, "bob")
    assert list(clients_of(cluster)) == ["ada"]
    with pytest.raises(MisuseError, match="no client 'eve'; there are: ada"):
        revoke_client(cluster, "eve")
    revoke_client(cluster, "ada")
    assert path.read_text().startswith("# Who is let in") and not clients_of(cluster)


def test_a_client_takes_keys_a_folder_or_the_variable(
    cluster: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada = add_client(cluster, "ada", tmp_path / "ada")
    monkeypatch.delenv("NAIAD_KEYS", raising=False)
    assert client_keys(None) is None and client_keys(ada) is ada
    assert client_keys(str(tmp_path / "ada")) == ada == client_keys(tmp_path / "ada")
    own = client_keys(load_cluster(cluster))
    assert isinstance(own, ClientKeys) and own.pair == load_cluster(cluster).pair
    monkeypatch.setenv("NAIAD_KEYS", str(tmp_path / "ada"))
    assert client_keys(None) == ada
