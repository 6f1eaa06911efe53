"""What one thread asks of workers, and a wait that has been over for a while before it is asked for."""

from __future__ import annotations

from timely.client.remote.channel import _shortened
from timely.wire.requests import Hello, Wait


def test_a_wait_that_is_asked_later_ends_when_it_would_have() -> None:
    assert _shortened(Wait(0, "", 1, 2.0), 0.5) == Wait(0, "", 1, 1.5)
    assert _shortened(Wait(0, "", 1, 0.25), 0.5) == Wait(0, "", 1, 0.0)
    assert _shortened(Wait(0, "", 1, -1.0), 0.5) == Wait(0, "", 1, -1.0)
    assert _shortened(Hello(), 0.5) == Hello()
