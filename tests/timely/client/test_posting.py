"""What was posted: sent at once, answered later, told of once; and at real workers, from several threads."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pyarrow as pa
import pytest

import differential as dd
import timely
from timely.client import connection
from timely.client.posting import Posts
from timely.errors import MisuseError, PeerError, TimelyError
from timely.limits import POSTED_COUNT_MAX
from timely.user_code.call_site import CallSite
from timely.wire.batch import Frame
from timely.wire.requests import Describe, InsertRows, Reply, Request, Seal, Value

SITE = CallSite("here.py", 7)


class _Wire:
    """Answers come when they are asked for; those before them come first, and are `taken`."""

    def __init__(self) -> None:
        self.posts = Posts(self.send, self.gather)
        self.sent: list[tuple[int, int]] = []
        self.answers: dict[int, Reply | TimelyError] = {}
        self.answered: list[object] = []
        self.lost = False

    def send(self, worker: int, request: Request) -> int:
        self.sent.append((worker, len(self.sent)))
        return len(self.sent) - 1

    def gather(self, worker: int, number: int) -> Reply:
        for at, other in reversed(self.sent):
            if other != number and self.posts.expects(at, other) and other in self.answers:
                self.posts.take(at, other, self.answers.pop(other))
        if self.lost:
            raise PeerError("gone")
        answer = self.answers.pop(number, Reply({"epoch": number}))
        if isinstance(answer, TimelyError):
            raise answer
        return answer

    def on_answer(self, reply: Reply) -> None:
        self.answered.append(reply.integer("epoch"))

    def on_refusal(self, error: TimelyError) -> None:
        self.answered.append((str(error), error.__notes__))

    def post(self, count: int) -> None:
        for _ in range(count):
            self.posts.post(1, Describe(0), self, "insert(…)", SITE)


def test_it_is_sent_at_once_and_answers_are_told_in_order() -> None:
    wire = _Wire()
    wire.post(3)
    assert wire.sent == [(1, 0), (1, 1), (1, 2)] and wire.posts and wire.answered == []
    wire.answers = {2: Reply({"epoch": 22}), 1: Reply({"epoch": 11})}
    wire.posts.settle()
    assert wire.answered == [0, 11, 22] and not wire.posts
    wire.posts.settle()
    assert len(wire.answered) == 3


def test_a_refusal_is_told_with_its_line_and_the_others_go_on() -> None:
    wire = _Wire()
    wire.post(4)
    wire.answers = {1: MisuseError("no"), 3: MisuseError("never")}
    wire.posts.settle()
    note = ["this is the answer to insert(…) at here.py:7"]
    assert wire.answered == [0, ("no", note), 2, ("never", note)]


def test_where_the_connection_has_ended_what_has_no_answer_is_still_outstanding() -> None:
    wire = _Wire()
    wire.post(2)
    for _ in range(2):
        wire.lost = True
        with pytest.raises(PeerError, match="gone"):
            wire.posts.settle()
    assert wire.answered == [] and wire.posts
    wire.lost = False
    wire.posts.settle()
    assert wire.answered == [0, 1]


def test_too_many_are_settled_before_the_next_is_sent() -> None:
    wire = _Wire()
    wire.post(POSTED_COUNT_MAX)
    assert wire.answered == []
    wire.post(1)
    assert wire.answered == [*range(POSTED_COUNT_MAX)] and wire.posts
    assert not wire.posts.expects(1, 0) and wire.posts.expects(1, POSTED_COUNT_MAX)


def test_what_goes_behind_names_what_the_poster_has_sent_to_that_worker_and_all_is_settled_then() -> None:
    wire, other = _Wire(), _Wire()
    wire.post(2)
    wire.posts.post(1, Describe(0), other, "insert(…)", SITE)
    wire.posts.post(0, Describe(0), wire, "insert(…)", SITE)
    wire.answers = {1: MisuseError("no"), 4: Reply({"epoch": 44})}
    named: list[list[Value]] = []

    def request(behind: list[Value]) -> Request:
        named.append(behind)
        return Describe(1)

    assert wire.posts.ask_behind(1, wire, request).integer("epoch") == 44
    assert named == [[0, 1]] and wire.sent[-1] == (1, 4)
    assert wire.answered == [0, ("no", ["this is the answer to insert(…) at here.py:7"]), 3]
    assert other.answered == [2] and not wire.posts


def test_what_is_refused_behind_is_raised_when_the_others_are_settled_and_a_loss_settles_nothing() -> None:
    wire = _Wire()
    wire.post(2)
    wire.answers = {2: MisuseError("not now")}
    with pytest.raises(MisuseError, match="not now"):
        wire.posts.ask_behind(1, wire, lambda _: Describe(1))
    assert wire.answered == [0, 1] and not wire.posts
    wire.post(1)
    wire.lost = True
    with pytest.raises(PeerError, match="gone"):
        wire.posts.ask_behind(1, wire, lambda _: Describe(1))
    assert wire.answered == [0, 1] and wire.posts


@pytest.fixture(scope="module")
def pair() -> Iterator[timely.Cluster]:
    with timely.connect(workers=2) as cluster:
        yield cluster


def _counts(flow: timely.Dataflow) -> None:
    rows = dd.input(flow, "rows", "k: int, v: int").concat(dd.input(flow, "more", "k: int, v: int"))
    rows.group_by("k").agg(n=dd.count(), s=dd.sum("v")).output("counts")


def _read(flow: timely.Flow) -> set[tuple[int, ...]]:
    return {tuple(row.values()) for row in flow.output("counts").snapshot().to_pylist()}


def test_rows_of_many_calls_are_in_the_epoch_that_is_sealed_then(pair: timely.Cluster) -> None:
    flow = pair.install(_counts)
    for epoch in range(3):
        for value in range(20):
            assert flow.input("rows").insert([(epoch, value)]) == epoch
        flow.input("rows").remove([(epoch, 0)])
        assert flow.seal() == epoch
        flow.wait()
        assert _read(flow) == {(k, 19, 190) for k in range(epoch + 1)}


def test_a_refused_insertion_comes_with_the_next_call_and_nothing_is_sealed(pair: timely.Cluster) -> None:
    mine = pair.install(_counts)
    pair.flow(mine.index).input("more").close()
    mine.input("rows").insert([(1, 1)])
    mine.input("more").insert([(2, 2)])
    mine.input("rows").insert([(3, 3)])
    with pytest.raises(timely.InputClosedError, match="more") as caught:
        mine.seal()
    assert any(
        "insert(…), input 'more'," in note and "test_posting.py" in note for note in caught.value.__notes__
    )
    assert pair.flow(mine.index).refresh() == 0, "the epoch is open"
    assert mine.seal() == 0
    mine.wait()
    assert _read(mine) == {(1, 1, 1), (3, 1, 3)}


def test_what_other_threads_have_inserted_is_in_the_epoch_that_this_one_seals(pair: timely.Cluster) -> None:
    flow = pair.install(_counts)
    for epoch in range(5):
        threads = [
            threading.Thread(target=lambda n=n: [flow.input("rows").insert([(n, 1)]) for _ in range(30)])
            for n in range(3)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        flow.wait(flow.seal())
        assert _read(flow) == {(n, 30 * (epoch + 1), 30 * (epoch + 1)) for n in range(3)}


def test_rows_that_enter_a_later_epoch_than_was_known_are_sealed_all_the_same(pair: timely.Cluster) -> None:
    mine = pair.install(_counts)
    theirs = pair.flow(mine.index)
    theirs.input("rows").insert([(0, 5)])
    assert theirs.seal() == 0
    assert mine.input("rows").insert([(1, 6)]) == 0, "as far as this client knows"
    assert mine.seal() == 1
    mine.wait()
    assert _read(mine) == {(0, 1, 5), (1, 1, 6)}


def test_few_rows_go_where_epochs_are_sealed_and_a_seal_behind_them_is_one_answer_more(
    pair: timely.Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow = pair.install(_counts)
    sent: list[tuple[int, Request]] = []
    encode = connection.encode_request

    def encoded(number: int, request: Request, table: pa.Table | None = None) -> list[Frame]:
        sent.append((number, request))
        return encode(number, request, table)

    monkeypatch.setattr(connection, "encode_request", encoded)
    for epoch in range(3):
        for value in range(3):
            flow.input("rows").insert([(epoch, value)])
        assert flow.seal() == epoch
        assert flow.wait() == epoch
    seals = [request.behind for _, request in sent if isinstance(request, Seal)]
    assert [len(behind) for behind in seals] == [3, 3, 3], "none was asked for twice"
    assert seals[0] == [number for number, request in sent if isinstance(request, InsertRows)][:3]
    assert _read(flow) == {(k, 3, 3) for k in range(3)}


def test_where_it_is_not_known_what_became_of_rows_the_seal_waits_for_that(
    pair: timely.Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow = pair.install(_counts)
    real = connection._Channel._send

    def spoilt(self: connection._Channel, worker: int, request: Request) -> int:
        if isinstance(request, Seal):
            request = Seal(request.dataflow, request.epoch, [*request.behind, 1 << 40])
        return real(self, worker, request)

    monkeypatch.setattr(connection._Channel, "_send", spoilt)
    flow.input("rows").insert([(1, 1)])
    assert pair.flow(flow.index).refresh() == 0
    assert flow.seal() == 0
    assert flow.epoch == 1 and pair.flow(flow.index).refresh() == 1
    flow.wait()
    assert _read(flow) == {(1, 1, 1)}


def test_a_seal_behind_rows_of_a_dataflow_that_has_ended_tells_of_its_end(pair: timely.Cluster) -> None:
    flow = pair.install(_counts)
    pair.flow(flow.index).uninstall()
    flow.input("rows").insert([(1, 1)])
    with pytest.raises(timely.UninstalledError, match="was uninstalled") as caught:
        flow.seal()
    assert any("insert(…), input 'rows'," in note for note in caught.value.__notes__)
    with pytest.raises(timely.UninstalledError):
        flow.seal()
