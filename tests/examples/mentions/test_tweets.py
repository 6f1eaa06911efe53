"""examples/mentions/tweets.py: files of tweets, tweets made up, and windows over them.

read_*     the columns as they are, and what is no such file
made_up_*  decided by its seed; few hashtags are used by many
slides_*   what has gone and come adds up to the window, whatever the sizes
"""

from __future__ import annotations

import gzip
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from examples.mentions.tweets import COLUMNS, made_up, read_tweets, slides

HEADER = "time\tuser\tmentions\thashtags\n"


def test_read_keeps_numbers_words_and_what_is_empty(tmp_path: Path) -> None:
    file = tmp_path / "tweets.tsv.gz"
    file.write_bytes(gzip.compress((HEADER + '7\t1\t2 3\t"x\n7\t2\t\t\n9\t1\t12\tnull\n').encode()))
    rows = [tuple(row.values()) for row in read_tweets(file).to_pylist()]
    assert rows == [(7, 1, "2 3", '"x'), (7, 2, "", ""), (9, 1, "12", "null")]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (HEADER, "no tweets"),
        (HEADER + "2\t1\t\t\n1\t1\t\t\n", "sorted by time"),
        (HEADER + "now\t1\t\t\n", "now"),
        ("time\tuser\n1\t2\n", "has the columns"),
    ],
)
def test_read_refuses_another_form(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "tweets.tsv"
    file.write_text(text)
    with pytest.raises(ValueError, match=said):
        read_tweets(file)


def test_made_up_tweets_are_those_of_their_seed_and_few_hashtags_are_used_by_many() -> None:
    tweets = made_up(3_000, seed=5)
    assert tweets.schema == COLUMNS
    assert tweets == made_up(3_000, seed=5) != made_up(3_000, seed=6)
    used = Counter(tag for text in tweets.column("hashtags").to_pylist() for tag in text.split())
    assert 1_000 < used.total() < 1_500
    assert sum(count for _, count in used.most_common(5)) > 0.3 * used.total()
    assert 0.15 < tweets.column("mentions").to_pylist().count("") / 3_000 < 0.35


@given(
    st.lists(st.integers(0, 40), min_size=1, max_size=20).map(sorted),
    st.integers(1, 30),
    st.integers(1, 30),
    st.none() | st.integers(1, 5),
)
def test_slides_add_up_to_the_windows(times: list[int], size: int, every: int, last: int | None) -> None:
    tweets = pa.table({"time": times, "number": range(len(times))})
    there: Counter[int] = Counter()
    ends = []
    for slide in slides(tweets, size, every, last):
        for (start, count), diff in ((slide.gone, -1), (slide.come, 1)):
            there.update(dict.fromkeys(range(start, start + count), diff))
        within = [number for number, time in enumerate(times) if slide.end - size < time <= slide.end]
        assert there == Counter(within), "each tweet of the window once, no other"
        assert slide.tweets == len(within)
        ends.append(slide.end)
    every_end = [*range(times[0], times[-1], every), times[-1]]
    assert ends == every_end[-(last or len(every_end)) :]
