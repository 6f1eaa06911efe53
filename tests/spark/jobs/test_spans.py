"""Windows as they are written: lengths of time, and what is none."""

from __future__ import annotations

import datetime as dt

import pytest

from timely.errors import MisuseError
from timely.spark.jobs.spans import growing, seconds_of, sliding, tumbling


@pytest.mark.parametrize(
    ("length", "seconds"),
    [
        ("90 minutes", 5_400),
        ("1 hour 30 minutes", 5_400),
        ("1hour", 3_600),
        (" 7 Days ", 604_800),
        ("2 weeks", 1_209_600),
        ("10 secs", 10),
        (dt.timedelta(hours=2), 7_200),
        (25, 25),
    ],
)
def test_lengths_are_texts_timedeltas_or_numbers(length: str | dt.timedelta | int, seconds: int) -> None:
    assert seconds_of(length) == seconds


@pytest.mark.parametrize("length", ["", "an hour", "5", "5 fortnights", "1 hour and more", "-1 hour"])
def test_what_is_no_length_is_refused_with_a_form_that_is(length: str) -> None:
    with pytest.raises(MisuseError, match="is no length of time: write '90 minutes'"):
        seconds_of(length)


def test_parts_of_a_second_and_nothing_are_refused() -> None:
    with pytest.raises(MisuseError, match="whole seconds, not 0:00:00.500000"):
        seconds_of(dt.timedelta(milliseconds=500))
    with pytest.raises(MisuseError, match="1 second or more, not 0"):
        sliding("1 hour", every=0, on="t")
    with pytest.raises(MisuseError, match="epochs is 1 or more, not 0"):
        growing(every="1 hour", on="t", epochs=0)


def test_a_window_says_what_it_is_however_its_length_was_written() -> None:
    assert str(sliding("1 day", every="60 minutes", on="t")) == "sliding of 86400 every 3600 on t"
    assert str(sliding("24 hours", every="1 hour", on="t")) == str(sliding(86_400, every=3_600, on="t"))
    assert str(tumbling("1 hour", on="t")) == "tumbling of 3600 every 3600 on t"
    assert str(growing(every="1 hour", on="t")) == "growing every 3600 on t"
