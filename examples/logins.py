"""Accounts that are locked after three wrong passwords in a row: a state machine for each key.

    python examples/logins.py [--workers 2] [FILE]

Each line is `account right` or `account wrong`; an empty line ends an epoch. Whether an account is locked
depends on all its lines so far, in the order of their epochs.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import timely

TEXT = """ada wrong
bob wrong
ada wrong

ada right
bob wrong
bob wrong

bob right
ada wrong
cy right
"""

WRONG_MAX = 3


def step(account: str, result: str, wrong: int) -> tuple[int | None, list[tuple[str, str]]]:
    """Return the number of wrong passwords in a row, and what there is to say. A locked account stays so."""
    if wrong >= WRONG_MAX:
        return wrong, [(account, f"is locked: {result} password refused")]
    if result == "right":
        return None, [(account, "is in")]  # None forgets the account: it begins again at 0
    if wrong + 1 == WRONG_MAX:
        return WRONG_MAX, [(account, "is locked now")]
    return wrong + 1, []


def pair_of(line: str) -> tuple[str, ...]:
    """Return account and result of a line."""
    return tuple(line.split())


@timely.builder
def build(dataflow: timely.Dataflow) -> None:
    """Lines in, (account, news) out. Lines of one account meet on one worker."""
    pairs = dataflow.input("lines").map(pair_of)
    dataflow.output("news", pairs.state_machine(step, 0))


def plainly(epochs: list[list[str]]) -> list[tuple[int, tuple[str, str]]]:
    """Return the same by a loop over the lines. Lines of an account in one epoch have no order: in `TEXT`
    they are equal.
    """
    wrong: dict[str, int] = {}
    news = []
    for epoch, lines in enumerate(epochs):
        for account, result in (line.split() for line in lines):
            before = wrong.get(account, 0)
            if before >= WRONG_MAX:
                news.append((epoch, (account, f"is locked: {result} password refused")))
            elif result == "right":
                wrong[account] = 0
                news.append((epoch, (account, "is in")))
            else:
                wrong[account] = before + 1
                news += [(epoch, (account, "is locked now"))] * (before + 1 == WRONG_MAX)
    return sorted(news)


def main() -> None:
    """Feed the lines, print the news of each epoch."""
    parser = argparse.ArgumentParser(description="Lock accounts after three wrong passwords in a row.")
    parser.add_argument("file", nargs="?", type=Path, help="lines; without it a few of our own")
    parser.add_argument(
        "--workers", type=int, default=0, help="worker processes; 0 (the default): within this process"
    )
    given = parser.parse_args()
    text = given.file.read_text() if given.file else TEXT
    with timely.connect(workers=given.workers or 1, embedded=given.workers == 0) as cluster:
        flow = cluster.install(build)
        epochs = [part.splitlines() for part in text.split("\n\n")]
        for lines in epochs:
            flow.input("lines").insert(lines)
            flow.seal()
        news = sorted(flow.output("news").changes())
    if not given.file and news != plainly(epochs):
        sys.exit(f"logins: this differs from the plain computation: {news}")
    for epoch, (account, said) in news:
        print(f"epoch {epoch}   {account} {said}")


if __name__ == "__main__":
    try:
        main()
    except (OSError, timely.TimelyError) as error:
        sys.exit(f"logins: {error}")
