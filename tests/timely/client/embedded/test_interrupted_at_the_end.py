"""Ctrl-C at the moment in which a turn ends: what is said afterwards is no story of a vertex."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType

import pytest

import differential as dd
import timely
from timely.operators.inputs.handle import InputHandle
from timely.worker.together import end_turn

CALLS: dict[str, Callable[[timely.Flow], object]] = {
    "insert": lambda flow: flow.input("rows").insert([(1, 1)]),
    "seal": lambda flow: flow.seal(),
    "wait": lambda flow: flow.wait(),
    "snapshot": lambda flow: flow.output("rows").snapshot(),
}


def build(flow: timely.Dataflow) -> None:
    dd.input(flow, "rows", "k: int, v: int").output("rows")


@pytest.mark.parametrize("at", ["c_call", "c_return"])
@pytest.mark.parametrize("call", CALLS)
def test_who_is_interrupted_as_his_turn_ends_goes_on_or_is_told_of_the_interrupt(call: str, at: str) -> None:
    """Whether a signal comes before or behind `end_turn`, which is a method of a set."""

    def interrupted(frame: FrameType, event: str, arg: object) -> None:
        if event == at and arg == end_turn:
            sys.setprofile(None)
            raise KeyboardInterrupt

    cluster = timely.connect(embedded=True)
    flow = cluster.install(build)
    flow.input("rows").insert([(0, 0)])
    flow.seal()
    sys.setprofile(interrupted)
    try:
        with pytest.raises(KeyboardInterrupt):
            CALLS[call](flow)
    finally:
        sys.setprofile(None)
    try:
        flow.wait(flow.seal())
    except timely.MisuseError as error:
        assert "interrupted" in str(error)
    cluster.close()


@pytest.mark.parametrize("worker", [0, 1])
@pytest.mark.parametrize("is_waited_for", [False, True])
def test_an_interrupt_as_an_epoch_is_sealed_is_no_failure_of_the_dataflow(
    worker: int, is_waited_for: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    sealing = InputHandle.seal
    left = [worker]

    def interrupted(handle: InputHandle, epoch: int | None = None) -> int:
        if not left[0]:
            raise KeyboardInterrupt
        left[0] -= 1
        return sealing(handle, epoch)

    with timely.connect(workers=2, embedded=True) as cluster:
        flow = cluster.install(build)
        flow.input("rows").insert([(0, 0)])
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(InputHandle, "seal", interrupted)
            flow.seal(wait=is_waited_for)
        with pytest.raises(timely.MisuseError, match="interrupted by KeyboardInterrupt"):
            flow.wait()
