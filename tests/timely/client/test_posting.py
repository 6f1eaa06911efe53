"""What was posted: sent at once, answered later, told of once. At real workers: `test_posted_rows.py`."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from timely.client import connection
from timely.client.installed import Installed
from timely.client.posting import Posts, Refusals, this_thread
from timely.client.remote.workers import RemoteWorkers
from timely.errors import MisuseError, PeerError, StoreError, TimelyError, WaitTimeoutError
from timely.limits import POSTED_COUNT_MAX, REPLY_SECONDS_MAX
from timely.user_code.call_site import CallSite
from timely.wire.batch import Frame
from timely.wire.frames.messages import encode_error, encode_reply, number_of
from timely.wire.requests import IN_OPEN, Deliver, Describe, Hello, Reply, Request, Value
from timely.wire.transport.server_socket import ServerSocket
from timely.wire.transport.zeromq import ClientSockets

SITE = CallSite("here.py", 7)


def rows(sequence: int, dataflow: int = 0) -> Deliver:
    """A delivery that is posted."""
    return Deliver(dataflow, "in", "w", sequence, IN_OPEN, 0, 1)


class _Wire:
    """Answers come when they are asked for; those before them come first, and are `taken`."""

    def __init__(self, index: int = 0) -> None:
        self.index = index
        self.epoch = 0
        self.posts = Posts(self.send, self.gather)
        self.sent: list[tuple[int, int]] = []
        self.rows: list[Frame | None] = []
        self.answers: dict[int, Reply | TimelyError] = {}
        self.answered: list[object] = []
        self.lost = False
        self.interrupts: list[BaseException] = []
        """What comes in place of an answer that has been taken off its socket."""
        self.seconds: list[float] = []

    def send(self, worker: int, request: Request, rows: Frame | None) -> int:
        self.rows.append(rows)
        self.sent.append((worker, len(self.sent)))
        return len(self.sent) - 1

    def gather(self, worker: int, number: int, timeout_seconds: float) -> Reply | TimelyError:
        self.seconds.append(timeout_seconds)
        for at, other in reversed(self.sent):
            if other != number and self.posts.expects(at, other) and other in self.answers:
                self.posts.take(at, other, self.answers.pop(other))
        if self.lost:
            raise PeerError("gone")
        answer = self.answers.pop(number, Reply({"epoch": number}))
        if self.interrupts:
            raise self.interrupts.pop()
        return answer

    def check_refused(self) -> None:
        raise AssertionError("it is asked by whoever seals")

    def on_answer(self, reply: Reply) -> None:
        self.answered.append(reply.integer("epoch"))

    def on_refusal(self, error: TimelyError, thread: int) -> None:
        assert thread == this_thread()
        self.answered.append((str(error), error.__notes__))

    def post(self, count: int) -> None:
        for _ in range(count):
            self.posts.post(1, rows(len(self.sent)), None, self, "insert(…)", SITE)


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
    assert all(0 < seconds <= REPLY_SECONDS_MAX for seconds in wire.seconds)
    note = ["this is the answer to insert(…) at here.py:7"]
    assert wire.answered == [0, ("no", note), 2, ("never", note)]


def test_rows_that_a_failing_disk_may_lack_are_sent_again_with_the_next_call() -> None:
    wire = _Wire()
    wire.post(4)
    wire.answers = {at: StoreError("full") for at in (1, 2)}
    for _ in range(2):
        with pytest.raises(StoreError, match="full") as raised:
            wire.posts.settle()
        assert "insert(…) at here.py:7" in raised.value.__notes__[0]
        assert "do not insert them again" in raised.value.__notes__[0]
        assert wire.answered == [0] and wire.posts, "it is no refusal"
        wire.answers = {len(wire.sent): StoreError("full"), len(wire.sent) + 1: StoreError("full")}
    sent = len(wire.sent)
    wire.answers = {}
    wire.posts.settle()
    assert len(wire.sent) == sent + 3 and wire.answered == [0, *range(sent, sent + 3)] and not wire.posts


def test_an_error_of_the_store_that_has_ended_the_dataflow_is_a_refusal() -> None:
    wire = _Wire()
    wire.post(1)
    ended = StoreError("a base is missing")
    ended.ends_dataflow = True
    wire.answers = {0: ended}
    wire.posts.settle()
    assert wire.answered == [("a base is missing", ["this is the answer to insert(…) at here.py:7"])]


def test_a_seal_that_a_failing_disk_refuses_leaves_the_rows_before_it_outstanding() -> None:
    wire = _Wire()
    wire.post(1)
    wire.answers = {0: StoreError("full"), 1: StoreError("full")}
    with pytest.raises(StoreError, match="full") as raised:
        wire.posts.ask_behind(1, wire, lambda after: Describe(0))
    assert "insert(…) at here.py:7" in raised.value.__notes__[0]
    behind: list[list[Value]] = []

    def seal(after: list[Value]) -> Request:
        behind.append(after)
        return Describe(0)

    assert wire.posts.ask_behind(1, wire, seal) == Reply({"epoch": 3})
    assert behind == [[]] and wire.answered == [2], "they are sent, and taken, before it"


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


def test_what_goes_behind_names_what_was_posted_there_for_the_dataflow_and_all_is_settled_then() -> None:
    wire, handle, other = _Wire(), _Wire(), _Wire(1)
    wire.post(2)
    wire.posts.post(1, rows(2), None, other, "insert(…)", SITE)
    wire.posts.post(0, rows(3), None, wire, "insert(…)", SITE)
    wire.posts.post(1, rows(4), None, handle, "insert(…)", SITE)
    wire.answers = {1: MisuseError("no"), 5: Reply({"epoch": 55})}
    named: list[list[Value]] = []

    def request(after: list[Value]) -> Request:
        named.append(after)
        return Describe(1)

    sent: list[int] = []
    reply = wire.posts.ask_behind(1, wire, request, lambda: sent.append(len(wire.seconds)))
    assert reply.integer("epoch") == 55
    assert sent == [0], "called before an answer is waited for"
    assert named == [[["in", "w", number] for number in (0, 1, 4)]], "each handle of the dataflow, no other"
    assert wire.sent[-1] == (1, 5)
    assert wire.answered == [0, ("no", ["this is the answer to insert(…) at here.py:7"]), 3]
    assert other.answered == [2] and handle.answered == [4] and not wire.posts


@pytest.mark.parametrize("settles", [True, False])
def test_a_seal_that_answers_what_it_names_is_the_only_answer_awaited(settles: bool) -> None:
    wire, other = _Wire(), _Wire(1)
    wire.post(3)
    wire.posts.post(1, rows(3), None, other, "insert(…)", SITE)
    wire.answers = {1: Reply({"epoch": 4}), 4: Reply({"sealed": 7, "took": True})}
    wire.posts.ask_behind(1, wire, lambda _: Describe(1), settles=settles)
    asked = len(wire.seconds)
    wire.posts.settle()
    assert wire.answered == [7, 4, 7], "one has said more, and it came before"
    assert asked == 1 + settles and len(wire.seconds) == 2, "the one of another dataflow is awaited"
    assert other.answered == [3] and not wire.posts


def test_who_is_interrupted_with_a_seal_that_answers_what_it_names_sends_it_again() -> None:
    wire = _Wire()
    wire.post(2)
    wire.answers = {2: Reply({"sealed": 7, "took": True})}
    wire.interrupts = [KeyboardInterrupt()]
    with pytest.raises(KeyboardInterrupt):
        wire.posts.ask_behind(1, wire, lambda _: Describe(1))
    assert wire.answered == [] and wire.posts
    wire.posts.settle()
    assert wire.answered == [3, 4] and wire.sent[3:] == [(1, 3), (1, 4)]


@pytest.mark.parametrize("error", [WaitTimeoutError("late"), PeerError("gone")])
def test_posts_whose_seal_has_no_answer_in_time_are_sent_again(error: TimelyError) -> None:
    """The worker may carry the seal out later: then it says so in the answer to the seal alone."""
    wire = _Wire()
    wire.post(2)
    wire.interrupts = [error]
    with pytest.raises(type(error)):
        wire.posts.ask_behind(1, wire, lambda _: Describe(1))
    assert wire.answered == [] and wire.posts
    wire.posts.settle()
    assert wire.answered == [3, 4] and wire.sent[3:] == [(1, 3), (1, 4)]


def test_posts_of_another_dataflow_and_those_of_a_seal_that_is_not_sent_have_their_answers() -> None:
    wire, other = _Wire(), _Wire(1)
    wire.posts.post(1, rows(0), None, other, "insert(…)", SITE)
    wire.interrupts = [WaitTimeoutError("late")]
    with pytest.raises(WaitTimeoutError):
        wire.posts.ask_behind(1, wire, lambda _: Describe(1))
    wire.post(1)

    def refused(after: list[Value]) -> Request:
        raise MisuseError("not now")

    with pytest.raises(MisuseError):
        wire.posts.ask_behind(1, wire, refused)
    wire.posts.settle()
    assert len(wire.sent) == 3 and other.answered == [0] and wire.answered == [2]


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


@pytest.mark.parametrize("is_behind", [False, True])
def test_what_has_no_answer_when_somebody_is_interrupted_is_sent_again(is_behind: bool) -> None:
    wire = _Wire()
    wire.post(4)
    wire.answers = {2: Reply({"epoch": 22})}
    wire.interrupts = [KeyboardInterrupt()]

    def asks() -> None:
        if is_behind:
            wire.posts.ask_behind(1, wire, lambda _: Describe(1))
        else:
            wire.posts.settle()

    with pytest.raises(KeyboardInterrupt):
        asks()
    assert wire.answered == [] and wire.posts
    anew = len(wire.sent)
    wire.answers = {anew + 2: MisuseError("no")}
    asks()
    note = ["this is the answer to insert(…) at here.py:7"]
    assert wire.answered == [anew, anew + 1, 22, ("no", note)], "all but the one that was known"
    assert len(wire.sent) == anew + 3 + is_behind and not wire.posts
    assert not any(wire.posts.expects(1, number) for number in range(len(wire.sent)))
    wire.post(1)
    wire.posts.settle()
    assert len(wire.sent) == anew + 4 + is_behind, "nothing is in doubt any more"


def test_rows_of_a_table_go_again_as_they_have_gone() -> None:
    wire = _Wire()
    wire.posts.post(1, rows(5), b"rows", wire, "insert(…)", SITE)
    wire.interrupts = [KeyboardInterrupt()]
    with pytest.raises(KeyboardInterrupt):
        wire.posts.settle()
    wire.posts.settle()
    assert wire.rows == [b"rows", b"rows"] and wire.answered == [1]


def test_who_has_waited_in_vain_waits_on_and_sends_nothing_again() -> None:
    wire = _Wire()
    wire.post(2)
    wire.interrupts = [WaitTimeoutError("too late")]
    with pytest.raises(WaitTimeoutError):
        wire.posts.settle()
    wire.posts.settle()
    assert wire.answered == [0, 1] and len(wire.sent) == 2


def test_what_is_not_told_yet_is_still_outstanding() -> None:
    """Else another thread would seal the epoch that was open as far as it knew."""
    wire, seen = _Wire(), []
    wire.on_answer = lambda reply: seen.append(bool(wire.posts))  # type: ignore[method-assign]
    wire.on_refusal = lambda error, thread: seen.append(bool(wire.posts))  # type: ignore[method-assign]
    wire.post(2)
    wire.answers = {0: MisuseError("no")}
    wire.posts.settle()
    assert seen == [True, True] and not wire.posts


def test_that_a_worker_has_waited_in_vain_is_an_answer() -> None:
    wire = _Wire()
    wire.post(2)
    wire.answers = {0: WaitTimeoutError("has not begun")}
    wire.posts.settle()
    assert [told[0] for told in wire.answered if isinstance(told, tuple)] == ["has not begun"]
    assert not wire.posts


def test_who_waits_with_a_limit_does_not_wait_for_longer_for_another_thread() -> None:
    wire = _Wire()
    wire.post(1)
    with wire.posts._lock, pytest.raises(WaitTimeoutError, match=r"another thread has waited for 0\.05 s"):
        wire.posts.settle(0.05)
    wire.posts.settle()
    assert wire.answered == [0]


def test_who_is_interrupted_as_it_sends_may_have_lost_answers_to_what_it_sent_before() -> None:
    """The line by which they were to come is given up then; and what is sent again keeps its place."""
    wire = _Wire()
    wire.post(2)
    real = wire.posts._send

    def interrupted(worker: int, request: Request, rows: Frame | None) -> int:
        raise KeyboardInterrupt

    wire.posts._send = interrupted
    with pytest.raises(KeyboardInterrupt):
        wire.post(1)
    wire.posts._send = real
    wire.post(1)
    assert wire.sent == [(1, number) for number in range(5)] and wire.answered == [2, 3]
    wire.posts.settle()
    assert wire.answered == [2, 3, 4] and len(wire.sent) == 5


def test_who_is_interrupted_as_he_sends_something_behind_may_have_lost_answers_too() -> None:
    wire = _Wire()
    wire.post(2)
    real = wire.posts._send

    def interrupted(worker: int, request: Request, rows: Frame | None) -> int:
        real(worker, request, rows)
        raise KeyboardInterrupt

    wire.posts._send = interrupted
    with pytest.raises(KeyboardInterrupt):
        wire.posts.ask_behind(1, wire, lambda _: Describe(1))
    wire.posts._send = real
    wire.posts.settle()
    assert len(wire.sent) == 5 and wire.answered == [3, 4]


class _Interrupts(set[tuple[int, int]]):
    """Whoever adds something is interrupted before it is there."""

    def add(self, element: tuple[int, int], /) -> None:
        raise KeyboardInterrupt


def test_who_is_interrupted_before_an_answer_is_expected_does_not_wait_for_what_was_thrown_away() -> None:
    """It comes along with the answer to what is asked next, for all that nobody has noted its number."""
    wire = _Wire()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(wire.posts, "_expected", _Interrupts())
        with pytest.raises(KeyboardInterrupt):
            wire.post(1)
    wire.post(1)
    wire.posts.settle()
    assert wire.sent == [(1, 0), (1, 1), (1, 2)], "the first one once more, by another number"
    assert wire.answered == [1, 2]


class _Lock:
    """Whoever calls `acquire` is interrupted as it returns, as it may be in any function of Python."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.locked = self._lock.locked
        self.release = self._lock.release

    def acquire(self, *_: object, **__: object) -> bool:
        self._lock.acquire()
        raise KeyboardInterrupt

    def __enter__(self) -> None:
        self._lock.__enter__()

    def __exit__(self, *_: object) -> None:
        self._lock.__exit__(None, None, None)


