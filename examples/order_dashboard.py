"""What do we sell, by day and country? A dashboard that follows the changes of three tables.

    python examples/order_dashboard.py [--orders 500] [--epochs 4] [--changes 200] [--workers 2] [--json]

A database has customers, orders, and the lines of orders. `Shop` makes it up, and says of each row that
changes what Debezium would say: the operation, the row before, the row after. The inputs take these changes
as they come, in their order, and the dataflow keeps three answers: the totals of each day and country, the
five products that are sold most, and how many customers of each country have bought something. The program
prints a line for each epoch.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

import differential as dd
import timely
from differential import col

Row: TypeAlias = dict[str, object]
COUNTRIES = ("AT", "BR", "DE", "FR", "IN", "JP", "KE", "MX", "PT", "US")
PRODUCTS = 1_000
DAYS = 60
CUSTOMERS_PER_ORDER = 1 / 6
SCHEMAS = {
    "customers": ("id: int, country: string", ("id",)),
    "orders": ("id: int, customer: int, day: int", ("id",)),
    "lines": ("order: int, line: int, product: int, cents: int", ("order", "line")),
}
"""The columns and the key of each table."""


@timely.builder
def dashboard(flow: timely.Dataflow) -> None:
    """Three tables in, three answers out."""
    tables = {
        name: dd.input(flow, name, columns, key=key, mode="upsert")
        for name, (columns, key) in SCHEMAS.items()
    }
    placed = tables["orders"].join(tables["customers"], on={"customer": "id"})
    sold = tables["lines"].join(placed, on={"order": "id"})
    sold.group_by("day", "country").agg(cents=dd.sum("cents"), lines=dd.count()).output("totals")
    products = sold.group_by("product").agg(cents=dd.sum("cents"))
    products.top_k(5, by=[col.cents.desc(), col.product]).output("top products")
    sold.group_by("country").agg(customers=dd.count_distinct("customer")).output("customers")


class Change(NamedTuple):
    """What has happened to a row of `table`: `op` as Debezium spells it; None: there is no such row."""

    table: str
    op: str
    before: Row | None
    after: Row | None

    def message(self) -> Row:
        """The change as a message of Debezium has it."""
        return {"op": self.op, "before": self.before, "after": self.after, "source": {"table": self.table}}


class Shop:
    """The database: `rows` has those of each table by their keys.

    Args:
        seed: of what happens.
        products: how many different ones there are.
    """

    def __init__(self, seed: int = 1, products: int = PRODUCTS) -> None:
        self._random = random.Random(seed)
        self._products = products
        self._day = 0
        self.rows: dict[str, dict[tuple[object, ...], Row]] = {name: {} for name in SCHEMAS}
        self._lines_of: defaultdict[int, list[int]] = defaultdict(list)
        self._orders: list[int] = []
        self._placed = 0

    def opens(self, orders: int) -> list[Change]:
        """Return the first changes: customers, and so many orders, of all days but the last."""
        self._day = DAYS - 2
        changes = [self._customer_comes() for _ in range(max(1, round(orders * CUSTOMERS_PER_ORDER)))]
        for _ in range(orders):
            changes += self._order_comes(self._random.randrange(DAYS - 1))
        self._day = DAYS - 1
        return changes

    def goes_on(self, count: int) -> list[Change]:
        """Return `count` changes or a few more: orders come, change and go; customers come and move."""
        changes: list[Change] = []
        while len(changes) < count:
            what = self._random.random()
            if what < 0.45 or not self._orders:
                changes += self._order_comes(self._day)
            elif what < 0.80:
                changes += self._line_changes()
            elif what < 0.90:
                changes += self._order_goes()
            elif what < 0.96:
                changes.append(self._order_moves())
            else:
                changes.append(self._customer_moves() if what < 0.98 else self._customer_comes())
        return changes

    def _set(self, table: str, row: Row) -> Change:
        key = tuple(row[name] for name in SCHEMAS[table][1])
        before = self.rows[table].get(key)
        self.rows[table][key] = row
        return Change(table, "c" if before is None else "u", before, row)

    def _customer_comes(self) -> Change:
        number = len(self.rows["customers"])
        return self._set("customers", {"id": number, "country": self._random.choice(COUNTRIES)})

    def _customer_moves(self) -> Change:
        number = self._random.randrange(len(self.rows["customers"]))
        return self._set("customers", {"id": number, "country": self._random.choice(COUNTRIES)})

    def _order_comes(self, day: int) -> list[Change]:
        number = self._placed
        self._placed += 1
        self._orders.append(number)
        customer = self._random.randrange(len(self.rows["customers"]))
        changes = [self._set("orders", {"id": number, "customer": customer, "day": day})]
        return changes + [self._line(number, line) for line in range(1 + self._random.randrange(5))]

    def _line(self, order: int, line: int) -> Change:
        if line == len(self._lines_of[order]):
            self._lines_of[order].append(line)
        product = int(self._products * self._random.random() ** 3)  # some are sold more often than others
        row: Row = {
            "order": order,
            "line": line,
            "product": product,
            "cents": self._random.randrange(100, 9_999),
        }
        return self._set("lines", row)

    def _line_changes(self) -> list[Change]:
        """Of an order: one line is another one, or there is one more."""
        order = self._random.choice(self._orders)
        return [self._line(order, self._random.randrange(len(self._lines_of[order]) + 1))]

    def _order_moves(self) -> Change:
        """To another day."""
        before = self.rows["orders"][(self._random.choice(self._orders),)]
        return self._set("orders", {**before, "day": self._random.randrange(DAYS)})

    def _order_goes(self) -> list[Change]:
        at = self._random.randrange(len(self._orders))
        self._orders[at], self._orders[-1] = self._orders[-1], self._orders[at]
        order = self._orders.pop()
        keys = [("lines", (order, line)) for line in self._lines_of.pop(order)]
        return [
            Change(table, "d", self.rows[table].pop(key), None)
            for table, key in (*keys, ("orders", (order,)))
        ]


def apply(flow: timely.Flow, changes: Iterable[Change]) -> None:
    """Give the changes to the inputs, each table's in their order."""
    messages: dict[str, list[Row]] = {name: [] for name in SCHEMAS}
    for change in changes:
        messages[change.table].append(change.message())
    for name, its in messages.items():
        if its:
            flow.input(name).apply(its)


