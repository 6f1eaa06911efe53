"""Any thread wakes the pages that wait, and a packed message is one line."""

from __future__ import annotations

import asyncio
import json
import threading

import pytest

from timely.console.content.lookers import Lookers, packed


def test_all_who_wait_are_woken_and_those_who_left_are_forgotten() -> None:
    lookers = Lookers()

    async def wait() -> None:
        with lookers.joined() as first, lookers.joined() as second:
            assert lookers.came.is_set() and len(lookers) == 2
            threading.Thread(target=lookers.wake).start()
            await asyncio.wait_for(asyncio.gather(first.wait(), second.wait()), 30)
            with lookers.joined():
                pass
            assert lookers.came.is_set(), "others have not left"
        assert len(lookers) == 0 and not lookers.came.is_set()

    asyncio.run(wait())


def test_one_line_of_ascii_whatever_the_text() -> None:
    told = packed({"text": "a\nb\u2028\U0001f600\udc80"})
    assert told.isascii() and b"\n" not in told
    with pytest.raises(ValueError, match="JSON"):
        packed({"n": float("nan")})


def test_whole_numbers_that_a_browser_would_round_are_texts() -> None:
    exact, text = 2**53 - 1, "[1234567890123456789"
    told = {
        "epoch": 2**62 - 1,
        "least": [-(2**63), exact, (2**53,)],
        "text": text,
        "share": 0.1234567890123456789,
    }
    shown = {
        "epoch": str(2**62 - 1),
        "least": [str(-(2**63)), exact, [str(2**53)]],
        "text": text,
        "share": told["share"],
    }
    assert json.loads(packed(told)) == shown  # type: ignore[arg-type]
    assert json.loads(packed([{"epoch": 2**60}])) == [{"epoch": str(2**60)}]
