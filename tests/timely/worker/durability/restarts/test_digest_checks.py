"""One worker's checks by themselves: what may be shown, and when an answer counts as changed."""

from __future__ import annotations

from collections.abc import Sequence
from struct import iter_unpack, pack
from typing import cast

import pytest

from timely import NotRepeatableError, TimelyError
from timely.building.dataflow import Dataflow
from timely.durable.digests import PastDigests
from timely.durable.journal import Journal
from timely.durable.log import Log
from timely.durable.past import Past, PastFlow
from timely.operators.capture import FOREVER
from timely.running.core import Worker
from timely.running.instance import Instance
from timely.wire.batch import Frame, Records
from timely.wire.handshake import Agreed, Control, Digested, decode_control
from timely.wire.transport.memory import MemoryNetwork
from timely.worker.durability.digests import DigestChecks


class FakeLog:
    """A log that tells what a test lets it tell."""

    def __init__(self) -> None:
        self.heads: list[list[object]] = []
        self.told = 0

    @property
    def position(self) -> int:
        return len(self.heads)

    def add(self, head: list[object], frames: Sequence[Frame] = ()) -> int:
        self.heads.append(head)
        return self.position

    def flush(self) -> None:
        """Nothing: the test says when the log tells more."""


class OneWorker:
    """A worker with a dataflow that passes records on, and its checks. `before`: the epochs before this one
    had digests.
    """

    def __init__(self, index: int = 0, workers: int = 1, before: int = 0, **sums: int) -> None:
        self.network = MemoryNetwork(workers)
        self.others = [self.network.transport(other) for other in range(workers)]
        self.worker = Worker(index, workers, self.others[index] if workers > 1 else None)
        self.errors: list[TimelyError] = []
        self.worker.on_failure = lambda number, error: self.errors.append(error)
        self.said: list[Control] = []
        self.log = FakeLog()
        by_epoch = {int(epoch.removeprefix("at")): digest for epoch, digest in sums.items()}
        digests = PastDigests(before=before, sums=by_epoch, makers=[(before, 1)])
        flow = PastFlow(0, "", b"", "passing", (), 0, "", (), [], digests={"out": digests} if before else {})
        self.checks = DigestChecks(
            self.worker, Journal(cast("Log", self.log), index), Past(flows={0: flow}), "/store"
        )
        dataflow = Dataflow("passing")
        dataflow.output("out", dataflow.input("in"))
        self.instance: Instance = self.worker.install(dataflow.freeze())
        self.checks.begin(self.instance)

    def insert(self, record: object, epoch: int) -> None:
        handle = self.instance.input("in")
        handle.append(epoch, Records([record]))
        handle.seal(epoch)
        self.worker.run_until_idle()

    def close(self) -> None:
        self.instance.input("in").close()
        self.worker.run_until_idle()

    def before(self) -> int:
        complete = self.instance.output("out").complete_before
        assert self.checks.before(self.instance, "", complete) == self.checks.before(
            self.instance, "out", complete
        )
        return self.checks.before(self.instance, "out", complete)

    def digests(self) -> list[list[object]]:
        return [head[3:5] for head in self.log.heads if head[0] == "digest"]


def digest_at(*records: tuple[str, int]) -> list[tuple[int, int]]:
    """The digests of these records with their epochs."""
    one = OneWorker()
    for record, epoch in records:
        one.insert(record, epoch)
    one.before()
    (head,) = (head for head in one.log.heads if head[0] == "digest")
    return list(zip(cast("list[int]", head[5]), cast("list[int]", head[6]), strict=True))


def test_an_epoch_is_shown_when_the_log_has_told_its_digest() -> None:
    one = OneWorker()
    one.insert("a", 0)
    assert one.before() == 0
    one.log.told = 1  # that of the build
    assert one.before() == 0 and not one.checks.look()
    one.log.told = 2
    assert one.checks.look() and one.before() == 1
    one.insert("b", 1)
    one.insert("c", 2)
    assert one.before() == 1 and one.digests() == [["out", 1], ["out", 3]]
    one.log.told = 3
    assert one.before() == 3 and not one.checks.look()
    one.close()
    assert one.before() == 3
    one.log.told = 4
    assert one.before() == FOREVER


