"""Collections on workers that keep everything as if it were very much: they mean what they always mean.

The same for vertices by hand is in `test_random_dataflows.py`.
"""

from __future__ import annotations

import random

import pytest
from low_limits import everything_is_much
from reference.dataflow import Change, check_at_times
from strategies_collections import BINARY, UNARY


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_collections_mean_the_same_at_every_time(
    depth: int, seed: int, effort: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    everything_is_much(monkeypatch)
    for trial in range(2 * effort):
        rng = random.Random(f"{seed} {depth} {trial}")

        def some_changes(rng: random.Random = rng) -> list[Change]:
            return [
                (
                    (rng.randint(0, 3), rng.randint(0, 3)),
                    tuple(rng.randint(0, 2) for _ in range(depth)),
                    rng.choice((1, 1, -1)),
                )
                for _ in range(rng.randint(1, 10))
            ]

        for operators, inputs in ((UNARY, 1), (BINARY, 2)):
            for name in rng.sample(sorted(operators), 4):
                operator = operators[name]
                check_at_times(
                    operator.build,
                    operator.plain,
                    [some_changes() for _ in range(inputs)],
                    depth=depth,
                    workers=rng.randint(1, 2),
                    seed=rng.randint(0, 1000),
                )
