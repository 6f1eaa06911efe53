"""Outputs as clients read them: each has a place of its own, and what they are handed joins on exactly.

changes_*    what came since the last call, of one client and of several
follow_*     epoch after epoch, with a snapshot or without, until all inputs are closed
forget_*     what is dropped, and what those are told who come too late
snapshot_*   of which epoch it is
"""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pytest
from fixed_members import FixedMembers

import differential as dd
import timely
from differential import col
from timely.client import reading
from timely.client.embedded.workers import EmbeddedWorkers
from timely.client.posting import Poster, Refusals
from timely.client.reading import seconds_of
from timely.limits import WORKERS_MAX
from timely.user_code.call_site import UNKNOWN_SITE, CallSite
from timely.wire.requests import Read, Reply, Request

Rows = Counter[int]


def numbers(dataflow: timely.Dataflow) -> None:
    """A collection that is what was put in; a stream of records; and the collection on one worker alone."""
    dd.input(dataflow, "numbers", "n: int").filter(col.n >= 0).output("numbers")
    dataflow.output("records", dataflow.input("records"))


@pytest.fixture(params=[1, 2, 3])
def cluster(request: pytest.FixtureRequest) -> Iterator[timely.Cluster]:
    with timely.Cluster(EmbeddedWorkers(request.param)) as made:
        yield made


def rows_of(table: pa.Table) -> Rows:
    found: Rows = Counter()
    for row in table.to_pylist():
        found[row["n"]] += row["diff"]
    return Counter({n: diff for n, diff in found.items() if diff})


def epochs_of(table: pa.Table) -> list[int]:
    return sorted(set(table.column("epoch").to_pylist()))


def put(flow: timely.Flow, *values: int) -> int:
    flow.input("numbers").insert([(value,) for value in values])
    return flow.seal()


def test_changes_nowait_of_an_early_client_are_those_that_others_have_sealed(cluster: timely.Cluster) -> None:
    mine = cluster.install(numbers)
    early = cluster.flow(mine.index).output("numbers")
    assert early.changes_nowait().num_rows == 0
    for value in range(3):
        put(mine, value)
        assert early.changes_nowait().to_pylist() == [{"n": value, "epoch": value, "diff": 1}]
    assert early.changes_nowait().num_rows == 0


def test_changes_of_a_late_client_begin_at_the_beginning(cluster: timely.Cluster) -> None:
    mine = cluster.install(numbers)
    for value in range(4):
        put(mine, value)
    late = cluster.flow(mine.index).output("numbers")
    assert epochs_of(late.changes()) == [0, 1, 2, 3]
    assert late.changes().num_rows == 0
    assert epochs_of(mine.output("numbers").changes()) == [0, 1, 2, 3], (
        "what one has read is there for others"
    )


def test_changes_with_bounds_do_not_move_the_place(cluster: timely.Cluster) -> None:
    flow = cluster.install(numbers)
    for value in range(4):
        put(flow, value)
    output = flow.output("numbers")
    assert epochs_of(output.changes(1, 3)) == [1, 2]
    assert epochs_of(output.changes(2)) == [2, 3]
    assert epochs_of(output.changes(stop=2)) == [0, 1], "without a start: on from the place"
    assert epochs_of(output.changes()) == [2, 3]
    assert epochs_of(output.changes(stop=1)) == epochs_of(output.changes()) == [], "nor back"


class Uneven(FixedMembers):
    """Two workers, one of which has complete epochs that the other has not."""

    count = 2
    addresses: ClassVar[list[str]] = []
    refusals = Refusals()
    part_bytes = 1
    incarnation = 0

    def ask(
        self, requests: Sequence[tuple[int, Request, pa.Table | None]], timeout_seconds: float = 0
    ) -> list[Reply]:
        replies = []
        for worker, request, _ in requests:
            assert isinstance(request, Read)
            epochs = range(request.start, 3 - worker)
            table = pa.table(
                {"n": [worker] * len(epochs), "epoch": list(epochs), "diff": [1] * len(epochs)},
                pa.schema([("n", pa.int64()), ("epoch", pa.int64()), ("diff", pa.int64())]),
            )
            replies.append(Reply({"complete": 3 - worker}, table))
        return replies

    def post(
        self, worker: int, request: Request, poster: Poster, call: str, is_ordered: bool = False
    ) -> None:
        raise AssertionError("nothing is inserted")

    def settle(self, timeout_seconds: float = 0.0) -> None: ...

    def close(self) -> None: ...