def test_digests_are_written_once_and_after_those_from_before() -> None:
    sums = {f"at{epoch}": digest % 2**64 for epoch, digest in digest_at(("a", 0), ("b", 1))}
    one = OneWorker(before=2, **sums)
    one.insert("a", 0)
    one.insert("b", 1)
    assert one.before() == 2 and one.log.heads == [], "it is worker 0, and alone"
    one.insert("c", 2)
    assert one.before() == 2 and one.digests() == [["out", 3]]
    assert one.log.heads[-1][5] == [2]
    one.log.told = 2
    assert one.before() == 3


@pytest.mark.parametrize("asks", [False, True])
def test_epochs_that_are_made_again_are_compared_whether_anybody_asks_or_not(asks: bool) -> None:
    one = OneWorker(before=1, at0=digest_at(("a", 0))[0][1] % 2**64)
    one.insert("b", 0)
    if asks:
        complete = one.instance.output("out").complete_before
        assert one.checks.before(one.instance, "out", complete) == 0
    else:
        one.checks.look()
    (error,) = one.errors
    assert isinstance(error, NotRepeatableError)
    assert "output 'out' of dataflow 0 (passing) has changed at epoch 0, which" in str(error)
    assert "python -m timely.durable accept /store 0" in str(error)
    assert not one.checks.look()


@pytest.mark.parametrize(
    ("before", "now", "epoch"), [({}, {1: 5}, 1), ({2: 5}, {}, 2), ({0: 1, 1: 3}, {0: 1}, 1)]
)
def test_changes_at_an_epoch_that_had_none_and_none_where_some_were(
    before: dict[int, int], now: dict[int, int], epoch: int
) -> None:
    one = OneWorker(before=4, **{f"at{at}": digest for at, digest in before.items()})
    sums = b"".join(pack("<qq", at, digest) for at, digest in now.items())
    one.checks.on_digested(0, Digested(0, "out", 4, sums))
    (error,) = one.errors
    assert f"changed at epoch {epoch}, which" in str(error)


def test_worker_0_waits_for_the_shares_of_all_and_then_tells_all() -> None:
    one = OneWorker(index=0, workers=3, before=3, at0=9, at2=2)
    one.checks.on_digested(1, Digested(0, "out", 3, pack("<qqqq", 0, 4, 2, -5)))
    one.checks.on_digested(2, Digested(0, "out", 1, pack("<qq", 0, 3)))
    assert one.checks.before(one.instance, "out", 0) == 0 and not heard(one)
    one.checks.on_digested(0, Digested(0, "out", 3, pack("<qqqq", 0, 2, 2, 8)))
    assert heard(one) == [Agreed(0, "out", 1)] * 2
    one.checks.on_digested(2, Digested(0, "out", 3, pack("<qq", 2, -1)))
    assert heard(one) == [Agreed(0, "out", 3)] * 2 and not one.errors


def heard(one: OneWorker) -> list[Control]:
    """What the other workers have been told since the last call."""
    others = [index for index in range(one.worker.workers) if index != one.worker.index]
    messages = [message for other in others for message in one.others[other].recv_nowait()]
    controls = [decode_control(frames[1], peer) for peer, frames in messages if len(frames) == 2]
    return [control for control in controls if isinstance(control, Agreed | Digested)]


def test_another_worker_tells_its_share_and_shows_nothing_before_all_agree() -> None:
    one = OneWorker(index=1, workers=2, before=2, at0=9)
    one.checks.on_agreed(Agreed(0, "out", 1))
    for epoch, record in enumerate("abc"):
        one.instance.input("in").append(epoch, Records([record]))
    capture = one.instance.output("out")
    for epoch, record in enumerate("abc"):  # as if it had come here, and were complete everywhere
        capture.recv_all(0, [(capture.code.pack((epoch,)), Records([record]))])
    assert one.checks.before(one.instance, "out", 3) == 1
    (told,) = heard(one)
    assert isinstance(told, Digested) and (told.before, told.output) == (2, "out")
    assert [epoch for epoch, _ in iter_unpack("<qq", told.sums)] == [0, 1]
    one.log.told = one.log.position
    assert one.checks.before(one.instance, "out", 3) == 1, "epoch 2 is in the log; epoch 1 may differ"
    one.checks.on_agreed(Agreed(0, "out", 2))
    assert one.checks.before(one.instance, "out", 3) == 3
