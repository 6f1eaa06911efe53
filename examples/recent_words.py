"""The most frequent words of the last paragraphs: a query on a collection behind a stream written by hand.

    python examples/recent_words.py [--workers 2] [--paragraphs 2] [FILE]

Each paragraph of the file is an epoch. A vertex sends its words as changes of a collection, and takes them
back some epochs later. After each epoch the three most frequent words are printed.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import differential as dd
import timely
from differential import col

TEXT = """the quick brown fox
jumps over the lazy dog

the dog sleeps

a fox and a dog

a dog and a dog
"""


class RecentWordsVertex(timely.Vertex):
    """Lines in, changes out: each word comes at the epoch of its line, and goes `paragraphs` epochs later."""

    def __init__(self, paragraphs: int) -> None:
        self.paragraphs = paragraphs

    def on_recv(self, edge: int, message: list[object], time: tuple[int, ...]) -> None:
        """`message` is a list of lines. What goes is sent at once, at the later time."""
        words = [(word,) for line in message for word in str(line).split()]
        self.send_by(0, [(row, 1) for row in words], time)
        self.send_by(0, [(row, -1) for row in words], (time[0] + self.paragraphs,))


@timely.builder
def build(dataflow: timely.Dataflow, paragraphs: int) -> None:
    """Lines in, the words that came most often in the last paragraphs out."""
    changes = dataflow.input("lines").stage("recent words", lambda: RecentWordsVertex(paragraphs))
    words = dd.collection(changes, "word: string")
    counts = words.group_by("word").agg(count=dd.count())
    counts.top_k(3, by=[col.count.desc(), "word"]).output("words")


def main() -> None:
    """Feed the paragraphs, print the words."""
    parser = argparse.ArgumentParser(description="Print the most frequent words of the last paragraphs.")
    parser.add_argument("file", nargs="?", type=Path, help="text to count; without it a few lines of our own")
    parser.add_argument("--paragraphs", type=int, default=2, help="how many count (default: 2)")
    parser.add_argument(
        "--workers", type=int, default=0, help="worker processes; 0 (the default): within this process"
    )
    given = parser.parse_args()
    text = given.file.read_text() if given.file else TEXT
    with timely.connect(workers=given.workers or 1, embedded=given.workers == 0) as cluster:
        flow = cluster.install(build, paragraphs=given.paragraphs)
        for paragraph in text.split("\n\n"):
            flow.input("lines").insert(paragraph.splitlines())
            epoch = flow.seal(wait=True)
            rows = flow.output("words").snapshot().to_pylist()
            ordered = sorted(rows, key=lambda row: (-row["count"], row["word"]))
            print(f"epoch {epoch}  ", "   ".join(f"{row['word']} {row['count']}" for row in ordered))


if __name__ == "__main__":
    try:
        main()
    except (OSError, timely.TimelyError) as error:
        sys.exit(f"recent_words: {error}")
