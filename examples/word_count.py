"""Counting words with a vertex written by hand: the four calls of timely dataflow.

    python examples/word_count.py [--workers 2] [FILE]

Each paragraph of the file is an epoch. After each the words are printed whose count has changed; they are the
same as in a plain loop, or the program says so and ends.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

import timely

TEXT = """the quick brown fox
jumps over the lazy dog

the dog sleeps

a fox and a dog
"""


class SplitLinesVertex(timely.Vertex):
    """Lines in, words out, at once: there is nothing to wait for."""

    def on_recv(self, edge: int, message: list[object], time: tuple[int, ...]) -> None:
        """`message` is a list of lines."""
        self.send_by(0, [word for line in message for word in str(line).split()], time)


class CountWordsVertex(timely.Vertex):
    """Counts words; when an epoch is complete, sends the counts that changed in it."""

    def __init__(self) -> None:
        self.counts: Counter[object] = Counter()
        self.added: dict[tuple[int, ...], Counter[object]] = {}

    def on_recv(self, edge: int, message: list[object], time: tuple[int, ...]) -> None:
        """Count some words of an epoch, and ask for a notification when no more can come."""
        if time not in self.added:
            self.added[time] = Counter()
            self.notify_at(time)
        self.added[time].update(message)

    def on_notify(self, time: tuple[int, ...]) -> None:
        """No word of this epoch will come any more, from any worker."""
        added = self.added.pop(time)
        self.counts.update(added)
        self.send_by(0, [(word, self.counts[word]) for word in added], time)


@timely.builder
def build(dataflow: timely.Dataflow) -> None:
    """Lines in, (word, count) out. Every worker calls this; equal words meet on one worker."""
    words = dataflow.input("lines").stage("split lines", SplitLinesVertex)
    counts = words.stage("count words", CountWordsVertex, exchange=timely.by())
    dataflow.output("counts", counts)


def main() -> None:
    """Feed the paragraphs, print the counts."""
    parser = argparse.ArgumentParser(description="Count the words of a text, paragraph by paragraph.")
    parser.add_argument("file", nargs="?", type=Path, help="text to count; without it a few lines of our own")
    parser.add_argument(
        "--workers", type=int, default=0, help="worker processes; 0 (the default): within this process"
    )
    given = parser.parse_args()
    text = given.file.read_text() if given.file else TEXT
    with timely.connect(workers=given.workers or 1, embedded=given.workers == 0) as cluster:
        flow = cluster.install(build)
        counts: Counter[str] = Counter()
        for paragraph in text.split("\n\n"):
            flow.input("lines").insert(paragraph.splitlines())
            epoch = flow.seal()
            changed = sorted(record for _, record in flow.output("counts").changes())
            counts.update(paragraph.split())
            if changed != sorted((word, counts[word]) for word in set(paragraph.split())):
                sys.exit(f"word_count: epoch {epoch} differs from a plain count: {changed}")
            print(f"epoch {epoch}  ", "   ".join(f"{word} {count}" for word, count in changed))


if __name__ == "__main__":
    try:
        main()
    except (OSError, timely.TimelyError) as error:
        sys.exit(f"word_count: {error}")
