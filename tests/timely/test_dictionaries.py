"""Marks go from holder to holder, and whoever does not know what it holds is named."""

from __future__ import annotations

import numpy as np

from progress.compiled.arrays import Int64s
from timely.dictionaries import Mark
from timely.wire.batch import Records


class Notes:
    """Keeps what it is shown."""

    def __init__(self, *between: int) -> None:
        self.words: list[int] = []
        self.between = between

    def add(self, words: Int64s) -> None:
        """Of any shape."""
        self.words += words.reshape(-1).tolist()

    def has_between(self, low: int, high: int) -> bool:
        """As told."""
        return any(low <= word <= high for word in self.between)


class Holds:
    """Says what it holds."""

    def symbols(self, mark: Mark) -> None:
        """Two words."""
        mark.words(np.array([[1], [2]]))


def test_all_accounts_are_shown_all_words() -> None:
    notes = [Notes(5), Notes(9)]
    mark = Mark(notes)
    mark.holder(Holds())
    mark.holder(Records(["a"]))
    assert [each.words for each in notes] == [[1, 2], [1, 2]] and not mark.not_known
    assert [mark.has_between(*bounds) for bounds in ((1, 4), (4, 5), (6, 9), (10, 11))] == [
        False,
        True,
        True,
        False,
    ]


def test_who_does_not_know_is_named_once() -> None:
    mark = Mark([])
    mark.holder(object())
    mark.holder(object(), "my own batch")
    mark.unknown("my own batch")
    assert mark.not_known == ["a object", "my own batch"]
