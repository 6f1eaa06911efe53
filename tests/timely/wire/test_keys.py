"""What a key is: it travels whole, shows nothing, and is refused if it is damaged."""

from __future__ import annotations

import dataclasses
import pickle
import traceback

import pytest

from timely import MisuseError
from timely.keys import new_client, new_cluster
from timely.wire import keys as module
from timely.wire.keys import ClientKeys, ClusterKeys, KeyPair, Secret, check_name

CLUSTER, ADA = new_client(new_cluster(), "ada")
SECRETS = [CLUSTER.pair.secret.reveal(), ADA.pair.secret.reveal()]


def test_no_secret_is_in_what_is_printed() -> None:
    for held in (CLUSTER, ADA, CLUSTER.pair, ADA.pair.secret, [CLUSTER], {"keys": ADA}, CLUSTER.as_client()):
        for text in (repr(held), str(held), f"{held}"):
            assert not any(secret in text for secret in SECRETS), text
            assert not any(secret[:12] in text for secret in SECRETS), text


def test_keys_travel_whole_by_pickle_and_by_text() -> None:
    for made in (pickle.loads(pickle.dumps(CLUSTER)), ClusterKeys.from_text(CLUSTER.to_text())):
        assert made == CLUSTER and made.pair.secret.reveal() == SECRETS[0]
    for client in (pickle.loads(pickle.dumps(ADA)), ClientKeys.from_text(ADA.to_text())):
        assert client == ADA and client.pair.secret.reveal() == SECRETS[1]


@pytest.mark.parametrize(
    "damage", ["", "{", "[]", "{}", '{"pair": ["a", "b"]}', '{"pair": 7, "clients": {}, "list": ""}']
)
def test_damaged_text_is_refused_and_not_repeated(damage: str) -> None:
    for read in (ClusterKeys.from_text, ClientKeys.from_text):
        with pytest.raises(MisuseError, match=r"damaged|characters of Z85"):
            read(damage)
    cut = CLUSTER.to_text()[:-30]
    with pytest.raises(MisuseError) as caught:
        ClusterKeys.from_text(cut)
    told = "".join(traceback.format_exception(caught.value))
    assert not any(secret in told for secret in SECRETS), "the cause is told with an error"


def test_a_damaged_secret_is_not_shown_by_the_error() -> None:
    with pytest.raises(MisuseError) as caught:
        Secret(SECRETS[0][:-1])
    assert SECRETS[0][:-1] not in str(caught.value)


def test_a_public_key_has_forty_characters_of_its_alphabet() -> None:
    for wrong in ("", "short", ADA.pair.public[:-1] + '"', ADA.pair.public + "0", ADA.pair.public[:-1] + "é"):
        with pytest.raises(MisuseError, match="40 characters of Z85"):
            KeyPair(wrong, ADA.pair.secret)
    with pytest.raises(MisuseError, match="the cluster's public key"):
        dataclasses.replace(ADA, cluster="none")


@pytest.mark.parametrize("name", ["", ".hidden", "a b", "a/b", "-x", "a" * 65, "ada\n", "#ada"])
def test_a_name_fits_a_file_and_a_line(name: str) -> None:
    with pytest.raises(MisuseError, match="no name of a key"):
        check_name(name)
    check_name("loader-7.eu_west")


def test_the_cluster_is_a_client_of_its_own() -> None:
    own = CLUSTER.as_client()
    assert (own.pair, own.cluster) == (CLUSTER.pair, CLUSTER.pair.public)


def test_of_clients_a_cluster_has_so_many_each_by_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CLIENT_KEYS_MAX", 2)
    cluster = new_cluster()
    for name in ("ada", "bob"):
        cluster, _ = new_client(cluster, name)
    with pytest.raises(MisuseError, match="2 clients at most, not 3"):
        new_client(cluster, "eve")
    with pytest.raises(MisuseError, match="is no name of a key"):
        dataclasses.replace(ADA, name="../ada")
