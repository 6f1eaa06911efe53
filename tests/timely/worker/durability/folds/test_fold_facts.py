"""What a fold must know of a dataflow, when stages written by hand read its inputs.

hand_*     stages without and with a promise
mixed_*    stages by hand before, behind and beside operators of collections
"""

from __future__ import annotations

from collections.abc import Callable

import differential as dd
import timely
from differential import col
from timely.durable.bases.facts import FoldFacts
from timely.worker.durability.folds.fold_facts import fold_facts


class Passes(timely.Vertex):
    """Sends on what comes in."""

    word_times = True

    def recv_all(self, port: int, messages: object) -> None:
        for word, batch in messages:  # type: ignore[attr-defined]
            self.send(0, batch, word)


class PassesAlone(Passes):
    keeps = "nothing"


def facts_of(query: Callable[[timely.Dataflow], object]) -> FoldFacts:
    with timely.connect(embedded=True) as cluster:
        flow = cluster.install(query)
        workers = cluster._workers
        return fold_facts(workers._workers[0].instances[flow.index])  # type: ignore[union-attr]


def through(stream: timely.Stream, vertex: type[Passes]) -> timely.Stream:
    (passed,) = stream.dataflow.stage("passes", vertex, [stream.feed()])
    return passed


def test_hand_stage_without_a_promise_needs_all_epochs() -> None:
    def query(flow: timely.Dataflow) -> None:
        flow.output("out", through(flow.input("in"), Passes))

    facts = facts_of(query)
    assert not facts.input("in").sums
    assert "stage 'passes' (" in facts.input("in").why and "test_fold_facts.py:" in facts.input("in").why
    assert 'write keeps = "nothing" in the class Passes' in facts.input("in").why
    assert facts.output("out").form == "" and facts.output("out").details == ["timely.operators.capture"]


def test_hand_stage_with_a_promise_lets_old_rows_go() -> None:
    def query(flow: timely.Dataflow) -> None:
        flow.output("out", through(through(flow.input("in"), PassesAlone), PassesAlone))
        flow.probe("seen", flow.input("other"))

    facts = facts_of(query)
    assert facts.input("in").sums and facts.input("other").sums and facts.reasons() == []


def test_hand_stage_whose_records_come_back_at_later_epochs_needs_all_of_them() -> None:
    def query(flow: timely.Dataflow) -> None:
        back = flow.feedback()
        passed = through(flow.input("in").concat(back.stream), PassesAlone)
        back.connect(passed.filter(lambda record: False))
        flow.output("out", through(flow.input("other"), PassesAlone))

    facts = facts_of(query)
    assert "comes back at later epochs, by dataflow.feedback(), so all" in facts.input("in").why
    assert facts.input("other").sums


def test_hand_stage_behind_one_with_a_promise_counts_too() -> None:
    def query(flow: timely.Dataflow) -> None:
        flow.output("out", through(through(flow.input("in"), PassesAlone), Passes))

    assert not facts_of(query).input("in").sums


def test_mixed_collection_of_a_stage_by_hand_needs_all_epochs() -> None:
    def query(flow: timely.Dataflow) -> None:
        rows = dd.input(flow, "rows", "a: int")
        (leaf,) = rows.plan.streams.values()
        stream = through(leaf[0], PassesAlone)
        dd.from_stream(flow, stream, "a: int").group_by("a").agg(n=dd.count()).output("out")

    facts = facts_of(query)
    assert not facts.input("rows").sums
    assert "is behind stages that were written by hand" in facts.input("rows").why
    assert facts.input("rows").form == "", "batches stay as they were"
    assert list(facts.input("rows").details)[0] == "differential.operators.edge.table_in"


def test_mixed_input_beside_is_summed() -> None:
    def query(flow: timely.Dataflow) -> None:
        dd.input(flow, "rows", "a: int").filter(col.a > 1).output("out")
        flow.output("records", through(flow.input("in"), Passes))

    facts = facts_of(query)
    assert facts.input("rows").sums and facts.input("rows").form
    assert facts.output("out").form == "differential.plan.durable.summing:summed_rows"
    assert len(facts.reasons()) == 1
