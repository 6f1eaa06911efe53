"""Requests and replies as they are handed about; on the wire: `frames/test_messages.py`."""

from __future__ import annotations

import pytest

from timely import PeerError
from timely.wire.requests import Reply


def test_refusing_values_that_are_not_what_they_should_be() -> None:
    reply = Reply({"epoch": "x", "name": 3, "list": {}})
    for read in (
        lambda: reply.integer("epoch"),
        lambda: reply.text("name"),
        lambda: reply.items("list"),
        reply.columns,
    ):
        with pytest.raises(PeerError):
            read()
