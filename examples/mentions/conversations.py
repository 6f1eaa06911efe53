"""A week of tweets among circles of people, made up: the form of `tweets.py`, the same tweets for the same
seed.

In `mention_stream.py` nearly all users who mention one another are one strong component, as on a whole day
of Twitter. Here people speak mostly within their circle, each circle has a time at which it speaks most,
and topics of its own. People also mention users of circles that are better known, who seldom answer. So a
window of a day has many strong components, which grow, merge and fall apart.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from .mention_stream import DAYS, FIRST_TIME
from .tweets import COLUMNS

__all__ = ["conversations"]

_CIRCLES = 90
_LARGEST = 60
_STEEPNESS = 0.7
_DAY_SECONDS = 86_400
_EACH_LASTS_SECONDS = 0.5 * _DAY_SECONDS
_TOPICS = (
    *("football", "elections", "weather", "cooking", "chess", "trains", "opera", "physics"),
    *("gardens", "space", "cycling", "poetry", "robots", "wine", "history", "sailing"),
)
_OWN_TOPIC_SHARE = 0.7
_WITH_HASHTAG_SHARE = 0.5
_WITHOUT_MENTION_SHARE = 0.15
_INSIDE_SHARE = 0.9
_ANSWER_SHARE = 0.06
"""Of the mentions that leave a circle: those that do not go to one that is better known."""


def conversations(rows: int = 12_000, seed: int = 1) -> pa.Table:
    """Return tweets over seven days, decided by `rows` and `seed` alone."""
    if rows < 1:
        raise ValueError(f"rows is 1 or more, not {rows}")
    random = np.random.Generator(np.random.PCG64(seed))
    sizes = np.maximum(2, (_LARGEST / np.arange(1, _CIRCLES + 1) ** _STEEPNESS)).astype(np.int64)
    first_users = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    circle = random.choice(_CIRCLES, rows, p=sizes / sizes.sum())
    rush = random.random(_CIRCLES)[circle] * DAYS * _DAY_SECONDS
    usual = random.random(rows) < 0.5
    time = np.where(
        usual, random.random(rows) * DAYS * _DAY_SECONDS, rush + random.normal(0, _EACH_LASTS_SECONDS, rows)
    ).clip(0, DAYS * _DAY_SECONDS - 1)

    inside = random.random(rows) < _INSIDE_SHARE
    answers = random.random(rows) < _ANSWER_SHARE
    anywhere = random.integers(0, _CIRCLES, rows)
    better_known = (circle * random.random(rows) ** 2).astype(np.int64)
    other_circle = np.where(inside, circle, np.where(answers, anywhere, better_known))
    ids = random.permutation(np.arange(1, int(sizes.sum()) + 1))
    author = ids[first_users[circle] + (sizes[circle] * random.random(rows)).astype(np.int64)]
    other = ids[first_users[other_circle] + (sizes[other_circle] * random.random(rows)).astype(np.int64)]

    topic = np.where(
        random.random(rows) < _OWN_TOPIC_SHARE, circle % len(_TOPICS), random.integers(0, len(_TOPICS), rows)
    )
    names = np.array(_TOPICS)[topic]
    order = np.argsort(time, kind="stable")
    mentions = np.where(random.random(rows) < _WITHOUT_MENTION_SHARE, "", other.astype(str))
    hashtags = np.where(random.random(rows) < _WITH_HASHTAG_SHARE, names, "")
    columns = [FIRST_TIME + time.astype(np.int64), author, mentions, hashtags]
    return pa.table([pa.array(column[order]) for column in columns], schema=COLUMNS)
