"""Inputs begin with what the logs hold, at any number of workers.

same_*        what was shown of each epoch is shown again, and what comes then counts as without a restart
repeated_*    a named delivery counts once, wherever it comes again
calls_*       where the order of calls counts
closed_*      inputs without further epochs
places_*      readers
failed_*      what cannot be put back
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import cache
from types import SimpleNamespace

import durable_flows
import pyarrow as pa
import pytest
from durable_workers import DurableWorkers, shown, words
from simulated_store import SimulatedDisk

import timely
from timely import InputClosedError
from timely.client.feeding import appending
from timely.client.session import Flow
from timely.client.tables import InputForm
from timely.durable import journal
from timely.durable.bases.cuts import cut_logs
from timely.durable.bases.folding import fold
from timely.durable.incarnations import joined
from timely.limits import READER_SECONDS_MAX, READERS_MAX, REWRITE_SECONDS_MIN
from timely.operators.inputs.deliveries import Deliveries
from timely.operators.inputs.handle import InputHandle
from timely.operators.inputs.plain_rows import PlainRow
from timely.wire.handshake import CutLog
from timely.wire.requests import (
    BY_COLUMN,
    IN_EPOCH,
    IN_OPEN,
    Decide,
    Deliver,
    Describe,
    Progress,
    Value,
)

EPOCHS = 6
OUTPUTS = ("sold", "plain", "prices", "known", "loud")
LARGE = 60
"""So many rows are sent in parts."""

Rows = list[tuple[object, ...]]
Shown = dict[str, Rows]


def sales(epoch: int, count: int = 3) -> pa.Table:
    """Rows for `sold`, with texts and values of any kind, as clients append them."""
    rows: list[tuple[object, ...]] = [(f"item {n % 5}", {"n": [n]}, epoch + n) for n in range(count)]
    return rows_table(rows)


def rows_table(rows: Sequence[tuple[object, ...]]) -> pa.Table:
    names = ("item", "place", "count")
    return form().to_table([dict(zip(names, row, strict=True)) for row in rows])


@cache
def form() -> InputForm:
    """How clients make tables for `sold`."""
    with timely.connect(workers=1, embedded=True) as cluster:
        return cluster.install(durable_flows.shop).input("sold").form


@pytest.fixture(autouse=True)
def _few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(appending, "SPREAD_ROWS_MIN", LARGE)


def prices(rows: Sequence[tuple[str, int]], diff: int | None = None) -> pa.Table:
    table = pa.table({"item": [item for item, _ in rows], "price": pa.array([n for _, n in rows], "int64")})
    return table if diff is None else table.append_column("diff", pa.array([diff] * len(rows), pa.int64()))


def feed(flow: Flow, epoch: int) -> None:
    """What comes in one epoch: each kind of delivery that a client can make."""
    sold, priced, spoken = flow.input("sold"), flow.input("prices"), flow.input("words")
    plain = flow.input("plain")
    plain.insert([(f"item {epoch % 3}", epoch), ("item 1", None)])
    plain.insert([("item 1", 2)])
    plain.remove([("item 1", None)])
    plain.insert([("named", epoch)], writer="few", sequence=epoch)
    sold.insert([(f"item {epoch % 3}", None, epoch), ("item 1", None, 1)])
    sold.insert(sales(epoch), writer="table", sequence=epoch)
    sold.insert([("item 4", None, 7)], writer="few", sequence=epoch)
    sold.remove([("item 1", None, 1)])
    sold.append(sales(epoch, 2).append_column("diff", pa.array([2, 1])), epoch=epoch + epoch % 2)
    named = sales(epoch, 4).append_column("diff", pa.array([1, 3, 0, 1]))
    sold.append(named, epoch=epoch, writer="append", sequence=3 * epoch)
    by_column = named.append_column("at", pa.array([epoch, epoch + 2, epoch, epoch + 2]))
    sold.append(by_column, epoch="at", writer="column", sequence=epoch)
    priced.upsert([("item 0", epoch), ("item 1", 10 * epoch)])
    priced.upsert(prices([("item 2", epoch), ("item 0", -epoch)]), writer="upsert", sequence=epoch)
    priced.append(prices([("item 3", epoch), ("item 0", 99)], 1), epoch=epoch, writer="w", sequence=epoch)
    priced.append(prices([(f"item {epoch}", 0)], -1), epoch=epoch, writer="w", sequence=epoch + 10)
    priced.append(prices([("item 4", epoch)], 1))
    if epoch == 1:
        sold.insert(sales(0, LARGE), writer="large", sequence=0)
        priced.upsert(prices([(f"item {n % 7}", n) for n in range(LARGE)]))
    if epoch % 2:
        priced.upsert([("item 1", epoch)])
        priced.delete(["item 2"])
    spoken.insert([f"word {epoch}", "again"])


@cache
def undisturbed() -> Shown:
    """What is shown without a restart."""
    with timely.connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(durable_flows.shop)
        for epoch in range(EPOCHS):
            feed(flow, epoch)
            flow.seal(wait=True)
        return changes(flow)


def changes(flow: Flow) -> Shown:
    found: Shown = {}
    for output in OUTPUTS:
        answer = flow.output(output).changes(0, flow.epoch)
        tables = answer if isinstance(answer, pa.Table) else None
        found[output] = shown([tables]) if tables is not None else sorted(answer)
    return found


def before(epoch: int, of: Shown) -> Shown:
    return {output: [row for row in rows if row[0] < epoch] for output, rows in of.items()}  # type: ignore[operator]


# same_


@pytest.mark.parametrize("counts", [(1, 2, 3), (2, 1, 3), (3, 2, 1), (2, 2, 2)], ids=str)
def test_same_answers_are_shown_whatever_the_number_of_workers(counts: tuple[int, ...]) -> None:
    disk = SimulatedDisk()
    for life, count in enumerate((*counts, counts[0])):
        with DurableWorkers(disk, count, seed=life) as workers:
            flow = workers.flow("shop")
            first = 2 * life
            assert flow.epoch == first
            assert changes(flow) == before(first, undisturbed())
            if first < EPOCHS:
                feed(flow, first)
                flow.seal()
                feed(flow, first + 1)  # these rows wait in the open epoch
                if life % 2:
                    flow.seal()
        if first < EPOCHS and not life % 2:
            with DurableWorkers(disk, counts[-1]) as workers:
                assert workers.flow("shop").seal() == first + 1
    with DurableWorkers(disk, 2) as workers:
        assert changes(workers.flow("shop")) == undisturbed()


def test_same_rows_are_refused_where_removals_count_by_epoch() -> None:
    disk = SimulatedDisk()
    steps: list[tuple[str, int]] = [("insert", 1), ("remove", 1), ("remove", 1), ("insert", 1), ("remove", 2)]
    found: list[Shown] = []
    for count in (1, 3, 2):
        with DurableWorkers(disk, count) as workers:
            flow = workers.flow("checked")
            for call, value in steps if count == 1 else []:
                getattr(flow.input("rows"), call)([(value,)])
                flow.seal()
            found.append({name: workers.read(name, len(steps)) for name in ("rows", "refused")})
    assert found[0] == found[1] == found[2]
    assert found[0]["refused"] == [(2, 1, 1), (4, 2, 1)]


def test_same_epochs_that_lie_far_apart() -> None:
    disk = SimulatedDisk()
    with DurableWorkers(disk) as workers:
        flow = workers.flow("shop")
        flow.input("words").insert(["first"])
        flow.seal(through=2**40)
        flow.input("words").insert(["second"])
        flow.seal()
    with DurableWorkers(disk, 2) as workers:
        flow = workers.flow("shop")
        assert flow.epoch == 2**40 + 2
        assert workers.read("loud", flow.epoch) == [(0, "FIRST"), (2**40 + 1, "SECOND")]
        flow.input("words").insert(["third"])
        flow.seal()
        assert workers.read("loud", flow.epoch)[-1] == (2**40 + 2, "THIRD")


def test_same_rows_of_the_open_and_of_later_epochs_wait_for_these() -> None:
    disk = SimulatedDisk()
    with DurableWorkers(disk, 2) as workers:
        workers.install("shop")
        for epoch in (0, 1, 3):
            deliver = Deliver(0, "words", "w", epoch, IN_EPOCH, epoch, 1)
            workers.ask(deliver, words(f"of {epoch}"), epoch % 2)
        workers.seal(0)
    with DurableWorkers(disk, 3) as workers:
        assert workers.ask(Describe(0)).integer("epoch") == 1
        assert workers.read("loud", 1) == [(0, "OF 0")]
        handles = [worker.instance(0).input("words") for worker in workers.workers]
        assert sum(handle.rows_waiting for handle in handles) == 2
        workers.seal(2)
        assert workers.read("loud", 3) == [(0, "OF 0"), (1, "OF 1")]
        workers.seal(3)
        assert workers.read("loud", 4)[2:] == [(3, "OF 3")]


# repeated_


def test_repeated_deliveries_count_once_at_whichever_worker() -> None:
    disk = SimulatedDisk()
    with DurableWorkers(disk, 2) as workers:
        workers.install("shop")
        for worker in range(2):
            requests = [
                (Deliver(0, "words", f"open {worker}", 4, IN_OPEN, 0, 1), words("a")),
                (Deliver(0, "words", f"epoch {worker}", 5, IN_EPOCH, 0, 1), words("b")),
                (Deliver(0, "plain", f"rows {worker}", 6, IN_OPEN, 0, 1, [["x", None]]), None),
                (
                    Deliver(0, "sold", f"column {worker}", 7, BY_COLUMN, 0, 1, column="count"),
                    rows_table([("x", None, 1), ("x", None, 2)]),
                ),
            ]
            for request, table in requests:
                assert workers.ask(request, table, worker).values["is_new"] is True
        large = workers.flow("shop").input("words")
        large.insert([f"{n}" for n in range(LARGE)], writer="parts", sequence=8)
        workers.seal(0)
        first = {name: workers.read(name, 1) for name in ("loud", "sold", "plain")}
        assert len(first["loud"]) == 4 + LARGE
    with DurableWorkers(disk, 3) as workers:
        for at in range(3):
            for worker in range(2):
                for request, table in [
                    (Deliver(0, "words", f"open {worker}", 4, IN_OPEN, 0, 1), words("a")),
                    (Deliver(0, "words", f"epoch {worker}", 5, IN_EPOCH, 0, 1), words("b")),
                    (Deliver(0, "plain", f"rows {worker}", 6, IN_OPEN, 0, 1, [["x", None]]), None),
                    (
                        Deliver(0, "sold", f"column {worker}", 7, BY_COLUMN, 0, 1, column="count"),
                        rows_table([("x", None, 1), ("x", None, 2)]),
                    ),
                ]:
                    assert workers.ask(request, table, at).values["is_new"] is False, (request, at)
        large = workers.flow("shop").input("words")
        large.insert([f"{n}" for n in range(LARGE)], writer="parts", sequence=8)
        workers.seal(3)
        assert {name: [row for row in workers.read(name, 4) if row[0] == 0] for name in first} == first
        assert workers.read("loud", 4) == first["loud"] and workers.read("plain", 4) == first["plain"]


def test_repeated_unnamed_appends_are_new_each_time() -> None:
    disk = SimulatedDisk()
    for life in range(2):
        with DurableWorkers(disk) as workers:
            workers.flow("shop")
            for _ in range(2):
                reply = workers.ask(Deliver(0, "words", "", -1, IN_EPOCH, 1, 1), words("a"))
                assert reply.values["is_new"] is True
            if life:
                workers.seal(1)
                assert workers.read("loud", 2) == [(1, "A")] * 4


def test_repeated_delivery_says_which_epoch_the_first_has_entered() -> None:
    disk = SimulatedDisk()
    with DurableWorkers(disk) as workers:
        workers.install("shop")
        workers.ask(Deliver(0, "words", "w", 0, IN_OPEN, 5, 1), words("a"))
        workers.ask(Deliver(0, "plain", "w", 0, IN_OPEN, 6, 1, [["x", 1]]))
    with DurableWorkers(disk) as workers:
        after: list[Value] = [["words", "w", 0], ["plain", "w", 0]]
        assert workers.ask(Decide(0, 0, seals=True, after=after)).values == {"open": 7, "sealed": 6}
        unknown: list[Value] = [["words", "w", 1]]
        assert workers.ask(Decide(0, 0, seals=True, after=unknown)).integer("sealed") == -1


def test_repeated_names_are_forgotten_oldest_first(monkeypatch: pytest.MonkeyPatch) -> None:
    disk = SimulatedDisk()
    with DurableWorkers(disk) as workers:
        workers.install("shop")
        workers.ask(Deliver(0, "plain", "few of 1", 0, IN_OPEN, 0, 1, [["x", 1]]))
        workers.ask(Deliver(0, "plain", "rows of 1", 0, IN_OPEN, 0, 1), plain_table(1))
    with DurableWorkers(disk) as workers:
        flow = workers.flow("shop")
        flow.input("plain").insert(plain_table(LARGE), writer="parts of 2", sequence=0)
        workers.ask(Deliver(0, "plain", "few of 2", 0, IN_OPEN, 0, 1, [["x", 1]]))
    limited = {**(Deliveries.__init__.__kwdefaults__ or {}), "writers_max": 2}
    monkeypatch.setattr(Deliveries.__init__, "__kwdefaults__", limited)
    with DurableWorkers(disk) as workers:
        writers = workers.workers[0].instance(0).input("plain").deliveries.writers
        assert list(writers) == ["parts of 2", "few of 2"]


def plain_table(rows: int) -> pa.Table:
    return pa.table({"item": ["x"] * rows, "n": pa.array(range(rows), pa.int64())})


# calls_


def last_price(workers: DurableWorkers, epoch: int) -> object:
    (row,) = [row for row in workers.read("prices", epoch + 1) if row[0] == epoch and row[-1] == 1]
    return row[2]


@pytest.mark.parametrize("way", ["rows", "table", "unnamed", "parts"])
def test_calls_of_the_same_epoch_are_before_those_behind_the_restart(way: str) -> None:
    disk = SimulatedDisk()
    with DurableWorkers(disk, 3) as workers:
        priced = workers.flow("shop").input("prices")
        for n in range(4):
            priced.upsert([("item", n)])
        if way == "rows":
            priced.upsert([("item", 10)])
        elif way == "table":
            priced.upsert(prices([("item", 10)]), writer="w", sequence=0)
        elif way == "unnamed":
            workers.ask(Deliver(0, "prices", "", -1, IN_EPOCH, 0, 1), prices([("item", 10)]))
        else:
            priced.upsert(prices([("item", n) for n in range(LARGE)]))
    for life in range(2):
        with DurableWorkers(disk, 2) as workers:
            workers.flow("shop").input("prices").upsert([("item", 100 + life)])
    with DurableWorkers(disk, 1) as workers:
        workers.seal(0)
        assert last_price(workers, 0) == 101


def test_calls_and_parts_have_the_same_order_again() -> None:
    disk = SimulatedDisk()
    with DurableWorkers(disk, 2) as workers:
        priced = workers.flow("shop").input("prices")
        priced.upsert([("item", 1)])
        priced.upsert(prices([("item", n) for n in range(2 * LARGE)]))
        workers.seal(0)
        priced.upsert(prices([("item", -n) for n in range(2 * LARGE)]))
        priced.upsert([("item", 7)])
        workers.seal(1)
        first = workers.read("prices", 2)
        assert [last_price(workers, epoch) for epoch in range(2)] == [2 * LARGE - 1, 7]
    with DurableWorkers(disk, 3) as workers:
        assert workers.read("prices", 2) == first


# closed_


def test_closed_inputs_stay_closed_and_others_go_on() -> None:
    disk = SimulatedDisk()
    with DurableWorkers(disk) as workers:
        workers.flow("shop").input("words").insert(["early"], writer="w", sequence=0)
        workers.ask(Deliver(0, "words", "v", 0, IN_EPOCH, 4, 1), words("waits"))
        workers.seal(1)
        assert workers.ask(Decide(0, -1, close=["words"])).integer("open") == 2
    for count in (2, 1):
        with DurableWorkers(disk, count) as workers:
            flow = workers.flow("shop")
            assert flow.epoch == 2
            for at in range(count):
                repeated = workers.ask(Deliver(0, "words", "w", 0, IN_OPEN, 0, 1), words("early"), at)
                assert repeated.values["is_new"] is False
                with pytest.raises(InputClosedError):
                    workers.ask(Deliver(0, "words", "w", 1, IN_OPEN, 0, 1), words("late"), at)
    with DurableWorkers(disk, 2) as workers:
        workers.seal(6)
        assert workers.read("loud", 7) == [(0, "EARLY"), (4, "WAITS")]


def test_closed_dataflow_is_finished_again() -> None:
    disk = SimulatedDisk()
    with DurableWorkers(disk, 2) as workers:
        flow = workers.flow("shop")
        feed(flow, 0)
        end = flow.finish()
        first = changes(flow)
    with DurableWorkers(disk, 3) as workers:
        flow = workers.flow("shop")
        assert flow.finish() == end
        assert changes(flow) == first


# places_


def place(workers: DurableWorkers, reader: str, worker: int = 0) -> tuple[int, float] | None:
    return workers.workers[worker].instance(0).output("loud").places.of(reader)


def test_places_hold_what_their_readers_have_not_read() -> None:
    disk = SimulatedDisk()
    with DurableWorkers(disk, 2) as workers:
        flow = workers.flow("shop")
        for epoch in range(4):
            flow.input("words").insert([f"{epoch}"])
            flow.seal()
        assert workers.read("loud", 4)
        for worker in range(2):
            workers.ask(Progress(0, "loud", reader="slow", keep_from=1, keep_seconds=50.0), worker=worker)
            workers.ask(Progress(0, "loud", reader="fast", keep_from=10, drops=True), worker=worker)
            workers.ask(Progress(0, "loud", reader="left", keep_from=1), worker=worker)
            workers.ask(Progress(0, "loud", reader="left", keep_from=-1), worker=worker)
        assert place(workers, "fast") == (4, 3600.0), "not behind what was shown"
    with DurableWorkers(disk, 3) as workers:
        for worker in range(3):
            assert place(workers, "slow", worker) == (1, 50.0)
            assert place(workers, "fast", worker) == (4, 3600.0)
            assert place(workers, "left", worker) is None
            dropped = workers.ask(Progress(0, "loud", reader="other", keep_from=3, drops=True), worker=worker)
            assert dropped.integer("kept") == 1


@pytest.mark.parametrize("has_moved_on_both", [False, True])
def test_places_stay_though_a_fold_falls_between_the_moves_on_two_workers(has_moved_on_both: bool) -> None:
    disk = SimulatedDisk()
    with DurableWorkers(disk, 2) as workers:
        flow = workers.flow("shop")
        for epoch in range(4):
            flow.input("words").insert([f"{epoch}"])
            flow.seal()
        assert workers.read("loud", 4)
        for worker, epoch in [(0, 1), (1, 1), (0, 3)]:
            move = Progress(0, "loud", reader="r", keep_from=epoch, drops=epoch == 3)
            workers.ask(move, worker=worker)
        for durability in workers.durable:
            durability.cuts.order(CutLog("cut", (0,), (3,), ()))
        workers.settle()
        while any(durability.cuts.step() for durability in workers.durable):
            workers.settle()
        incarnation = joined(workers.store, workers.durable[0].number)
        base = fold(cut_logs(workers.store, incarnation, "cut"), live=incarnation.number)
        assert base is not None and base.flows[0].outputs["loud"].kept_from == 3
        if has_moved_on_both:
            workers.ask(Progress(0, "loud", reader="r", keep_from=3, drops=True), worker=1)
    with DurableWorkers(disk, 2) as workers:
        for worker in range(2):
            held = place(workers, "r", worker)
            assert held is not None and held[0] == 3, "what is before that is gone"
            dropped = workers.ask(Progress(0, "loud", reader="other", keep_from=4, drops=True), worker=worker)
            assert dropped.integer("kept") == 3


def test_places_are_written_when_they_move(monkeypatch: pytest.MonkeyPatch) -> None:
    disk = SimulatedDisk()
    with DurableWorkers(disk) as workers:
        workers.install("shop")
        workers.seal(2)
        assert workers.read("loud", 3) == []
        before = workers.logs[0].position
        for _ in range(3):
            workers.ask(Progress(0, "loud", reader="r", keep_from=1))
        assert workers.logs[0].position == before + 1
        workers.ask(Progress(0, "loud", reader="r", keep_from=2))
        workers.ask(Progress(0, "loud", reader="r", keep_from=2, keep_seconds=7))
        workers.ask(Progress(0, "loud", 1))
        assert workers.logs[0].position == before + 3


def test_places_are_written_once_more_when_their_readers_are_heard_of_after_a_restart() -> None:
    """Else a reader that waits at one epoch for long would be the first that the log forgets."""
    disk = SimulatedDisk()
    with DurableWorkers(disk) as workers:
        workers.install("shop")
        workers.seal(2)
        assert workers.read("loud", 3) == []
        for reader in ("waits", "leaves", "gone"):
            workers.ask(Progress(0, "loud", reader=reader, keep_from=1))
    with DurableWorkers(disk) as workers:
        before = workers.logs[0].position
        for _ in range(2):
            workers.ask(Progress(0, "loud", reader="waits", keep_from=1))
            workers.ask(Progress(0, "loud", reader="leaves"))
        assert workers.logs[0].position == before + 2
    with DurableWorkers(disk) as workers:
        assert [*workers.durable[0].past.flows[0].places] == [("loud", "gone"), ("loud", "waits")]


def test_places_of_clients_that_were_silent_for_an_hour_are_gone_after_a_restart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each run of a program that cron starts is another client, and each restart would let it wait anew."""
    disk = SimulatedDisk()
    now = [time.time() - READER_SECONDS_MAX - REWRITE_SECONDS_MIN - 60]
    monkeypatch.setattr(journal, "time", SimpleNamespace(time=lambda: now[0]))
    with DurableWorkers(disk) as workers:
        workers.install("shop")
        workers.seal(2)
        assert workers.read("loud", 3) == []
        workers.ask(Progress(0, "loud", reader="gone", keep_from=1))
        now[0] += 120
        workers.ask(Progress(0, "loud", reader="here", keep_from=2))
    with DurableWorkers(disk) as workers:
        assert place(workers, "gone") is None and place(workers, "here") is not None
        assert workers.ask(Progress(0, "loud", keep_from=2, drops=True)).integer("kept") == 2


