"""An event that a thread, or an event loop, brings."""

from __future__ import annotations

import os
import threading
import time

from timely.operators.awaiting.loops_event import LoopsEvent


def test_it_comes_when_it_is_set_by_a_thread_or_was_set_before() -> None:
    event = LoopsEvent([])
    assert not event.wait(0.001)
    threading.Timer(0.05, event.set).start()
    began = time.monotonic()
    assert event.wait(60) and event.is_set() and time.monotonic() - began < 30
    assert event.wait(), "and at once from then on"


def test_it_comes_when_a_descriptor_is_readable() -> None:
    heard, said = os.pipe()
    event = LoopsEvent([heard])
    assert not event.wait(0.001)
    os.write(said, b"x")
    assert event.wait(60) and not event.is_set()
    os.close(said)
    os.close(heard)


def test_it_may_be_set_any_number_of_times() -> None:
    event = LoopsEvent([])
    for _ in range(5_000):
        event.set()
    assert event.wait(0)
