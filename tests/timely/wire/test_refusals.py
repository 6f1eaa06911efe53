"""Words for those who are not let in: one line, what to do, and never a secret."""

from __future__ import annotations

import pytest

from timely.keys import new_client, new_cluster
from timely.wire.refusals import Refusal, client_refusal, taken_away, worker_refusal

_, ADA = new_client(new_cluster(), "ada")


@pytest.mark.parametrize(
    ("refusal", "has_keys", "said"),
    [
        (Refusal.NOT_LISTED, True, "key 'ada'"),
        (Refusal.KEYS_WANTED, False, "keys=FOLDER"),
        (Refusal.KEYS_UNKNOWN, True, "Start them with --keys"),
        (Refusal.BROKEN_OFF, False, "it is no worker, or one that takes only clients with keys"),
        (Refusal.BROKEN_OFF, True, "It is another cluster, or no worker"),
    ],
)
def test_a_client_is_told_in_one_line_what_to_do(refusal: Refusal, has_keys: bool, said: str) -> None:
    told = client_refusal(refusal, "tcp://alpha:7401", ADA if has_keys else None)
    assert said in told and "alpha:7401" in told and "\n" not in told
    assert ADA.pair.secret.reveal() not in told


def test_workers_are_told_to_have_the_same_keys() -> None:
    assert all("the same --keys" in worker_refusal(refusal) for refusal in Refusal)


def test_who_is_taken_away_learns_which_key_it_was() -> None:
    told = taken_away("ada", ADA.pair.public)
    assert told.startswith(f"refused: key 'ada' ({ADA.pair.public[:8]}…) is not on the list")