def test_changes_are_handed_out_only_up_to_where_all_workers_confirm_them() -> None:
    described = {
        "dataflow": 0,
        "name": "x",
        "fingerprint": "",
        "stages": [],
        "epoch": 0,
        "inputs": [],
        "ahead": [],
        "exports": [],
        "imports": [],
        "first": 0,
        "note": "",
    }
    output = timely.Flow(Uneven(), Reply({**described, "outputs": [["out", "n: int", None]]})).output("out")
    assert pairs(output.changes_nowait()) == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert pairs(output.changes_nowait()) == []
    assert pairs(output.changes(0)) == [(0, 0), (0, 1), (1, 0), (1, 1)]


def pairs(table: pa.Table) -> list[tuple[int, int]]:
    return sorted((row["n"], row["epoch"]) for row in table.to_pylist())


def test_changes_of_records_are_read_in_the_same_way(cluster: timely.Cluster) -> None:
    flow = cluster.install(numbers)
    for value in range(3):
        flow.input("records").insert([value, "x"])
        flow.seal()
    late = cluster.flow(flow.index).output("records")
    assert sorted(late.changes(stop=1), key=str) == [(0, "x"), (0, 0)]
    assert {epoch for epoch, _ in late.changes_nowait()} == {1, 2}
    assert late.changes() == []


def test_changes_of_one_output_in_two_threads_have_one_place(monkeypatch: pytest.MonkeyPatch) -> None:
    both_begin = threading.Barrier(2)

    def together() -> CallSite:
        both_begin.wait(30)
        return UNKNOWN_SITE

    monkeypatch.setattr(reading, "call_site", together)
    with timely.connect(embedded=True) as cluster:
        flow = cluster.install(numbers)
        output = flow.output("records")
        readers = [threading.Thread(target=output.changes_nowait) for _ in range(2)]
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join(60)
        outputs = cluster.stats()[0]["dataflows"][flow.index]["outputs"]  # type: ignore[index,call-overload]
        (places,) = [len(told["readers"]) for told in outputs if told["name"] == "records"]  # type: ignore[index,union-attr,arg-type,call-overload]
        assert places == 1


def test_follow_hands_out_every_epoch_once_also_empty_ones_until_the_end(cluster: timely.Cluster) -> None:
    flow = cluster.install(numbers)
    tail = cluster.flow(flow.index).output("numbers").follow()
    for values in ([1, 2], [], [3]):
        epoch = put(flow, *values)
        got, table = next(tail)
        assert got == epoch and rows_of(table) == Counter(values)
        assert set(epochs_of(table)) <= {epoch}
    put(flow, 4)
    put(flow, 5)
    for name in ("numbers", "records"):
        flow.input(name).close()
    assert [(epoch, rows_of(table)) for epoch, table in tail] == [(3, {4: 1}), (4, {5: 1}), (5, {})]
    assert list(flow.output("numbers").follow(start=4))[0][0] == 4


def test_follow_of_records_hands_out_lists(cluster: timely.Cluster) -> None:
    flow = cluster.install(numbers)
    flow.input("records").insert(["a"])
    flow.seal()
    assert next(flow.output("records").follow()) == (0, ["a"])


def test_follow_says_at_once_when_nothing_can_come(cluster: timely.Cluster) -> None:
    """Embedded there is nobody else who could seal while this program waits."""
    flow = cluster.install(numbers)
    put(flow, 1)
    for timeout in (None, 30.0):
        tail = cluster.flow(flow.index).output("numbers").follow(timeout=timeout)
        assert next(tail)[0] == 0
        with pytest.raises(timely.WaitTimeoutError, match="it is not sealed yet"):
            next(tail)


