"""Capabilities: the right of a vertex to act at a time later on, as an object.

    cap = self.hold(time)            nobody counts `time` as over from here on
    cap.downgrade(later)             now `later` is held, and `time` no more
    other = cap.delay(later)         a second one
    cap.drop()                       or `with self.hold(time) as cap:`

A capability remembers its time as a tuple, which stays the same when the words of times move. One that
nothing refers to any more, and that was not dropped, is an error: its time would never be over. It is not
dropped by itself, since the moment at which Python frees an object is not the same on each run, and outputs
would be complete earlier or later by chance.

Source: the capabilities of timely dataflow, which its language drops where their scope ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from operator import index
from types import TracebackType
from typing import TYPE_CHECKING, NoReturn, Protocol

from progress.errors import MisuseError, TimeRegressionError
from progress.times.time_words import TimeCode
from progress.times.timestamp import Timestamp

from ..user_code.call_site import CallSite, call_site
from ..user_code.short_traces import short_lookup
from ..user_code.vertex_spellings import OF_CAPABILITIES

__all__ = ["Capability", "HoldsTimes", "KeepsPositions"]


class HoldsTimes(Protocol):
    """A vertex, as its capabilities see it; `vertex.py` implements it."""

    @property
    def code(self) -> TimeCode:
        """See `Vertex.code`."""
        ...

    def hold_word(self, word: int) -> None:
        """See `Vertex.hold_word`."""
        ...

    def release_word(self, word: int) -> None:
        """See `Vertex.release_word`."""
        ...

    def word_at(self, time: Timestamp, call: str, *, may_be_far: bool = False) -> int:
        """See `Vertex.word_at`."""
        ...

    def lose(self, time: Timestamp, site: CallSite) -> None:
        """See `Vertex.lose`."""
        ...


class KeepsPositions(Protocol):
    """A source, as the capabilities of its vertex see it; `running/stages/source_runner.py` implements it."""

    def give_position(self, position: object) -> None:
        """Take a position, for the release that follows."""
        ...


class Capability:
    """The right of one vertex to send, hold and ask at a time or later; `Vertex.hold` makes it.

    All calls are for the thread and the callbacks of the vertex, as those of the vertex are.
    """

    __slots__ = ("_is_held", "_keeper", "_site", "_time", "_vertex", "positions")

    def __init__(self, vertex: HoldsTimes, time: Timestamp, keeper: KeepsPositions | None = None) -> None:
        """`keeper`: the source that gets the positions, if the vertex is that of one."""
        self._is_held = False
        self._keeper = keeper
        self.positions: Sequence[object] = ()
        """Of a source that goes on after a restart: the positions that its workers gave last, older ones
        first. Other capabilities have none."""
        self._vertex = vertex
        self._site: CallSite = call_site()
        vertex.hold_word(vertex.word_at(time, "hold(time)", may_be_far=True))
        self._time: Timestamp = _of_plain_numbers(time)
        self._is_held = True

    @classmethod
    def granted(
        cls,
        vertex: HoldsTimes,
        time: Timestamp,
        site: CallSite,
        keeper: KeepsPositions,
        positions: Sequence[object] = (),
    ) -> Capability:
        """Return a capability of a right that counts already; `site`: the line of the program that asks for
        it.
        """
        capability = cls.__new__(cls)
        capability._vertex, capability._site, capability._time = vertex, site, time
        capability._keeper, capability.positions, capability._is_held = keeper, positions, True
        return capability

    @property
    def time(self) -> Timestamp:
        """The time that it holds, or has held."""
        return self._time

    @property
    def is_held(self) -> bool:
        """False once it was dropped."""
        return self._is_held

    @property
    def site(self) -> CallSite:
        """The line that has made it."""
        return self._site

    def delay(self, time: Timestamp) -> Capability:
        """Return another capability, at `time`, which is the same or later; this one stays.

        Raises `TimeRegressionError` for an earlier time, or one that cannot be compared.
        """
        self._check(time, "delay")
        return Capability(self._vertex, time, self._keeper)

    def downgrade(self, time: Timestamp, *, position: object = None) -> None:
        """Hold `time`, which is the same or later, and no longer the time before.

        `position`, of a source in a durable cluster: where it goes on after a restart, behind all that it has
        sent by now on this worker. It is plain data, which the restarted source gets in `positions`.

        Raises `TimeRegressionError` for an earlier time, or one that cannot be compared.
        """
        word = self._check(time, "downgrade")
        vertex = self._vertex
        self._give(position)
        vertex.hold_word(word)
        try:
            vertex.release_word(vertex.code.pack_wide(self._time))
        except BaseException:  # a position is missing; the vertex may catch this
            vertex.release_word(word)
            raise
        self._time = _of_plain_numbers(time)

    def drop(self, *, position: object = None) -> None:
        """Give up the right. Dropping it again does nothing, nor does dropping it when its dataflow has ended
        or its cluster is closed, which has taken all rights. `position`: see `downgrade`.
        """
        if self._is_held:
            self._give(position)
            self._vertex.release_word(self._vertex.code.pack_wide(self._time))
            self._is_held = False

    def _give(self, position: object) -> None:
        if position is None:
            return
        if self._keeper is None:
            raise MisuseError(
                f"{self._vertex!r} gives a position with a capability at {self._time}, made at {self._site}: "
                "only a source has positions. Give them with the capability that on_open has got, or with "
                "one that was made of it by delay()"
            )
        self._keeper.give_position(position)

    def _check(self, time: Timestamp, call: str) -> int:
        """Return the word of a time at which it gives a right; raise if it gives none there."""
        vertex = self._vertex
        if not self._is_held:
            raise MisuseError(
                f"{vertex!r} calls {call}({time!r:.80}) of a capability at {self._time}, made at "
                f"{self._site}, which was dropped: it gives no right any more"
            )
        word = vertex.word_at(time, f"{call}(time)", may_be_far=True)
        if not vertex.code.shape.less_equal(self._time, tuple(time)):
            raise TimeRegressionError(
                f"{vertex!r} calls {call}({time!r:.80}) of a capability at {self._time}, made at "
                f"{self._site}: it gives a right at {self._time} or later only"
            )
        return word

    def __enter__(self) -> Capability:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.drop()
            return
        with suppress(MisuseError):  # a position is missing, and what the callback has raised says why
            self.drop()

    def __copy__(self) -> NoReturn:
        raise MisuseError(
            f"{self._vertex!r} has a capability at {self._time}, made at {self._site}, which is copied: "
            "the two would drop one right twice. Write held.delay(held.time) for a second one"
        )

    def compared(self) -> object:
        """Return all that decides what it will do: see `Vertex.compared`."""
        return self._time, self._is_held

    if not TYPE_CHECKING:

        @short_lookup
        def __getattr__(self, name: str) -> object:
            same = OF_CAPABILITIES.same(self, name)
            if same is None:
                missing = f"a capability has no {name!r}"
                raise AttributeError(OF_CAPABILITIES.message(missing, name, dir(Capability)))
            return same

    def __repr__(self) -> str:
        return f"Capability({self._time}{'' if self._is_held else ', dropped'})"

    def __del__(self) -> None:
        if getattr(self, "_is_held", False):
            self._vertex.lose(self._time, self._site)


def _of_plain_numbers(time: Timestamp) -> Timestamp:
    """Return a time whose numbers, perhaps of NumPy, are of Python: these have no size."""
    return tuple(index(number) for number in time)
