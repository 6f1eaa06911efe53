"""sets.py: operators on whole rows that need a stage.

meaning_*   each is what it says, at every time
spellings_* what PySpark and Polars call it is there, and the same
refused_*   what a user may do wrong, and what he is told
effect_*    what consolidate sends, and what inspect shows
"""

from __future__ import annotations

import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference.collection import Row, history
from reference.dataflow import Change, Cluster, check_at_times, run_at_times
from strategies_collections import BINARY, NUMBERS, UNARY, examples, histories

import differential as dd
import timely
from differential.errors import ExpressionError, SchemaError, UserFunctionError
from timely.building.dataflow import Dataflow

workers = st.integers(1, 3)
seeds = st.integers(0, 2**20)


# meaning_


@pytest.mark.parametrize("depth", [2, 3])
@pytest.mark.parametrize(
    "name",
    [
        "distinct",
        "consolidate",
        "inspect",
        "threshold",
        "threshold by a function",
        "parity",
        "repeat",
        "drop duplicates",
    ],
)
def test_meaning_at_every_time(name: str, depth: int) -> None:
    @examples(1.5)
    @given(histories(depth, size_max=14), workers, seeds)
    def holds(changes: list[Change], workers: int, seed: int) -> None:
        operator = UNARY[name]
        check_at_times(operator.build, operator.plain, [changes], depth=depth, workers=workers, seed=seed)

    holds()


@pytest.mark.parametrize(
    "name",
    ["subtract", "intersect", "symmetric difference", "except all", "intersect all", "union by name"],
)
def test_meaning_of_two_at_every_time(name: str) -> None:
    @examples(0.6)
    @given(st.sampled_from([1, 2, 3]).flatmap(_two_histories), workers, seeds)
    def holds(given: tuple[int, list[Change], list[Change]], workers: int, seed: int) -> None:
        depth, left, right = given
        operator = BINARY[name]
        check_at_times(operator.build, operator.plain, [left, right], depth=depth, workers=workers, seed=seed)

    holds()


def _two_histories(depth: int) -> st.SearchStrategy[tuple[int, list[Change], list[Change]]]:
    return st.tuples(st.just(depth), histories(depth), histories(depth))


def test_meaning_null_equals_null_in_whole_rows() -> None:
    def build(flow: Dataflow) -> None:
        left, right = (dd.input(flow, name, "a: int?, b: string?") for name in ("left", "right"))
        left.intersect(right).output("both")
        left.subtract(right).output("left only")
        left.drop_duplicates("a").select("a").output("one each")

    cluster = Cluster(build)
    cluster.change("left", [((None, "x"), 2), ((1, None), 1), ((None, None), 1)])
    cluster.change("right", [((None, "x"), 1), ((1, "y"), 1)])
    cluster.seal()
    cluster.run()
    assert cluster.snapshot("both") == {(None, "x"): 1}
    assert cluster.snapshot("left only") == {(1, None): 1, (None, None): 1}
    assert cluster.snapshot("one each") == {(None,): 1, (1,): 1}


# spellings_


def test_spellings_of_others_are_the_same_nodes() -> None:
    flow = Dataflow("queries")
    a, b = (dd.input(flow, name, NUMBERS) for name in "ab")
    same = [
        (a.concat(b), [a.union(b), a.unionAll(b), a.union_all(b), a.unionByName(b), a.union_by_name(b)]),
        (a.distinct(), [a.drop_duplicates(), a.dropDuplicates(), a.unique(), a.drop_duplicates(["k", "v"])]),
        (a.drop_duplicates("k"), [a.dropDuplicates(["k"]), a.unique("k")]),
        (a.subtract(b), [a.except_(b)]),
        (a.except_all(b), [a.exceptAll(b)]),
        (a.intersect_all(b), [a.intersectAll(b)]),
    ]
    for one, others in same:
        assert all(other.node is one.node for other in others), one


# refused_


def test_refused_a_multiplicity_that_is_no_whole_number() -> None:
    numbers = dd.input(Dataflow("queries"), "numbers", NUMBERS)
    with pytest.raises(SchemaError, match="is float; a multiplicity is a whole number"):
        numbers.threshold(lambda n: n / 2)
    with pytest.raises(SchemaError, match=r"repeat: .* is float; a multiplicity is a whole number"):
        numbers.repeat(dd.col.v / 2)
    with pytest.raises(SchemaError, match=r"'k' is int in one and string in another"):
        numbers.union_by_name(numbers.select(k=dd.lit("x")), allow_missing_columns=True)


def test_refused_a_function_of_numbers_that_makes_something_of_nothing() -> None:
    numbers = dd.input(Dataflow("queries"), "numbers", NUMBERS)
    with pytest.raises(SchemaError, match=r"test_sets.py:\d+\): .* gives 1 for 0, and then 1; .*dd.lit\(1\)"):
        numbers.threshold(lambda n: {2: 3}.get(n, 1))
    with pytest.raises(SchemaError, match="gives 'no' for 0"):
        numbers.threshold(lambda n: n if n else "no")
    answers = iter([0, 4])
    with pytest.raises(SchemaError, match="gives 0 for 0, and then 4"):
        numbers.threshold(lambda n: next(answers) if n >= 0 else 0 if n else 1)
    with pytest.raises(ExpressionError, match="no constant"):
        numbers.threshold(lambda n: dd.min_of(n, object()))
    with pytest.raises(ExpressionError, match="needs a function"):
        numbers.threshold(3)  # type: ignore[arg-type]  # that is the point


