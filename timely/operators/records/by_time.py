"""Vertices that wait until a time is complete, and then work on all its records.

Records of one key have to meet: the exchange in front of a vertex sees to that.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from copy import deepcopy
from math import nan
from typing import ClassVar, Final, TypeAlias

from progress.errors import MisuseError
from progress.times.timestamp import Timestamp

from ...wire.claims import shown
from ...wire.nesting import is_one_record
from ..vertex import Vertex

__all__ = ["AggregateVertex", "CountVertex", "Emit", "Fold", "StateMachineVertex", "Step"]

Fold: TypeAlias = Callable[[object, object], object]
"""Takes a state and a value, and returns the next state."""
Emit: TypeAlias = Callable[[object, object], object]
"""Takes a key and its last state, and returns a record."""
Step: TypeAlias = Callable[[object, object, object], object]
"""Takes a key, a value and a state, and returns the next state, and a list of records."""

_NEVER_CHANGE: Final = frozenset({int, float, bool, str, bytes, type(None)})


class CountVertex(Vertex):
    """Sends how many records of each time this worker has had, as (time, count)."""

    keeps: ClassVar[str] = "nothing"

    def __init__(self) -> None:
        self._counts: dict[Timestamp, int] = {}

    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        """Count the records."""
        if time not in self._counts:
            self.notify_at(time)
        self._counts[time] = self._counts.get(time, 0) + len(message)

    def on_notify(self, time: Timestamp) -> None:
        """Send the count."""
        self.send_by(0, [(time, self._counts.pop(time))], time)


class AggregateVertex(Vertex):
    """Folds the values of each key of a time, and sends (key, result), or what `emit` makes of these."""

    keeps: ClassVar[str] = "nothing"
    takes_only_records: ClassVar[bool] = True

    def __init__(
        self,
        fold: Fold,
        start: object,
        emit: Emit | None,
    ) -> None:
        self._fold = fold
        self._start = start
        self._emit = emit
        self._states: dict[Timestamp, dict[object, object]] = {}

    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        """Fold the values."""
        if time not in self._states:
            self._states[time] = {}
            self.notify_at(time)
        states = self._states[time]
        for key, value in (_pair_of(self, record, "aggregate") for record in message):
            before = states[key] if key in states else _begun(self._start)
            state = states[key] = self._fold(before, value)
            if state is None and isinstance(before, (list, dict, set)):
                raise MisuseError(
                    f"{self!r}: fold of aggregate changed its {type(before).__name__}, and returned None for "
                    f"the value {shown(value)}: it returns the next state"
                )

    def on_notify(self, time: Timestamp) -> None:
        """Send the results."""
        emit = self._emit
        states = self._states.pop(time)
        self.send_by(0, [*states.items()] if emit is None else [emit(*pair) for pair in states.items()], time)


class StateMachineVertex(Vertex):
    """Keeps a state for each key, over times. Values of complete times come in order of times; those of one
    key and time in the order in which they came in.
    """

    takes_only_records: ClassVar[bool] = True

    def __init__(self, step: Step, start: object) -> None:
        self._step = step
        self._start = start
        self._states: dict[object, object] = {}
        self._waiting: defaultdict[Timestamp, list[object]] = defaultdict(list)

    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        """Keep the values."""
        if time not in self._waiting:
            self.notify_at(time)
        self._waiting[time] += message

    def on_notify(self, time: Timestamp) -> None:
        """Let the values of a time go through the states."""
        sent: list[object] = []
        states = self._states
        for record in self._waiting.pop(time):
            key, value = _pair_of(self, record, "state_machine")
            before = states[key] if key in states else _begun(self._start)
            step = self._step(key, value, before)
            if not isinstance(step, tuple) or len(step) != 2 or is_one_record(step[1]):
                raise MisuseError(
                    f"{self!r}: the function of state_machine returned {shown(step)} for {shown(record)}; it "
                    "returns (new state, list of records to send), and None as the state forgets the key"
                )
            state, records = step
            if state is None:
                states.pop(key, None)
            else:
                states[key] = state
            if not isinstance(records, Iterable):
                raise MisuseError(
                    f"{self!r}: the function of state_machine returned the records {shown(records)} for "
                    f"{shown(record)}; it returns (new state, list of records to send)"
                )
            sent += records
        self.send_by(0, sent, time)


def _pair_of(vertex: Vertex, record: object, operator: str) -> tuple[object, object]:
    """Return key and value of a record; raise `MisuseError` if it is no pair."""
    if not (isinstance(record, (tuple, list)) and len(record) == 2):
        raise MisuseError(
            f"{vertex!r}: {operator} takes records of a key and a value, not {shown(record)}. Write "
            f"stream.map(lambda record: (key, value)).{operator}(…)"
        )
    key, value = record
    if type(key) is str or type(key) is int:  # fast path
        return key, value
    key = _one_of_equal(key)
    try:
        hash(key)
    except TypeError as error:
        raise MisuseError(
            f"{vertex!r}: the key of {shown(record)} cannot be looked up: {error}. A key of {operator} is "
            "None, a number, text, bytes, or a tuple of these"
        ) from None
    return key, value


def _one_of_equal(key: object) -> object:
    """Return the key that stands for all that `timely.by` numbers alike, and a dict does not: a list is the
    tuple as which it arrives on another worker, and all NaNs are one.
    """
    if isinstance(key, list) or type(key) is tuple:
        return tuple([_one_of_equal(entry) for entry in key])
    if isinstance(key, bytearray):
        return bytes(key)
    if isinstance(key, float) and key != key:
        return nan
    return key


def _begun(start: object) -> object:
    """Return a new state of a key: what `start` returns, if it is a function or a class, or a copy of it, so
    that keys share nothing that a function may change.
    """
    if type(start) in _NEVER_CHANGE:
        return start
    return start() if callable(start) else deepcopy(start)
