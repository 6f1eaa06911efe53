"""Is a dashboard of orders ahead of computing its answers anew, when a few thousand rows have changed?

`examples/order_dashboard.py`: customers, orders and lines come as change feeds, in their order, into inputs
with keys; totals by day and country, the top 5 products, and different customers by country are read. Ours:
from the tables of changes, one for each input, until all three answers are read, on one worker in this
process, or on two processes. DuckDB and Polars compute the three answers from tables in memory, with as many
threads as there are workers; keeping their tables up to date is not counted. Each round draws changes, and
all of them answer in turn. All answers are compared in every round.

Another question in the same program: what does the order of a feed cost? The same operations as one feed, and
as one call for each kind.

Where we should lose: changes of more than a few per cent of the lines.

    python -m bench.dataflow.order_dashboard --write bench/results/order_dashboard.md
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa

import timely
from bench.machine import machine
from examples.order_dashboard import SCHEMAS, Change, Row, Shop, dashboard

if TYPE_CHECKING:
    import duckdb
    import polars as pl

__all__ = ["Figures", "Recomputed", "measured", "tables_of"]

SIZES: Final = (100, 500, 2_000, 5_000, 10_000, 30_000)
_OUTPUTS: Final = ("totals", "top products", "customers")
_COLUMNS: Final = {
    name: [column.split(":")[0].strip() for column in columns.split(",")]
    for name, (columns, _) in SCHEMAS.items()
}
_SOLD: Final = 'FROM lines JOIN orders o ON o.id = lines."order" JOIN customers c ON c.id = o.customer'
_QUERIES: Final = (
    f"SELECT day, country, sum(cents)::BIGINT AS cents, count(*) AS lines {_SOLD} GROUP BY ALL",
    f"SELECT product, sum(cents)::BIGINT AS cents {_SOLD} GROUP BY ALL ORDER BY cents DESC, product LIMIT 5",
    f"SELECT country, count(DISTINCT customer) AS customers {_SOLD} GROUP BY ALL",
)
Answers = list[list[tuple[object, ...]]]


def tables_of(changes: Sequence[Change]) -> dict[str, pa.Table]:
    """Return the changes of each table, in their order, with the column op."""
    rows: dict[str, list[Row]] = {name: [] for name in SCHEMAS}
    for change in changes:
        row = change.after if change.after is not None else change.before
        assert row is not None
        rows[change.table].append({**row, "op": change.op})
    return {
        name: pa.table({one: [row[one] for row in its] for one in (*_COLUMNS[name], "op")})
        for name, its in rows.items()
        if its
    }


class Recomputed:
    """DuckDB and Polars with the tables of a shop."""

    def __init__(self, shop: Shop, threads: int) -> None:
        import duckdb
        import polars as pl

        self._polars = pl
        self._database: duckdb.DuckDBPyConnection = duckdb.connect(config={"threads": threads})
        self._frames: dict[str, pl.DataFrame] = {}
        for name, rows in shop.rows.items():
            table = pa.table({one: [row[one] for row in rows.values()] for one in _COLUMNS[name]})
            self._database.register("given", table)
            self._database.execute(f"CREATE TABLE {name} AS SELECT * FROM given")
            frame = pl.from_arrow(table)
            assert isinstance(frame, pl.DataFrame)
            self._frames[name] = frame

    def follow(self, tables: dict[str, pa.Table]) -> None:
        """Bring the tables up to date: of each key the last change counts."""
        pl = self._polars
        for name, changes in tables.items():
            keys = list(SCHEMAS[name][1])
            frame = pl.from_arrow(changes)
            assert isinstance(frame, pl.DataFrame)
            last = frame.unique(subset=keys, keep="last", maintain_order=True)
            there = last.filter(pl.col("op") != "d").drop("op")
            self._frames[name] = pl.concat(
                [self._frames[name].join(last, on=keys, how="anti"), there]
            ).rechunk()
            self._database.register("gone", last.to_arrow())
            self._database.register("given", there.to_arrow())
            same = " AND ".join(f'{name}."{key}" = gone."{key}"' for key in keys)
            self._database.execute(f"DELETE FROM {name} USING gone WHERE {same}")
            self._database.execute(f"INSERT INTO {name} SELECT * FROM given")

    def in_duckdb(self) -> Answers:
        """Compute the three answers by SQL."""
        tables = [self._database.sql(query).to_arrow_table() for query in _QUERIES]
        return [_rows(table) for table in tables]

    def in_polars(self) -> Answers:
        """Compute them with lazy frames, all at once, so that they share the joins."""
        pl = self._polars
        lines, orders, customers = (self._frames[name].lazy() for name in ("lines", "orders", "customers"))
        placed = orders.join(customers, left_on="customer", right_on="id")
        sold = lines.join(placed, left_on="order", right_on="id")
        totals = sold.group_by("day", "country").agg(pl.col("cents").sum(), pl.len().alias("lines"))
        products = sold.group_by("product").agg(pl.col("cents").sum())
        top = products.sort(["cents", "product"], descending=[True, False]).head(5)
        buyers = sold.group_by("country").agg(pl.col("customer").n_unique())
        return [_rows(frame.to_arrow()) for frame in pl.collect_all([totals, top, buyers])]


def _rows(table: pa.Table) -> list[tuple[object, ...]]:
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def ours(flow: timely.Flow, tables: dict[str, pa.Table]) -> Answers:
    """Give the changes, seal, and read the answers."""
    for name, changes in tables.items():
        flow.input(name).apply(changes)
    flow.seal()
    return [_rows(flow.output(name).snapshot()) for name in _OUTPUTS]


class Figures(NamedTuple):
    """Milliseconds for changes of so many rows, medians: processor time if it is all in this process, else
    by the clock.
    """

    changes: int
    ours: float
    duckdb: float
    polars: float


def measured(orders: int, sizes: Sequence[int], rounds: int, processes: int) -> list[Figures]:
    """Return the figures of each size."""
    shop = Shop(7)
    shop.opens(orders)
    others = Recomputed(shop, max(1, processes))
    clock = time.perf_counter if processes else time.process_time
    found: list[Figures] = []
    with timely.connect(workers=processes or 1, embedded=not processes) as cluster:
        flow = cluster.install(dashboard)
        _load(flow, shop)
        for size in sizes:
            times: list[tuple[float, ...]] = []
            for _ in range(rounds):
                tables = tables_of(shop.goes_on(size))
                others.follow(tables)
                taken, answers = [], []
                for answer in (lambda t=tables: ours(flow, t), others.in_duckdb, others.in_polars):
                    begin = clock()
                    answers.append(answer())
                    taken.append(1000 * (clock() - begin))
                times.append(tuple(taken))
                wanted = [sorted(rows, key=repr) for rows in answers[0]]
                assert all([sorted(r, key=repr) for r in each] == wanted for each in answers), "wrong answer"
            found.append(Figures(size, *(statistics.median(each) for each in zip(*times, strict=True))))
            print(found[-1], flush=True)
    return found


def feed_order(size: int, rounds: int) -> tuple[float, float, float]:
    """Return the milliseconds of `size` operations on one input as a feed, as one call for each kind, and as
    messages in dicts.
    """
    shop = Shop(5)
    shop.opens(4 * size)
    times: list[list[float]] = []
    with timely.connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(dashboard)
        _load(flow, shop)
        for _ in range(rounds):
            times.append([_ordered(flow, shop, size, how) for how in ("feed", "calls", "dicts")])
    feed, calls, dicts = (statistics.median(each) for each in zip(*times, strict=True))
    return feed, calls, dicts


def _ordered(flow: timely.Flow, shop: Shop, size: int, how: str) -> float:
    import pyarrow.compute as pc

    lines = flow.input("lines")
    changes = [change for change in shop.goes_on(2 * size) if change.table == "lines"][:size]
    table, messages = tables_of(changes)["lines"], [change.message() for change in changes]
    is_gone = pc.equal(table["op"], "d")
    gone = table.filter(is_gone).select(["order", "line"])
    there = table.filter(pc.invert(is_gone)).drop_columns(["op"])
    begin = time.process_time()
    if how == "calls":
        lines.upsert(there)
        lines.delete(gone)
    else:
        lines.apply(table if how == "feed" else messages)
    flow.seal(wait=True)
    return 1000 * (time.process_time() - begin)


def _load(flow: timely.Flow, shop: Shop) -> None:
    for name, rows in shop.rows.items():
        flow.input(name).upsert(pa.table({one: [r[one] for r in rows.values()] for one in _COLUMNS[name]}))
    flow.seal(wait=True)


def _figure(all_figures: dict[str, list[Figures]], path: Path) -> None:
    """Draw the milliseconds by the number of changes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4 * len(all_figures), 3.6))
    for place, (title, figures) in enumerate(all_figures.items(), 1):
        axes = figure.add_subplot(1, len(all_figures), place)
        for name in ("ours", "duckdb", "polars"):
            axes.loglog([f.changes for f in figures], [getattr(f, name) for f in figures], "o-", label=name)
        axes.set(title=title, xlabel="changes", ylabel="ms")
        axes.legend()
    figure.tight_layout()
    figure.savefig(path)


