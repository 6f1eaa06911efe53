"""What was posted: sent at once, answered later, told of once; and at real workers, from several threads."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
import zmq

import differential as dd
import timely
from timely.client import connection
from timely.client.connection import RemoteWorkers
from timely.client.installed import Installed
from timely.client.posting import Poster, Posts, this_thread
from timely.errors import MisuseError, PeerError, TimelyError, WaitTimeoutError
from timely.limits import DIRECT_TABLE_BYTES_MAX, POSTED_BYTES_MAX, POSTED_COUNT_MAX, REPLY_SECONDS_MAX
from timely.user_code.call_site import CallSite
from timely.wire.batch import Frame
from timely.wire.requests import (
    Describe,
    Hello,
    InsertRows,
    Reply,
    Request,
    Seal,
    Value,
    encode_error,
    encode_reply,
    number_of,
)
from timely.wire.transport import direct_lines
from timely.wire.transport.direct import DirectLine
from timely.wire.transport.server_socket import ServerSocket
from timely.wire.transport.zeromq import ClientSockets

SITE = CallSite("here.py", 7)


class _Wire:
    """Answers come when they are asked for; those before them come first, and are `taken`."""

    def __init__(self, index: int = 0) -> None:
        self.index = index
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

    def on_answer(self, reply: Reply) -> None:
        self.answered.append(reply.integer("epoch"))

    def on_refusal(self, error: TimelyError, thread: int) -> None:
        assert thread == this_thread()
        self.answered.append((str(error), error.__notes__))

    def post(self, count: int) -> None:
        for _ in range(count):
            self.posts.post(1, Describe(0), None, self, "insert(…)", SITE)


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
    wire.posts.post(1, Describe(0), None, other, "insert(…)", SITE)
    wire.posts.post(0, Describe(0), None, wire, "insert(…)", SITE)
    wire.posts.post(1, Describe(0), None, handle, "insert(…)", SITE)
    wire.answers = {1: MisuseError("no"), 5: Reply({"epoch": 55})}
    named: list[list[Value]] = []

    def request(behind: list[Value]) -> Request:
        named.append(behind)
        return Describe(1)

    assert wire.posts.ask_behind(1, wire, request).integer("epoch") == 55
    assert named == [[0, 1, 4]] and wire.sent[-1] == (1, 5), "each handle of the dataflow, no other one"
    assert wire.answered == [0, ("no", ["this is the answer to insert(…) at here.py:7"]), 3]
    assert other.answered == [2] and handle.answered == [4] and not wire.posts


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
    wire.posts.post(1, Describe(0), b"rows", wire, "insert(…)", SITE)
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
    _in_thread(lambda: installed.post(0, Describe(0), None, "upsert(1)", is_ordered)).join()
    second = _in_thread(lambda: installed.post(0, Describe(0), None, "upsert(2)", is_ordered))
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
        installed.post(0, Describe(0), None, "insert(1)")
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
    installed.post(0, Describe(0), None, "insert(1)")
    with pytest.raises(WaitTimeoutError, match=r"no answer from worker 0 .* within 0\.[12]"):
        installed.ask([(0, Describe(0), None)], 0.2)
    assert played.hear(1) == 1
    played.answer(WaitTimeoutError("dataflow 0 has not begun on worker 0"))
    with pytest.raises(WaitTimeoutError, match="has not begun") as caught:
        installed.settle()
    assert any("insert(1)" in note for note in caught.value.__notes__)
    installed.settle()


def test_closing_does_not_wait_for_long_for_a_worker_that_computes(
    played: _Played, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(connection, "CONNECT_SECONDS_MAX", 0.1)
    Installed(played.workers, 0, "name", 0).post(0, Describe(0), None, "insert(1)")
    played.workers.close()
    (said,) = caplog.messages
    assert "it is not known whether the last rows have arrived: no answer from worker 0" in said
    assert played.hear(1) == 1, "it has been sent"


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


def test_a_small_table_is_posted_and_a_large_or_a_named_one_is_waited_for(
    pair: timely.Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow = pair.install(_counts)
    rows = flow.input("rows")
    posted: list[int] = []
    post = Posts.post

    def noted(self: Posts, worker: int, request: Request, table: Frame | None, *rest: object) -> None:
        assert worker == 0, "where epochs are sealed"
        posted.append(0 if table is None else memoryview(table).nbytes)
        post(self, worker, request, table, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(Posts, "post", noted)
    small = pa.table({"k": [1] * 1_000, "v": list(range(1_000))})
    large = pa.table({"k": [2] * 8_191, "v": [1] * 8_191, "w": ["twenty bytes of text"] * 8_191})
    assert large.nbytes > POSTED_BYTES_MAX
    rows.insert(small)
    rows.remove(small.slice(0, 400))
    assert len(posted) == 2 and all(8 * 2 * 400 < size < DIRECT_TABLE_BYTES_MAX for size in posted)
    rows.insert(small.slice(0, 1), writer="me", sequence=0)
    rows.append(small.slice(0, 1).append_column("diff", pa.array([1])))
    assert len(posted) == 2
    assert flow.seal() == 0
    flow.wait()
    assert _read(flow) == {(1, 602, sum(range(400, 1_000)))}
    wide = pair.install(_of_texts)
    wide.input("rows").insert(large)
    assert len(posted) == 2
    wide.wait(wide.seal())
    assert wide.output("counts").snapshot().to_pylist() == [{"k": 2, "n": 8_191}]


def _of_texts(flow: timely.Dataflow) -> None:
    dd.input(flow, "rows", "k: int, v: int, w: str").group_by("k").agg(n=dd.count()).output("counts")


def test_a_small_table_that_is_refused_comes_with_the_next_call(pair: timely.Cluster) -> None:
    flow = pair.install(_counts)
    pair.flow(flow.index).input("more").close()
    flow.input("more").insert(pa.table({"k": [1] * 300, "v": [2] * 300}))
    with pytest.raises(timely.InputClosedError, match="more") as caught:
        flow.seal()
    assert any("insert(…), input 'more'," in note for note in caught.value.__notes__)
    assert flow.seal() == 0


def test_who_finds_no_room_for_what_he_posts_waits_until_it_has_arrived(
    played: _Played, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is not sent yet would be sent by the next call, and that may be far away."""
    installed = Installed(played.workers, 0, "name", 0)
    monkeypatch.setattr(ClientSockets, "has_unsent", lambda _self, _worker: True)
    posting = _in_thread(lambda: installed.post(0, Describe(0), None, "insert(1)"))
    assert played.hear(1) == 1
    posting.join(0.3)
    assert posting.is_alive()
    played.answer(Reply({"epoch": 4}))
    posting.join()
    assert installed.epoch == 4


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


