"""Values of symbols that lie in files: those that were entered, or asked for, longest ago.

A table of symbols keeps values in two dictionaries, which take some 200 bytes and the value for each. A
worker that spills (`timely/spilling/`) moves the older ones here once they take a quarter of its budget. A
value here takes 16 bytes and its msgpack bytes, in files, and one byte of memory.

    segment   values of one move, or of several: words in ascending order, where the bytes of each begin, and
              these bytes
    dead      a value of a segment that is in the dictionaries again, or was forgotten

A segment never changes, but for its dead values; so threads may look up values while another one adds some. A
segment at least half as large as the one before becomes one with it, so that a lookup searches few.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from differential.columns.column_types import Int64s
from timely.mapped import in_file

__all__ = ["ColdTexts"]

_COPIED: Final = 1 << 14
"""Most values that are copied at once."""

_COPIED_BYTES: Final = 1 << 18
"""Most bytes of several values that are copied at once: some 32 bytes of memory for each."""


class _Segment:
    """Values by word: `words` ascend, and value i has the bytes from `ends[i]` to `ends[i + 1]`."""

    __slots__ = ("dead", "ends", "live", "texts", "words")

    def __init__(self, words: Int64s, sizes: Int64s) -> None:
        """Make room for values of so many bytes; the caller writes `texts`."""
        self.words = in_file(words.nbytes)
        self.words[:] = words
        self.ends = in_file(words.nbytes + 8)
        self.ends[0] = 0
        np.cumsum(sizes, out=self.ends[1:])
        self.texts: NDArray[np.uint8] = in_file(self.text_bytes).view(np.uint8)
        self.dead: NDArray[np.bool_] = np.zeros(len(words), np.bool_)
        self.live = len(words)

    @classmethod
    def of(cls, words: Int64s, texts: Sequence[bytes]) -> _Segment:
        """Return a segment of values; each word is there once."""
        order = np.argsort(words)
        texts = [texts[at] for at in order.tolist()]
        segment = cls(words[order], np.fromiter(map(len, texts), np.int64, len(texts)))
        segment.texts[: segment.text_bytes] = np.frombuffer(b"".join(texts), np.uint8)
        return segment

    @classmethod
    def merged(cls, parts: Sequence[_Segment]) -> _Segment:
        """Return a segment with all values of others that are not dead."""
        places = [np.flatnonzero(~part.dead) for part in parts]
        words = np.concatenate([part.words[place] for part, place in zip(parts, places, strict=True)])
        sizes = np.concatenate([np.diff(part.ends)[place] for part, place in zip(parts, places, strict=True)])
        source = np.repeat(np.arange(len(parts)), [len(place) for place in places])
        order = np.argsort(words)
        place = np.concatenate(places)[order]
        source = source[order]
        segment = cls(words[order], sizes[order])
        first, ends = 0, segment.ends
        while first < len(order):
            fitting = int(np.searchsorted(ends, ends[first] + _COPIED_BYTES, "right")) - 1
            last = max(first + 1, min(first + _COPIED, fitting))
            segment._copy(parts, source[first:last], place[first:last], first)
            first = last
        return segment

    def _copy(self, parts: Sequence[_Segment], source: Int64s, place: Int64s, first: int) -> None:
        """Copy values of others, `place` says which of each part `source`, as those from `first` on."""
        if len(source) == 1:  # it may be large
            part, at = parts[int(source[0])], int(place[0])
            begin, end = part.ends[at : at + 2].tolist()
            self.texts[int(self.ends[first]) :][: end - begin] = part.texts[begin:end]
            return
        for number, part in enumerate(parts):
            chosen = np.flatnonzero(source == number)
            old, new = place[chosen], chosen + first
            begins, count = part.ends[old], part.ends[old + 1] - part.ends[old]
            within = np.arange(int(count.sum())) - np.repeat(np.cumsum(count) - count, count)
            target = np.repeat(self.ends[new], count) + within
            self.texts[target] = part.texts[np.repeat(begins, count) + within]

    @property
    def text_bytes(self) -> int:
        """Bytes of the values."""
        return int(self.ends[-1])

    def find(self, words: Int64s) -> Int64s:
        """Return the place of each word; -1 where the segment does not have it."""
        at = np.minimum(np.searchsorted(self.words, words), len(self.words) - 1)
        return np.where(self.words[at] == words, at, -1)

    def text(self, at: int) -> bytes:
        """Return the bytes of one value."""
        return self.texts[int(self.ends[at]) : int(self.ends[at + 1])].tobytes()

    def bury(self, places: Int64s) -> None:
        """Let values be dead."""
        self.dead[places] = True
        self.live = int(len(self.dead) - np.count_nonzero(self.dead))


class ColdTexts:
    """The msgpack bytes of values, by their words. One thread at a time adds, buries or removes values."""

    def __init__(self) -> None:
        self._segments: tuple[_Segment, ...] = ()
        self.bytes = 0
        """Bytes of the values, dead ones included."""

    def __len__(self) -> int:
        return sum(segment.live for segment in self._segments)

    def add(self, words: Int64s, texts: Sequence[bytes]) -> None:
        """Add values, of different words that are not here, or dead."""
        segments = [*self._segments, _Segment.of(words, texts)]
        first = len(segments) - 1
        rows = segments[-1].live
        while first > 0 and 2 * rows >= segments[first - 1].live:
            first -= 1
            rows += segments[first].live
        if first < len(segments) - 1:
            segments[first:] = [_Segment.merged(segments[first:])]
        self._set(segments)

    def texts(self, words: Int64s) -> list[bytes | None]:
        """Return the bytes of each value, also of dead ones; None where the word is not here."""
        return self.read(words)[0]

    def read(self, words: Int64s) -> tuple[list[bytes | None], list[bool]]:
        """Return what `texts` does, and which values are not dead."""
        out: list[bytes | None] = [None] * len(words)
        live = np.zeros(len(words), np.bool_)
        for segment in self._segments:
            places = segment.find(words)
            index = np.flatnonzero(places >= 0)
            places = places[index]
            live[index] |= ~segment.dead[places]
            view = segment.texts.data
            bounds = zip(segment.ends[places].tolist(), segment.ends[places + 1].tolist(), strict=True)
            for at, (begin, end) in zip(index.tolist(), bounds, strict=True):
                out[at] = bytes(view[begin:end])
        return out, live.tolist()

    def live_words(self) -> Int64s:
        """Return the words of all values that are not dead."""
        parts = [segment.words[~segment.dead] for segment in self._segments]
        return np.concatenate([np.zeros(0, np.int64), *parts])

    def bury(self, words: Int64s) -> None:
        """Let values be dead: they are in the dictionaries again."""
        for segment in self._segments:
            places = segment.find(words)
            segment.bury(places[places >= 0])

    def remove(self, words: Int64s) -> tuple[list[int], list[bytes]]:
        """Remove the values of those words that are here and not dead; return their words and bytes."""
        gone: tuple[list[int], list[bytes]] = [], []
        rest: list[_Segment] = []
        for segment in self._segments:
            places = segment.find(words)
            places = places[places >= 0]
            places = places[~segment.dead[places]]
            gone[0].extend(segment.words[places].tolist())
            gone[1].extend(map(segment.text, places.tolist()))
            segment.bury(places)
            if 2 * segment.live >= len(segment.words):
                rest.append(segment)
            elif segment.live:
                rest.append(_Segment.merged([segment]))
        self._set(rest)
        return gone

    def leave(self) -> None:
        """Have no values any more: in a forked process their memory is empty."""
        self._set([])

    def _set(self, segments: Sequence[_Segment]) -> None:
        self._segments = tuple(segments)
        self.bytes = sum(segment.text_bytes for segment in segments)
