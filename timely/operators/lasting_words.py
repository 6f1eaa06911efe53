"""Vertices that keep time words, and have no method `rebase` for when the anchor moves.

Most vertices that a user writes are such: they hold a time, remember its word or make it again by
`self.code.pack(time)`, and release it days later. Their words never change (`LastingCode`). From the first
move of the anchor on `LastingWords` stands between the vertex and its runner, and translates words on their
way in and out. Before that the words are the same, and nothing stands there.

Rows with times of their own, which a vertex may have stored, cannot be translated: a vertex that takes such
rows has a `rebase`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from progress.compiled.arrays import Int64s
from progress.errors import TimeRegressionError
from progress.times.lasting import LastingCode
from progress.times.timestamp import Timestamp

from ..user_code.call_site import CallSite
from ..wire.batch import Batch
from .activator import Activator
from .vertex import Feeder, Outlet, Runner

__all__ = ["LastingWords", "has_times"]

_WORDS_STOP = 1 << 63


def has_times(batch: Batch) -> bool:
    """Return True if the rows of a batch have times of their own: others are the same from every anchor."""
    return batch.rebased(1) is not batch


class LastingWords:
    """The runner of a vertex, as the vertex sees it: all words are those of `code`, which never move.

    Args:
        runner: the one that really runs the vertex; its words count from the anchor.
        code: how the vertex packs times.
    """

    def __init__(self, runner: Runner, code: LastingCode) -> None:
        self._runner = runner
        self.code = code
        self.vertex_code = code

    def outward(self, messages: Sequence[tuple[int, Batch]]) -> list[tuple[int, Batch]]:
        """Return messages with the words of the vertex."""
        base = self.code.base
        return [(word + base, batch) for word, batch in messages]

    def one_by_one(self, messages: Sequence[tuple[int, Batch]]) -> Iterator[tuple[int, Batch]]:
        """See `Runner`."""
        base = self.code.base
        for word, batch in self._runner.one_by_one([(word - base, batch) for word, batch in messages]):
            yield word + base, batch

    def send(self, output: int, batch: Batch, word: int) -> None:
        """See `Vertex.send`; the times of rows are words of the vertex, too."""
        self._runner.send(output, batch.rebased(-self.code.base), self._inward(word, "sent", self.sends_far))

    def request(self, word: int) -> None:
        """See `Vertex.notify_at`."""
        self._runner.request(self._inward(word, "asked for notification"))

    def request_at(self, word: int, at: int) -> None:
        """See `Runner`."""
        what = "asked for notification"
        self._runner.request_at(self._inward(word, what), self._inward(at, what))

    def hold(self, word: int) -> None:
        """See `Vertex.hold_word`; a right may be at an epoch that no word holds yet."""
        self._runner.hold(self._inward(word, "asked to hold", may_be_far=True))

    def release(self, word: int) -> None:
        """See `Vertex.release_word`."""
        self._runner.release(self._inward(word, "released a time", may_be_far=True))

    def resume(self) -> None:
        """See `Vertex.resume`."""
        self._runner.resume()

    def lose(self, time: Timestamp, site: CallSite) -> None:
        """See `Runner`."""
        self._runner.lose(time, site)

    def frontier(self, port: int) -> Int64s:
        """See `Vertex.frontier_words`. Words beyond 64 bits are whole numbers, in an array of objects."""
        words, base = self._runner.frontier(port), self.code.base
        if not words.size or int(words[-1]) + base < _WORDS_STOP:
            return words + base if words.size else words
        return np.array([word + base for word in words.tolist()], object)

    def first(self, port: int) -> int | None:
        """See `Runner`."""
        first = self._runner.first(port)
        return None if first is None else first + self.code.base

    def _inward(self, word: int, what: str, may_be_far: bool = False) -> int:
        """Return a word of the vertex as its runner knows it."""
        live = word - self.code.base
        if live < 0:
            raise TimeRegressionError(
                f"{self.title()} {what} at {self.code.unpack(word)}, which is complete, so that it can hold "
                "no right there"
            )
        if not may_be_far:
            code = self._runner.code
            if live >= code.layout.limit:
                code.pack(self.code.unpack(word))  # raises, and says which epochs have words now
        return live

    # Calls without words go on unchanged.

    @property
    def sends_far(self) -> bool:
        """See `Runner`."""
        return self._runner.sends_far

    @property
    def wants_frontier(self) -> bool:
        """See `Runner`."""
        return self._runner.wants_frontier

    @wants_frontier.setter
    def wants_frontier(self, wants: bool) -> None:
        self._runner.wants_frontier = wants

    @property
    def has_frontier_news(self) -> bool:
        """See `Runner`."""
        return self._runner.has_frontier_news

    @has_frontier_news.setter
    def has_frontier_news(self, has: bool) -> None:
        self._runner.has_frontier_news = has

    @property
    def is_calm(self) -> bool:
        """See `Runner`."""
        return self._runner.is_calm

    @property
    def worker(self) -> int:
        """See `Runner`."""
        return self._runner.worker

    @property
    def workers(self) -> int:
        """See `Runner`."""
        return self._runner.workers

    @property
    def name(self) -> str:
        """See `Runner`."""
        return self._runner.name

    def leads(self, output: int) -> Sequence[Outlet]:
        """See `Runner`."""
        return self._runner.leads(output)

    def activate_at(self, moment: float | None) -> None:
        """See `Runner`."""
        self._runner.activate_at(moment)

    def activator(self) -> Activator:
        """See `Runner`."""
        return self._runner.activator()

    def wake(self) -> None:
        """See `Runner`."""
        self._runner.wake()

    def feeding(self, port: int) -> list[Feeder]:
        """See `Runner`."""
        return self._runner.feeding(port)

    def title(self) -> str:
        """See `Runner`."""
        return self._runner.title()
