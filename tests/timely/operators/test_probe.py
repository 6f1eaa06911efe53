"""A probe says how far a stream has come, at any depth."""

from __future__ import annotations

import pytest

from timely import Dataflow, GraphError, MisuseError
from timely.running.core import Worker


def test_a_probe_is_past_a_time_when_nothing_at_or_before_it_can_come() -> None:
    flow = Dataflow()
    numbers = flow.input("numbers")
    flow.probe("root", numbers)
    with flow.loop() as loop:
        flow.probe("inside", loop.enter(numbers))
    worker = Worker()
    instance = worker.install(flow.freeze())
    root, inside = instance.probe("root"), instance.probe("inside")
    handle = instance.input("numbers")
    assert not root.is_past((0,)) and not inside.is_past((0, 5))
    handle.send(["x"])
    handle.seal()
    worker.run_until_idle()
    assert root.is_past((0,)) and not root.is_past((1,))
    assert inside.is_past((0, 5)) and not inside.is_past((1, 0))
    handle.close()
    worker.run_until_idle()
    assert root.is_past((2**30,))


def test_a_probe_is_named_once_and_asked_by_that_name() -> None:
    flow = Dataflow()
    numbers = flow.input("numbers")
    flow.probe("seen", numbers)
    with pytest.raises(GraphError, match="already has a probe 'seen'"):
        flow.probe("seen", numbers)
    with pytest.raises(MisuseError, match=r"no probe 'sene': there are \['seen'\]"):
        Worker().install(flow.freeze()).probe("sene")
