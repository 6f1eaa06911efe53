"""Tweets with the users that they mention and their hashtags: of a file, or made up; and windows over them.

A file is tab-separated, plain or .gz, with one header line and one tweet a row, sorted by time:

    time       unix seconds
    user       the author, a number
    mentions   users, separated by spaces, each once; may be empty
    hashtags   separated by spaces, each once; may be empty
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from .mention_stream import generate

__all__ = ["COLUMNS", "Slide", "made_up", "read_tweets", "slides"]

COLUMNS = pa.schema(
    {"time": pa.int64(), "user": pa.int64(), "mentions": pa.string(), "hashtags": pa.string()}
)

_HASHTAGS = 60
_WITH_HASHTAG = 0.4
_WITHOUT_MENTION = 0.25


@dataclass(frozen=True)
class Slide:
    """A window that ends at `end`, by numbers of tweets: `tweets` of them are in it; since the one before
    those from `gone` have left it and those from `come` have come, each (from, how many).
    """

    end: int
    tweets: int
    gone: tuple[int, int]
    come: tuple[int, int]


def read_tweets(path: Path) -> pa.Table:
    """The tweets of a file. Raises ValueError, with what is wrong, if it has another form."""
    try:
        table = csv.read_csv(
            path,
            parse_options=csv.ParseOptions(delimiter="\t", quote_char=False),
            convert_options=csv.ConvertOptions(column_types=COLUMNS, strings_can_be_null=False),
        )
    except (OSError, pa.ArrowInvalid) as error:
        raise ValueError(f"{path} cannot be read: {error}") from error
    if table.schema.names != COLUMNS.names:
        raise ValueError(f"{path} has the columns {table.schema.names}, not {COLUMNS.names}")
    times = table.column("time").to_numpy()
    if not len(times) or (np.diff(times) < 0).any():
        raise ValueError(f"{path} has no tweets, or they are not sorted by time")
    return table


def made_up(rows: int = 6_000, seed: int = 1) -> pa.Table:
    """A week of tweets, decided by `rows` and `seed` alone: the mentions are those of `mention_stream`.

    Few hashtags are used by many; users who speak with the same people use the same ones more often.
    """
    stream = generate(rows, seed)
    random = np.random.Generator(np.random.PCG64(seed))
    common = np.minimum(random.pareto(0.9, rows), _HASHTAGS - 1).astype(np.int64)
    own = stream.target % _HASHTAGS
    number = np.where(random.random(rows) < 0.5, common, own)
    with_hashtag = random.random(rows) < _WITH_HASHTAG
    without_mention = random.random(rows) < _WITHOUT_MENTION
    hashtags = pc.if_else(
        with_hashtag, pc.binary_join_element_wise("topic", pa.array(number).cast("string"), ""), ""
    )
    mentions = pc.if_else(without_mention, "", pa.array(stream.target).cast("string"))
    return pa.table([pa.array(stream.time), pa.array(stream.source), mentions, hashtags], schema=COLUMNS)


def slides(tweets: pa.Table, size: int, every: int, last: int | None = None) -> Iterator[Slide]:
    """The windows of `size` seconds that end at the first time, every `every` seconds after it, and at the
    last time; only the last `last` of them, if that is a number. The first comes whole.
    """
    times = tweets.column("time").to_numpy()
    first, final = int(times[0]), int(times[-1])
    ends = [*range(first, final, every), final]
    start = stop = 0
    for end in ends if last is None else ends[-last:]:
        was_from, was_to = start, stop
        start, stop = np.searchsorted(times, [end - size, end], side="right").tolist()
        come = max(start, was_to)
        yield Slide(end, stop - start, (was_from, min(start, was_to) - was_from), (come, stop - come))