def answers(flow: timely.Flow) -> dict[str, list[tuple[object, ...]]]:
    """Return the rows of each output, in order."""
    found = {}
    for name in flow.outputs:
        found[name] = sorted(tuple(row.values()) for row in flow.output(name).snapshot().to_pylist())
    return found


def shown(epoch: int, count: int, found: dict[str, list[tuple[object, ...]]]) -> str:
    """Return the line of an epoch."""
    today = [(str(country), int(str(cents))) for day, country, cents, _ in found["totals"] if day == DAYS - 1]
    best = sorted(((int(str(cents)), product) for product, cents in found["top products"]), reverse=True)
    buyers = sum(int(str(customers)) for _, customers in found["customers"])
    first = max(today, key=lambda each: each[1], default=("-", 0))
    return (
        f"epoch {epoch}  {count:>5,} changes  today {sum(cents for _, cents in today) / 100:>10,.2f}, most "
        f"in {first[0]}  best product {best[0][1] if best else '-'}  {buyers:,} customers"
    )


def main(arguments: list[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description="A dashboard of orders that follows a database.")
    parser.add_argument("--orders", type=int, default=500, help="how many there are at first (500)")
    parser.add_argument("--epochs", type=int, default=4, help="how many follow (4)")
    parser.add_argument("--changes", type=int, default=200, help="how many changes each has (200)")
    parser.add_argument("--seed", type=int, default=1, help="of what happens (1)")
    parser.add_argument("--workers", type=int, default=0, help="processes; 0 (the default): within this one")
    parser.add_argument("--json", action="store_true", help="all answers, one JSON object a line")
    options = parser.parse_args(arguments)
    shop = Shop(options.seed)
    try:
        with timely.connect(workers=options.workers or 1, embedded=options.workers == 0) as cluster:
            flow = cluster.install(dashboard)
            for epoch in range(options.epochs + 1):
                changes = shop.goes_on(options.changes) if epoch else shop.opens(options.orders)
                apply(flow, changes)
                flow.seal()
                found = answers(flow)
                facts = {"epoch": epoch, "changes": len(changes), **found}
                print(json.dumps(facts) if options.json else shown(epoch, len(changes), found), flush=True)
    except timely.TimelyError as error:
        print(f"order_dashboard: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
