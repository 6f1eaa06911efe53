"""How long does a workload take in Flink SQL, and what does it hold?

    python -m bench.peers.flink.on_flink count plain 10000 100000 100 2 [-w W] [--batch B]

Inputs are drawn as in `bench/workloads.py`; the line that is printed is described in `bench/peers/README.md`.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa

from bench import workloads
from bench.peers.flink.java import Epoch, FlinkError, FlinkTable, run, write
from bench.workloads import Int64s, Schedule

__all__ = ["QUERIES", "main", "tables_of"]

QUERIES: dict[str, tuple[str, tuple[int, int, int], str]] = {
    "count plain": ("SELECT `key`, COUNT(*) AS n FROM `rows` GROUP BY `key`", (0, 1, 1), "one"),
    "sum": ("SELECT `key`, SUM(`value`) AS total FROM `rows` GROUP BY `key`", (0, 1, 1), ""),
    "join": (
        "SELECT l.`key`, l.number AS l, r.number AS r FROM `left` AS l JOIN `right` AS r ON l.`key` = r.`key`",
        (1, 2, 0),
        "equal",
    ),
    "top": (
        "SELECT `key`, `value` FROM (SELECT `key`, `value`, ROW_NUMBER() OVER"
        f" (PARTITION BY `key` ORDER BY `value` DESC) AS n FROM `rows`) WHERE n <= {workloads.TOP_ROWS}",
        (0, 1, 1),
        "",
    ),
    "q3": (
        "SELECT o.`order`, SUM(l.revenue) AS revenue, o.`day` FROM customers AS c"
        " JOIN orders AS o ON o.customer = c.customer JOIN lines AS l ON l.`order` = o.`order`"
        f" WHERE c.segment = 0 AND o.`day` < {workloads.BOOKED_DAY} AND l.shipped > {workloads.BOOKED_DAY}"
        " GROUP BY o.`order`, o.`day`, o.priority ORDER BY revenue DESC, `day`, `order` LIMIT 10",
        (0, 1, 1),
        "",
    ),
}
"""By the words of a workload its query, the columns that are hashed and summed, and which rows are special.

There are no loops, so no wcc, bfs, scc and pagerank.
"""

_WARM_UP = {"q3": (20_000, 300, 100)}
_WARM_UP_OTHERS = (20_000, 100_000, 300, 100)


def tables_of(words: str, sizes: tuple[int, ...]) -> dict[str, FlinkTable]:
    """The inputs of a workload, with all their epochs."""
    match words:
        case "count plain":
            counted = workloads.count(*sizes)
            return {"rows": _changing(counted.schedule, key=counted.key)}
        case "sum" | "top":
            summed = workloads.sum_(*sizes)
            return {"rows": _changing(summed.schedule, key=summed.key, value=summed.value)}
        case "join":
            keys, rows, epochs, updates = sizes
            joined = workloads.join(keys, rows, epochs, updates)
            numbers = np.arange(joined.schedule.rows)
            return {
                "left": _changing(joined.schedule, key=joined.left_key, number=numbers),
                "right": _changing(joined.schedule, key=joined.right_key, number=numbers),
            }
        case _:
            return _q3(workloads.q3(*sizes))


def _q3(drawn: workloads.Q3Workload) -> dict[str, FlinkTable]:
    numbers, stays = np.arange(drawn.schedule.rows), len(drawn.segment)
    customers = pa.table({"customer": np.arange(stays), "segment": drawn.segment})
    epochs = [(0, 0, 0, stays), *[(0, 0, 0, 0)] * drawn.schedule.changes]
    of_order = workloads.LINES_OF_ORDER
    return {
        "customers": FlinkTable(customers, epochs),
        "orders": _changing(
            drawn.schedule, order=numbers, customer=drawn.customer, day=drawn.day, priority=np.zeros_like(numbers)
        ),
        "lines": _changing(
            drawn.schedule.times(of_order),
            order=np.repeat(numbers, of_order),
            shipped=drawn.shipped,
            revenue=drawn.revenue,
        ),
    }


def _changing(schedule: Schedule, **columns: Int64s) -> FlinkTable:
    epochs: list[Epoch] = [(0, 0, 0, schedule.loaded)]
    for change in range(schedule.changes):
        gone, come = schedule.removed(change), schedule.inserted(change)
        epochs.append((gone.start, gone.stop, come.start, come.stop))
    return FlinkTable(pa.table(columns), epochs)


def _written(folder: Path, words: str, sizes: tuple[int, ...], workers: int, batch: int) -> None:
    """A run in a folder of its own."""
    folder.mkdir()
    query, check, special = QUERIES[words]
    tables = tables_of(words, sizes)
    (epochs,) = {len(table.epochs) for table in tables.values()}
    write(
        folder, tables, query, range(1, epochs + 1), workers, batch=batch, check=check, special=special
    )  # fmt: skip


def main() -> None:
    """The command line, which is that of `ddpeer`."""
    parser = argparse.ArgumentParser(description="one run of one workload in Flink SQL")
    parser.add_argument("words", nargs="+", metavar="WORKLOAD NUMBERS", help=f"one of {', '.join(QUERIES)}")
    parser.add_argument("--batch", type=int, default=1, help="epochs in flight before waiting")
    parser.add_argument("-w", dest="workers", type=int, default=1, help="parallelism")
    options = parser.parse_args()
    words = " ".join(word for word in options.words if not word.isdecimal())
    sizes = tuple(int(word) for word in options.words if word.isdecimal())
    if words not in QUERIES:
        parser.error(f"{words} is none of {', '.join(QUERIES)}")
    with tempfile.TemporaryDirectory(prefix="flink-") as folder:
        first, own = Path(folder, "first"), Path(folder, "own")
        _written(first, words, _WARM_UP.get(words, _WARM_UP_OTHERS), options.workers, options.batch)
        _written(own, words, sizes, options.workers, options.batch)
        try:
            figures = run(first, own)
        except FlinkError as error:
            sys.exit(str(error))
    changes = np.array(figures["change_ms_all"], np.float64)
    ranks = {
        f"change_ms_{name}": float(np.percentile(changes, percent, method="inverted_cdf")) if len(changes) else None
        for name, percent in (("median", 50), ("p99", 99))
    }
    asked = {
        "workload": " ".join([words, *map(str, sizes)]),
        "workers": options.workers,
        "batch": options.batch,
    }
    print(json.dumps({**asked, **figures, **ranks}))


if __name__ == "__main__":
    main()
