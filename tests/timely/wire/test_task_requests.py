"""What tasks of one reader ask: its names have no second meaning on the wire."""

from __future__ import annotations

import dataclasses

from timely.wire import task_requests
from timely.wire.frames import messages


def test_they_travel_as_all_requests_do() -> None:
    named = {name: getattr(task_requests, name) for name in task_requests.__all__}
    for name, made in named.items():
        if not dataclasses.is_dataclass(made):
            continue  # what they share
        assert messages._REQUESTS[name.lower()] is made
        assert {str(one.type) for one in dataclasses.fields(made)} <= set(messages._TYPES)
