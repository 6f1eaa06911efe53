"""A vertex that asks for notifications and looks at its frontier hears of both in one order, everywhere."""

from __future__ import annotations

from typing import ClassVar

import pytest

import timely
from progress.times.anchor import Rebase
from progress.times.timestamp import Timestamp


class Sums(timely.Vertex):
    """Sums per epoch, told when the epoch is complete; what is before the frontier is dropped."""

    wants_frontier: ClassVar[bool] = True
    calls: ClassVar[list[tuple[str, int]]] = []

    def __init__(self) -> None:
        self.sums: dict[Timestamp, int] = {}

    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        self.sums[time] = self.sums.get(time, 0) + sum(map(int, map(str, message)))
        self.notify_at(time)

    def on_notify(self, time: Timestamp) -> None:
        self.calls.append(("notify", time[0]))
        self.send_by(0, [(time[0], self.sums.get(time, 0))], time)

    def on_frontier(self) -> None:
        frontier = self.frontier_words(0)
        bound = self.code.unpack(int(frontier[0])) if len(frontier) else (1 << 61,)
        self.calls.append(("frontier", bound[0]))
        for time in [time for time in self.sums if time < bound]:
            del self.sums[time]

    def rebase(self, by: Rebase) -> None:
        """Its times are tuples."""


def build(flow: timely.Dataflow) -> None:
    (sums,) = flow.stage("sums", Sums, [flow.input("numbers").feed(0)], outputs=1)
    flow.output("sums", sums)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("closes", [False, True])
def test_what_is_notified_is_not_yet_before_the_frontier(workers: int, closes: bool) -> None:
    """As it was before stages followed inputs, and is with two workers: `on_notify(t)` comes before the
    `on_frontier` that says that t is over.
    """
    Sums.calls = []
    with timely.connect(workers=workers, embedded=True) as cluster:
        flow = cluster.install(build)
        for epoch in range(4):
            flow.input("numbers").insert([epoch + 1])
            flow.wait(flow.seal())
        if closes:
            flow.input("numbers").insert([5])
            flow.input("numbers").close()
            flow.wait()
        said = sorted(tuple(record) for _, record in flow.output("sums").changes(0, 4 + closes))
        assert said == [(epoch, epoch + 1) for epoch in range(4 + closes)]
    over = 0
    for call, epoch in Sums.calls if workers == 1 else []:
        assert call == "frontier" or epoch >= over, f"{over} was the frontier before on_notify({epoch})"
        over = epoch if call == "frontier" else over