def test_follow_ends_with_the_last_epoch_that_has_rows_on_whichever_worker_they_are(
    cluster: timely.Cluster,
) -> None:
    """Rows that wait for later epochs enter at the closing; the workers need not have the same ones."""
    flow = cluster.install(numbers)
    rows = pa.table({"n": [7], "diff": [1]})
    for epoch in range(9):
        flow.input("numbers").append(rows, epoch=epoch, writer="ahead", sequence=epoch)
    for name in ("numbers", "records"):
        flow.input(name).close()
    found = [(epoch, rows_of(table)) for epoch, table in flow.output("numbers").follow()]
    assert found == [(epoch, {7: 1}) for epoch in range(9)]
    assert rows_of(cluster.flow(flow.index).output("numbers").changes()) == {7: 9}
    late = cluster.flow(flow.index).output("numbers")
    assert late.snapshot().column("n").to_pylist() == [7] * 9
    assert [epoch for epoch, _ in late.follow(snapshot=True)] == [8]


def test_follow_hands_out_the_last_epoch_of_a_closed_input_though_another_goes_on(
    cluster: timely.Cluster,
) -> None:
    flow = cluster.install(numbers)
    put(flow, 1)
    readers = [cluster.flow(flow.index).output("numbers") for _ in range(2)]
    flow.input("numbers").insert([(2,)])
    flow.input("numbers").close()
    assert [(epoch, rows_of(table)) for epoch, table in readers[0].follow()] == [(0, {1: 1}), (1, {2: 1})]
    assert [rows_of(readers[1].changes()) for _ in range(2)] == [{1: 1, 2: 1}, {}]
    flow.seal()
    assert [rows_of(reader.changes()) for reader in readers] == [{}, {}]


def test_follow_can_leave_out_epochs_without_changes_though_there_are_a_billion(
    cluster: timely.Cluster,
) -> None:
    flow = cluster.install(numbers)
    tails = [
        cluster.flow(flow.index).output(name).follow(empty=False, timeout=30)
        for name in ("numbers", "records")
    ]
    put(flow, 1)
    flow.seal(through=10**9)
    put(flow, 2)
    flow.input("numbers").close()
    flow.input("records").close()
    found = list(tails[0])
    assert [(epoch, rows_of(table)) for epoch, table in found] == [(0, {1: 1}), (10**9 + 1, {2: 1})]
    assert list(tails[1]) == []
    whole = cluster.flow(flow.index).output("numbers")
    assert [epoch for epoch, _ in whole.follow(start=10**9 - 1)] == list(range(10**9 - 1, 10**9 + 3))


@pytest.mark.parametrize("empty", [True, False])
def test_follow_hands_out_nothing_that_the_loop_itself_has_read(cluster: timely.Cluster, empty: bool) -> None:
    flow = cluster.install(numbers)
    for value in range(3):
        put(flow, value)
    output = cluster.flow(flow.index).output("numbers")
    found: list[int] = []
    for epoch, table in output.follow(empty=empty):
        found.extend(epochs_of(table))
        if epoch == 1:
            put(flow, 3)
            found.extend(epochs_of(output.changes_nowait()))
            put(flow, 4)
            for name in ("numbers", "records"):
                flow.input(name).close()
    assert found == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("forget", [True, False])
def test_follow_without_empty_epochs_may_be_left_at_any_epoch_and_joins_on(
    cluster: timely.Cluster, forget: bool
) -> None:
    flow = cluster.install(numbers)
    output = cluster.flow(flow.index).output("numbers")
    for values in ([], [1], [], [2], []):
        put(flow, *values)
    for epoch, _ in output.follow(empty=False, forget=forget):
        if epoch == 1:
            break
    assert epochs_of(output.changes()) == [3]
    put(flow, 3)
    tail = output.follow(empty=False, forget=forget, timeout=0.1)
    assert next(tail)[0] == 5
    put(flow)
    with pytest.raises(timely.WaitTimeoutError):
        next(tail)
    assert next(output.follow(snapshot=True, timeout=0.1))[1].column("n").to_pylist() == [1, 2, 3]
    put(flow, 4)
    assert [epochs_of(output.changes()), epochs_of(output.changes())] == [[7], []]
    if forget:
        with pytest.raises(timely.ForgottenError):
            output.changes(0)


