"""examples/mentions/conversations.py: decided by its seed; windows have many strong components."""

from __future__ import annotations

import numpy as np
import pytest
from graphs_plainly import strong_components
from reference.collection import collection

from examples.mentions.conversations import conversations
from examples.mentions.tweets import COLUMNS


def test_tweets_are_sorted_and_decided_by_the_seed() -> None:
    tweets = conversations(2_000, 5)
    assert tweets.schema == COLUMNS and tweets.num_rows == 2_000
    assert (np.diff(tweets.column("time").to_numpy()) >= 0).all()
    assert tweets.equals(conversations(2_000, 5)) and not tweets.equals(conversations(2_000, 6))
    with pytest.raises(ValueError, match="1 or more"):
        conversations(0)


def test_a_day_has_many_groups() -> None:
    day = conversations().slice(5_000, 1_700).to_pylist()
    edges = collection((row["user"], int(row["mentions"])) for row in day if row["mentions"])
    sizes = np.unique([of for _, of in strong_components(edges)], return_counts=True)[1]
    assert (sizes > 1).sum() > 20 and 15 < sizes.max() < sizes.sum() / 3
