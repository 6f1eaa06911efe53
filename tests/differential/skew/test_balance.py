"""balance.py: settings are as given, mean the same elsewhere, and are refused if they cannot be."""

from __future__ import annotations

from typing import cast

import msgpack
import numpy as np
import pytest

from differential.errors import SchemaError
from differential.kernels.rows.hashing import hashes_of
from differential.skew.balance import Balance, Purpose
from differential.skew.placements.placement import SideRows
from timely.errors import MisuseError

SOME = [
    Balance(),
    Balance("hash", 64),
    Balance("matrix", 16),
    Balance("matrix", 16, shares=8),
    Balance("JB", 7),
    Balance("JB6", 24, groups=3),
    Balance("D-JB", 256),
]


@pytest.mark.parametrize("balance", SOME, ids=str)
def test_a_balance_comes_back_from_its_data(balance: Balance) -> None:
    packed = msgpack.unpackb(msgpack.packb(balance.data()))
    assert Balance.of(packed) == balance
    assert Balance.of(packed).placement == balance.placement


@pytest.mark.parametrize("data", [[], ["hash"], ["hash", 0, 6, None], ["hash", True, 6, None], [1, 2, 3, 4]])
def test_data_of_no_balance_are_refused(data: list[object]) -> None:
    with pytest.raises(SchemaError, match="is no balance"):
        Balance.of(data)


@pytest.mark.parametrize("balance", SOME, ids=str)
def test_places_are_those_of_the_first_table_of_the_placement(balance: Balance) -> None:
    words, keys = np.random.default_rng(3).integers(0, 99, (5, 100)), np.array([1])
    hashes = hashes_of(words, keys), hashes_of(words, np.arange(3))
    first = balance.placement.first
    for side in (0, 1):
        rows = SideRows(*hashes, np.full(100, side))
        for purpose, wanted in (
            ("kept", balance.placement.stores(rows, first)),
            ("probing", balance.placement.probes(rows, first)),
        ):
            made = balance.places(side, cast("Purpose", purpose))(words, keys)
            assert made.tolist() == [wanted.unit.tolist(), *words.take(wanted.row, 1).tolist()]


def test_counted_is_each_row_once_behind_its_key_or_its_bucket() -> None:
    words, keys = np.random.default_rng(3).integers(0, 99, (5, 100)), np.array([1])
    key_hash = hashes_of(words, keys)
    by_key, by_bucket = (
        SOME[0].places(0, cast("Purpose", each))(words, keys)
        for each in ("counted by key", "counted by bucket")
    )
    assert by_key.tolist() == [key_hash.tolist(), *words.tolist()]
    assert by_bucket.tolist() == [(key_hash % 1_024).tolist(), *words.tolist()]


def test_what_a_plan_says_has_all_that_is_set() -> None:
    said = {balance.describe() for balance in [*SOME, Balance("JB6", 24), Balance("matrix", 8, shares=1)]}
    assert len(said) == len(SOME) + 2
    assert Balance("JB6", 24).describe() == "JB6 on 24 units, 6 groups"


def test_settings_that_cannot_be_are_refused_where_they_are_written() -> None:
    for settings, words in (
        (("ring",), "no scheme 'ring'"),
        (("hash", 0), "1 to 256 units, not 0"),
        (("hash", 257), "1 to 256 units, not 257"),
        (("hash", 2.5), "whole number"),
        (("JB", 1), "two units or more"),
        (("JB6", 8, 0), "groups"),
        (("matrix", 8, 6, 3), "not 3"),
        (("matrix", 8, 6, 16), "not 16"),
        (("hash", 8, 6, 2), "a matrix has shares"),
    ):
        with pytest.raises(MisuseError, match=words):
            Balance(*settings)  # type: ignore[arg-type]
