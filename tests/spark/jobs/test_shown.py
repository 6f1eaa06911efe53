"""The line on the screen: what it says, and that nobody sees it who has no terminal."""

from __future__ import annotations

import io

from rich.console import Console

from timely.spark.jobs.shown import Screen


def test_the_line_says_epochs_rows_lag_and_what_it_waits_for() -> None:
    now = [10.0]
    screen = Screen(False, clock=lambda: now[0])
    assert screen.line() == "waits for starting"
    screen.waits("Spark, to find epochs")
    assert screen.line() == "waits for Spark, to find epochs"
    screen.total(1_680)
    screen.sent()
    screen.waits("workers")
    screen.done(11, 3_402, 98)
    now[0] += 2.5
    assert screen.line() == (
        "epoch 12 of 1,680 · 3,402 rows in · 98 changes · 2.5 s behind · waits for workers"
    )


def test_what_was_waited_for_is_told_by_its_seconds_since_the_last_time_and_in_all() -> None:
    now = [1.0]
    screen = Screen(False, clock=lambda: now[0])
    for what, seconds in (("workers", 1.0), ("Spark", 0.25), ("workers", 0.5)):
        screen.waits(what)
        now[0] += seconds
    assert screen.spent() == {"starting": 0.0, "workers": 1.5, "Spark": 0.25}
    now[0] += 4.0
    assert screen.spent() == {"workers": 4.0}
    assert screen.seconds == {"starting": 0.0, "workers": 5.5, "Spark": 0.25}


def test_a_stream_has_no_total() -> None:
    screen = Screen(False)
    screen.done(4, 10, 2)
    assert screen.line() == "epoch 5 · 10 rows in · 2 changes · waits for starting"


def test_nothing_is_written_where_there_is_no_terminal_or_nobody_wants_it() -> None:
    for wanted, is_terminal, is_shown in ((True, False, False), (False, True, False), (True, True, True)):
        written = io.StringIO()
        console = Console(file=written, force_terminal=is_terminal, width=100)
        with Screen(wanted, console) as screen:
            screen.total(3)
            screen.done(0, 1, 1)
            if screen._live is not None:
                screen._live.refresh()
        assert ("epoch 1 of 3" in written.getvalue()) == is_shown
