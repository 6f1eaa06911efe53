"""workloads: do all systems get the inputs that were agreed on, and do the checks tell a lie?

  draws_*      the vectorised generator against the plain loop of the definition
  schedule_*   which rows come and go
  check_*      the vectorised checks against plain sums, and their laws
  table_*      generator, checks and the table of expected checks, held together by results that
               are recomputed here by the shortest means

One row of the table is recomputed for each workload, not the larger sizes. What recomputes is held against
plainer means in `test_recomputation.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Protocol

import numpy as np
import pytest
from numpy.typing import NDArray

from bench import workloads
from bench.recomputation import least_labels, recomputed
from bench.workloads import Check, Schedule

Int64s = NDArray[np.int64]

WORD = 2**64


class PairCheck(Protocol):
    """The check of rows of two numbers."""

    def __call__(self, a: Int64s, b: Int64s, diffs: Int64s | None = None, /) -> Check: ...


def plain_draws(limits: list[int], seed: int) -> list[int]:
    """The definition, one draw after the other."""
    state = seed
    drawn = []
    for limit in limits:
        state = (state * 6364136223846793005 + 1442695040888963407) % WORD
        drawn.append((state >> 33) % limit)
    return drawn


def plain_mix(a: int, b: int) -> int:
    """The definition, on Python's unbounded integers."""
    x = a * 2**32 | b
    x ^= x >> 30
    x = x * 0xBF58476D1CE4E5B9 % WORD
    x ^= x >> 27
    x = x * 0x94D049BB133111EB % WORD
    return x ^ x >> 31


def plain_components(nodes: int, edges: list[tuple[int, int]]) -> list[int]:
    """The least node of each node's component, by union-find without any refinement."""
    parents = list(range(nodes))

    def root(node: int) -> int:
        while parents[node] != node:
            node = parents[node]
        return node

    for source, target in edges:
        low, high = sorted((root(source), root(target)))
        parents[high] = low
    return [root(node) for node in range(nodes)]


# Draws


@pytest.mark.parametrize("seed", [0, 1, 2, 2**64 - 1])
@pytest.mark.parametrize("rows", [0, 1, 2, 3, 4, 5, 64, 1000])
def test_draws_equal_the_plain_loop(rows: int, seed: int) -> None:
    (column,) = workloads.draws((1000,), rows, seed)
    assert column.tolist() == plain_draws([1000] * rows, seed)


def test_draws_of_a_row_follow_each_other() -> None:
    first, second = workloads.draws((7, 2**31), 99)
    plain = plain_draws([7, 2**31] * 99, seed=1)
    assert (first.tolist(), second.tolist()) == (plain[::2], plain[1::2])


def test_draws_of_a_graph_are_source_then_target() -> None:
    graph = workloads.graph(nodes=50, edges=30, changes=4)
    plain = plain_draws([50] * 68, seed=1)
    assert (graph.src.tolist(), graph.dst.tolist()) == (plain[::2], plain[1::2])
    assert graph.schedule == Schedule(loaded=30, changes=4, step=1)


def test_draws_of_count_are_one_key_for_each_row() -> None:
    count = workloads.count(keys=20, rows=10, epochs=3, updates=4)
    assert count.key.tolist() == plain_draws([20] * 16, seed=1)
    assert count.schedule == Schedule(loaded=10, changes=3, step=2)


def test_draws_of_sum_are_a_key_then_a_value_below_two_to_the_twenty() -> None:
    sums = workloads.sum_(keys=20, rows=10, epochs=3, updates=4)
    plain = plain_draws([20, 2**20] * 16, seed=1)
    assert (sums.key.tolist(), sums.value.tolist()) == (plain[::2], plain[1::2])


def test_draws_of_join_have_seed_1_on_the_left_and_2_on_the_right() -> None:
    join = workloads.join(keys=20, rows=10, epochs=3, updates=4)
    assert join.left_key.tolist() == plain_draws([20] * 16, seed=1)
    assert join.right_key.tolist() == plain_draws([20] * 16, seed=2)


