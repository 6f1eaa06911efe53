"""examples/order_dashboard.py: its answers beside DuckDB's, from scratch, at every epoch.

answers_*   of the tables as they are after the changes
shows_*     the command line
"""

from __future__ import annotations

import json

import duckdb
import pyarrow as pa
import pytest
from example_programs import example

import timely
from examples.order_dashboard import SCHEMAS, Shop, answers, apply, dashboard

EXAMPLE = example("order_dashboard")

SOLD = "FROM lines JOIN orders o ON o.id = lines.order JOIN customers c ON c.id = o.customer"
ANSWERS = {
    "totals": f"SELECT day, country, sum(cents)::bigint, count(*) {SOLD} GROUP BY ALL",
    "top products": f"SELECT product, sum(cents)::bigint {SOLD} GROUP BY ALL ORDER BY 2 DESC, 1 LIMIT 5",
    "customers": f"SELECT country, count(DISTINCT customer) {SOLD} GROUP BY ALL",
}


def asked(shop: Shop) -> dict[str, list[tuple[object, ...]]]:
    """DuckDB's answers over the rows of the database."""
    with duckdb.connect() as database:
        for name, rows in shop.rows.items():
            columns = [column.split(":")[0].strip() for column in SCHEMAS[name][0].split(",")]
            database.register(name, pa.table({one: [row[one] for row in rows.values()] for one in columns}))
        return {name: sorted(database.execute(query).fetchall()) for name, query in ANSWERS.items()}


@pytest.mark.parametrize("seed", [1, 2])
def test_answers_are_those_of_duckdb_after_every_epoch(two_workers: timely.Cluster, seed: int) -> None:
    """The last epoch takes all that is left of an order away."""
    shop = Shop(seed, products=12)
    flow = two_workers.install(dashboard)
    for epoch in range(4):
        apply(flow, shop.goes_on(80) if epoch else shop.opens(40))
        flow.seal()
        assert answers(flow) == asked(shop)
    flow.uninstall()


def test_shows_all_answers_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert EXAMPLE.main(["--orders", "20", "--epochs", "1", "--changes", "10", "--json"]) == 0  # type: ignore[attr-defined]
    first, second = map(json.loads, capsys.readouterr().out.splitlines())
    assert first["epoch"] == 0 and len(first["top products"]) == 5
    assert second["changes"] >= 10 and {"totals", "top products", "customers"} < second.keys()
