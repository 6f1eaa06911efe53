"""Rows and small tables that are posted to real workers, from several threads: what becomes of them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pyarrow as pa
import pytest

import differential as dd
import timely
from timely.client.posting import Poster, Posts
from timely.client.remote import channel
from timely.client.remote.workers import RemoteWorkers
from timely.limits import DIRECT_TABLE_BYTES_MAX, POSTED_BYTES_MAX, SPREAD_ROWS_MIN
from timely.wire.batch import Frame
from timely.wire.requests import Decide, Deliver, Reply, Request


def _in_thread(call: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=call)
    thread.start()
    return thread


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
        "insert(…), input 'more'," in note and "test_posted_rows.py" in note
        for note in caught.value.__notes__
    )
    assert pair.flow(mine.index).refresh() == 0, "the epoch is open"
    assert mine.seal() == 0
    mine.wait()
    assert _read(mine) == {(1, 1, 1), (3, 1, 3)}


@pytest.mark.parametrize("kind", [{"embedded": True}, {}], ids=["embedded", "processes"])
def test_rows_for_an_input_that_this_client_has_closed_are_refused_at_once(kind: dict[str, bool]) -> None:
    with timely.connect(workers=1, **kind) as cluster:  # type: ignore[arg-type]
        flow = cluster.install(_counts)
        rows, more = flow.input("rows"), flow.input("more")
        more.insert([(1, 1)], writer="job", sequence=0)
        assert more.close() == more.close() == 0
        small = pa.table({"k": [2], "v": [2]})
        large = pa.table({"k": range(SPREAD_ROWS_MIN), "v": range(SPREAD_ROWS_MIN)})
        for data in ([(2, 2)], small, large, []):
            for call in (more.insert, more.remove):
                with pytest.raises(timely.InputClosedError, match=r"'more' is closed.*write flow\.seal\(\)"):
                    call(data)
        rows.insert([(3, 3)])
        assert flow.seal() == 0, "nothing is left to be told"
        flow.wait()
        assert _read(flow) == {(1, 1, 1), (3, 1, 3)}
        more.insert([(1, 1)], writer="job", sequence=0)  # which had arrived before
        with pytest.raises(timely.InputClosedError, match="'more' is closed"):
            more.insert([(1, 1)], writer="job", sequence=1)
        flow.uninstall()
        with pytest.raises(timely.UninstalledError):
            more.insert([(2, 2)])


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
    encode = channel.encode_request

    def encoded(number: int, request: Request, *more: pa.Table | int | None) -> list[Frame]:
        sent.append((number, request))
        return encode(number, request, *more)

    monkeypatch.setattr(channel, "encode_request", encoded)
    for epoch in range(3):
        for value in range(3):
            flow.input("rows").insert([(epoch, value)])
        assert flow.seal() == epoch
        assert flow.wait() == epoch
    seals = [request.after for _, request in sent if isinstance(request, Decide)]
    assert [len(after) for after in seals] == [3, 3, 3], "none was asked for twice"
    rows = [request for _, request in sent if isinstance(request, Deliver)]
    assert seals[0] == [[one.input, one.writer, one.sequence] for one in rows[:3]]
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


def test_where_it_is_not_known_what_became_of_rows_the_seal_waits_for_that(
    pair: timely.Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow = pair.install(_counts)
    real = channel.Channel._send

    def spoilt(self: channel.Channel, worker: int, request: Request) -> int:
        if isinstance(request, Decide) and request.after:
            request = Decide(request.dataflow, request.epoch, True, [*request.after, ["rows", "nobody", 0]])
        return real(self, worker, request)

    monkeypatch.setattr(channel.Channel, "_send", spoilt)
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


def test_a_table_that_goes_another_way_than_rows_does_not_change_places_with_them(
    pair: timely.Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Small, but in so many pieces that what Arrow says of them is too large for the line that rows go by.
    pieces = [pa.table({"id": [1 + number], "name": ["table"]}) for number in range(2_000)]
    flow, outstanding = pair.install(_last), list[tuple[bool, bool]]()
    made = Posts.__init__

    def noting(
        posts: Posts,
        send: Callable[[int, Request, Frame | None], int],
        gather: Callable[[int, int, float], Reply | timely.TimelyError],
    ) -> None:
        def noted(worker: int, request: Request, rows: Frame | None) -> int:
            if isinstance(request, Deliver):
                is_large = rows is not None and memoryview(rows).nbytes > DIRECT_TABLE_BYTES_MAX
                outstanding.append((is_large, bool(posts)))
            return send(worker, request, rows)

        made(posts, noted, gather)

    monkeypatch.setattr(Posts, "__init__", noting)
    with timely.connect(*pair.addresses) as other:
        _change_owners_in_order(other.flow(flow.index), pieces)
    assert outstanding == [(False, False), (True, False), (False, False), (False, True)]


def _change_owners_in_order(flow: timely.Flow, pieces: list[pa.Table]) -> None:
    owners = flow.input("owners")
    owners.upsert([(1, "before")])
    owners.upsert(pa.concat_tables(pieces))
    owners.upsert([(1, "behind")])
    owners.upsert([(3, "behind")])
    flow.wait(flow.seal())
    names = {row["id"]: row["name"] for row in flow.output("owners").snapshot().to_pylist()}
    assert [names[number] for number in (1, 2, 3)] == ["behind", "table", "behind"]


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
