"""A stream ends when its page is gone, whatever happens in the same moment."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, MutableMapping

from timely.console.content.lookers import Lookers
from timely.console.web.streams import EventStream, has_come


def test_a_page_that_goes_as_news_comes_leaves_nothing_behind() -> None:
    lookers = Lookers()
    sent: list[object] = []

    async def events() -> AsyncIterator[bytes]:
        with lookers.joined() as news:
            while True:
                news.clear()
                yield b"x"
                await has_come(news)

    async def visit(turns: int) -> None:
        """Let a page go so many turns of the event loop before or after there are news."""
        gone = asyncio.Event()

        async def receive() -> MutableMapping[str, object]:  # type: ignore[explicit-any]
            await gone.wait()
            return {"type": "http.disconnect"}

        async def send(message: MutableMapping[str, object]) -> None:  # type: ignore[explicit-any]
            sent.append(message)

        stream = asyncio.ensure_future(EventStream(events)({"type": "http"}, receive, send))
        while len(lookers) == 0:
            await asyncio.sleep(0)
        for turn in range(12):
            if turn == turns:
                gone.set()
            if turn == 6:
                lookers.wake()
            await asyncio.sleep(0)
        await asyncio.wait_for(stream, 30)
        assert len(lookers) == 0

    for turns in range(12):
        asyncio.run(visit(turns))
    assert len(sent) > 24
