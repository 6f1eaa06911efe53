"""Rights: the times at which a vertex may act, which are those that it has just received, and those it holds.

A *right* is a word at or after which a vertex may send, hold and ask for notifications. A vertex has one for
each message and notification while that is delivered, and one for each capability that it holds. Capabilities
are counted, since progress tracking holds frontiers back by them.

`Rights` is the base class of `VertexRunner`, not a part of it: the vertex itself calls `hold` and `release`,
and handing each call on would be one call more per message.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from math import inf
from threading import get_ident
from typing import NoReturn

import numpy as np

from progress.compiled.arrays import Int64s
from progress.errors import MisuseError, TimeRegressionError
from progress.times.anchor import Rebase
from progress.times.open_times import OpenTimes
from progress.times.time_words import TimeCode
from progress.times.timestamp import Timestamp
from progress.times.word_antichain import antichain_is_beyond, minimal_words

from ...operators.awaiting.event_loop import EventLoop
from ...thresholds import FEW_WORDS_MAX
from ...wire.batch import Batch
from ..gate import Gate
from ..timings import Timings
from .surroundings import Counts

__all__ = ["Acting", "Rights"]

_RECENT_EVENTS = 6
_SHOWN_MAX = 8


class Acting:
    """The thread in which a worker runs its vertices: the one that called it last.

    Counts and inboxes belong to that thread alone. A vertex that sends or asks in another one, such as a
    thread of its own that waits for an answer, would corrupt them, so that the dataflow never ends.
    """

    __slots__ = ("gate", "has_alarms", "loop", "on_wake", "thread", "timings")

    def __init__(self) -> None:
        self.thread = get_ident()
        self.gate = Gate()
        """Says whether rows may enter."""
        self.on_wake: Callable[[], None] | None = None
        """Wakes the worker if it sleeps; any thread calls it."""
        self.loop: EventLoop | None = None
        """In which coroutines of vertices run; None while no vertex has any."""
        self.has_alarms = False
        """True once a vertex of the worker has asked for a turn without records."""
        self.timings = Timings()

    @property
    def running_loop(self) -> EventLoop | None:
        """The event loop, if coroutines may go on now: not without credit, as other vertices."""
        return self.loop if self.gate.has_credit else None

    @property
    def loop_seconds(self) -> float:
        """For how many seconds its coroutines let the worker sleep."""
        return inf if self.loop is None or not self.gate.has_credit else self.loop.seconds

    def wake(self) -> None:
        """End the sleep of the worker; any thread may call this."""
        self.timings.ring()
        if self.on_wake is not None:
            self.on_wake()

    def refuse(self, who: str, what: str) -> NoReturn:
        """Raise `MisuseError` for a call of another thread."""
        mine, theirs = _name_of(get_ident()), _name_of(self.thread)
        raise MisuseError(
            f"{who} {what} in the thread {mine}, but its worker runs it in the thread {theirs}: a vertex "
            "sends, asks and holds in its callbacks only. Nothing has happened. To bring in what another "
            "thread has found, let it call activate() of the activator that self.activator() returns in a "
            "callback, and send in on_activate; or let the program insert it as rows of an input"
        )


def _name_of(number: int) -> str:
    named = [thread.name for thread in threading.enumerate() if thread.ident == number]
    return f"{named[0]!r} ({number})" if named else f"{number}"


class Rights:
    """The rights of the vertex of one stage on one worker, and its name for errors."""

    __slots__ = (
        "_acting", "_has_ended", "_held", "_held_far", "_held_in_order", "_limit", "_received",
        "_received_minimal", "_surroundings", "code", "events", "name", "site", "stage", "worker", "workers",
    )  # fmt: skip

    def __init__(
        self, surroundings: Counts, stage: int, name: str, site: str, code: TimeCode, acting: Acting
    ) -> None:
        self._surroundings = surroundings
        self._has_ended = False
        """True once nothing is delivered any more, and no right is left."""
        self._acting = acting
        self.stage = stage
        self.name = name
        self.site = site
        self.code = code
        self.worker = surroundings.worker
        self.workers = surroundings.workers
        self._held: dict[int, int] = {}
        self._held_far: dict[int, int] = {}
        """Capabilities at epochs that no word holds yet; these give no right to send now."""
        self._limit = code.layout.limit
        self._held_in_order: OpenTimes | None = None
        self._received: set[int] = set()
        self._received_minimal: Int64s | None = None
        self.events: deque[tuple[str, int]] = deque(maxlen=_RECENT_EVENTS)

    def title(self) -> str:
        """See `Target`."""
        return f"{self.name!r} (stage {self.stage}, worker {self.worker} of {self.workers})"

    def hold(self, word: int) -> None:
        """Add a capability at `word`."""
        if get_ident() != self._acting.thread:
            self._acting.refuse(self.title(), "asked to hold a time")
        held = self._held
        if word >= self._limit:
            if not (self._has_right(self.code.within(word)) or self._has_far_right(word)):
                self._refuse(word, "asked to hold")
            self._held_far[word] = self._held_far.get(word, 0) + 1
            self._surroundings.count(self.stage, word, 1)
            return
        if word not in self._received and word not in held:
            self._check_right(word, "asked to hold")
        held[word] = held.get(word, 0) + 1
        if self._held_in_order is not None:
            self._held_in_order.add(word)
        self._surroundings.count(self.stage, word, 1)

    def release(self, word: int) -> None:
        """Drop a capability at `word`. When the vertex has ended, it holds none, and this does nothing."""
        if self._has_ended:
            return
        if get_ident() != self._acting.thread:
            self._acting.refuse(self.title(), "released a time")
        held = self._held if word < self._limit else self._held_far
        count = held.get(word, 0)
        if count == 0:
            raise TimeRegressionError(
                f"{self.title()} releases {self.code.unpack_wide(word)}, which it does not hold"
            )
        if count == 1:
            del held[word]
            if self._held_in_order is not None:
                self._held_in_order.discard(word)
                if not held:
                    self._held_in_order = None
        else:
            held[word] = count - 1
        self._surroundings.count(self.stage, word, -1)

    def one_by_one(self, messages: Sequence[tuple[int, Batch]]) -> Iterator[tuple[int, Batch]]:
        """Yield the messages in turn. While one is handled, its time alone gives the right to send and
        to ask.
        """
        if len(messages) == 1 and len(self._received) == 1:
            return iter(messages)  # it is what was received
        return self._in_turn(messages)

    def _in_turn(self, messages: Sequence[tuple[int, Batch]]) -> Iterator[tuple[int, Batch]]:
        received = self._received
        try:
            for word, batch in messages:
                self._received, self._received_minimal = {word}, None
                yield word, batch
        finally:  # a vertex may catch what its own callback raises
            self._received, self._received_minimal = received, None

    def received_times(self) -> list[Timestamp]:
        """Return the times of what is being delivered now, at which it may act for that reason."""
        return [self.code.unpack(word) for word in sorted(self._received)]

    def held_words(self) -> dict[int, int]:
        """Return the words that it holds, with their counts; for reports."""
        return self._held | self._held_far

    def rebase_rights(self, by: Rebase) -> None:
        """Count words from a later anchor. Call it between activations."""
        assert not self._received, "between activations"
        held = {by.word(word): count for word, count in (*self._held.items(), *self._held_far.items())}
        self._held = {word: count for word, count in held.items() if word < self._limit}
        self._held_far = {word: count for word, count in held.items() if word >= self._limit}
        self._held_in_order = None
        self.events = deque(((event, word - by.step) for event, word in self.events), maxlen=_RECENT_EVENTS)

    def _check_right(self, word: int, what: str) -> None:
        if not self._has_right(word):
            self._refuse(word, what)

    def _has_right(self, word: int) -> bool:
        """Return True if `word`, which is not wide, is at or after a time received now or held."""
        if word < 0:  # before the anchor: guards would not show it
            return False
        guards = self.code.guards
        if len(self._received) + len(self._held) > FEW_WORDS_MAX:
            return self._has_right_among_many(word)
        for owned in self._received:
            if ((word | guards) - owned) & guards == guards:
                return True
        for owned in self._held:
            if ((word | guards) - owned) & guards == guards:
                return True
        return False

    def _has_far_right(self, word: int) -> bool:
        """Return True if `word`, which is wide, is at or after a far one that is held."""
        if word in self._held_far:
            return True
        shift = self.code.layout.shifts[0]
        # The epoch is a chain of its own, and a wide one is larger than its field.
        epoch, guards = word >> shift, self.code.guards & ((1 << shift) - 1)
        rest = word & ((1 << shift) - 1) | guards
        return any(
            owned >> shift <= epoch and (rest - (owned & ((1 << shift) - 1))) & guards == guards
            for owned in self._held_far
        )

    def _has_right_among_many(self, word: int) -> bool:
        """Return True if `word` is at or after a time received now or held, without a look at all of them."""
        guards = self.code.guards
        if len(self._received) <= FEW_WORDS_MAX:
            if any(((word | guards) - owned) & guards == guards for owned in self._received):
                return True
        else:
            received = self._received_minimal
            if received is None:
                received = minimal_words(np.array(sorted(self._received), np.int64), guards)
                self._received_minimal = received
            if antichain_is_beyond(received, received.shape[0], word, guards):
                return True
        if self._held_in_order is None:
            # `hold` and `release` keep it up to date from now on.
            self._held_in_order = OpenTimes(guards, self._held)
        return self._held_in_order.has_before(word)

    def _refuse(self, word: int, what: str) -> NoReturn:
        unpack = self.code.unpack_wide
        far = self._held_far if word >= self._limit else ()
        rights = sorted(unpack(owned) for owned in {*self._received, *self._held, *far})
        owns = " or ".join(map(str, rights[:_SHOWN_MAX])) or (
            "no time at all: it neither received nor holds one now"
        )
        if len(rights) > _SHOWN_MAX:
            owns += f" or one of {len(rights) - _SHOWN_MAX:,} others"
        recent = " · ".join(f"{event} {unpack(word)}" for event, word in self.events)
        raise TimeRegressionError(
            f"{self.title()} {what} at {unpack(word)}, but it may act only at or after "
            f"{owns}.\n"
            f"  the stage was built at {self.site}\n"
            f"  last events here: {recent or 'none'}"
        )
