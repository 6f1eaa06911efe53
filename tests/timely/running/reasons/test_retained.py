"""What keeps an arrangement from summing up, or an output from forgetting: staged, on one and on two workers.

Each stall has one cause, and the report names it: an open input that another one is ahead of, in front of a
join, within a loop, or in another dataflow; a capability; a client that does not read; a fold; nothing.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator

import pytest
import stuck_flows

import differential as dd
import timely
from differential import col
from timely.client.reports.retained import Retained
from timely.operators.capture import CaptureVertex


def joined(flow: timely.Dataflow) -> None:
    orders = dd.input(flow, "orders", "customer: int, cents: int").arrange("customer")
    rates = dd.input(flow, "rates", "customer: int, rate: int")
    orders.join(rates, on="customer").output("joined")
    orders.group_by("customer").agg(n=dd.count()).output("counts")


def looped(flow: timely.Dataflow) -> None:
    edges = dd.input(flow, "edges", "a: int, b: int").arrange("a")
    seeds = dd.input(flow, "seeds", "a: int")
    reached = seeds.iterate(
        lambda x: edges.join(x, on="a").select(a=col.b).concat(x).distinct(), iterations_max=100
    )
    reached.output("reached")


def held(flow: timely.Dataflow) -> None:
    """A stage by hand holds its epochs, in front of a join."""
    rows = dd.input(flow, "orders", "customer: int, cents: int").arrange("customer")
    (kept,) = flow.stage("holder", stuck_flows.Holds, [flow.input("records").feed()])
    late = dd.collection(kept, "customer: int")
    rows.join(late, on="customer").output("joined")


def exports(flow: timely.Dataflow) -> None:
    dd.input(flow, "rows", "customer: int, cents: int").export("rows", "customer")


def imports(flow: timely.Dataflow, owner: int) -> None:
    orders = dd.input(flow, "orders", "customer: int, n: int").arrange("customer")
    rows = dd.imported(flow, owner, "rows", "customer: int, cents: int")
    orders.join(rows, on="customer").output("joined")


@pytest.fixture(params=[1, 2], ids=["one worker", "two workers"])
def cluster(request: pytest.FixtureRequest) -> Iterator[timely.Cluster]:
    with timely.connect(workers=request.param, embedded=True) as made:
        yield made


def arrangement(flow: timely.Flow) -> Retained:
    """The only arrangement that is retained."""
    (one,) = [entry for entry in flow.why_retained().entries if entry.kind == "arrangement"]
    return one


def go_ahead(cluster: timely.Cluster, flow: timely.Flow, name: str, row: tuple[int, ...]) -> None:
    """Complete epoch 0 everywhere, and three more epochs of one input."""
    flow.input(name).insert([row])
    flow.seal(wait=True)
    for _ in range(3):
        flow.input(name).insert([row])
        flow.input(name).seal()
    cluster.stats()  # embedded workers work in calls


def test_nothing_is_retained_where_all_is_complete(cluster: timely.Cluster) -> None:
    for build, name in ((joined, "orders"), (looped, "edges")):
        flow = cluster.install(build)
        assert not flow.why_retained().entries
        for n in range(3):
            flow.input(name).insert([(n, n)])
            flow.seal(wait=True)
        report = flow.why_retained()
        assert not report.entries and not report.silent
        assert str(report) == f"nothing keeps history in {flow.name!r} for longer than it is needed"


def test_an_input_that_is_behind_holds_the_other_side_of_a_join(cluster: timely.Cluster) -> None:
    flow = cluster.install(joined)
    go_ahead(cluster, flow, "orders", (7, 100))
    one = arrangement(flow)
    assert (one.epoch, one.epochs, one.rows) == (1, 3, 4)
    assert one.readers == ("join on customer",) and one.workers in ((0,), (0, 1), (1,))
    (cause,) = one.reasons
    assert (cause.kind, cause.stage, cause.time) == ("input", "rates", (1,))
    assert cause.seconds >= 0.0 and "test_retained.py" in cause.site
    assert "keeps what changed from epoch 1 on: 3 epochs, 4 rows" in str(one)
    flow.seal(through=3, wait=True)
    assert not flow.why_retained().entries


def test_an_input_that_is_behind_holds_what_a_loop_reads(cluster: timely.Cluster) -> None:
    flow = cluster.install(looped)
    flow.input("seeds").insert([(1,)])
    go_ahead(cluster, flow, "edges", (1, 2))
    entries = {entry.name: entry for entry in flow.why_retained().entries}
    one = entries["arrange by a"]
    assert (one.epoch, one.epochs) == (1, 3)
    assert [(cause.kind, cause.stage, cause.time) for cause in one.reasons] == [("input", "seeds", (1,))]


def test_a_capability_holds_an_arrangement_in_front_of_a_join(cluster: timely.Cluster) -> None:
    flow = cluster.install(held)
    flow.input("records").insert([5])
    for n in range(3):
        flow.input("orders").insert([(n, n)])
        flow.seal()
    cluster.stats()
    (cause,) = arrangement(flow).reasons
    assert (cause.kind, cause.stage, cause.time) == ("capability", "holder", (0,))
    assert cause.where == stuck_flows.line_of("# held here")


def test_a_dataflow_that_is_behind_holds_what_reads_it(cluster: timely.Cluster) -> None:
    owner = cluster.install(exports)
    owner.seal(wait=True)
    flow = cluster.install(imports, owner=owner.index)
    flow.input("orders").insert([(1, 1)])
    flow.seal(through=5)
    cluster.stats()
    kinds = {cause.kind: cause for cause in arrangement(flow).reasons}
    assert kinds["input"].stage == "rows" and kinds["input"].dataflow == owner.name
    assert "import" in kinds


def test_a_client_that_does_not_read_holds_changes(cluster: timely.Cluster) -> None:
    flow = cluster.install(joined)
    follower = cluster.flow(flow.index).output("counts").follow()
    for n in range(3):
        flow.input("orders").insert([(n, n)])
        flow.seal(wait=True)
    next(follower)
    flow.input("orders").insert([(9, 9)])
    flow.seal(wait=True)
    (one,) = flow.why_retained().entries
    assert (one.kind, one.name, one.epochs) == ("output", "counts", 4 - one.epoch)
    (cause,) = one.reasons
    assert cause.kind == "reader" and cause.seconds >= 0.0
    assert "has still to read 'counts' from epoch" in str(one)
    assert cause.detail == f"process {os.getpid()} on {socket.gethostname()}"
    assert cause.where.startswith(__file__), "the line that has begun to read"
    assert (one.rows, one.bytes) == (cause.rows, cause.bytes) and 0 < cause.rows <= 8 < cause.bytes
    reader = f"a client ({cause.detail}, at {cause.where})"
    size = f"about {cause.rows} rows in {cause.bytes} bytes"
    assert reader in str(one) and f"{size} are kept for it" in str(one)


def test_those_with_the_most_bytes_are_listed_and_the_others_counted(
    cluster: timely.Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("timely.worker.answers.why.RETAINED_COUNT_MAX", 1)
    flow = cluster.install(joined)
    readers = [flow.output(name) for name in ("joined", "counts")]
    for output in readers:
        output.changes()
    for n in range(3):
        flow.input("orders").insert([(n, n)])
        flow.seal(wait=True)
    report = flow.why_retained()
    assert [one.name for one in report.entries] == ["counts"] and report.left_out == 1
    assert str(report).endswith("\nand 1 more")


def test_a_fold_holds_changes(cluster: timely.Cluster) -> None:
    flow = cluster.install(joined)
    for n in range(2):
        flow.input("orders").insert([(n, n)])
        flow.seal(wait=True)
    worker = cluster._workers._workers[0]  # type: ignore[attr-defined]
    (instance,) = worker.instances.values()
    capture = instance.output("counts")
    assert isinstance(capture, CaptureVertex)
    capture.keep_changes(1)
    (one,) = flow.why_retained().entries
    assert [(cause.kind, cause.time) for cause in one.reasons] == [("fold", (1,))]
    assert "a fold writes 'counts' from epoch 1 on" in str(one)
    capture.let_changes_go()
    assert not flow.why_retained().entries


def test_an_ended_dataflow_raises_its_end(cluster: timely.Cluster) -> None:
    flow = cluster.install(joined)
    flow.uninstall()
    with pytest.raises(timely.UninstalledError):
        flow.why_retained()
