"""Operators of streams that take records one by one; in loops, too; and what their functions may return.

one_*      records one by one
goes_*     which worker has them
loops_*    in a loop
misuse_*   what a function may return, and what is no function
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

import pytest
from stream_runs import Build, run

import timely
from progress.times.timestamp import Timestamp
from timely.building.stream import Stream


@pytest.fixture(params=[1, 2], ids=["one worker", "two threads"], scope="module")
def cluster(request: pytest.FixtureRequest) -> Iterator[timely.Cluster]:
    with timely.connect(workers=request.param, embedded=True, threads=request.param > 1) as cluster:
        yield cluster


def test_one_by_one(cluster: timely.Cluster) -> None:
    seen: list[object] = []
    batches: list[tuple[Timestamp, list[int]]] = []

    def show(time: Timestamp, records: list[int]) -> None:
        batches.append((time, records))

    (mapped,) = run(cluster, lambda s: s.map(lambda n: n * 10), [1, 2], [3])
    assert mapped == Counter([(0, 10), (0, 20), (1, 30)])
    (flat,) = run(cluster, lambda s: s.flat_map(str.split), ["a b", ""], ["c"])
    assert flat == Counter([(0, "a"), (0, "b"), (1, "c")])
    (some,) = run(cluster, lambda s: s.filter(lambda n: n % 2), [1, 2, 3])
    assert some == Counter([(0, 1), (0, 3)])
    (same,) = run(cluster, lambda s: s.inspect(seen.append).inspect_batch(show), [1, 2], [3])
    assert same == Counter([(0, 1), (0, 2), (1, 3)]) and sorted(map(str, seen)) == ["1", "2", "3"]
    assert Counter((time[0], one) for time, records in batches for one in records) == same


def test_one_stream_becomes_several(cluster: timely.Cluster) -> None:
    yes, no = run(cluster, lambda s: s.branch(lambda n: n > 1), [1, 2], [3])
    assert (yes, no) == (Counter([(0, 2), (1, 3)]), Counter([(0, 1)]))
    parts = run(cluster, lambda s: s.partition(3, lambda n: n % 3), [0, 1, 2, 3], [5])
    assert parts == [Counter([(0, 0), (0, 3)]), Counter([(0, 1)]), Counter([(0, 2), (1, 5)])]
    good, bad = run(cluster, lambda s: s.ok_err(lambda n: 6 // n), [1, 0], [3])
    assert good == Counter([(0, 6), (1, 2)])
    assert [*bad] == [(0, (0, "ZeroDivisionError: integer division or modulo by zero"))]


def test_one_error_may_have_a_text_that_cannot_be_sent(cluster: timely.Cluster) -> None:
    def fail(n: int) -> int:
        raise ValueError("\udc80")

    (bad,) = run(cluster, lambda s: s.ok_err(fail)[1].exchange(timely.by(0)), [1, 2, 3, 4])
    assert bad == Counter((0, (n, r"ValueError: \udc80")) for n in (1, 2, 3, 4))


def test_one_several_streams_become_one(cluster: timely.Cluster) -> None:
    (both,) = run(cluster, lambda s: s.map(lambda n: -n).concat(s, s.filter(lambda n: n > 1)), [1, 2])
    assert both == Counter([(0, -1), (0, -2), (0, 1), (0, 2), (0, 2)])


def test_one_record_is_later(cluster: timely.Cluster) -> None:
    later = run(cluster, lambda s: s.delay(lambda n, time: (time[0] + n,)), [0, 2, 2], [0], [], [])
    assert later == [Counter({(0, 0): 1, (2, 2): 2, (1, 0): 1})]


def test_goes_where_it_is_said(cluster: timely.Cluster) -> None:
    def on_workers(stream: Stream) -> Stream:
        def make(vertex: timely.Vertex) -> object:
            def on_recv(records: list[object], time: Timestamp) -> None:
                vertex.send_by(0, [(record, vertex.worker) for record in records], time)

            return on_recv

        return stream.unary("on workers", make)

    records = [n % 5 for n in range(40)]
    (everywhere,) = run(cluster, lambda s: on_workers(s.broadcast()), [*records])
    assert everywhere == Counter((0, (n, worker)) for n in records for worker in range(cluster.workers))
    (divided,) = run(cluster, lambda s: on_workers(s.exchange(timely.by())), [*records])
    assert Counter(n for (_, (n, _)) in divided.elements()) == Counter(records)  # type: ignore[misc]
    assert len(divided) == 5, "equal records are on one worker"


def test_loops_have_the_same_operators(cluster: timely.Cluster) -> None:
    """Collatz: how many steps until 1."""

    def steps(dataflow: timely.Dataflow) -> None:
        numbers = dataflow.input("records").map(lambda n: (n, n, 0))
        with dataflow.loop("collatz") as loop:
            back = loop.feedback()
            going, done = loop.enter(numbers).concat(back.stream).branch(lambda record: record[1] != 1)
            back.connect(going.map(lambda r: (r[0], r[1] // 2 if r[1] % 2 == 0 else 3 * r[1] + 1, r[2] + 1)))
        dataflow.output("steps", loop.leave(done).map(lambda record: (record[0], record[2])))

    flow = cluster.install(steps)
    flow.input("records").insert([1, 6, 7, 27])
    flow.seal()
    assert Counter(flow.output("steps").changes()) == Counter(
        [(0, (1, 0)), (0, (6, 8)), (0, (7, 16)), (0, (27, 111))]
    )
    flow.uninstall()


@pytest.mark.parametrize(
    ("build", "told"),
    [
        (
            lambda s: s.flat_map(lambda n: "text"),
            "function of flat_map returned 'text' for 1; it returns a list",
        ),
        (lambda s: s.flat_map(lambda n: n), "function of flat_map returned 1 for 1; it returns a list"),
        (
            lambda s: s.partition(2, lambda n: 2),
            "partition returned 2 for 1; it returns the number of a part, 0",
        ),
        (lambda s: s.partition(2, lambda n: "a")[0], "partition returned 'a' for 1"),
        (lambda s: s.delay(lambda n, time: time[0]), r"calls delay\(function\) with the time 0: a time is"),
        (lambda s: s.delay(lambda n, time: (-1,)), r"with the time \(-1,\)"),
        (
            lambda s: s.aggregate(lambda a, b: a, 0),
            "aggregate takes records of a key and a value, not 1. Write",
        ),
        (
            lambda s: s.state_machine(lambda *three: (0, [])),
            "state_machine takes records of a key and a value",
        ),
        (lambda s: s.map(lambda n: (n, n)).state_machine(lambda *three: 5), "state_machine returned 5 for"),
        (
            lambda s: s.map(lambda n: (n, n)).state_machine(lambda *three: (0, 5)),
            "returned the records 5 for",
        ),
        (lambda s: s.map(lambda n: (n, n)).state_machine(lambda *three: (0, "a")), "returned .* it returns"),
        (lambda s: s.unary("own", lambda vertex: 5), "its function returned 5; it returns on_recv, or"),
        (
            lambda s: s.unary("own", lambda vertex: (print, 5)),
            "its function returned .* it returns on_recv, or",
        ),
        (lambda s: s.map(lambda n: n / 0), "ZeroDivisionError"),
    ],
)
def test_misuse_of_results_is_named(build: Build, told: str) -> None:
    one_worker = timely.connect(workers=1, embedded=True)
    with one_worker as cluster, pytest.raises(timely.TimelyError, match=told):
        run(cluster, build, [1])


@pytest.mark.parametrize(
    ("build", "told"),
    [
        (lambda s: s.map(5), r"map\(function\): `function` is a function, not 5"),
        (lambda s: s.filter(None), r"filter\(function\): `function` is a function, not None"),
        (lambda s: s.partition(0, len), "`parts` is a number from 1 on, not 0"),
        (lambda s: s.partition(True, len), "`parts` is a number from 1 on, not True"),
        (lambda s: s.aggregate(0, len), r"aggregate\(fold, start\): `fold` is a function, not 0"),
        (lambda s: s.aggregate(len, 0, 5), "`emit` is a function, not 5"),
        (lambda s: s.state_machine("x"), r"state_machine\(step\): `step` is a function, not 'x'"),
        (lambda s: s.unary("own", 5), r"unary\('own', make\): `make` is a function, not 5"),
        (lambda s: s.binary(s, "own", 5), r"binary\(other, 'own', make\): `make` is a function, not 5"),
        (
            lambda s: s.binary("own", "pairing", len),
            r"binary\(other, name, make\): `other` is a stream, not 'own'",
        ),
        (lambda s: s.concat([s]), r"concat\(\*streams\) takes streams one by one, not \[Stream"),
    ],
)
def test_misuse_of_what_is_no_function_is_named(build: Build, told: str) -> None:
    with pytest.raises(timely.MisuseError, match=told):
        build(timely.Dataflow().input("records"))


def test_a_dataflow_with_another_function_is_another_one() -> None:
    def frozen(function: Callable[[int], int]) -> str:
        dataflow = timely.Dataflow()
        dataflow.output("out", dataflow.input("records").map(function))
        return dataflow.freeze().fingerprint

    assert frozen(lambda n: n + 1) == frozen(lambda n: n + 1) != frozen(lambda n: n + 2)
