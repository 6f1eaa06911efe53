"""Many random queries, each against DuckDB: the long form of `test_random_queries.py`.

    ./scripts/queries 20000 --seed 7

It goes on behind a query that differs, prints it, and says in the end how many ran. A part of them runs again
with the same seed and number.
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from collections import Counter

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from sql.judge import Judge
from sql.queries import Query, queries
from sql.running import Stays, check, contents

_TOLD_EVERY = 100
_PORTION = 500
"""Queries of one seed; the next portion has the next seed."""


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main() -> int:
    """Return 0 if all queries that ran are what DuckDB says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("queries", type=int)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    judge, counts, begin = Judge(), Counter[str](), time.monotonic()

    def one(query: Query, stays: list[Stays], workers: int, number: int) -> None:
        if counts["ran"] == arguments.queries:
            return
        counts["ran"] += 1
        try:
            check(judge, query, stays, workers, number)
        except Exception as error:
            counts["differ"] += 1
            line = traceback.extract_tb(error.__traceback__)[-1]
            shown = f"{type(error).__name__}: {error}"[:1500]
            _say(f"--- {query.in_order()}\n{stays} workers={workers} number={number}\n{shown}\n  {line}")
        if counts["ran"] % _TOLD_EVERY == 0:
            _say(f"{counts['ran']} ran, {counts['differ']} differ, {time.monotonic() - begin:.0f} s")

    portion = 0
    while counts["ran"] < arguments.queries:
        drawn = given(queries(), contents, st.integers(1, 3), st.integers(0, 2**20))(one)
        quiet = settings(
            max_examples=_PORTION, phases=[Phase.generate], database=None, deadline=None,
            suppress_health_check=list(HealthCheck),
        )  # fmt: skip
        seed(arguments.seed + portion)(quiet(drawn))()
        portion += 1
    _say(f"{counts['ran']} queries, {counts['differ']} differ")
    return int(counts["differ"] > 0)


if __name__ == "__main__":
    sys.exit(main())
