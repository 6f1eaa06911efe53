"""The auction house of Nexmark: persons, auctions and bids in the order of their times, by a seed of our own.

Of fifty events one is a person, three are auctions and 46 are bids. Half of the bids are for one of few hot
auctions, the others for one of the last hundred; three quarters are by one of few hot bidders, the others by
one of the last thousand persons. Prices are spread over six powers of ten. Each event is a millisecond behind
the one before. Columns that no query reads, such as credit cards, are left out.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from bench.sql.stream import Epoch, Stream, StreamTable
from bench.workloads import Int64s, draws

__all__ = ["SIDE_ROWS", "generated"]

_PERSONS, _AUCTIONS, _EVENTS = 1, 3, 50
"""Of so many events so many are persons and auctions; the rest are bids."""
_HOT_AUCTIONS, _HOT_BIDDERS = 100, 100
"""One auction, and one bidder, of so many is hot."""
_AUCTIONS_OPEN, _PERSONS_ACTIVE = 100, 1_000
_CATEGORIES = 5
_FIRST_CATEGORY = 10
_CHANNELS = 10_000
_BEGIN_MS = 1_700_006_400_000
"""2023-11-15, midnight."""
_OPEN_MS_MAX = 20_000
SIDE_ROWS = 10_000

_STATES = ("AZ", "CA", "ID", "OR", "WA", "WY")
_CITIES = (
    "Phoenix",
    "Los Angeles",
    "San Francisco",
    "Boise",
    "Portland",
    "Bend",
    "Redmond",
    "Seattle",
    "Kent",
)
_FIRST_NAMES = (
    "Peter",
    "Paul",
    "Luke",
    "John",
    "Saul",
    "Vicky",
    "Kate",
    "Julie",
    "Sarah",
    "Deiter",
    "Walter",
)
_LAST_NAMES = ("Shultz", "Abrams", "Spencer", "White", "Bartels", "Walton", "Smith", "Jones", "Noris")
_HOT_CHANNELS = ("Google", "Facebook", "Baidu", "Apple")


def generated(events: int, changes: int, each: int, seed: int = 1) -> Stream:
    """Return `events` events of the load, and `changes` changes of `each` events."""
    ends = events + np.arange(changes + 1) * each
    count = int(ends[-1])
    number = np.arange(count)
    group, place = number // _EVENTS, number % _EVENTS
    is_person, is_bid = place < _PERSONS, place >= _PERSONS + _AUCTIONS
    is_auction = ~is_person & ~is_bid
    when = _BEGIN_MS + number
    tables = {
        "person": (_persons(group[is_person], when[is_person], seed), is_person),
        "auction": (_auctions(group[is_auction], place[is_auction], when[is_auction], seed), is_auction),
        "bid": (_bids(group[is_bid], place[is_bid], when[is_bid], seed), is_bid),
    }
    of_stream = {
        name: StreamTable(rows, _epochs(np.cumsum(mine)[ends - 1].tolist()), "date_time")
        for name, (rows, mine) in tables.items()
    }
    side = pa.table({"side_key": np.arange(SIDE_ROWS), "side_value": np.arange(SIDE_ROWS) * 7})
    nothing = Epoch(slice(0, 0), slice(0, 0))
    stays = [Epoch(slice(0, 0), slice(0, SIDE_ROWS)), *[nothing] * changes]
    # The last time of an epoch may come again: all before it do not.
    watermarks = (when[ends - 1] - 1).tolist()
    return Stream({**of_stream, "side_input": StreamTable(side, stays)}, watermarks)


def _epochs(ends: list[int]) -> list[Epoch]:
    begins = [0, *ends[:-1]]
    return [Epoch(slice(0, 0), slice(begin, end)) for begin, end in zip(begins, ends, strict=True)]


def _times(milliseconds: Int64s) -> pa.Array:
    return pa.array(milliseconds * 1_000, pa.timestamp("us", "UTC"))


def _chosen(words: tuple[str, ...], drawn: Int64s) -> pa.Array:
    return pa.array(words).take(pa.array(drawn))


def _persons(group: Int64s, when: Int64s, seed: int) -> pa.Table:
    limits = (len(_FIRST_NAMES), len(_LAST_NAMES), len(_CITIES), len(_STATES))
    first, last, city, state = draws(limits, len(group), seed)
    names = [
        f"{_FIRST_NAMES[a]} {_LAST_NAMES[b]}" for a, b in zip(first.tolist(), last.tolist(), strict=True)
    ]
    return pa.table(
        {
            "id": group,
            "name": names,
            "city": _chosen(_CITIES, city),
            "state": _chosen(_STATES, state),
            "date_time": _times(when),
        }
    )


def _recent(group: Int64s, hot: Int64s, hot_of: int, drawn: Int64s, active: int) -> Int64s:
    """Persons: one of the hot ones, or one of the last that there are."""
    one_of_hot = group // hot_of * hot_of
    one_of_last = group - drawn % np.minimum(group + 1, active)
    return np.where(hot > 0, one_of_hot, one_of_last)


def _auctions(group: Int64s, place: Int64s, when: Int64s, seed: int) -> pa.Table:
    limits = (4, _PERSONS_ACTIVE, _CATEGORIES, 1 << 20, 1 << 20, _OPEN_MS_MAX)
    hot, seller, category, first, reserve, length = draws(limits, len(group), seed + 1)
    number = group * _AUCTIONS + place - _PERSONS
    initial = _prices(first)
    return pa.table(
        {
            "id": number,
            "item_name": [f"item {one}" for one in number.tolist()],
            "initial_bid": initial,
            "reserve": initial + _prices(reserve),
            "date_time": _times(when),
            "expires": _times(when + 1 + length),
            "seller": _recent(group, hot, _HOT_BIDDERS, seller, _PERSONS_ACTIVE),
            "category": category + _FIRST_CATEGORY,
        }
    )


def _bids(group: Int64s, place: Int64s, when: Int64s, seed: int) -> pa.Table:
    limits = (2, _AUCTIONS_OPEN, 4, _PERSONS_ACTIVE, 1 << 20, 2, _CHANNELS)
    hot, auction, hot_bidder, bidder, price, is_hot, channel = draws(limits, len(group), seed + 2)
    newest = group * _AUCTIONS + _AUCTIONS - 1
    one_of_hot = newest // _HOT_AUCTIONS * _HOT_AUCTIONS
    one_of_last = newest - auction % np.minimum(newest + 1, _AUCTIONS_OPEN)
    channels = [*_HOT_CHANNELS, *(f"channel-{one}" for one in range(_CHANNELS))]
    chosen = np.where(is_hot > 0, channel % len(_HOT_CHANNELS), channel + len(_HOT_CHANNELS))
    return pa.table(
        {
            "auction": np.where(hot > 0, one_of_hot, one_of_last),
            "bidder": _recent(group, hot_bidder, _HOT_BIDDERS, bidder, _PERSONS_ACTIVE),
            "price": _prices(price),
            "channel": _chosen(tuple(channels), chosen),
            "date_time": _times(when),
        }
    )


def _prices(drawn: Int64s) -> Int64s:
    """Spread evenly over powers of ten, from 100 to 10⁸."""
    return np.floor(100 * 10 ** (6 * drawn / (1 << 20))).astype(np.int64)
