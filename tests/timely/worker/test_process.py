"""What a worker process keeps of its answers: those to insertions, which nobody waits for yet; and in which
order they leave.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import cast

import msgpack
import pytest

import timely
from timely.client.tables import InputForm
from timely.limits import POSTED_COUNT_MAX, WAITING_OF_ONE_COUNT_MAX
from timely.wire.batch import Frame
from timely.wire.frames.messages import FAREWELL, decode_reply, encode_request, number_of
from timely.wire.handshake import PROTOCOL_VERSION, Ended, EndHeard, decode_control, encode_control
from timely.wire.requests import IN_EPOCH, IN_OPEN, Decide, Deliver, Describe, Hello, Progress, Reply, Request
from timely.wire.transport.server_socket import ServerSocket
from timely.worker.answers.later import Later
from timely.worker.process import WorkerProcess
from timely.worker.settings import local_settings

A, B = b"a", b"b"
LINES = InputForm("lines", "records").to_table(["a b"])


class Clients:
    """In place of the socket for clients: what they ask, and what they are sent, by the numbers of it."""

    def __init__(self) -> None:
        self.come: list[tuple[bytes, list[memoryview]]] = []
        self.sent: list[tuple[bytes, list[int]]] = []
        self.answers: dict[tuple[bytes, int], Reply | timely.TimelyError] = {}
        self.gone: list[bytes] = []
        self.is_sending = False
        self.patience = 0.01

    def asks(self, client: bytes, *requests: tuple[int, Request]) -> None:
        for number, request in requests:
            table = LINES if isinstance(request, Deliver) else None
            self.come.append((client, [*map(memoryview, encode_request(number, request, table))]))

    def recv_nowait(self) -> list[tuple[bytes, list[memoryview]]]:
        come, self.come = self.come, []
        return come

    def send(self, client: bytes, *answers: list[Frame]) -> None:
        frames = [[*map(memoryview, each)] for each in answers]
        self.sent.append((client, [number_of(each) for each in frames]))
        for each in frames:
            self.answers[client, number_of(each)] = decode_reply(each)

    def taken_away(self) -> list[bytes]:
        gone, self.gone = self.gone, []
        return gone

    def refusal(self, client: bytes) -> str:
        return ""


@pytest.fixture
def process(tmp_path: Path) -> Iterator[WorkerProcess]:
    """One whose clients are `Clients`, and what they insert waits for the seal."""
    (settings,) = local_settings(1, tmp_path)
    made = WorkerProcess(replace(settings, token=""), lambda said: None)
    answer = made._server.install_at_start(0, "dataflows:word_count")
    while isinstance(answer, Later):
        made._worker.step()
        answer = answer.ready() or answer
    made._worker.run_until_idle()
    socket, made._clients = made._clients, cast("ServerSocket", Clients())
    made._outbox.clients = made._clients
    yield made
    made._clients = socket
    made._close()


@pytest.fixture
def clients(process: WorkerProcess) -> Clients:
    return cast("Clients", process._clients)


def _insert(sequence: int, writer: str = "w", name: str = "lines") -> Deliver:
    return Deliver(0, name, writer, sequence, IN_OPEN, 0, 1)


def test_answers_to_insertions_leave_once_a_client_asks_nothing_more(
    process: WorkerProcess, clients: Clients
) -> None:
    clients.asks(A, (1, _insert(0)), (2, _insert(1)))
    assert process._serve()
    clients.asks(A, (3, _insert(2)))
    assert process._serve()
    assert clients.sent == [], clients.answers
    assert not process._serve()
    assert clients.sent == [(A, [1, 2, 3])]
    assert not process._serve() and len(clients.sent) == 1


def test_a_look_for_what_follows_posts_sends_no_answer_of_its_own(
    process: WorkerProcess, clients: Clients
) -> None:
    clients.asks(A, (1, _insert(0)))
    assert process._serve() and process._outbox.has_posts_only
    assert not process._serve(is_following=True)
    assert clients.sent == []
    clients.asks(A, (2, Decide(0, 0, True)))
    assert process._serve(is_following=True) and not process._outbox.has_posts_only
    assert clients.sent == [(A, [1, 2])]


def test_a_worker_that_was_woken_sleeps_again(process: WorkerProcess) -> None:
    own = process._wake_recv.fileno()
    process._wake()
    process._wake()
    process._wait(60.0)
    assert own in process._mesh.ready
    process._wait(0.0)
    assert own not in process._mesh.ready


def test_something_is_expected_while_rows_wait_to_be_let_in_or_a_client_waits(
    process: WorkerProcess, clients: Clients
) -> None:
    """Then memory is kept."""
    assert not process._is_expected()
    clients.asks(A, (1, _insert(0)))
    process._serve()
    assert process._is_expected(), "rows wait for the seal"
    clients.asks(A, (2, Decide(0, 0, True)))
    process._serve()
    process._worker.run_until_idle()
    assert not process._is_expected()
    clients.asks(A, (3, Progress(0, "", 1, 60.0)))
    process._serve()
    assert process._is_expected(), "somebody waits for the next epoch"


def test_something_is_expected_until_an_answer_has_left(process: WorkerProcess, clients: Clients) -> None:
    clients.is_sending = True
    assert process._is_expected()
    clients.is_sending = False
    assert not process._is_expected()


def test_a_worker_that_waits_looks_for_what_was_left_behind_when_it_is_time(
    process: WorkerProcess, clients: Clients, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[float] = []

    def look() -> None:
        looked.append(time.monotonic())
        process.stop_soon()

    monkeypatch.setattr(process._tidying, "look", look)
    process._tidying.look_at = begun = time.monotonic() + 0.05
    in_vain = threading.Timer(5.0, process.stop_soon)
    in_vain.start()
    process._loop()
    in_vain.cancel()
    assert len(looked) == 1 and looked[0] >= begun


@pytest.mark.parametrize(
    ("following", "counts"),
    [(None, True), (-1, True), (1_000, False)],
    ids=["no piece", "the last piece", "a piece with others behind it"],
)
def test_a_large_answer_is_counted_for_who_gives_back_memory_once_its_reader_has_all_of_it(
    process: WorkerProcess, following: int | None, counts: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    added: list[int] = []
    monkeypatch.setattr(process._giving_back, "add_sent", added.append)
    reply = Reply({} if following is None else {"next": following}, LINES)
    process._send(A, 1, reply, lambda: None, rests_on_log=False)
    assert added == ([LINES.num_rows] if counts else [])


@pytest.mark.parametrize("is_read_in_wait", [True, False], ids=["it slept", "it was awake"])
def test_memory_of_an_answer_is_given_back_though_another_client_waits_and_no_work_comes(
    process: WorkerProcess, clients: Clients, is_read_in_wait: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    clients.asks(A, (1, Progress(0, "", 1, 60.0)))  # nobody seals that epoch
    rested: list[str] = []
    waits = 0

    def wait(seconds: float) -> None:
        nonlocal waits
        waits += 1
        process._mesh.has_other_news = waits == 3 and is_read_in_wait
        if waits == 3:
            assert process._is_expected() and process._rest_at == float("inf")
            rested.clear()
            clients.asks(B, (1, Describe(0)))
        if waits == 6:
            process._is_ending = True

    monkeypatch.setattr("timely.worker.process.REST_SECONDS_MIN", 0.0)
    monkeypatch.setattr(process, "_wait", wait)
    monkeypatch.setattr(process._worker, "rest", lambda: rested.append("worker"))
    monkeypatch.setattr(process._giving_back, "rest", lambda: rested.append("memory"))
    process._loop()
    assert rested == ["memory"], "vertices that rest already have nothing new to do"


def test_answers_to_insertions_leave_with_the_next_one_and_before_it(
    process: WorkerProcess, clients: Clients
) -> None:
    clients.asks(A, (1, _insert(0)))
    process._serve()
    clients.asks(
        A, (2, _insert(1)), (3, Decide(0, 0, True, [["lines", "w", 0], ["lines", "w", 1]])), (4, Describe(0))
    )
    process._serve()
    assert clients.sent == [(A, [3]), (A, [4])]
    assert clients.answers[A, 3] == Reply({"open": 1, "sealed": 0, "took": True}), "that to all three"


def test_insertions_that_a_seal_does_not_name_or_could_not_find_have_their_own_answers(
    process: WorkerProcess, clients: Clients
) -> None:
    clients.asks(A, (1, _insert(0)), (2, Decide(0, 0, True, [["lines", "w", 0], ["lines", "w", 1]])))
    process._serve()
    assert clients.sent == [(A, [1, 2])]
    assert clients.answers[A, 2] == Reply({"open": -1, "sealed": -1})
    clients.asks(A, (3, _insert(1)), (4, _insert(2)), (5, Decide(0, 0, True, [["lines", "w", 2]])))
    process._serve()
    assert clients.sent[1:] == [(A, [3, 5])]


def test_a_client_of_an_older_release_gets_one_error_that_says_so(
    process: WorkerProcess, clients: Clients
) -> None:
    fields = {
        "dataflow": 0,
        "input": "lines",
        "epoch": 0,
        "writer": "w",
        "sequence": 0,
        "diff": 1,
        "rows": [],
    }
    clients.come.append((A, [memoryview(msgpack.packb([11, 7, "insertrows", fields]))]))
    process._serve()
    (told,) = clients.answers.values()
    assert clients.sent == [(A, [7])]
    assert isinstance(told, timely.RequestError)
    assert f"the client speaks protocol version 11, this worker {PROTOCOL_VERSION}: use" in str(told)


def test_what_another_client_asks_keeps_nobody_s_answers(process: WorkerProcess, clients: Clients) -> None:
    clients.asks(A, (1, _insert(0)))
    process._serve()
    clients.asks(B, (1, _insert(0, "other")))
    process._serve()
    assert clients.sent == [(A, [1])]
    process._serve()
    assert clients.sent == [(A, [1]), (B, [1])]


def test_answers_are_not_kept_over_other_work(process: WorkerProcess, clients: Clients) -> None:
    clients.asks(A, (1, _insert(0)), (2, Decide(0, 0, True)), (3, _insert(1)))
    process._serve()
    assert process._worker.has_work()
    assert clients.sent == [(A, [1, 2]), (A, [3])]


def test_a_refusal_comes_behind_what_was_done_before(process: WorkerProcess, clients: Clients) -> None:
    clients.asks(A, (1, _insert(0)), (2, _insert(1, name="none")), (3, _insert(2)))
    process._serve()
    assert clients.sent == [(A, [1, 2])]
    assert isinstance(clients.answers[A, 2], timely.MisuseError)
    process._serve()
    assert clients.sent[1:] == [(A, [3])]


def test_no_more_is_kept_of_one_client_than_may_be_outstanding(
    process: WorkerProcess, clients: Clients
) -> None:
    """Who asks without a pause, and reads nothing, is to have it on his connection."""
    for number in range(3 * POSTED_COUNT_MAX + 1):
        clients.asks(A, (number + 1, _insert(0)))  # which counts once
        process._serve()
    assert [len(numbers) for _, numbers in clients.sent] == [POSTED_COUNT_MAX] * 3
    assert [number for _, numbers in clients.sent for number in numbers] == [
        *range(1, 3 * POSTED_COUNT_MAX + 1)
    ]


def test_what_is_kept_leaves_before_the_last_word(process: WorkerProcess, clients: Clients) -> None:
    clients.asks(A, (1, _insert(0)))
    clients.asks(B, (1, Progress(0, "", 0, -1.0)), (2, _insert(0, "other")))
    process._serve()
    assert clients.sent == [], clients.answers
    clients.asks(B, (3, _insert(1, "other")))
    process._tell_clients(timely.PeerError("it ends"))
    assert clients.sent[:3] == [(B, [2, 1]), (A, [1, FAREWELL]), (B, [FAREWELL])]
    assert clients.sent[3:] == [(B, [3])], "who still asks is told"
    assert isinstance(clients.answers[B, 3], timely.PeerError)


def test_what_is_kept_leaves_before_a_key_is_told_to_be_taken_away(
    process: WorkerProcess, clients: Clients
) -> None:
    clients.asks(A, (1, _insert(0)))
    clients.asks(B, (1, _insert(0, "other")))
    process._serve()
    clients.gone = [A]
    process._serve()
    assert clients.sent == [(A, [1, FAREWELL]), (B, [1])]


def test_what_waits_for_an_answer_is_told_too_that_its_key_is_taken_away(
    process: WorkerProcess, clients: Clients
) -> None:
    for client in (A, B):
        clients.asks(client, (1, Progress(0, "", 5, 60.0)))
    process._serve()
    clients.gone = [A]
    process._serve()
    assert clients.sent == [(A, [1]), (A, [FAREWELL])]
    assert isinstance(clients.answers[A, 1], timely.RefusedError)
    assert [client for client, _, _ in process._waiting] == [B]


def test_answers_to_appends_leave_at_once(process: WorkerProcess, clients: Clients) -> None:
    """Their client waits for them."""
    clients.asks(A, (1, Deliver(0, "lines", "w", 0, IN_EPOCH, 0, 1)))
    process._serve()
    assert clients.sent == [(A, [1])]


def test_a_seal_and_the_wait_with_it_have_one_answer(process: WorkerProcess, clients: Clients) -> None:
    clients.asks(A, (1, _insert(0)), (2, Decide(0, 0, True, waits=60.0)))
    process._serve()
    process._serve()
    assert clients.sent == [], "the client waits for more than these"
    process._worker.run_until_idle()
    process._answer_waiting()
    assert clients.sent == [(A, [1, 2])]
    assert clients.answers[A, 2] == Reply({"open": 1, "sealed": 0, "complete": 1})


def test_the_answer_to_a_seal_does_not_wait_for_long_work(
    process: WorkerProcess, clients: Clients, monkeypatch: pytest.MonkeyPatch
) -> None:
    clients.asks(A, (1, _insert(0)), (2, Decide(0, 0, True, waits=60.0)))
    monkeypatch.setattr("timely.worker.process._HELD_SECONDS", 0.0)
    process._serve()
    process._serve()
    assert clients.sent == [(A, [1, 2])]
    process._worker.run_until_idle()
    process._answer_waiting()
    assert clients.answers[A, 2] == Reply({"open": 1, "sealed": 0})
    assert clients.answers[A, 3] == Reply({"complete": 1}), "under the next number"


def test_a_worker_sleeps_no_longer_than_an_answer_may_wait(
    process: WorkerProcess, clients: Clients, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("timely.worker.process._HELD_SECONDS", 0.05)
    clients.asks(A, (2, Decide(0, 0, True, waits=60.0)))
    process._serve()
    assert not process._waiting or process._outbox.has_unsent
    process._waiting.clear()  # as of a wait that was answered before its seal
    began = time.monotonic()
    while process._outbox.has_unsent and time.monotonic() < began + 30.0:
        process._wait(30.0)
        process._serve()
    assert clients.sent == [(A, [2])] and time.monotonic() < began + 20.0


def test_a_seal_that_is_refused_has_no_wait(process: WorkerProcess, clients: Clients) -> None:
    clients.asks(A, (1, Decide(7, 0, True, waits=60.0)))
    process._serve()
    assert clients.sent == [(A, [1])] and not process._waiting
    assert isinstance(clients.answers[A, 1], timely.MisuseError)


def test_the_wait_with_a_seal_is_refused_under_its_own_number(
    process: WorkerProcess, clients: Clients
) -> None:
    clients.asks(A, *[(10 * number, Progress(0, "", 5, 60.0)) for number in range(WAITING_OF_ONE_COUNT_MAX)])
    clients.asks(A, (9_001, Decide(0, 0, True, waits=60.0)))
    process._serve()
    assert clients.sent == [(A, [9_001, 9_002])]
    assert isinstance(clients.answers[A, 9_001], Reply)
    assert "requests of this client wait" in str(clients.answers[A, 9_002])


def test_of_one_client_only_so_many_requests_wait(process: WorkerProcess, clients: Clients) -> None:
    waits = [(number, Progress(0, "", 5, 60.0)) for number in range(WAITING_OF_ONE_COUNT_MAX + 1)]
    clients.asks(A, *waits)
    clients.asks(B, *waits[:1])
    process._serve()
    assert clients.sent == [(A, [WAITING_OF_ONE_COUNT_MAX])]
    assert "requests of this client wait" in str(clients.answers[A, WAITING_OF_ONE_COUNT_MAX])
    assert len(process._waiting) == WAITING_OF_ONE_COUNT_MAX + 1


def _fail_unheard(process: WorkerProcess) -> None:
    """A dataflow fails, and worker 1 has not heard of it."""
    process._worker.fail(0, ValueError("a bad row"))
    process._server._ends_unheard[0] = {1}


def test_the_end_of_a_dataflow_is_told_once_all_workers_have_ended_it(
    process: WorkerProcess, clients: Clients
) -> None:
    """A client that was told could ask another worker at once, which would still accept its rows."""
    clients.asks(A, (1, Progress(0, "", 5, 60.0)))
    process._serve()
    _fail_unheard(process)
    clients.asks(B, (1, Describe(0)), (2, Hello()))
    process._serve()
    process._answer_waiting()
    assert clients.sent == [(B, [2])]
    process._server._on_control(1, memoryview(encode_control(EndHeard(0))))
    process._answer_waiting()
    assert clients.sent == [(B, [2]), (A, [1]), (B, [1])]
    for client in (A, B):
        error = clients.answers[client, 1]
        assert isinstance(error, timely.TimelyError) and error.ends_dataflow and "a bad row" in str(error)


def test_the_end_of_a_dataflow_is_told_in_time_though_another_worker_is_busy(
    process: WorkerProcess, clients: Clients, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("timely.worker.process.ANSWER_SECONDS_MAX", 0.0)
    clients.asks(A, (1, Progress(0, "", 5, 0.0)))
    _fail_unheard(process)
    clients.asks(B, (1, Describe(0)))
    process._serve()
    process._answer_waiting()
    assert sorted(clients.sent) == [(A, [1]), (B, [1])]


def test_a_client_that_waits_without_a_limit_is_told_in_time_of_an_end(
    process: WorkerProcess, clients: Clients, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A busy worker hears of the end only after its step, which may take any time."""
    monkeypatch.setattr("timely.worker.process.ANSWER_SECONDS_MAX", 0.01)
    clients.asks(A, (1, Progress(0, "", 5, -1.0)))
    process._serve()
    _fail_unheard(process)
    process._answer_waiting()
    assert clients.sent == [], "worker 1 has a moment to hear of it"
    time.sleep(0.02)
    process._answer_waiting()
    assert clients.sent == [(A, [1])]


