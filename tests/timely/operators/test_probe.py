"""A probe says how far a stream has come, at any depth."""

from __future__ import annotations

import pytest

from timely import Dataflow, GraphError, MisuseError
from timely.running.core import Worker


def test_a_probe_is_past_a_time_when_nothing_at_or_before_it_can_come() -> None:
    dataflow = Dataflow()
    numbers = dataflow.input("numbers")
    dataflow.probe("root", numbers)
    with dataflow.loop() as loop:
        dataflow.probe("inside", loop.enter(numbers))
    worker = Worker()
    instance = worker.install(dataflow.freeze())
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
    dataflow = Dataflow()
    numbers = dataflow.input("numbers")
    dataflow.probe("seen", numbers)
    with pytest.raises(GraphError, match="already has a probe 'seen'"):
        dataflow.probe("seen", numbers)
    with pytest.raises(MisuseError, match=r"no probe 'sene': there are \['seen'\]"):
        Worker().install(dataflow.freeze()).probe("sene")
