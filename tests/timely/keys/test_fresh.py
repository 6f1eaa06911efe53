"""Keys without files: each pair is another one, and a client is let in by the keys that come with it."""

from __future__ import annotations

import pytest

from timely import MisuseError
from timely.keys import new_client, new_cluster


def test_every_pair_is_another_one() -> None:
    assert len({new_cluster().pair.public for _ in range(20)}) == 20


def test_a_client_is_named_by_the_keys_that_come_with_it() -> None:
    bare = new_cluster()
    cluster, ada = new_client(bare, "ada")
    cluster, bob = new_client(cluster, "bob")
    assert cluster.clients == {"ada": ada.pair.public, "bob": bob.pair.public}
    assert not bare.clients and ada.cluster == bare.pair.public == cluster.pair.public
    with pytest.raises(MisuseError, match="a client 'ada' already"):
        new_client(cluster, "ada")
