"""What an installed dataflow's inputs and outputs share: whom they ask, and which epoch is open."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pytest
from fixed_members import FixedMembers

from timely.client.installed import Installed
from timely.client.posting import Poster, Refusals, this_thread
from timely.errors import TimelyError, VertexError
from timely.limits import ANSWER_SECONDS_MAX, REPLY_SECONDS_MAX
from timely.wire.requests import Describe, Reply, Request


class Listening(FixedMembers):
    """Workers that remember what they were asked, and for how long."""

    def __init__(self, addresses: list[str]) -> None:
        self.count = 3
        self.addresses = addresses
        self.part_bytes = 1
        self.asked: list[int] = []
        self.seconds = 0.0
        self.posted: list[tuple[int, Poster, str]] = []
        self.settled = 0
        self.settle_seconds = 0.0
        self.refusals = Refusals()
        self.thread = this_thread()
        self.ordered: list[bool] = []
        self.fails_with: TimelyError | None = None

    def ask(
        self,
        requests: Sequence[tuple[int, Request, pa.Table | None]],
        timeout_seconds: float = REPLY_SECONDS_MAX,
    ) -> list[Reply]:
        self.asked = [worker for worker, _, _ in requests]
        self.seconds = timeout_seconds
        if self.fails_with is not None:
            raise self.fails_with
        return [Reply({"worker": worker}) for worker in self.asked]

    def post(
        self,
        worker: int,
        request: Request,
        table: pa.Table | None,
        poster: Poster,
        call: str,
        is_ordered: bool = False,
    ) -> None:
        self.posted.append((worker, poster, call))
        self.ordered.append(is_ordered)

    def settle(self, timeout_seconds: float = 0.0) -> None:
        self.settled += 1
        self.settle_seconds = timeout_seconds
        for _, poster, call in self.posted:
            if isinstance(self.fails_with, TimelyError):
                self.fails_with.add_note(f"this is the answer to {call}")
                poster.on_refusal(self.fails_with, self.thread)
            else:
                poster.on_answer(Reply({"epoch": 7}))
        self.posted.clear()

    def insert_rows(self, poster: Poster, *_: object) -> int:
        if self.fails_with is not None:
            raise self.fails_with
        return 5

    def seal(self, poster: Poster, seconds: float | None, is_early: bool = False) -> tuple[int, bool]:
        if self.fails_with is not None:
            raise self.fails_with
        return poster.epoch, seconds is not None

    def wait(self, dataflow: int, epoch: int, seconds: float, waited_seconds: float = 0.0) -> None:
        if self.fails_with is not None:
            raise self.fails_with

    def close(self) -> None:
        raise AssertionError("nobody may close them")


def test_what_worker_0_decides_is_asked_of_it_alone() -> None:
    workers = Listening(["tcp://there"])
    assert Installed(workers, 4, "name", 0).ask_first(Describe(4)).integer("worker") == 0
    assert workers.asked == [0]


def test_all_are_asked_and_have_a_little_longer_than_the_limit() -> None:
    workers = Listening(["tcp://there"])
    replies = Installed(workers, 4, "name", 0).ask_all(Describe(4), 2.0)
    assert [reply.integer("worker") for reply in replies] == workers.asked == [0, 1, 2]
    assert workers.seconds == workers.settle_seconds == 2.0 + ANSWER_SECONDS_MAX


def test_without_a_limit_the_answer_is_waited_for_for_days() -> None:
    workers = Listening(["tcp://there"])
    Installed(workers, 4, "name", 0).ask_all(Describe(4), -1.0)
    assert workers.seconds > 86_400


def test_an_error_that_has_ended_the_dataflow_answers_whatever_follows_without_asking() -> None:
    workers = Listening(["tcp://there"])
    installed = Installed(workers, 4, "name", 0)
    workers.fails_with = VertexError("a row is refused")
    with pytest.raises(VertexError, match="a row is refused"):
        installed.ask_first(Describe(4))
    workers.fails_with = None
    assert installed.ask_first(Describe(4)).integer("worker") == 0
    workers.fails_with = VertexError("it has ended")
    workers.fails_with.ends_dataflow = True
    with pytest.raises(VertexError, match="it has ended"):
        installed.ask_all(Describe(4))
    workers.fails_with, workers.asked = None, []
    for _ in range(2):
        with pytest.raises(VertexError, match="it has ended") as caught:
            installed.ask_first(Describe(4))
        assert caught.value.ends_dataflow
    assert workers.asked == []


def test_the_open_epoch_never_goes_back() -> None:
    installed = Installed(Listening(["tcp://there"]), 4, "name", 3)
    installed.note_epoch(7)
    installed.note_epoch(5)
    assert installed.epoch == 7


def test_workers_without_addresses_are_within_this_process() -> None:
    assert Installed(Listening([]), 0, "name", 0).is_embedded
    assert not Installed(Listening(["localhost:7401"]), 0, "name", 0).is_embedded


def test_what_was_posted_is_settled_before_anything_is_asked() -> None:
    workers = Listening(["a", "b", "c"])
    installed = Installed(workers, 4, "name", 0)
    installed.post(1, Describe(4), None, "insert(…)")
    assert workers.asked == [] and workers.settled == 0 and installed.epoch == 0
    installed.ask_first(Describe(4))
    assert workers.asked == [0] and installed.epoch == 7


def test_what_was_refused_is_raised_by_the_next_call_which_asks_nothing() -> None:
    workers = Listening(["a", "b", "c"])
    installed, other = Installed(workers, 4, "name", 0), Installed(workers, 5, "other", 0)
    installed.post(1, Describe(4), None, "insert(1)")
    installed.post(1, Describe(4), None, "insert(2)")
    workers.fails_with = VertexError("a row is refused")
    workers.settle()
    workers.fails_with = None
    other.ask_first(Describe(5))  # another dataflow has nothing to do with it
    workers.asked = []
    with pytest.raises(VertexError, match="a row is refused") as caught:
        installed.ask_first(Describe(4))
    assert workers.asked == []
    notes = "\n".join(caught.value.__notes__)
    assert "insert(1)" in notes and "insert(2)" in notes
    installed.ask_first(Describe(4))
    assert workers.asked == [0], "it was told of once"


def test_a_refusal_that_has_ended_the_dataflow_answers_whatever_follows() -> None:
    workers = Listening(["a", "b", "c"])
    installed = Installed(workers, 4, "name", 0)
    installed.post(1, Describe(4), None, "insert(1)")
    workers.fails_with = VertexError("it has ended")
    workers.fails_with.ends_dataflow = True
    for call in (
        lambda: installed.post(0, Describe(4), None, "insert(2)"),
        lambda: installed.ask_first(Describe(4)),
    ):
        workers.settle()
        with pytest.raises(VertexError, match="it has ended"):
            call()
    assert workers.posted == [] and workers.asked == []


def test_what_one_thread_has_posted_is_told_to_it_or_to_who_seals_and_to_nobody_who_reads() -> None:
    workers = Listening(["a", "b", "c"])
    installed = Installed(workers, 4, "name", 0)
    for tells in (False, True):
        workers.thread, workers.fails_with = -1, VertexError("a row is refused")  # by another thread
        installed.post(1, Describe(4), None, "insert(1)")
        workers.settle()
        workers.fails_with = None
        installed.ask_first(Describe(4))
        installed.post(1, Describe(4), None, "insert(2)")
        installed.settle()
        if tells:
            with pytest.raises(VertexError, match="a row is refused"):
                installed.settle(seals=True)
        else:
            assert len(workers.refusals.take(4, -1)) == 1, "it is still to be told"
        installed.settle(seals=True)


def test_who_asks_the_dataflow_by_another_handle_is_told_too() -> None:
    workers = Listening(["a", "b", "c"])
    Installed(workers, 4, "name", 0).post(1, Describe(4), None, "insert(1)")
    workers.fails_with = VertexError("a row is refused")
    workers.settle()
    workers.fails_with = None
    with pytest.raises(VertexError, match="a row is refused"):
        Installed(workers, 4, "name", 0).post(1, Describe(4), None, "insert(2)")
    assert workers.posted == []


def test_a_seal_that_fails_tells_first_of_what_was_refused_of_any_thread() -> None:
    """It has the line of the call; the end of the dataflow, which is told from then on, has not."""
    workers = Listening(["tcp://there"])
    installed = Installed(workers, 4, "name", 0)
    installed.on_refusal(VertexError("not this row"), this_thread() + 1)
    workers.fails_with = VertexError("it has ended")
    workers.fails_with.ends_dataflow = True
    with pytest.raises(VertexError, match="not this row"):
        installed.seal_open(None)
    with pytest.raises(VertexError, match="it has ended"):
        installed.seal_open(None)
    assert not workers.refusals