def test_refused_a_function_of_numbers_that_fails_later_names_the_multiplicity_and_the_line() -> None:
    def build(flow: Dataflow) -> None:
        dd.input(flow, "rows", NUMBERS).threshold(lambda n: 6 // (n - 2) if n else 0).output("out")

    cluster = Cluster(build)
    for changes in ([((1, 1), 2), ((2, 2), 3)], [((1, 1), 1)]):
        cluster.change("rows", changes)
        cluster.seal()
        cluster.run()
    error = cluster.error("out", 0)
    assert type(error) is UserFunctionError
    assert re.search(r"threshold\(.*\) .*failed on .*2.*:\n  ZeroDivisionError: .*", str(error)), error
    assert "test_sets.py:" in str(error)
    assert cluster.has_answer("out", 1) and cluster.snapshot("out") == {(1, 1): 6, (2, 2): 6}


def test_meaning_a_function_of_numbers_is_asked_once_for_each_of_a_batch() -> None:
    asked: list[int] = []

    def twice(n: int) -> int:
        if isinstance(n, int):
            asked.append(n)
        return int(n) * 2

    cluster = Cluster(lambda flow: dd.input(flow, "rows", NUMBERS).threshold(twice).output("out"))
    cluster.change("rows", [((number, 0), 1 + number % 2) for number in range(40)])
    cluster.seal()
    cluster.run()
    assert asked == [0, 0, 1, 2] and set(cluster.changes("out")[0,].values()) == {2, 4}


# effect_


@examples(1.5)
@given(histories(2), histories(2), workers, seeds)
def test_effect_consolidate_sends_each_row_once_per_time_and_nothing_that_cancels(
    left: list[Change], right: list[Change], workers: int, seed: int
) -> None:
    sent: list[tuple[Row, tuple[int, ...], int]] = []
    run_at_times(
        lambda a, b: a.concat(b.negate()).consolidate().inspect(lambda *update: sent.append(update)),
        [left, right],
        depth=2,
        workers=workers,
        seed=seed,
    )
    assert len({(row, time) for row, time, _ in sent}) == len(sent)
    both = history([*left, *((row, time, -diff) for row, time, diff in right)])
    assert history(sent) == both and all(diff for _, _, diff in sent)


@examples(1.5)
@given(histories(2), workers, seeds)
def test_effect_inspect_sees_every_update_with_its_row_and_time(
    changes: list[Change], workers: int, seed: int
) -> None:
    seen: list[Change] = []
    passed = run_at_times(
        lambda c: c.inspect(lambda row, time, diff: seen.append((row, time, diff))),
        [changes],
        depth=2,
        workers=workers,
        seed=seed,
    )
    assert Counter(seen) == Counter(changes)
    assert passed == history(changes)


def test_effect_inspect_in_a_loop_sees_the_rounds() -> None:
    seen: list[Change] = []

    def build(flow: Dataflow) -> None:
        numbers = dd.input(flow, "numbers", NUMBERS)
        numbers.iterate(
            lambda x: (
                x.select(k=dd.col.k, v=dd.max_of(dd.col.v - 1, 0))
                .consolidate()
                .inspect(lambda row, time, diff: seen.append((row, time, diff)))
            )
        ).output("result")

    cluster = Cluster(build)
    cluster.change("numbers", [((7, 2), 1)])
    cluster.seal()
    cluster.run()
    assert sorted(seen, key=lambda change: change[1]) == [
        ((7, 1), (0, 0), 1),
        ((7, 0), (0, 1), 1),
        ((7, 1), (0, 1), -1),
    ]


def test_concat_lets_a_column_be_null_that_may_be_in_one_part() -> None:
    def build(flow: Dataflow) -> None:
        left = dd.input(flow, "left", "k: int, v: int")
        right = dd.input(flow, "right", "v: int?, k: int")
        left.concat(right).output("sum")
        right.iterate(lambda x: x.concat(left).distinct()).output("loop")

    with timely.connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(build)
        flow.input("left").insert([(1, 2)])
        flow.input("right").insert([(None, 1), (2, 1)])
        flow.wait(flow.seal())
        for name, rows in (("sum", [(1, None), (1, 2), (1, 2)]), ("loop", [(1, None), (1, 2)])):
            found = [(row["k"], row["v"]) for row in flow.output(name).snapshot().to_pylist()]
            assert sorted(found, key=repr) == sorted(rows, key=repr), name


def test_refused_columns_that_differ_are_named() -> None:
    flow = Dataflow("queries")
    left = dd.input(flow, "left", "k: int, v: int, w: int")
    right = dd.input(flow, "right", "k: int, v: float, u: int?")
    said = (
        "v is int in one, float in the other; w is int in one, missing in the other; u is missing in one, int"
    )
    with pytest.raises(SchemaError, match=f"concat: the columns differ: {said}"):
        left.concat(right)
    with pytest.raises(
        SchemaError, match=r"the body of 'iterate': the columns differ: v is int in one, int\?"
    ):
        left.iterate(lambda x: x.with_columns(v=dd.nullif(dd.col.v, 1)))
