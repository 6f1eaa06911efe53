"""An event loop that never sleeps: what can go on does, and it says when it is worth running again."""

from __future__ import annotations

import asyncio
import gc
import os
import select
import threading
import time
import warnings
from collections.abc import Iterator
from math import inf

import pytest

from timely.operators.awaiting.event_loop import EventLoop


@pytest.fixture
def loop() -> Iterator[EventLoop]:
    made = EventLoop()
    yield made
    made.close()


def test_it_runs_what_can_go_on_and_says_for_how_long_nothing_can() -> None:
    said: list[str] = []
    now = time.monotonic()
    loop = EventLoop(lambda: now)

    async def speak() -> None:
        said.append("one")
        await asyncio.sleep(0)
        said.append("two")
        await asyncio.sleep(30.0)
        said.append("three")

    assert loop.seconds == inf
    loop.start(speak())
    assert loop.seconds == 0.0 and said == []
    assert not loop.run()
    assert said == ["one", "two"] and loop.seconds == pytest.approx(30.0)
    assert not loop.run(), "and it does not wait"
    now += 40.0
    assert loop.seconds == 0.0
    assert not loop.run()
    assert said == ["one", "two", "three"] and loop.seconds == inf
    loop.close()


def test_a_coroutine_that_never_rests_leaves_others_their_turn(loop: EventLoop) -> None:
    async def spin() -> None:
        while True:
            await asyncio.sleep(0)

    task = loop.start(spin())
    assert loop.run() and loop.run() and loop.seconds == 0.0
    task.cancel()
    assert not loop.run()


def test_what_another_thread_brings_makes_its_descriptor_readable(loop: EventLoop) -> None:
    brought: list[int] = []
    goes_on = threading.Event()

    async def fetch() -> None:
        brought.append(await asyncio.to_thread(lambda: int(goes_on.wait(60)) + 6))

    loop.start(fetch())
    assert not loop.run() and loop.seconds == inf
    goes_on.set()
    until = time.monotonic() + 60
    while not brought and time.monotonic() < until:
        select.select([loop.descriptor], [], [], 60)
        loop.run()
    assert brought == [7]


def test_it_runs_in_a_thread_that_has_a_loop_already(loop: EventLoop) -> None:
    said: list[asyncio.AbstractEventLoop] = []

    async def speak() -> None:
        said.append(asyncio.get_running_loop())

    async def cell() -> None:
        own = asyncio.get_running_loop()
        loop.start(speak())
        loop.run()
        assert asyncio.get_running_loop() is own and said and said[0] is not own

    asyncio.run(cell())


def test_it_is_not_run_from_within(loop: EventLoop) -> None:
    runs: list[bool] = []

    async def run_again() -> None:
        runs.append(loop.run())

    loop.start(run_again())
    loop.run()
    assert runs == [False]


def test_closing_cancels_what_still_runs() -> None:
    loop = EventLoop()
    ended: list[str] = []

    async def wait() -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            ended.append("cancelled")

    loop.start(wait())
    loop.run()
    loop.close()
    assert ended == ["cancelled"]


def test_it_goes_without_a_word_if_nobody_closes_it() -> None:
    loop = EventLoop()
    descriptor = loop.descriptor
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        del loop
        gc.collect()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)
