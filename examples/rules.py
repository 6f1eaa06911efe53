"""Payments under rules that change: one stream is divided among the workers, the other goes to all of them.

    python examples/rules.py [--workers 2] [FILE]

Each line is `rule COUNTRY LIMIT` or `pay CUSTOMER COUNTRY CENTS`; an empty line ends an epoch. A payment
above the limit of its country is held back. The rules of an epoch hold for all payments of that epoch, on
whichever worker they are.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from pathlib import Path
from typing import cast

import timely

TEXT = """rule DE 500
rule FR 300
pay ada DE 400
pay bob FR 400

pay cy DE 600
pay ada FR 200

rule DE 700
pay cy DE 600
pay dan IT 999
"""
Time = tuple[int, ...]
Payment = tuple[str, str, int]
Rule = tuple[str, int]


class RulesVertex(timely.Vertex):
    """Input 0: payments; each worker has some. Input 1: rules; each worker has all of them."""

    def __init__(self) -> None:
        self.limits: dict[str, int] = {}
        self.waiting: defaultdict[Time, tuple[list[Payment], list[Rule]]] = defaultdict(lambda: ([], []))

    def on_recv(self, edge: int, message: list[object], time: Time) -> None:
        """Wait for the rest of the epoch: a payment may come in before the rule that it breaks."""
        payments, rules = self.waiting[time]
        if edge == 0:
            payments.extend(cast("list[Payment]", message))
        else:
            rules.extend(cast("list[Rule]", message))
        self.notify_at(time)

    def on_notify(self, time: Time) -> None:
        """All rules and payments of the epoch are there, and those of all epochs before were dealt with."""
        payments, rules = self.waiting.pop(time)
        self.limits.update(rules)
        held = [payment for payment in payments if payment[2] > self.limits.get(payment[1], sys.maxsize)]
        self.send_by(0, held, time)


def payments_of(line: str) -> list[Payment]:
    """Return the payment of a line; none of a rule."""
    kind, *words = line.split()
    return [(words[0], words[1], int(words[2]))] if kind == "pay" else []


def rules_of(line: str) -> list[Rule]:
    """Return the rule of a line; none of a payment."""
    kind, *words = line.split()
    return [(words[0], int(words[1]))] if kind == "rule" else []


@timely.builder
def build(dataflow: timely.Dataflow) -> None:
    """Lines in, payments that are held back out."""
    lines = dataflow.input("lines")
    feeds = [
        lines.flat_map(payments_of).feed(0, exchange=timely.by(0)),
        lines.flat_map(rules_of).feed(1, exchange=timely.Broadcast()),
    ]
    (held,) = dataflow.stage("rules", RulesVertex, feeds)
    dataflow.output("held", held)


def plainly(epochs: list[list[str]]) -> list[tuple[int, Payment]]:
    """Return the same, line by line: (epoch, payment)."""
    limits: dict[str, int] = {}
    held = []
    for epoch, lines in enumerate(epochs):
        limits.update(rule for line in lines for rule in rules_of(line))
        for payment in (payment for line in lines for payment in payments_of(line)):
            if payment[1] in limits and payment[2] > limits[payment[1]]:
                held.append((epoch, payment))
    return sorted(held)


def main() -> None:
    """Feed the lines, print what is held back."""
    parser = argparse.ArgumentParser(description="Hold back payments above the limit of their country.")
    parser.add_argument("file", nargs="?", type=Path, help="lines; without it a few of our own")
    parser.add_argument(
        "--workers", type=int, default=0, help="worker processes; 0 (the default): within this process"
    )
    given = parser.parse_args()
    text = given.file.read_text() if given.file else TEXT
    epochs = [part.splitlines() for part in text.split("\n\n")]
    with timely.connect(workers=given.workers or 1, embedded=given.workers == 0) as cluster:
        flow = cluster.install(build)
        for lines in epochs:
            flow.input("lines").insert(lines)
            flow.seal()
        held = sorted(flow.output("held").changes())
    if held != plainly(epochs):
        sys.exit(f"rules: these differ from the plain computation: {held}")
    for epoch, (customer, country, cents) in held:
        print(f"epoch {epoch}   {customer} pays {cents} in {country}: held back")


if __name__ == "__main__":
    try:
        main()
    except (OSError, timely.TimelyError) as error:
        sys.exit(f"rules: {error}")