@pytest.mark.parametrize("way", ["direct", "zmq"])
def test_who_is_interrupted_in_the_middle_of_an_answer_may_go_on(
    pair: timely.Cluster, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    if way == "zmq":
        monkeypatch.setattr(direct_lines, "connect", lambda _: None)
    with timely.connect(*pair.addresses) as mine:
        flow = mine.flow(pair.install(_counts).index)
        flow.input("rows").insert([(1, 6)])
        flow.wait(flow.seal())
        torn: list[object] = []
        if way == "zmq":

            def recv_multipart(socket: zmq.Socket[bytes], *_: object, **__: object) -> None:
                torn.append(socket.recv())
                raise KeyboardInterrupt

            monkeypatch.setattr(zmq.Socket, "recv_multipart", recv_multipart)
        else:
            whole = DirectLine.recv

            def recv(line: DirectLine) -> list[list[memoryview]]:
                if heard := whole(line):
                    torn.append(heard)
                    raise KeyboardInterrupt
                return heard

            monkeypatch.setattr(DirectLine, "recv", recv)
        with pytest.raises(KeyboardInterrupt):
            flow.output("counts").changes_nowait()
        if way == "zmq":
            flow.input("rows").insert([(2, 7)])
            with pytest.raises(KeyboardInterrupt):
                flow.seal()
        monkeypatch.undo()
        assert torn
        flow.input("rows").insert([(2, 8)])
        flow.wait(flow.seal())
        assert _read(flow) == {(1, 1, 6), (2, 2, 15) if way == "zmq" else (2, 1, 8)}


def test_a_seal_behind_rows_of_a_dataflow_that_has_ended_tells_of_its_end(pair: timely.Cluster) -> None:
    flow = pair.install(_counts)
    pair.flow(flow.index).uninstall()
    flow.input("rows").insert([(1, 1)])
    with pytest.raises(timely.UninstalledError, match="was uninstalled") as caught:
        flow.seal()
    assert any("insert(…), input 'rows'," in note for note in caught.value.__notes__)
    with pytest.raises(timely.UninstalledError):
        flow.seal()


def test_a_refusal_that_no_call_has_told_of_comes_out_of_closing(pair: timely.Cluster) -> None:
    index = pair.install(_counts).index
    pair.flow(index).input("more").close()
    with (
        pytest.raises(timely.InputClosedError, match="more") as caught,
        timely.connect(*pair.addresses) as other,
    ):
        other.flow(index).input("more").insert([(1, 1)])
    assert any("insert(…), input 'more'," in note for note in caught.value.__notes__)
    with pytest.raises(KeyError) as alone, timely.connect(*pair.addresses) as other:
        other.flow(index).input("more").insert([(1, 1)])
        raise KeyError("of the program")
    assert any("InputClosedError" in note for note in alone.value.__notes__)


def test_a_refusal_is_told_also_where_each_call_has_a_handle_of_its_own(pair: timely.Cluster) -> None:
    index = pair.install(_counts).index
    pair.flow(index).input("more").close()
    pair.flow(index).input("more").insert([(1, 1)])
    with pytest.raises(timely.InputClosedError, match="more"):
        pair.flow(index).seal()
    assert pair.flow(index).seal() == 0


def test_who_seals_is_told_of_what_other_threads_have_inserted_and_who_reads_is_not(
    pair: timely.Cluster,
) -> None:
    flow = pair.install(_counts)
    pair.flow(flow.index).input("more").close()
    _in_thread(lambda: flow.input("more").insert([(1, 1)])).join()
    assert flow.output("counts").changes_nowait().num_rows == 0
    with pytest.raises(timely.InputClosedError, match="more"):
        flow.seal()
    assert flow.seal() == 0


def test_closing_twice_says_nothing(pair: timely.Cluster, caplog: pytest.LogCaptureFixture) -> None:
    other = timely.connect(*pair.addresses)
    other.close()
    other.close()
    assert not caplog.messages


def _last(flow: timely.Dataflow) -> None:
    dd.input(flow, "owners", "id: int, name: string", key="id", mode="upsert").output("owners")
    dd.input(flow, "rows", "k: int").output("rows")


def test_what_is_said_of_keys_is_in_order_and_rows_need_none(
    pair: timely.Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow, ordered = pair.install(_last), list[bool]()
    post = RemoteWorkers.post

    def noted(
        workers: RemoteWorkers,
        worker: int,
        request: Request,
        table: pa.Table | None,
        poster: Poster,
        call: str,
        is_ordered: bool = False,
    ) -> None:
        ordered.append(is_ordered)
        post(workers, worker, request, table, poster, call, is_ordered)

    monkeypatch.setattr(RemoteWorkers, "post", noted)
    flow.input("owners").upsert([(1, "ada"), (2, "bob")])
    flow.input("owners").delete([1])
    flow.input("rows").insert([(1,)])
    flow.input("rows").insert([(2,)], writer="job", sequence=0)  # who names a call hears of it at once
    assert ordered == [True, True, False]
    flow.seal()
    assert flow.output("owners").snapshot().to_pylist() == [{"id": 2, "name": "bob"}]


def test_a_thread_that_begins_when_another_has_ended_is_not_told_of_what_that_one_has_inserted(
    pair: timely.Cluster,
) -> None:
    """The system gives it the same number. These only read: who seals would never hear of the refusal."""
    flow = pair.install(_counts)
    pair.flow(flow.index).input("more").close()
    told: list[object] = []

    def read() -> None:
        try:
            told.append(flow.output("counts").changes_nowait().num_rows)
        except timely.TimelyError as error:
            told.append(error)

    _in_thread(lambda: flow.input("more").insert([(1, 1)])).join()
    for _ in range(30):
        _in_thread(read).join()
    assert told == [0] * 30
    with pytest.raises(timely.InputClosedError, match="more"):
        flow.seal()
    assert flow.seal() == 0