def test_follow_begins_with_a_snapshot_or_at_an_epoch(cluster: timely.Cluster) -> None:
    flow = cluster.install(numbers)
    with pytest.raises(timely.MisuseError, match="give one of the two"):
        next(flow.output("numbers").follow(start=1, snapshot=True))


def test_follow_with_a_snapshot_of_an_empty_dataflow_begins_with_its_first_epoch(
    cluster: timely.Cluster,
) -> None:
    flow = cluster.install(numbers)
    tail = flow.output("numbers").follow(snapshot=True)
    put(flow, 1)
    assert next(tail)[0] == 0


@pytest.mark.parametrize("seed", range(5))
def test_follow_three_at_different_speeds_sum_to_the_collection_at_every_epoch(
    cluster: timely.Cluster, seed: int
) -> None:
    """While another client seals, reads and forgets; some begin with a snapshot, some drop what they read."""
    rng = random.Random(seed)
    flow = cluster.install(numbers)
    history: list[Rows] = []
    now: Rows = Counter()

    def another_epoch() -> None:
        added = [rng.randrange(5) for _ in range(rng.randrange(4))]
        gone = [n for n in now.elements() if rng.random() < 0.3]
        now.update(added)
        now.subtract(gone)
        if gone:
            flow.input("numbers").remove([(n,) for n in gone])
        put(flow, *added)
        history.append(Counter({n: count for n, count in now.items() if count}))
        if rng.random() < 0.5:
            flow.output("numbers").changes()
            flow.output("numbers").forget()

    followers: list[tuple[Iterator[tuple[int, pa.Table]], Rows, list[int], float]] = []
    for turn in range(30):
        another_epoch()
        if turn % 10 == 3:
            output = cluster.flow(flow.index).output("numbers")
            tail = output.follow(snapshot=True, forget=rng.random() < 0.5)
            followers.append((tail, Counter(), [], rng.random()))
        for tail, total, seen, speed in followers:
            while (not seen or seen[-1] < len(history) - 1) and rng.random() < speed:
                epoch, table = next(tail)
                assert epoch == (seen[-1] + 1 if seen else len(history) - 1), "no epoch is left out"
                seen.append(epoch)
                total.update(rows_of(table))
                assert +total == history[epoch], f"epoch {epoch}"
    for name in ("numbers", "records"):
        flow.input(name).close()
    for tail, total, _, _ in followers:
        for epoch, table in tail:
            total.update(rows_of(table))
            assert +total == history[min(epoch, len(history) - 1)]
        assert +total == history[-1]


def test_forget_by_one_takes_nothing_from_another_that_has_a_place(cluster: timely.Cluster) -> None:
    mine = cluster.install(numbers)
    slow = cluster.flow(mine.index).output("numbers")
    slow.changes_nowait()
    for value in range(3):
        put(mine, value)
        mine.output("numbers").changes()
        mine.output("numbers").forget()
    assert epochs_of(slow.changes()) == [0, 1, 2]
    slow.forget()
    with pytest.raises(timely.ForgottenError, match="before 3 are no longer kept"):
        mine.output("numbers").changes(2)


@pytest.mark.parametrize("name", ["numbers", "records"])
def test_forget_is_told_to_who_comes_too_late_and_never_a_part(cluster: timely.Cluster, name: str) -> None:
    mine = cluster.install(numbers)
    for value in range(3):
        mine.input("records").insert([value])
        put(mine, value)
    mine.output(name).forget(2)
    late = cluster.flow(mine.index).output(name)
    for read in (late.changes, late.changes_nowait, lambda: late.changes(0), lambda: late.changes(1, 3)):
        with pytest.raises(timely.ForgottenError, match=r"before 2 are no longer kept.*asked for from [01]"):
            read()
    assert len(late.changes(2)) == 1