def test_a_lone_worker_tells_the_end_of_a_dataflow_at_once(process: WorkerProcess, clients: Clients) -> None:
    """It has nobody to wait for, whoever waits without a limit or asks later."""
    clients.asks(A, (1, Progress(0, "", 5, -1.0)))
    process._serve()
    process._worker.fail(0, ValueError("a bad row"))
    clients.asks(B, (1, Describe(0)))
    process._serve()
    process._answer_waiting()
    assert sorted(clients.sent) == [(A, [1]), (B, [1])]


def test_who_ends_a_dataflow_that_failed_elsewhere_says_so(
    process: WorkerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[tuple[object, int | None]] = []
    monkeypatch.setattr(
        process._worker,
        "send_control",
        lambda payload, to=None: sent.append((decode_control(payload, 0), to)),
    )
    process._server._on_control(0, memoryview(encode_control(Ended(0, "a bad row", ("RowError",)))))
    assert 0 in process._worker.ended and sent == [(EndHeard(0), 0)]


def test_a_durable_worker_that_is_ended_before_worker_0_has_begun_says_so(tmp_path: Path) -> None:
    settings = replace(local_settings(2, tmp_path)[1], durable=str(tmp_path / "store"))
    reports: list[dict[str, object]] = []
    process = WorkerProcess(settings, reports.append)
    process.stop_soon("worker 0 was killed by SIGKILL")
    process.run()
    assert reports == [{"failed": "PeerError: worker 0 was killed by SIGKILL", "is_cause": False}]


@pytest.mark.parametrize(("is_peer_gone", "is_prepared"), [(False, False), (True, False), (False, True)])
@pytest.mark.parametrize("why", ["", "worker 1 was killed by SIGKILL"])
def test_vertices_hear_why_their_worker_ends(
    why: str, is_peer_gone: bool, is_prepared: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of workers that are told to end, one ends first: the others do not fail because of that."""
    heard: list[str] = []

    class HearsVertex(timely.Vertex):
        def on_end(self, reason: timely.TimelyError | None) -> None:
            heard.append(f"{type(reason).__name__}: {reason}")

    (settings,) = local_settings(1, tmp_path)
    process = WorkerProcess(settings, lambda said: None)
    dataflow = timely.Dataflow()
    dataflow.input("numbers").stage("hears", HearsVertex)
    prepared = process._worker.prepare(dataflow.freeze(), 7)
    if is_prepared:  # it would begin when worker 0 says so
        process._server.installations.prepared[7] = prepared
    else:
        process._worker.start(prepared)
    if is_peer_gone:

        def lose(reason: str) -> None:
            raise timely.PeerError("worker 1 is gone")

        monkeypatch.setattr(process._server, "say_farewell", lose)
    process.stop_soon(why)
    process.run()
    assert heard == [f"PeerError: {why}" if why else "NoneType: None"]
