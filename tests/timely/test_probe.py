"""A probe says how far a stream has come, at any depth."""

from __future__ import annotations

from timely import Dataflow
from timely.probe import ProbeVertex
from timely.worker.core import Worker


def test_a_probe_is_past_a_time_when_nothing_at_or_before_it_can_come() -> None:
    root, inside = ProbeVertex(), ProbeVertex()
    flow = Dataflow()
    numbers = flow.input("numbers")
    flow.stage("probe", lambda: root, [numbers.feed()], outputs=0)
    with flow.loop() as loop:
        flow.stage("probe inside", lambda: inside, [loop.enter(numbers).feed()], outputs=0)
    worker = Worker()
    handle = worker.install(flow.freeze()).input("numbers")
    assert not root.is_past((0,)) and not inside.is_past((0, 5))
    handle.send(["x"])
    handle.seal()
    worker.run_until_idle()
    assert root.is_past((0,)) and not root.is_past((1,))
    assert inside.is_past((0, 5)) and not inside.is_past((1, 0))
    handle.close()
    worker.run_until_idle()
    assert root.is_past((2**30,))