def _table(title: str, figures: Sequence[Figures]) -> list[str]:
    lines = [f"### {title}", ""]
    lines += [
        "| changes | ours, ms | DuckDB | Polars | ours : DuckDB | ours : Polars |",
        "|---|---|---|---|---|---|",
    ]
    for each in figures:
        ratios = f"{each.ours / each.duckdb:.2f} | {each.ours / each.polars:.2f}"
        lines.append(
            f"| {each.changes:,} | {each.ours:.1f} | {each.duckdb:.1f} | {each.polars:.1f} | {ratios} |"
        )
    return [*lines, ""]


def _report(shops: Sequence[int], sizes: Sequence[int], rounds: int, processes: int, plot: Path) -> str:
    measured_by_title: dict[str, list[Figures]] = {}
    for orders in shops:
        title = f"{orders:,} orders, {3 * orders:,} lines"
        measured_by_title[title] = measured(orders, sizes, rounds, processes)
    of_what = "processor time" if not processes else f"milliseconds by the clock, {processes} processes"
    lines = [
        "## Is a dashboard of orders ahead of computing its answers anew?",
        "",
        "`python -m bench.dataflow.order_dashboard`, the query of `examples/order_dashboard.py`: changes of",
        "three tables as a feed, in their order, until all three answers are read; the others compute the",
        f"three answers from tables in memory. Medians of {rounds} rounds in turn, {of_what}, one thread for",
        f"each worker. All answers agree in each round. Load average {os.getloadavg()[1]:.0f}. {machine()}",
        "The machine was busy with other work, and caches with it: ratios count. The shape in which we lose:",
        "changes of more than a few per cent of a table that is small enough to be computed anew meanwhile.",
        "",
        f"![milliseconds by changes]({plot.name})",
        "",
    ]
    for title, figures in measured_by_title.items():
        lines += _table(title, figures)
    lines += ["### The order of a feed", ""]
    lines += ["| operations | as a feed, ms | one call for each kind | as messages in dicts | feed : calls |"]
    lines += ["|---|---|---|---|---|"]
    for size in (2_000, 10_000):
        feed, calls, dicts = feed_order(size, 2 * rounds)
        lines.append(f"| {size:,} | {feed:.1f} | {calls:.1f} | {dicts:.1f} | {feed / calls:.2f} |")
    _figure(measured_by_title, plot)
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure, print, and write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--orders", type=int, nargs="*", default=[20_000, 60_000, 200_000])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--sizes", type=int, nargs="*", default=SIZES)
    parser.add_argument(
        "--processes", type=int, default=0, help="0 (the default): one worker in this process"
    )
    parser.add_argument("--write", type=Path)
    asked = parser.parse_args()
    os.environ["POLARS_MAX_THREADS"] = str(max(1, asked.processes))  # read when Polars is imported
    plot = (asked.write or Path("order_dashboard.md")).with_suffix(".svg")
    report = _report(asked.orders, asked.sizes, asked.rounds, asked.processes, plot)
    print(report)
    if asked.write is not None:
        asked.write.write_text(report)


if __name__ == "__main__":
    main()