def test_draws_of_q3_are_customers_orders_and_lines_each_by_its_seed() -> None:
    q3 = workloads.q3(orders=30, epochs=3, updates=20)
    assert q3.schedule == Schedule(loaded=30, changes=3, step=2)
    assert q3.segment.tolist() == plain_draws([5] * 3, seed=1)
    orders, lines = plain_draws([3, 2406] * 36, seed=2), plain_draws([121, 2**20, 11] * 144, seed=3)
    assert (q3.customer.tolist(), q3.day.tolist()) == (orders[::2], orders[1::2])
    shipped = [orders[1::2][line // 4] + 1 + later for line, later in enumerate(lines[::3])]
    revenue = [price * (100 - off) for price, off in zip(lines[1::3], lines[2::3], strict=True)]
    assert (q3.shipped.tolist(), q3.revenue.tolist()) == (shipped, revenue)


def test_draws_are_contiguous_columns_of_int64() -> None:
    for column in workloads.draws((5, 6), 10):
        assert column.dtype == np.int64
        assert column.flags.c_contiguous


def test_an_odd_number_of_updates_is_refused() -> None:
    with pytest.raises(ValueError, match="must be even"):
        workloads.count(keys=5, rows=5, epochs=1, updates=3)
    with pytest.raises(ValueError, match="must be a multiple of 10"):
        workloads.q3(orders=5, epochs=1, updates=12)


# Schedule


@pytest.mark.parametrize("schedule", [Schedule(6, 4, 1), Schedule(6, 3, 2), Schedule(2, 3, 2)])
def test_schedule_changes_lead_from_the_load_to_what_is_present(schedule: Schedule) -> None:
    rows = range(schedule.rows)
    present = set(rows[: schedule.loaded])
    for change in range(schedule.changes):
        assert present == set(rows[schedule.present(change)])
        removed, inserted = rows[schedule.removed(change)], rows[schedule.inserted(change)]
        assert len(removed) == len(inserted) == schedule.step
        present = present.difference(removed).union(inserted)
    assert present == set(rows[schedule.present(schedule.changes)])


def test_schedule_uses_every_row() -> None:
    schedule = Schedule(loaded=5, changes=3, step=2)
    inserted = [schedule.inserted(change) for change in range(3)]
    assert [schedule.present(0), *inserted][-1].stop == schedule.rows
    for earlier, later in pairwise([schedule.present(0), *inserted]):
        assert earlier.stop == later.start


def test_schedule_of_several_rows_for_each_row_has_all_rows_of_those_that_are_there() -> None:
    schedule = Schedule(loaded=5, changes=3, step=2)
    for change in range(4):
        rows = range(schedule.rows)[schedule.present(change)]
        lines = range(schedule.times(4).rows)[schedule.times(4).present(change)]
        assert [line // 4 for line in lines[::4]] == list(rows) and len(lines) == 4 * len(rows)


# Checks


def test_check_mix_equals_the_definition() -> None:
    a, b = workloads.draws((2**31, 2**31), 200)
    pairs = zip(a.tolist(), b.tolist(), strict=True)
    assert workloads.mix(a, b).tolist() == [plain_mix(x, y) for x, y in pairs]


def test_check_mix_leaves_its_arguments_alone() -> None:
    a, b = np.array([3, 4]), np.array([5, 6])
    workloads.mix(a, b)
    assert (a.tolist(), b.tolist()) == ([3, 4], [5, 6])


PAIR_CHECKS = [
    (workloads.check_wcc, lambda a, b: a == b, lambda _, b: b),
    (workloads.check_bfs, lambda _, b: b == 1, lambda _, b: b),
    (workloads.check_scc, None, lambda a, b: a + b),
    (workloads.check_count, lambda _, b: b == 1, lambda _, b: b),
    (workloads.check_sum, None, lambda _, b: b),
    (workloads.check_top, None, lambda _, b: b),
    (workloads.check_q3, None, lambda _, b: b),
]


@pytest.mark.parametrize(("check", "is_special", "summand"), PAIR_CHECKS)
def test_check_of_pairs_equals_plain_sums_over_the_rows(
    check: PairCheck,
    is_special: Callable[[int, int], bool] | None,
    summand: Callable[[int, int], int],
) -> None:
    a, b, diffs = workloads.draws((5, 5, 7), 300)
    diffs -= 3
    rows = list(zip(a.tolist(), b.tolist(), diffs.tolist(), strict=True))
    assert check(a, b, diffs) == Check(
        n=sum(diff for _, _, diff in rows),
        special=is_special and sum(diff for x, y, diff in rows if is_special(x, y)),
        sum=sum(diff * summand(x, y) for x, y, diff in rows),
        hash=sum(diff * plain_mix(x, y) for x, y, diff in rows) % WORD,
    )


def test_check_join_equals_plain_sums_over_the_rows() -> None:
    keys, left, right, diffs = workloads.draws((9, 5, 5, 7), 300)
    diffs -= 3
    rows = list(zip(left.tolist(), right.tolist(), diffs.tolist(), strict=True))
    assert workloads.check_join(keys, left, right, diffs) == Check(
        n=sum(diff for *_, diff in rows),
        special=sum(diff for x, y, diff in rows if x == y),
        sum=int((keys * diffs).sum()),
        hash=sum(diff * plain_mix(x, y) for x, y, diff in rows) % WORD,
    )


def test_check_pagerank_is_of_nodes_as_often_as_their_ranks_say() -> None:
    nodes, ranks, diffs = workloads.draws((9, 90, 7), 300)
    rows = zip(nodes.tolist(), ranks.tolist(), (diffs - 3).tolist(), strict=True)
    times = [(node, rank * diff) for node, rank, diff in rows]
    assert workloads.check_pagerank(nodes, ranks, diffs - 3) == Check(
        n=sum(n for _, n in times),
        special=None,
        sum=sum(node * n for node, n in times),
        hash=sum(plain_mix(node, node) * n for node, n in times) % WORD,
    )


def test_check_sum_hashes_the_lower_half_of_a_total() -> None:
    check = workloads.check_sum(np.array([7]), np.array([5 * 2**32 + 9]))
    assert check == Check(n=1, special=None, sum=5 * 2**32 + 9, hash=plain_mix(7, 9))


@pytest.mark.parametrize("check", [workloads.check_wcc, workloads.check_scc])
def test_check_without_diffs_counts_each_row_once(check: PairCheck) -> None:
    a, b = workloads.draws((5, 5), 100)
    assert check(a, b) == check(a, b, np.ones(100, np.int64))


@pytest.mark.parametrize("check", [workloads.check_wcc, workloads.check_scc])
def test_check_of_two_outputs_together_is_the_sum_of_their_checks(
    check: PairCheck,
) -> None:
    a, b, diffs = workloads.draws((5, 5, 7), 100)
    diffs -= 3
    parts = check(a[:30], b[:30], diffs[:30]) + check(a[30:], b[30:], diffs[30:])
    assert parts == check(a, b, diffs)


def test_check_survives_json() -> None:
    for with_special in (Check(3, 1, 4, 15), Check(3, None, 4, 15)):
        assert Check.from_json(with_special.to_json()) == with_special
    assert Check(3, 1, 4, 15).to_json()["hash"] == "000000000000000f"


def test_check_wcc_of_a_small_graph_equals_plain_union_find() -> None:
    graph = workloads.graph(nodes=200, edges=150, changes=0)
    edges = list(zip(graph.src.tolist(), graph.dst.tolist(), strict=True))
    components = plain_components(200, edges)
    labels = least_labels(200, graph.src, graph.dst)
    assert labels.tolist() == components
    assert workloads.check_wcc(np.arange(200), labels) == Check(
        n=200,
        special=len(set(components)),
        sum=sum(components),
        hash=sum(plain_mix(node, label) for node, label in enumerate(components)) % WORD,
    )


def test_check_follows_changes_of_a_small_graph() -> None:
    graph = workloads.graph(nodes=60, edges=50, changes=20)
    nodes = np.arange(60)
    outputs = []
    for changes in range(21):
        present = graph.schedule.present(changes)
        outputs.append(least_labels(60, graph.src[present], graph.dst[present]))
    check = workloads.check_wcc(nodes, outputs[0])
    for before, after in pairwise(outputs):
        diffs = np.repeat([-1, 1], 60)
        check += workloads.check_wcc(np.tile(nodes, 2), np.concatenate((before, after)), diffs)
        assert check == workloads.check_wcc(nodes, after)


# The table


@pytest.mark.parametrize(
    "workload",
    [
        "wcc 100000 200000 100",
        "bfs 100000 200000 100",
        "scc 100000 200000 20",
        "pagerank 100000 200000 5",
        "count 1000000 10000000 1000 1000",
        "sum 1000000 10000000 1000 1000",
        "join 1000000 1000000 1000 1000",
        "top 100000 1000000 1000 1000",
        "q3 250000 1000 1000",
    ],
)
def test_table_is_what_recomputation_gives(workload: str) -> None:
    assert recomputed(workload) == workloads.EXPECTED[workload]


def test_table_is_found_by_what_a_peer_prints() -> None:
    wcc = workloads.EXPECTED["wcc 100000 200000 100"]
    assert workloads.expected("wcc plain 100000 200000 100") == wcc
    assert workloads.expected("wcc prioritised 100000 200000 100") == wcc
    assert workloads.expected("wcc plain 100000 200000 99") is None


def test_table_reads_as_it_is_written() -> None:
    load, changes = workloads.EXPECTED["scc 100000 200000 20"]
    assert str(load) == "127589 - 12770144381 4e91b0f1362d60ec"
    assert str(changes) == "127606 - 12771811791 ba1c3dafc68ea2c1"
