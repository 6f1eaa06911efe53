"""A durable cluster whose workers are killed while it works, and which goes on.

    python examples/killed_workers.py [--store FOLDER] [--epochs 12] [--kill-every 4]

In each epoch some orders come in, and the totals by customer are kept up to date. Every few epochs a worker
process is killed as `kill -9` does. Nobody loses anything: the workers start again with what their store has,
and the calls of this program take a second longer. Kill the program itself, start it again with the same
store, and it goes on behind the last epoch that it has sealed.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import tempfile
from collections import Counter

import differential as dd
import timely

CUSTOMERS = ("ada", "bea", "cyd")


@timely.builder
def totals(flow: timely.Dataflow) -> None:
    """Keep the number of orders, and their sum, by customer."""
    orders = dd.input(flow, "orders", "customer: string, cents: int")
    orders.group_by("customer").agg(orders=dd.count(), cents=dd.sum("cents")).output("totals")


def orders_of(epoch: int) -> list[tuple[str, int]]:
    """Return the orders of an epoch; the same each time, as those of a file or a queue would be."""
    chance = random.Random(epoch)
    return [(chance.choice(CUSTOMERS), chance.randrange(100, 1_000)) for _ in range(5)]


def kill_worker(cluster: timely.Cluster, index: int) -> None:
    """Kill a worker process, which has no time to save anything."""
    process = cluster.stats()[index]["process"]
    assert isinstance(process, int)
    os.kill(process, signal.SIGKILL)


def run(store: str, epochs: int, kill_every: int) -> Counter[str]:
    """Feed what is missing of so many epochs; return the cents of each customer."""
    with timely.connect(workers=2, durable=store, log_level="error") as cluster:
        flow = cluster.install(totals)  # the one that the store has, or a new one
        print("begins with epoch", flow.epoch)
        for epoch in range(flow.epoch, epochs):
            flow.input("orders").insert(orders_of(epoch), writer="example", sequence=epoch)
            if epoch % kill_every == kill_every - 1:
                kill_worker(cluster, epoch // kill_every % 2)
                print(f"epoch {epoch}: a worker is killed")
            flow.seal()
        rows = flow.output("totals").snapshot().to_pylist()
    return Counter({row["customer"]: row["cents"] for row in rows})


def main() -> None:
    """Run the example, and compare its answer with a sum over all orders."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--store", help="a folder for the store (by default a new one, removed at the end)")
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--kill-every", type=int, default=4)
    options = parser.parse_args()
    expected: Counter[str] = Counter()
    for epoch in range(options.epochs):
        for customer, cents in orders_of(epoch):
            expected[customer] += cents
    with tempfile.TemporaryDirectory() as folder:
        answer = run(options.store or folder, options.epochs, options.kill_every)
    for customer in CUSTOMERS:
        print(f"{customer}  {answer[customer]:,} cents")
    print("as a sum over all orders:", answer == expected)


if __name__ == "__main__":
    main()
