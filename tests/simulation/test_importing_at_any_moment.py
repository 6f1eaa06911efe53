"""Importers that are installed, and uninstalled, at random moments of a random history, among workers whose
messages are delayed at random; every worker checks its progress tracking, or none and loops are compiled.

same_*     from the epoch on with which it begins an importer says what its owner says of the same query
refused_*  nothing is held, on no worker
ends_*     with the owner, whoever hears first
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import pyarrow as pa
import pytest
from delayed_cluster import DelayedCluster, Row, answers_to, some_epoch_bits
from exporting_flows import QUERIES, sums

import timely
from differential.operators.between import imports as imports_module
from differential.operators.between.exports import ExportVertex
from differential.trace.shared import SharedTrace
from timely.running.checking.monitor import Monitor
from timely.wire.handshake import Offer
from timely.wire.requests import Install, Uninstall
from timely.worker.answers.later import Later

FAILS = "fails on 5"


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_same_as_the_owner_from_the_beginning_on(
    workers: int, seed: int, effort: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = 0
    for number in range(16 * effort):
        case = seed + number
        rng = random.Random(case)
        monkeypatch.setattr(imports_module, "_PIECE_ROWS", rng.choice([1, 3, 65_536]))
        some_epoch_bits(rng, monkeypatch)
        cluster = DelayedCluster(rng, workers, checks=case % 2 == 0)
        cluster.owner = cluster.install("exporting_flows:owner")
        cluster.settle()
        importers = _at_random(cluster)
        cluster.seal()
        cluster.seal()
        cluster.settle()
        wanted = {query: answers_to(query, cluster.history, cluster.epoch) for query in (*QUERIES, FAILS)}
        for flow, query in importers.items():
            if flow not in cluster.workers[0].instances:
                assert isinstance(cluster.workers[0].ended[flow], timely.UninstalledError), f"seed {case}"
                continue
            (begin,) = {worker.instance(flow).first_epoch for worker in cluster.workers}
            ours = _changes(cluster, flow)
            for epoch in range(cluster.epoch):
                there = wanted[query][epoch] if epoch >= begin else Counter[Row]()
                captures = [worker.instance(flow).output("out") for worker in cluster.workers]
                errors = {str(each.failures and each.failures.error_at(epoch)) for each in captures}
                assert len(errors) == 1 and (errors == {"None"}) == (there is not None), (
                    f"seed {case}, {query} of {flow} at {epoch} from {begin}: {errors}, {there}"
                )
                if there is None:
                    failed += 1
                    continue
                assert sums(ours, epoch) == there, f"seed {case}, {query} of {flow} at {epoch} from {begin}"
        _nothing_is_held(cluster, f"seed {case}")
    assert failed > 16, "some had no answer at some epochs"


@pytest.mark.parametrize("workers", [1, 2])
def test_same_protocol_for_importers_every_predicate_holds(workers: int, seed: int, effort: int) -> None:
    for number in range(3 * effort):
        rng = random.Random(seed + number)
        cluster = DelayedCluster(rng, workers, compiled_loops=False)  # a monitor looks into loops
        monitor = Monitor(cluster.workers, cluster.network if workers > 1 else None)
        cluster.owner = cluster.install("exporting_flows:owner")
        cluster.settle()
        for turn in range(40):
            if turn % 15 == 9:
                of = turn % 2 and turn // 15
                if of not in cluster.workers[0].instances:  # it is asked for, and not there yet
                    cluster.settle()
                cluster.install("exporting_flows:importer", query="reach", of=of)
            rng.choice([cluster.change, cluster.seal, cluster.step, cluster.step])()
        cluster.settle()
        assert monitor.looks > 100
        assert all(len(worker.instances) == 4 for worker in cluster.workers)


def _at_random(cluster: DelayedCluster) -> dict[int, str]:
    """A history; by number the importers of it, and what they ask."""
    rng, importers = cluster.rng, dict[int, str]()
    for _ in range(120):
        chance = rng.random()
        running = [flow for flow in importers if flow in cluster.workers[0].instances]
        if chance < 0.25:
            cluster.change()
        elif chance < 0.37:
            cluster.seal()
        elif chance < 0.42:
            query = rng.choice((*QUERIES, FAILS))
            # One that imports from an importer gets what that makes of it: as it is, or without what fails.
            kinds = ("as it is", FAILS) if query in ("as it is", FAILS) else ("as it is",)
            of = rng.choice([cluster.owner, *(flow for flow in running if importers[flow] in kinds)])
            fails = query == FAILS or importers.get(of) == FAILS
            flow = cluster.install("exporting_flows:importer", query=query, of=of)
            importers[flow] = FAILS if fails else query
        elif chance < 0.43 and running:
            cluster.ask(Uninstall(rng.choice(running), True))
        else:
            cluster.step()
    return importers


def _changes(cluster: DelayedCluster, flow: int) -> pa.Table:
    """Of all workers, up to the last sealed epoch."""
    captures = [worker.instance(flow).output("out") for worker in cluster.workers]
    assert {capture.complete_before for capture in captures} == {cluster.epoch}
    return pa.concat_tables(capture.log.changes(0, cluster.epoch) for capture in captures)


def _nothing_is_held(cluster: DelayedCluster, case: str) -> None:
    """Who has begun to read copies, and holds nothing back any more."""
    for worker in cluster.workers:
        for instance in worker.instances.values():
            for runner in instance.runners:
                vertex = runner.vertex
                if isinstance(vertex, ExportVertex):
                    (trace,) = vertex.traces()
                    assert isinstance(trace, SharedTrace)
                    assert [one.name for one in trace.report().readers] == ["the export itself"], case
                    if vertex.upper is None:  # what fails, where nothing can
                        assert trace.report().rows == 0 and vertex.since <= cluster.epoch, case
                        continue
                    assert vertex.since == max(cluster.epoch - 1, instance.first_epoch), case


def _readers(cluster: DelayedCluster) -> list[list[str]]:
    """Who reads what the owner exports, on each worker."""
    found = []
    for worker in cluster.workers:
        vertex = worker.exported(cluster.owner, "edges").vertex
        assert isinstance(vertex, ExportVertex)
        (trace,) = vertex.traces()
        assert isinstance(trace, SharedTrace)
        found.append([one.name for one in trace.report().readers])
    return found


def test_refused_on_one_worker_the_others_hold_nothing_any_more() -> None:
    cluster = DelayedCluster(random.Random(7), 3)
    cluster.owner = cluster.install("exporting_flows:owner")
    cluster.settle()
    flow = cluster.install("exporting_flows:importer", of=0)
    cluster.workers[1].step()
    assert _readers(cluster)[0] == ["the export itself", f"dataflow {flow} (exporting_flows:importer)"]
    cluster.servers[0].installations.receive(2, Offer(flow, "", (), "no such file", ("VertexError",)))
    cluster.settle()
    assert _readers(cluster) == [["the export itself"]] * 3
    assert all(set(worker.instances) == {0} for worker in cluster.workers)
    cluster.change()
    cluster.seal()
    cluster.settle()
    assert _changes(cluster, 0).num_rows == 1, "the owner is as before"


def test_refused_when_workers_would_read_different_dataflows() -> None:
    cluster = DelayedCluster(random.Random(7), 2)
    cluster.install("exporting_flows:owner")
    cluster.settle()
    answer = cluster.ask(Install("exporting_flows:importer", {"of": 0}))
    assert isinstance(answer, Later)
    offered = cluster.servers[0].installations._offers[1][0]
    cluster.servers[0].installations.receive(1, replace(offered, imports=("5 edges",)))
    with pytest.raises(timely.GraphError, match=r"would read other dataflows on worker 1 \(5 edges\) than"):
        answer.ready()


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_ends_everywhere_when_the_owner_does_before_the_verdict(workers: int) -> None:
    for seed in range(6):
        cluster = DelayedCluster(random.Random(seed), workers)
        cluster.owner = cluster.install("exporting_flows:owner")
        cluster.settle()
        flow = cluster.install("exporting_flows:importer", of=0)
        for _ in range(seed):
            cluster.step()
        cluster.workers[-1].fail(0, timely.MisuseError("too bad"))
        cluster.settle()
        assert not any(worker.instances or worker._early for worker in cluster.workers), f"seed {seed}"
        for worker in cluster.workers:
            with pytest.raises(timely.MisuseError, match="'edges' of dataflow 0|no dataflow 0 runs here"):
                worker.instance(flow)
