"""What is read out of answers, whatever stands there."""

from __future__ import annotations

from timely.console.content.told import entries, entry, epoch_or_none, number, text, whole
from timely.operators.capture import FOREVER


def test_values_of_their_types_are_read_and_others_are_nothing() -> None:
    told = {"n": 3, "f": 1.5, "t": "x", "l": [1], "d": {"a": 1}}
    assert (whole(told, "n"), number(told, "f"), number(told, "n"), text(told, "t")) == (3, 1.5, 3.0, "x")
    assert (entries(told, "l"), entry(told, "d")) == ([1], {"a": 1})
    for odd in (None, 3, "x", [], {}, {"n": None}, {"n": [], "f": {}, "t": 1, "l": "x", "d": 3}):
        assert (whole(odd, "n"), number(odd, "f"), text(odd, "t")) == (0, 0.0, "")
        assert (list(entries(odd, "l")), dict(entry(odd, "d"))) == ([], {})


def test_the_epoch_behind_all_is_none() -> None:
    assert (epoch_or_none(FOREVER), epoch_or_none(7)) == (None, 7)
