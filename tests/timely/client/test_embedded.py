"""Workers in the caller's process: the same answers, errors as they are, no waiting for what cannot come."""

from __future__ import annotations

from collections import Counter

import pytest
from dataflows import CollectVertex, collatz, fails_on, word_count

import timely
from progress.times.timestamp import Timestamp
from timely.client.embedded import EmbeddedWorkers
from timely.operators.inputs.handle import InputHandle


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_words_are_counted_whatever_the_number_of_workers(workers: int) -> None:
    with timely.connect(workers=workers, embedded=True) as cluster:
        flow = cluster.install(word_count)
        total: Counter[str] = Counter()
        for epoch, text in enumerate(["a b a", "", "c a"]):
            flow.input("lines").insert([text])
            assert flow.seal() == epoch
            total.update(text.split())
            assert sorted(flow.output("counts").changes()) == [
                (epoch, (word, total[word])) for word in sorted(set(text.split()))
            ]


@pytest.mark.parametrize("delays", [None, 1, 2, 3])
def test_nested_loops_end_whatever_the_delays(delays: int | None) -> None:
    with timely.Cluster(EmbeddedWorkers(3, delays)) as cluster:
        assert repr(cluster) == "<cluster of 3 workers, embedded>"
        flow = cluster.install("dataflows:collatz")
        flow.input("numbers").insert([(n, n, 0) for n in (1, 6, 27)])
        flow.seal()
        assert sorted(flow.output("steps").changes()) == [(0, (1, 0, 0)), (0, (6, 2, 2)), (0, (27, 41, 41))]
    assert collatz.__name__ == "collatz"


def test_functions_of_any_kind_and_arguments_of_any_type_are_taken() -> None:
    seen: list[object] = []

    class Sees(timely.Vertex):
        def __init__(self, into: list[object]) -> None:
            self.into = into

        def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
            self.into.extend(message)

    with timely.connect(embedded=True) as cluster:
        flow = cluster.install(
            lambda flow, into: flow.input("x").stage("sees", lambda: Sees(into)), into=seen
        )
        flow.input("x").insert([1, 2])
        flow.seal()
    assert seen == [1, 2]


def test_an_exception_of_a_vertex_is_the_cause_of_what_comes_out_and_ends_the_dataflow() -> None:
    with timely.connect(workers=2, embedded=True) as cluster:
        flow, other = cluster.install(fails_on), cluster.install(word_count)
        flow.input("words").insert(["good", "bad"])
        with pytest.raises(timely.VertexError, match="ValueError: cannot bear 'bad'") as caught:
            flow.seal()
        assert isinstance(caught.value.__cause__, ValueError)
        assert "while 'collect' (stage 1, worker " in caught.value.__cause__.__notes__[0]
        with pytest.raises(timely.VertexError, match="dataflow 0 .fails_on. has ended with this error"):
            flow.seal()
        assert other.seal() == 0, "other dataflows go on"


def test_an_interrupt_comes_out_as_it_is() -> None:
    class Interrupted(timely.Vertex):
        def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
            raise KeyboardInterrupt

    with timely.connect(workers=2, embedded=True) as cluster:
        flow = cluster.install(lambda flow: flow.input("x").stage("interrupted", Interrupted))
        flow.input("x").insert([1])
        with pytest.raises(KeyboardInterrupt):
            flow.seal()
        with pytest.raises(timely.MisuseError, match="this cluster was interrupted by KeyboardInterrupt"):
            flow.seal()


def test_an_interrupt_between_two_steps_of_a_call_leaves_nothing_to_go_on_with(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else an insertion was remembered as taken whose rows were not kept, and its repetition did nothing."""

    def interrupted(self: InputHandle, epoch: int, batches: object, word: int) -> None:
        raise KeyboardInterrupt

    with timely.connect(workers=2, embedded=True) as cluster:
        flow = cluster.install(word_count)
        with monkeypatch.context() as patch:
            patch.setattr(InputHandle, "_keep", interrupted)
            with pytest.raises(KeyboardInterrupt):
                flow.input("lines").insert(["one"], writer="w", sequence=0)
        with pytest.raises(timely.MisuseError, match="this cluster was interrupted by KeyboardInterrupt"):
            flow.input("lines").insert(["one"], writer="w", sequence=0)


def test_waiting_for_what_cannot_come_is_an_error_at_once() -> None:
    with timely.connect(workers=2, embedded=True) as cluster:
        flow = cluster.install(word_count)
        with pytest.raises(
            timely.WaitTimeoutError, match=r"is not complete on worker \d: it is not sealed yet"
        ):
            flow.wait(0)
        flow.seal()
        flow.wait(0)


def test_different_dataflows_are_refused_here_too() -> None:
    built: list[int] = []

    def differs(dataflow: timely.Dataflow) -> None:
        built.append(0)
        dataflow.input("x").stage(f"stage of worker {len(built) - 1}", lambda: CollectVertex("", ""))

    with timely.connect(workers=2, embedded=True) as cluster:
        with pytest.raises(timely.GraphError, match="worker 1 built stage 1 as"):
            cluster.install(differs)
        assert cluster.install(word_count).seal() == 0


def test_a_closed_cluster_and_other_processes_are_refused() -> None:
    cluster = timely.connect(embedded=True)
    with pytest.raises(timely.MisuseError, match="cannot be reached from other processes"):
        cluster.append_target()
    cluster.close()
    cluster.close()
    with pytest.raises(timely.MisuseError, match="closed"):
        cluster.install(word_count)


@pytest.mark.parametrize("workers", [0, 257])
def test_the_number_of_workers_has_bounds(workers: int) -> None:
    with pytest.raises(timely.MisuseError, match="1 to 256 workers"):
        timely.connect(workers=workers, embedded=True)
