"""From which share of changed rows on is it quicker to compute a join with sums anew?

Two programs as a new user writes them, over orders and the customers that placed them:

    few groups     orders joined with customers, summed by country         (25 rows of answer)
    many groups    orders joined with customers, summed by customer        (as many rows as customers)

A change gives that share of the orders another amount: each is removed and inserted. Ours: one worker in
this process, from the first row handed over until what was asked for is read. `changes` are those of the
epoch, `snapshot` is the whole answer. The others compute the whole answer from tables in memory: pandas by
`merge` and `groupby`, DuckDB by one query on one thread; keeping their tables up to date is not counted.
Figures are processor time, medians: other programs on the machine count for less than on the clock. The
answers of ours are held against those of pandas.

Where we should lose: every share of a tenth and more.

    python -m bench.dataflow.crossover --write bench/results/crossover.md
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa

import differential as dd
import timely
from bench.machine import machine

__all__ = ["PROGRAMS", "crossing", "measured"]

SHARES: Final = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3)
_COUNTRIES: Final = 25
_ROUNDS: Final = 5


def few_groups(flow: timely.Dataflow) -> None:
    """The sum of the orders of each country."""
    orders = dd.input(flow, "orders", "order: int, customer: int, amount: float")
    customers = dd.input(flow, "customers", "customer: int, country: string")
    joined = orders.join(customers, on="customer")
    joined.group_by("country").agg(total=dd.sum("amount"), orders=dd.count()).output("answer")


def many_groups(flow: timely.Dataflow) -> None:
    """The sum of the orders of each customer, with its country."""
    orders = dd.input(flow, "orders", "order: int, customer: int, amount: float")
    customers = dd.input(flow, "customers", "customer: int, country: string")
    joined = orders.join(customers, on="customer")
    joined.group_by("customer", "country").agg(total=dd.sum("amount"), orders=dd.count()).output("answer")


PROGRAMS: Final = {
    "few groups": (few_groups, ["country"]),
    "many groups": (many_groups, ["customer", "country"]),
}


class Figures(NamedTuple):
    """Milliseconds: of ours until the changes, or the whole answer, are read; of the others for all of it."""

    share: float
    changes: float
    snapshot: float
    pandas: float
    duckdb: float


def measured(name: str, rows: int, customers: int, shares: Sequence[float] = SHARES) -> list[Figures]:
    """The figures of a program for each share of `rows` that changes."""
    import duckdb

    build, keys = PROGRAMS[name]
    drawn = np.random.default_rng(7)
    amounts = drawn.integers(1, 4_000, rows) / 4  # whose sums are exact, in whatever order
    order, of_customer = np.arange(rows), drawn.integers(0, customers, rows)
    countries = [f"country {number % _COUNTRIES}" for number in range(customers)]
    who = pa.table({"customer": np.arange(customers), "country": countries})
    database = duckdb.connect(config={"threads": 1})

    def table(at: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> pa.Table:
        return pa.table({"order": order[at], "customer": of_customer[at], "amount": amounts[at]})

    found: list[Figures] = []
    with timely.connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(build)
        flow.input("customers").insert(who)
        flow.input("orders").insert(table(order))
        flow.seal(wait=True)
        for share in shares:
            times: list[tuple[float, float, float, float]] = []
            for _ in range(_ROUNDS):
                taken = []
                for read in ("changes", "snapshot"):
                    at = np.sort(drawn.choice(rows, max(1, int(rows * share)), replace=False))
                    old = table(at)
                    amounts[at] = drawn.integers(1, 4_000, len(at)) / 4
                    new = table(at)
                    taken.append(_milliseconds(lambda o=old, n=new, r=read: _ours(flow, o, n, r)))  # type: ignore[misc]
                orders = table(order)
                taken.append(_milliseconds(_in_pandas(orders, who, keys)))
                taken.append(_milliseconds(_in_duckdb(database, orders, who, keys)))
                times.append((taken[0], taken[1], taken[2], taken[3]))
            _check(flow, orders, who, keys)
            found.append(Figures(share, *(statistics.median(each) for each in zip(*times, strict=True))))
    return found


def _milliseconds(does: Callable[[], object]) -> float:
    begin = time.process_time()
    does()
    return 1000 * (time.process_time() - begin)


def _ours(flow: timely.Flow, old: pa.Table, new: pa.Table, read: str) -> object:
    flow.input("orders").remove(old)
    flow.input("orders").insert(new)
    epoch = flow.seal()
    output = flow.output("answer")
    return output.changes(epoch, epoch + 1) if read == "changes" else output.snapshot()


def _in_pandas(orders: pa.Table, who: pa.Table, keys: list[str]) -> Callable[[], object]:
    frame, other = orders.to_pandas(), who.to_pandas()

    def compute() -> object:
        joined = frame.merge(other, on="customer")
        return joined.groupby(keys, as_index=False).agg(total=("amount", "sum"), orders=("amount", "size"))

    return compute


def _in_duckdb(database: object, orders: pa.Table, who: pa.Table, keys: list[str]) -> Callable[[], object]:
    execute: Callable[[str], object] = database.execute  # type: ignore[attr-defined]
    register: Callable[[str, object], object] = database.register  # type: ignore[attr-defined]
    for name, rows in (("orders", orders), ("customers", who)):
        register("given", rows)
        execute(f"CREATE OR REPLACE TABLE {name} AS SELECT * FROM given")
    by = ", ".join(keys)
    query = (
        f"SELECT {by}, sum(amount) AS total, count(*) AS orders FROM orders JOIN customers USING (customer)"
    )

    def compute() -> object:
        return database.sql(f"{query} GROUP BY {by}").to_arrow_table()  # type: ignore[attr-defined]

    return compute


def _check(flow: timely.Flow, orders: pa.Table, who: pa.Table, keys: list[str]) -> None:
    """Raise AssertionError unless ours and that of pandas are the same answer."""
    wanted = pa.Table.from_pandas(_in_pandas(orders, who, keys)(), preserve_index=False)
    names = [*keys, "total", "orders"]
    by = [(key, "ascending") for key in keys]
    answers = [each.select(names).sort_by(by) for each in (wanted, flow.output("answer").snapshot())]
    assert all(answers[0][name].to_pylist() == answers[1][name].to_pylist() for name in names), "wrong answer"


def crossing(figures: Sequence[Figures], ours: str, other: str) -> float | None:
    """The share from which on the other one is quicker, between those measured; None if it never is."""
    before: tuple[float, float] | None = None
    for each in figures:
        ratio = math.log(getattr(each, ours) / getattr(each, other))
        if ratio >= 0:
            if before is None:
                return each.share
            part = -before[1] / (ratio - before[1])
            return math.exp(before[0] + part * (math.log(each.share) - before[0]))
        before = math.log(each.share), ratio
    return None


def _percent(share: float | None) -> str:
    return "never" if share is None else f"{100 * share:.2g} %"


def _report(rows: int, customers: int) -> str:
    lines = [
        "## From which share of changed rows on is it quicker to compute a join with sums anew?",
        "",
        f"`python -m bench.dataflow.crossover`: {rows:,} orders of {customers:,} customers; a change gives a",
        "share of the orders another amount, each one row removed and one inserted. Milliseconds of",
        f"processor time, medians of {_ROUNDS}. {machine()}",
    ]
    for name in PROGRAMS:
        figures = measured(name, rows, customers)
        lines += ["", f"### {name}", ""]
        lines += [
            "| changed orders | ours, changes | ours, snapshot | pandas | DuckDB |",
            "|---|---|---|---|---|",
        ]
        for each in figures:
            times = " | ".join(f"{value:,.1f}" for value in each[1:])
            lines.append(f"| {100 * each.share:g} % | {times} |")
        lines.append("")
        for ours in ("changes", "snapshot"):
            told = [
                f"{other} {_percent(crossing(figures, ours, other.lower()))}"
                for other in ("pandas", "DuckDB")
            ]
            lines.append(f"Quicker than `{ours}()` from this share on: {', '.join(told)}.")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure, print, and write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--customers", type=int, default=100_000)
    parser.add_argument("--write", type=Path)
    asked = parser.parse_args()
    report = _report(asked.rows, asked.customers)
    print(report)
    if asked.write is not None:
        asked.write.write_text(report)


if __name__ == "__main__":
    main()
