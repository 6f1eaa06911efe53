"""The rows that are joined, as columns: words, what is hashed of them, and the epoch in which each comes.

Hashes are those of `differential/kernels/rows/hashing.py`, so that a dataflow over the same words places rows
alike.

`zipf_orderkeys` redraws the order of each lineitem: rank r of the 30,000 orders has a probability
proportional to r^-z, and which order has which rank is drawn, too. NumPy's PCG64 draws the same numbers
everywhere; what they come to is in `CHECKSUMS`, and compared.
"""

from __future__ import annotations

import gzip
import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from progress.compiled.arrays import Int64s
from timely.errors import MisuseError

__all__ = ["CHECKSUMS", "EPOCHS", "Stream", "hashed", "linear_road", "stream", "table", "zipf_orderkeys"]

EPOCHS = 100
SEED = 2018
EXCHANGED = 1_000
"""So many of the hottest orders change places with as many of the coldest, halfway."""

CHECKSUMS = {
    (0.0, False): "ad69725594db067b",
    (0.0, True): "d3a6302f6d8e08c2",
    (0.5, False): "24ad14e943b6839a",
    (0.5, True): "eac176a3a68cbbc3",
    (1.0, False): "b7f11d62cc654a6f",
    (1.0, True): "f16e166146ff7249",
    (1.5, False): "fdcab82bf628b772",
    (1.5, True): "4c3de481e438ac47",
}
"""The first 16 digits of the SHA-256 of the keys, as little-endian 64-bit integers, by z and whether hot keys
are exchanged."""


@dataclass(frozen=True)
class Stream:
    """Rows of one side.

    Args:
        key: what is joined on, int64[n]. words: the words of each row, int64[w, n]. epoch: int64[n],
        ascending.
    """

    key: Int64s
    words: Int64s
    epoch: Int64s

    @property
    def rows(self) -> int:
        """How many."""
        return int(self.key.shape[0])


def stream(key: Int64s, *others: Int64s, epoch: Int64s | None = None) -> Stream:
    """Rows of these words in their order, spread evenly over the epochs if none are given."""
    if epoch is None:
        epoch = np.arange(key.shape[0]) * EPOCHS // max(key.shape[0], 1)
    order = np.argsort(epoch, kind="stable")
    words = np.stack((key, *others))[:, order]
    return Stream(words[0], words, epoch[order])


def hashed(words: Int64s) -> Int64s:
    """`hash_of_key` of all words of each column of `words`, for whole arrays."""
    state = np.zeros(words.shape[1], np.uint64)
    for word in words:
        mixed = (state ^ word.astype(np.uint64)) + np.uint64(0x1E3779B97F4A7C15)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        state = mixed ^ (mixed >> np.uint64(31))
    found: Int64s = (state & np.uint64(0x7FFFFFFFFFFFFFFF)).astype(np.int64)
    return found


def zipf_orderkeys(z: float, rows: int, orders: Int64s, exchanged: bool = False) -> Int64s:
    """An order for each of so many rows. A `MisuseError` if the draw is not the one that is known."""
    generator = np.random.Generator(np.random.PCG64(SEED))
    ranked = generator.permutation(orders)
    weights = np.arange(1, orders.shape[0] + 1, dtype=np.float64) ** -z
    upto = np.cumsum(weights / weights.sum())
    ranks = np.minimum(np.searchsorted(upto, generator.random(rows)), orders.shape[0] - 1)
    keys: Int64s = ranked[ranks]
    if exchanged:
        later = ranked.copy()
        count = min(EXCHANGED, orders.shape[0] // 2)
        later[:count], later[-count:] = ranked[-count:], ranked[:count]
        keys[rows // 2 :] = later[ranks[rows // 2 :]]
    known = CHECKSUMS.get((z, exchanged))
    if known is not None and (rows, orders.shape[0]) == (120_515, 30_000) and checksum(keys) != known:
        raise MisuseError(f"the rows drawn for z = {z} are not those that are known: {checksum(keys)}")
    return keys


def checksum(keys: Int64s) -> str:
    """As in `CHECKSUMS`."""
    return hashlib.sha256(np.ascontiguousarray(keys, dtype="<i8").tobytes()).hexdigest()[:16]


@cache
def table(folder: Path, name: str, *places: int) -> tuple[tuple[str, ...], ...]:
    """These fields of all lines of a TPC-H table, column by column."""
    with gzip.open(folder / f"{name}.tbl.gz", "rt") as lines:
        fields = [line.split("|") for line in lines]
    return tuple(tuple(row[place] for row in fields) for place in places)


@cache
def linear_road(folder: Path, seconds: int) -> Int64s:
    """Position reports of the first `seconds`: (speed, lane, direction, car), int64[4, n]."""
    with gzip.open(folder / "linear-road.csv.gz", "rt") as lines:
        reports = [
            (int(row[3]), int(row[5]), int(row[6]), int(row[2]))
            for line in lines
            for row in [line.split(",")]
            if row[0] == "0" and int(row[1]) < seconds
        ]
    return np.array(reports, np.int64).T
