"""failing.py: failures come to the outputs that they spoil, and to no others.

law_*      random dataflows against an interpreter that treats errors as values, at every epoch
told_*     every worker can say which row failed, wherever that was
"""

from __future__ import annotations

import tracemalloc
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import count

import pytest
from hypothesis import assume, given, note
from hypothesis import strategies as st
from reference.collection import Collection as Rows
from reference.collection import Row
from reference.dataflow import Cluster
from reference.plan import DidNotEnd, answers_of
from strategies_collections import examples, repeat_until
from strategies_plans import draw_collection, read_twice

import differential as dd
import timely
from differential import Collection, col
from differential.errors import RowError
from differential.operators.table_io import TableLog, TableOut
from differential.plan.building import Plan
from differential.plan.nodes import AssertEmpty, ByPriority, Output
from differential.plan.rewriting import beneath
from timely.building.dataflow import Dataflow
from timely.errors import TimelyError

INPUTS = {"ab": "a: int, b: int", "cd": "c: int, d: int?"}

pairs = st.tuples(st.integers(-1, 2), st.integers(-1, 2))
pairs_with_null = st.tuples(st.integers(-1, 2), st.one_of(st.none(), st.integers(-1, 2)))
diffs = st.sampled_from([-2, -1, 1, 1, 1, 2])


def changes_of(rows: st.SearchStrategy[Row]) -> st.SearchStrategy[list[tuple[Row, int]]]:
    """What comes and goes in an epoch; often a row comes that went before."""
    return st.lists(st.tuples(rows, diffs), max_size=5)


Epoch = tuple[list[tuple[Row, int]], list[tuple[Row, int]]]


def with_undoing(epochs: Sequence[Epoch], undone: Sequence[bool]) -> list[Epoch]:
    """The same epochs, some followed by one in which all that came goes again."""
    found: list[Epoch] = []
    held: tuple[Rows, Rows] = Counter(), Counter()
    for changes, is_undone in zip(epochs, undone, strict=False):
        found.append(changes)
        for rows, given_rows in zip(held, changes, strict=True):
            for row, diff in given_rows:
                rows[row] += diff
        if is_undone:
            first, second = ([(row, -n) for row, n in rows.items() if n] for rows in held)
            found.append((first, second))
            held = Counter(), Counter()
    return found


histories = st.builds(
    with_undoing,
    st.lists(st.tuples(changes_of(pairs), changes_of(pairs_with_null)), min_size=1, max_size=4),
    st.lists(st.booleans(), min_size=4, max_size=4),
)


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_law_an_output_has_no_answer_where_its_input_gives_none(workers: int) -> None:
    seen: Counter[str] = Counter()

    @examples(4)
    @given(st.data(), histories)
    def holds(data: st.DataObject, history: Sequence[Epoch]) -> None:
        plans: list[Plan] = []
        script: list[object] = []

        def query(flow: Dataflow) -> None:
            # Every worker builds the same: the others take what was drawn for the first.
            at = 0

            def draw(strategy: st.SearchStrategy[object]) -> object:
                nonlocal at
                if at == len(script):
                    script.append(data.draw(strategy))
                at += 1
                return script[at - 1]

            inputs = [dd.input(flow, name, schema) for name, schema in INPUTS.items()]
            for number in range(2):
                draw_collection(draw, inputs, read_twice, fails=True).output(f"out {number}")  # type: ignore[arg-type]
            plans.append(Plan.of(flow))

        with timely.connect(workers=workers, embedded=True) as cluster:
            flow = cluster.install(query)
            asked = plans[-1].improved.roots
            assume(not any(isinstance(node, ByPriority) for node in beneath(asked)))
            roots = [root for root in asked if isinstance(root, Output)]
            read = {node.digest for node in beneath(roots)}
            # What nobody reads is claimed of the whole.
            claims = [root for root in asked if isinstance(root, AssertEmpty) and root.digest not in read]
            check(flow, roots, claims, history, seen)

    tried = ("answer", "error", "again")
    repeat_until(lambda: all(seen[case] for case in tried), holds)
    assert seen["answer"] and seen["error"], "both were tried"
    assert seen["again"], "and outputs that answer again"