def test_forget_is_not_held_back_by_a_client_that_was_refused(cluster: timely.Cluster) -> None:
    mine = cluster.install(numbers)
    put(mine, 1)
    mine.output("numbers").changes()
    mine.output("numbers").forget()
    with pytest.raises(timely.ForgottenError):
        cluster.flow(mine.index).output("numbers").changes()  # an error changes nothing: it has no place
    put(mine, 2)
    mine.output("numbers").changes()
    mine.output("numbers").forget()
    with pytest.raises(timely.ForgottenError, match="before 2 are no longer kept"):
        mine.output("numbers").changes(1)


def test_forget_is_held_back_until_a_client_leaves(cluster: timely.Cluster) -> None:
    mine = cluster.install(numbers)
    other = cluster.flow(mine.index).output("numbers")
    other.changes_nowait()
    put(mine, 1)
    mine.output("numbers").changes()
    mine.output("numbers").forget()
    assert mine.output("numbers").changes(0).num_rows == 1
    other.leave()
    mine.output("numbers").forget()
    with pytest.raises(timely.ForgottenError):
        mine.output("numbers").changes(0)


def test_forget_more_than_is_complete_drops_what_is_complete(cluster: timely.Cluster) -> None:
    flow = cluster.install(numbers)
    put(flow, 1)
    flow.output("numbers").forget(100)
    other = cluster.flow(flow.index)
    put(other, 2)
    assert epochs_of(other.output("numbers").changes(1)) == [1]


def test_snapshot_says_of_which_epoch_it_is(cluster: timely.Cluster) -> None:
    flow = cluster.install(numbers)
    output = flow.output("numbers")
    assert output.epoch_of(output.snapshot()) == -1
    put(flow, 3, 3)
    put(cluster.flow(flow.index), 4)
    table = output.snapshot()
    assert (output.epoch_of(table), table.column("n").to_pylist()) == (1, [3, 3, 4])
    with pytest.raises(timely.MisuseError, match="is no snapshot"):
        output.epoch_of(table.replace_schema_metadata(None))


def test_snapshot_takes_no_epoch_and_says_how_to_read_an_earlier_one(cluster: timely.Cluster) -> None:
    flow = cluster.install(numbers)
    output = flow.output("numbers")
    put(flow, 3)
    put(flow, 4)
    snapshot: Callable[..., pa.Table] = output.snapshot
    for call in (lambda: snapshot(0), lambda: snapshot(epoch=0)):
        with pytest.raises(
            timely.MisuseError, match=r"snapshot\(\) takes no epoch: .*changes\(0, epoch \+ 1\)"
        ):
            call()
    assert output.changes(0, 1).column("n").to_pylist() == [3]
    assert output.snapshot(timeout=5).column("n").to_pylist() == [3, 4]


def test_snapshot_is_not_hindered_by_what_was_forgotten(cluster: timely.Cluster) -> None:
    flow = cluster.install(numbers)
    for value in range(5):
        put(flow, value)
        flow.output("numbers").changes()
        flow.output("numbers").forget()
    assert cluster.flow(flow.index).output("numbers").snapshot().column("n").to_pylist() == [0, 1, 2, 3, 4]


def test_a_timeout_that_is_over_already_is_none_to_wait_for_ever_with() -> None:
    assert seconds_of(None) < 0
    assert [seconds_of(timeout) for timeout in (-5.0, -0.001, 0, 2)] == [0, 0, 0, 2]
    with pytest.raises(timely.MisuseError, match="timeout is not a number"):
        seconds_of(float("nan"))


