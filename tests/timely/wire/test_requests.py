"""Requests and replies as they are handed about; on the wire: `frames/test_messages.py`."""

from __future__ import annotations

import dataclasses
from typing import get_args

import pytest

from timely import PeerError
from timely.wire.frames import messages
from timely.wire.requests import Hello, Progress, Read, Reply, Request, waits_for_epoch


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


def test_requests_travel_by_names_and_types_that_have_one_meaning() -> None:
    for made in get_args(Request):
        assert messages._REQUESTS[made.__name__.lower()] is made
        assert {str(one.type) for one in dataclasses.fields(made)} <= set(messages._TYPES)


def test_what_waits_for_an_epoch_is_a_read_or_asks_beyond_one() -> None:
    assert waits_for_epoch(Read(0, "out", 0, 1, 1.0)) and waits_for_epoch(Progress(0, "", 0))
    assert not waits_for_epoch(Progress(0, "out", reader="me", keep_from=3)) and not waits_for_epoch(Hello())