@pytest.mark.parametrize("workers", [1, 2])
def test_who_forgets_epochs_without_an_answer_is_given_what_changed_in_them(workers: int) -> None:
    def query(flow: Dataflow) -> None:
        rows = dd.input(flow, "rows", "a: int, b: int")
        rows.select(x=dd.col.a // dd.col.b).output("out")

    with timely.connect(workers=workers, embedded=True) as cluster:
        flow = cluster.install(query)
        rows = flow.input("rows")
        changed = [([(1, 0), (6, 2)], []), ([(2, 0), (8, 2)], []), ([], [(1, 0)]), ([], [(2, 0)])]
        got: list[object] = []
        followed = flow.output("out").follow(forget=True, timeout=10)
        for more, fewer in changed:
            rows.insert(more)
            rows.remove(fewer)
            flow.seal()
            epoch, table = next(followed)
            got.append((epoch, None if isinstance(table, TimelyError) else rows_of(table)))
        assert got == [(0, None), (1, None), (2, None), (3, [[3, 3, 1], [4, 3, 1]])]


def test_a_condition_fails_on_rows_as_they_are_told_apart_where_it_is_written() -> None:
    def query(flow: Dataflow) -> None:
        rows = dd.input(flow, "rows", "a: int, b: int")
        rows.select("a").filter(6 // dd.col.a > 1).output("out")

    with timely.connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(query)
        flow.input("rows").insert([(0, 1), (2, 1)])
        flow.input("rows").remove([(0, 2)])
        flow.seal()
        assert rows_of(flow.output("out").changes()) == [[2, 0, 1]]


@pytest.mark.parametrize("workers", [1, 2])
def test_what_fails_later_than_anything_was_sealed_is_not_overlooked_at_the_end(workers: int) -> None:
    def query(flow: Dataflow) -> None:
        rows = dd.input(flow, "rows", "a: int, b: int")
        rows.delay(lambda epoch: epoch + 10).select(x=dd.col.a // dd.col.b).output("out")

    with timely.connect(workers=workers, embedded=True) as cluster:
        flow = cluster.install(query)
        for row in [(4, 2), (1, 0)]:
            flow.input("rows").insert([row])
            flow.seal()
        assert flow.finish() == 12
        output = flow.output("out")
        for read in (output.snapshot, output.changes):
            with pytest.raises(RowError, match="no answer (at epoch 11|from epoch 11 on): col.a"):
                read()
        *_, before, (epoch, error) = output.follow(start=0)
        assert before[0] == 10 and epoch == 11 and isinstance(error, RowError)


def check(
    flow: timely.Flow,
    roots: Sequence[Output],
    claims: Sequence[AssertEmpty],
    history: Sequence[Epoch],
    seen: Counter[str],
) -> None:
    """Feed epoch by epoch; hold every output against the interpreter, by changes added up."""
    held: dict[str, Rows] = {name: Counter() for name in INPUTS}
    added: dict[str, Rows] = {root.name: Counter() for root in roots}
    was_failing: Counter[str] = Counter()
    for epoch, changes in enumerate(history):
        for (name, rows), given_rows in zip(held.items(), changes, strict=True):
            for row, diff in given_rows:
                rows[row] += diff
                call = flow.input(name).insert if diff > 0 else flow.input(name).remove
                for _ in range(abs(diff)):
                    call([row])
        inputs = {name: Counter({row: n for row, n in rows.items() if n}) for name, rows in held.items()}
        flow.seal()
        try:
            meant = {root.name: answers_of(root, inputs) for root in roots}
            of_all = [node for claim in claims for node in answers_of(claim, inputs)[1]]
        except DidNotEnd:
            assume(False)
        for root in roots:
            wanted, fails = meant[root.name]
            fails = fails + of_all
            output = flow.output(root.name)
            note(f"epoch {epoch}, {root.name}: {inputs} → {fails or wanted}")
            try:
                for *row, _, diff in rows_of(output.changes()):
                    added[root.name][tuple(row)] += diff
            except TimelyError as error:
                assert fails, error
                assert "has no answer" in str(error)
                was_failing[root.name] += 1
                seen["error"] += 1
                with pytest.raises(TimelyError, match="has no answer"):
                    output.snapshot()
                continue
            assert not fails, (
                f"epoch {epoch} of {root.name} should have no answer, and has {added[root.name]}"
            )
            assert Counter({row: n for row, n in added[root.name].items() if n}) == wanted
            seen["answer"] += 1
            seen["again"] += bool(was_failing.pop(root.name, 0))


def _plainly(rows: Collection) -> Collection:
    return rows.map(_reciprocal)


def _by_group(rows: Collection) -> Collection:
    return rows.group_by("k").reduce(lambda key, rows: [1 // (rows[0][0][0] - 2)], "v: int")


def _sums(rows: Collection) -> Collection:
    return rows.concat(rows).group_by("k").agg(v=dd.sum(col.v + 2**62))


def _in_a_loop(rows: Collection) -> Collection:
    return rows.iterate(
        lambda x: x.map(_reciprocal).select(k=col.k, v=dd.min_of(col.v + 2, 2)).concat(rows).distinct()
    )


def _expression_in_a_loop(rows: Collection) -> Collection:
    step = dd.when(col.v > 2).then(2).otherwise(col.v + 1 + 0 * (1 // (col.v - 2)))
    return rows.iterate(lambda x: x.select(k=col.k, v=step).concat(rows).distinct())


def _group_in_a_loop(rows: Collection) -> Collection:
    return rows.iterate(
        lambda x: x.group_by("k").reduce(lambda key, rows: [2 + 0 // (rows[0][0][0] - 2)], "v: int")
    )


def _sum_in_a_loop(rows: Collection) -> Collection:
    return rows.iterate(lambda x: _sums(x.filter(col.v < 0).concat(rows)))


def _in_a_loop_in_a_loop(rows: Collection) -> Collection:
    return rows.iterate(lambda x: _in_a_loop(x).concat(rows).distinct())


def _reciprocal(row: tuple[str, int]) -> tuple[str, int]:
    key, number = row
    return key, number + 0 // (number - 2)


KINDS = [
    _plainly, _by_group, _sums,
    _in_a_loop, _expression_in_a_loop, _group_in_a_loop, _sum_in_a_loop, _in_a_loop_in_a_loop,
]  # fmt: skip


@pytest.mark.parametrize("monitored", [False, True], ids=["regions", "no regions"])
@pytest.mark.parametrize("build", KINDS)
def test_told_by_every_worker_whose_rows_they_were(
    build: Callable[[Collection], Collection], monitored: bool
) -> None:
    """Each has symbols of its own: what one has found the others must be told with its texts."""
    for key in ("ada", "bob", "cleo", "dora"):
        cluster = Cluster(
            lambda flow: build(dd.input(flow, "rows", "k: string, v: int")).output("out"),
            workers=3,
            seed=7,
            own_symbols=True,
            monitored=monitored,
        )
        number = 1 if "loop" in build.__name__ else 2
        for rows in ([((key, number), 1)], [], [((key, number), -1)]):
            cluster.change("rows", rows, worker=1)
            cluster.seal()
            cluster.run()
        assert [cluster.has_answer("out", epoch) for epoch in range(3)] == [False, False, True]
        said = str(cluster.error("out", 1))
        assert said.startswith("output 'out' has no answer at epoch 1 since epoch 0: ")
        assert f"{key!r}" in said or build is _expression_in_a_loop, said
        assert "test_failing.py:" in said
        assert cluster.changes("out") == {} and cluster.snapshot("out") == {}


def rows_of(table: object) -> list[list[object]]:
    """The rows of a table, as lists."""
    return [list(row.values()) for row in table.to_pylist()]  # type: ignore[attr-defined]


def test_a_failure_goes_with_its_row_even_if_its_function_says_each_time_something_else() -> None:
    said = count()

    def fails(row: object) -> tuple[int]:
        raise ValueError(f"attempt number {next(said)}")

    def fails_for_a_group(key: object, rows: object) -> list[tuple[int]]:
        del key, rows
        raise ValueError(f"attempt number {next(said)}")

    def build(flow: Dataflow) -> None:
        numbers = dd.input(flow, "numbers", "n: int, m: int")
        numbers.map(fails, "k: int").output("mapped")
        numbers.group_by("n").reduce(fails_for_a_group, "k: int").output("reduced")

    with timely.connect(workers=2, embedded=True) as cluster:
        flow = cluster.install(build)
        numbers, outputs = flow.input("numbers"), [flow.output("mapped"), flow.output("reduced")]
        rows = [(n, m) for n in range(20) for m in (0, 1)]
        numbers.insert(rows)
        flow.seal()
        for output in outputs:
            with pytest.raises(timely.TimelyError, match="attempt number"):
                output.snapshot()
        numbers.remove(rows[::2])
        flow.seal()
        numbers.remove(rows[1::2])
        flow.seal()
        for output in outputs:
            assert output.snapshot().num_rows == 0


def test_what_changes_while_something_fails_is_kept_summed_up(monkeypatch: pytest.MonkeyPatch) -> None:
    logs: list[TableLog] = []
    monkeypatch.setattr(TableOut, "new_log", lambda out: logs.append(TableLog(out.schema)) or logs[-1])

    def build(flow: Dataflow) -> None:
        numbers = dd.input(flow, "numbers", "n: int, m: int")
        numbers.select("n", k=100 // col.m).output("quotients")

    with timely.connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(build)
        numbers, output = flow.input("numbers"), flow.output("quotients")
        numbers.insert([(0, 0), (1, 1)])
        flow.seal()
        for epoch in range(1, 200):
            numbers.remove([(epoch, 1)])
            numbers.insert([(epoch + 1, 1)])
            flow.seal()
            output.forget(0)  # which puts all in order
        with pytest.raises(RowError):
            output.changes()
        (log,) = logs
        assert sum(changes.rows for _, changes in log._unanswered) < 20
        numbers.remove([(0, 0)])
        flow.seal()
        assert [tuple(row.values()) for row in output.changes().to_pylist()] == [(200, 100, 200, 1)]


@pytest.mark.parametrize("many", [1, 20_000])
def test_an_output_answers_again_with_all_changes_whatever_comes_in_that_epoch(many: int) -> None:
    def build(flow: Dataflow) -> None:
        numbers = dd.input(flow, "numbers", "n: int, m: int")
        numbers.select("n", k=100 // col.m).output("quotients")

    with timely.connect(workers=1, embedded=True) as cluster:
        for reads in (True, False):
            flow = cluster.install(build)
            numbers, output = flow.input("numbers"), flow.output("quotients")
            numbers.insert([(n, 1) for n in range(many)])
            numbers.insert([(-1, 0)])
            flow.wait(flow.seal())
            if reads:
                output.forget(0)  # which puts all in order
            numbers.remove([(-1, 0)])
            for comes_and_goes in (numbers.insert, numbers.remove):
                comes_and_goes([(-2, 1)])
            flow.wait(flow.seal())
            assert output.snapshot().num_rows == many
            assert output.changes()["epoch"].to_pylist() == [1] * many


def test_sums_that_do_not_fit_leave_no_memory_behind() -> None:
    def build(flow: Dataflow) -> None:
        numbers = dd.input(flow, "numbers", "n: int, m: int")
        numbers.group_by("n").agg(total=dd.sum("m")).output("totals")

    with timely.connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(build)
        numbers, output = flow.input("numbers"), flow.output("totals")
        rows = [(n, 2**62) for n in range(40)] * 2

        def pass_epochs(number: int) -> int:
            for _ in range(number):
                numbers.insert(rows)
                flow.wait(flow.seal())
                numbers.remove(rows)
                flow.wait(flow.seal())
                output.changes()
                output.forget()
            return tracemalloc.get_traced_memory()[0]

        tracemalloc.start()
        try:
            before = pass_epochs(50)
            assert pass_epochs(100) - before < 400_000
        finally:
            tracemalloc.stop()