def test_numbers_of_epochs_and_time_outs_of_another_kind_are_refused_as_such(cluster: timely.Cluster) -> None:
    flow = cluster.install(numbers)
    output = flow.output("numbers")
    flow.seal()
    more = pa.table({"n": [1], "diff": [1]})
    for call, said in {
        lambda: flow.wait(True): r"wait\(epoch\) takes the number of an epoch, not True",
        lambda: flow.input("numbers").append(more, epoch=True): r"append\(epoch=…\) takes .*, not True",
        lambda: flow.wait("x"): r"wait\(epoch\) takes the number of an epoch, not 'x'",
        lambda: flow.seal(through=1.5): r"seal\(through=…\) takes .*, not 1\.5",
        lambda: output.changes("a"): r"changes\(start=…\) takes",
        lambda: output.changes(0, "b"): r"changes\(stop=…\) takes",
        lambda: next(output.follow(start="x")): r"follow\(start=…\) takes",
        lambda: output.forget("x"): r"forget\(stop\) takes",
        lambda: flow.wait(timeout="soon"): "timeout takes seconds, .* not 'soon'",
        lambda: flow.seal(wait=True, timeout="1"): "timeout takes seconds, .* not '1'",
        lambda: flow.input("numbers").insert([(1,)], writer=3, sequence=0): "a text.* not by writer=3",
        lambda: flow.input("numbers").insert([(1,)], writer="a", sequence="b"): "whole number.*sequence='b'",
        lambda: flow.input("numbers").insert([(1,)], writer="a", sequence=-1): r"0 to .*sequence=-1\. Number",
        lambda: flow.input("numbers").insert([(1,)], writer="a", sequence=2**62 + 1): "to 2⁶²",
        lambda: flow.input("numbers").append(more, epoch=1.5): r"or the name of a column .*, not 1\.5",
        lambda: flow.input("numbers").append(more.to_pandas()): r"not DataFrame: pa\.Table\.from_pandas",
        lambda: flow.input("numbers").append(more, writer="a", sequence=-1): "from 0 .*sequence=-1",
        lambda: flow.input("numbers").append(more, writer="a", sequence=1.5): "whole number.*sequence=1.5",
        lambda: flow.input("numbers").append(more, writer=3, sequence=1): "a text.* not by writer=3",
        lambda: flow.input("numbers").append(more, writer="a", sequence=True): "whole number.*sequence=True",
        lambda: flow.input("numbers").append(more, epoch=2.5): r"append\(epoch=…\) takes",
        lambda: flow.input("numbers").append(
            more, epoch="2"
        ): r"append\(epoch='2'\) takes .* from that column",
        lambda: output.changes(4, 3): r"changes\(start=4, stop=3\): no epoch is both",
    }.items():
        with pytest.raises(timely.MisuseError, match=said):
            call()  # type: ignore[no-untyped-call]
    flow.input("numbers").insert([(1,)], writer="a", sequence=np.int64(0))  # type: ignore[arg-type]
    assert flow.input("numbers").append(more, writer="a", sequence=2**62)
    assert flow.wait(np.int64(0)) == 0 and output.changes(np.int64(0), np.int64(1)).num_rows == 0
    with pytest.raises(timely.MisuseError, match=f"1 to {WORKERS_MAX} workers, not 'two'"):
        timely.connect(workers="two")  # type: ignore[arg-type]


@pytest.mark.parametrize("count", [3, 3000])
def test_snapshot_says_that_rows_wait_for_the_first_seal(cluster: timely.Cluster, count: int) -> None:
    flow = cluster.install(numbers)
    output = flow.output("numbers")
    flow.input("numbers").insert([])
    assert output.snapshot().num_rows == 0, "nothing waits"
    flow.input("numbers").insert([(value,) for value in range(count)])
    with pytest.raises(
        timely.MisuseError, match=r"no epoch of .* 'numbers' wait in epoch 0, .*\n.*flow.seal\(\)"
    ):
        output.snapshot()
    assert cluster.flow(flow.index).output("numbers").snapshot().num_rows == 0, (
        "another client has put in none"
    )
    flow.seal()
    assert output.snapshot().num_rows == count
    flow.input("numbers").insert([(7,)])
    assert output.snapshot().num_rows == count, "as of the last epoch that is sealed"


def test_snapshot_says_so_of_tables_and_appends_too(cluster: timely.Cluster) -> None:
    for put_in in (
        lambda ends: ends.insert(pa.table({"n": list(range(5000))})),
        lambda ends: ends.append(pa.table({"n": [1], "diff": [1]})),
        lambda ends: ends.append(pa.table({"n": [1], "diff": [1]}), writer="w", sequence=0),
    ):
        flow = cluster.install(numbers)
        put_in(flow.input("numbers"))
        with pytest.raises(timely.MisuseError, match="wait in epoch 0"):
            flow.output("numbers").snapshot()
        flow.seal()
        assert flow.output("numbers").snapshot().num_rows > 0