def test_who_is_interrupted_as_it_begins_to_settle_holds_nothing_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What is held by a call that has ended is held for ever."""
    wire = _Wire()
    monkeypatch.setattr(wire.posts, "_lock", _Lock())
    wire.post(1)
    try:
        wire.posts.settle()
    except KeyboardInterrupt:
        pass
    assert not wire.posts._lock.locked()
    wire.posts.settle()
    assert wire.answered and not wire.posts


class _Played:
    """One worker, played here: it lets requests wait until it is told what to answer."""

    def __init__(self, folder: Path) -> None:
        self.server = ServerSocket(f"ipc://{folder}/c0")
        self.workers = RemoteWorkers([self.server.address])
        self.asked: list[tuple[bytes, int]] = []

    def hear(self, count: int, looks: int = 500) -> int:
        for _ in range(looks):
            self.asked += [(client, number_of(frames)) for client, frames in self.server.recv_nowait()]
            if len(self.asked) >= count:
                break
            time.sleep(0.01)
        return len(self.asked)

    def answer(self, answer: Reply | TimelyError) -> None:
        client, number = self.asked.pop(0)
        encode = encode_reply(number, answer) if isinstance(answer, Reply) else encode_error(number, answer)
        self.server.send(client, encode)


@pytest.fixture
def played(tmp_path: Path) -> Iterator[_Played]:
    made = _Played(tmp_path)
    yield made
    made.workers.close()
    made.server.close()


def _in_thread(call: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=call)
    thread.start()
    return thread


@pytest.mark.parametrize("is_ordered", [True, False])
def test_of_keys_what_another_thread_has_posted_has_arrived_before(played: _Played, is_ordered: bool) -> None:
    """A worker takes what comes by two connections in any order."""
    installed = Installed(played.workers, 0, "name", 0)
    _in_thread(lambda: installed.post(0, rows(6), None, "upsert(1)", is_ordered)).join()
    second = _in_thread(lambda: installed.post(0, rows(7), None, "upsert(2)", is_ordered))
    assert played.hear(2, looks=30 if is_ordered else 500) == (1 if is_ordered else 2)
    played.answer(Reply({"epoch": 0}))
    assert played.hear(1) == 1
    played.answer(Reply({"epoch": 1}))
    second.join()
    installed.settle()
    assert installed.epoch == 1


def test_who_asks_whatever_it_is_has_heard_of_all_that_it_has_posted(played: _Played) -> None:
    """Else another thread, which settles, would listen to the same sockets at the same time."""
    installed = Installed(played.workers, 0, "name", 0)

    def both() -> None:
        installed.post(0, rows(8), None, "insert(1)")
        played.workers.ask([(0, Hello(), None)])

    asking = _in_thread(both)
    assert played.hear(2, looks=30) == 1
    played.answer(Reply({"epoch": 3}))
    assert played.hear(1) == 1
    assert installed.epoch == 3
    played.answer(Reply())
    asking.join()


def test_an_answer_that_is_an_error_is_an_answer_and_none_is_none(played: _Played) -> None:
    """And who waits for so long waits no longer for what was posted before."""
    installed = Installed(played.workers, 0, "name", 0)
    installed.post(0, rows(9), None, "insert(1)")
    with pytest.raises(WaitTimeoutError, match=r"no answer from worker 0 .* within 0\.[12]"):
        installed.ask([(0, Describe(0), None)], 0.2)
    assert played.hear(2) == 2, "and it was asked what holds the epoch"
    played.answer(WaitTimeoutError("dataflow 0 has not begun on worker 0"))
    with pytest.raises(WaitTimeoutError, match="has not begun") as caught:
        installed.settle()
    assert any("insert(1)" in note for note in caught.value.__notes__)
    installed.settle()


def test_closing_does_not_wait_for_long_for_a_worker_that_computes(
    played: _Played, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(connection, "CONNECT_SECONDS_MAX", 0.1)
    Installed(played.workers, 0, "name", 0).post(0, rows(0), None, "insert(1)")
    played.workers.close()
    (said,) = caplog.messages
    assert "it is not known whether the last rows have arrived: no answer from worker 0" in said
    assert played.hear(1) == 1, "it has been sent"


def test_who_finds_no_room_for_what_he_posts_waits_until_it_has_arrived(
    played: _Played, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is not sent yet would be sent by the next call, and that may be far away."""
    installed = Installed(played.workers, 0, "name", 0)
    monkeypatch.setattr(ClientSockets, "has_unsent", lambda _self, _worker: True)
    posting = _in_thread(lambda: installed.post(0, rows(10), None, "insert(1)"))
    assert played.hear(1) == 1
    posting.join(0.3)
    assert posting.is_alive()
    played.answer(Reply({"epoch": 4}))
    posting.join()
    assert installed.epoch == 4


def test_refusals_concern_who_has_posted_for_the_same_dataflow() -> None:
    refusals, me = Refusals(), this_thread()
    assert not refusals and not refusals.concern(1)
    refusals.add(1, me, MisuseError("mine"))
    refusals.add(2, me + 1, MisuseError("of another thread"))
    assert refusals and refusals.concern(1)
    assert not refusals.concern(2) and not refusals.concern(3)
    assert [str(each) for each in refusals.take(1, me)] == ["mine"]
    assert refusals and not refusals.concern(1)
    assert [str(each) for each in refusals.take(2)] == ["of another thread"] and not refusals