def test_places_behind_what_was_shown_do_not_let_it_be_dropped() -> None:
    with DurableWorkers(SimulatedDisk()) as workers:
        flow = workers.flow("shop")
        flow.input("words").insert(["0"])
        flow.seal()
        assert workers.read("loud", 1)
        workers.gate.shut()
        workers.take(Deliver(0, "words", "w", 0, IN_OPEN, 0, 1), words("1"))
        workers.take(Decide(0, 1, seals=True))
        workers.settle()
        kept = workers.ask(Progress(0, "loud", keep_from=9, drops=True)).integer("kept")
        assert kept == 1, "epoch 1 is complete, and nobody was shown it"
        workers.gate.open()


def test_places_are_as_many_as_there_may_be_the_last_that_moved() -> None:
    disk = SimulatedDisk()
    with DurableWorkers(disk) as workers:
        workers.install("shop")
        for number in range(READERS_MAX + 5):
            workers.durable[0].journal.place(0, "loud", f"r{number}", 0, 60.0)
            workers.durable[0].journal.place(0, "sold", f"r{number % 3}", 0, 60.0)
    with DurableWorkers(disk) as workers:
        places = workers.workers[0].instance(0).output("loud").places
        assert len(places) == READERS_MAX
        assert place(workers, "r4") is None and place(workers, "r5") is not None
        assert len(workers.workers[0].instance(0).output("sold").places) == 3


# failed_


def test_failed_codec_ends_its_dataflow_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    disk = SimulatedDisk()
    with DurableWorkers(disk) as workers:
        workers.flow("shop").input("plain").insert([("x", 1)])
        workers.flow("exporting").input("rows").insert([(1, 2)])
        for dataflow in range(2):
            workers.seal(0, dataflow)
    put_back = InputHandle.put_back_rows

    def fails(self: InputHandle, epoch: int, rows: list[PlainRow], diffs: list[int]) -> None:
        if self.name == "plain":
            raise ValueError("these rows cannot be borne")
        put_back(self, epoch, rows, diffs)

    with monkeypatch.context() as patch:
        patch.setattr(InputHandle, "put_back_rows", fails)
        with DurableWorkers(disk) as workers:
            assert workers.read("rows", 1, dataflow=1) == [(0, 1, 2, 1)]
            for _ in range(2):
                with pytest.raises(timely.TimelyError, match="these rows cannot be borne"):
                    workers.install("shop")
            assert workers.durable[0].past.next_number == 2
    with DurableWorkers(disk) as workers:
        assert workers.read("plain", 1) == [(0, "x", 1, 1)]
