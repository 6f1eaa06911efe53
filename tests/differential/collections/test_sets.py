"""sets.py: operators on whole rows that need a stage.

meaning_*   distinct, consolidate and inspect change nothing else than what they say, at every time
effect_*    what consolidate sends, and what inspect shows
"""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference.collection import Row, history
from reference.dataflow import Change, Cluster, check_at_times, run_at_times
from strategies_collections import NUMBERS, UNARY, examples, histories

import differential as dd
from timely.building.dataflow import Dataflow

workers = st.integers(1, 3)
seeds = st.integers(0, 2**20)


# meaning_


@pytest.mark.parametrize("depth", [2, 3])
@pytest.mark.parametrize("name", ["distinct", "consolidate", "inspect"])
def test_meaning_at_every_time(name: str, depth: int) -> None:
    @examples(1.5)
    @given(histories(depth, size_max=14), workers, seeds)
    def holds(changes: list[Change], workers: int, seed: int) -> None:
        operator = UNARY[name]
        check_at_times(operator.build, operator.plain, [changes], depth=depth, workers=workers, seed=seed)

    holds()


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
