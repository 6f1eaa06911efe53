"""How workers tell one another their changes of counts.

Every worker sends every other worker the consolidated changes of each of its steps, as one indivisible
payload, in the order of the steps. Between two workers payloads arrive in the order in which they were sent.

Why that suffices: a step's decrements (a message consumed) come in one payload with the increments that they
justify (the messages that this one caused). So there is no moment at which a worker has heard that an event
is over but not what the event caused. Between its view and the truth there may be delay, never optimism. To
send decrements before their increments, to split a payload, or to let one overtake another would break
exactly that.

A payload, little-endian:

    magic "NPRG" · version u16 · worker u16 · sequence u64 · anchor i64 · shift u32 · near u32
    then (location, word, delta) i64 ×3, `near` times, then (location, epoch, rest, delta) i64 ×4, repeated

Words count from the sender's anchor (`anchor.py`); the receiver converts them to its own. `shift` is the
position of the epoch in them. Changes of the second kind are those of wide words: the epoch, and the bits
below it.

Pure: takes changes and payloads, returns payloads and changes. Sends nothing.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from itertools import chain
from typing import Final

from progress.errors import MisuseError, PeerError
from progress.times.anchor import Anchor
from progress.tracking.count_changes import Change

MAGIC: Final = b"NPRG"
VERSION: Final = 2
WORKERS_MAX: Final = 65_535

_HEADER: Final = struct.Struct("<4sHHQqII")
_CHANGE: Final = struct.Struct("<3q")
_WIDE: Final = struct.Struct("<4q")
_WORD_MAX: Final = (1 << 63) - 1
assert _HEADER.size == 32 and _CHANGE.size == 24 and _WIDE.size == 32, "the format has no padding"


def changes_in(payload: bytes | bytearray | memoryview) -> list[Change]:
    """Return the changes in a well-formed payload for any receiver: to look at what is under way.

    Their words count from epoch 0, and may be wide.
    """
    anchor, shift, changes = _unpack(payload)
    return [(location, word + (anchor << shift), delta) for location, word, delta in changes]


def _unpack(payload: bytes | bytearray | memoryview) -> tuple[int, int, list[Change]]:
    """Return the sender's anchor, the position of the epoch, and the changes with the sender's words."""
    _, _, _, _, anchor, shift, near = _HEADER.unpack_from(payload)
    body = memoryview(payload)[_HEADER.size :]
    changes: list[Change] = list(_CHANGE.iter_unpack(body[: near * _CHANGE.size]))
    if near * _CHANGE.size != len(body):
        for location, epoch, rest, delta in _WIDE.iter_unpack(body[near * _CHANGE.size :]):
            changes.append((location, (epoch << shift) | rest, delta))
    return anchor, shift, changes


class Broadcaster:
    """One worker's end of the protocol: numbers the payloads that it sends, and checks those that it
    receives.

        worker, workers   index of this worker, and number of workers
        locations         number of locations of the dataflow; None: not checked
        anchor, shift     the epoch from which its words count, and the position of the epoch in them

    Invariant: the payloads of a peer have the sequence numbers 0, 1, 2, … without gap.
    """

    def __init__(
        self,
        worker: int,
        workers: int,
        locations: int | None = None,
        anchor: Anchor | None = None,
        shift: int = 0,
    ) -> None:
        if not 0 <= worker < workers <= WORKERS_MAX:
            raise MisuseError(f"worker {worker} of {workers}: at most {WORKERS_MAX}, counted from 0")
        assert locations is None or locations > 0, "a dataflow without locations has nothing to tell"
        self.worker = worker
        self.workers = workers
        self._locations = locations
        self._anchor = Anchor() if anchor is None else anchor
        self._shift = shift
        self._sent = 0
        self._received = [0] * workers
        assert len(self._received) == self.workers

    def on_step_done(self, changes: Sequence[Change], epoch: int | None = None) -> bytes | None:
        """Return the payload that every peer must receive, in this order; None if there is nothing to send.

        `changes` are as from `CountChanges.consolidated`. The caller applies them to its own tracker at once.
        `epoch`: that from which their words count, if it is not the anchor; then a payload may be empty.
        """
        if epoch is None:
            if not changes or self.workers == 1:
                return None
            epoch = self._anchor.epoch
        near: Sequence[Change] = changes
        wide = b""
        # a list comprehension is faster than a generator for few
        if changes and max([change[1] for change in changes]) > _WORD_MAX:
            near = [change for change in changes if change[1] <= _WORD_MAX]
            rest = (1 << self._shift) - 1
            wide = b"".join(
                _WIDE.pack(location, word >> self._shift, word & rest, delta)
                for location, word, delta in changes
                if word > _WORD_MAX
            )
        header = _HEADER.pack(MAGIC, VERSION, self.worker, self._sent, epoch, self._shift, len(near))
        payload = header + struct.pack(f"<{3 * len(near)}q", *chain.from_iterable(near)) + wide
        assert len(payload) == _HEADER.size + len(near) * _CHANGE.size + len(wide), (
            "a change is (location, word, delta)"
        )
        assert 0 not in [change[2] for change in changes], f"changes are consolidated: {changes}"
        self._sent += 1
        return payload

    def on_held(self, changes: Sequence[Change]) -> bytes:
        """Return the payload of changes that were held back (`accumulator.py`), whose words count from epoch
        0; also of none. They may be earlier than the anchor, which has moved since.
        """
        epoch = min([self._anchor.epoch, *(word >> self._shift for _, word, _ in changes)])
        base = epoch << self._shift
        payload = self.on_step_done(
            [(location, word - base, delta) for location, word, delta in changes], epoch
        )
        assert payload is not None
        return payload

    def on_message(self, payload: bytes | bytearray | memoryview, may_be_empty: bool = False) -> list[Change]:
        """Return the changes in a peer's payload.

        Raises `PeerError` if it is malformed or not the next one of that peer. `may_be_empty`: changes of
        several workers may have cancelled out, and that is news.
        """
        if len(payload) < _HEADER.size:
            raise PeerError(
                f"worker {self.worker} got {len(payload)} bytes as progress; a header alone has 32"
            )
        magic, version, sender, sequence, anchor, shift, near = _HEADER.unpack_from(payload)
        if magic != MAGIC or version != VERSION:
            raise PeerError(
                f"worker {self.worker} got progress of another form: magic {magic!r} version {version}, "
                f"expected {MAGIC!r} version {VERSION}; all workers must run the same release"
            )
        if not 0 <= sender < self.workers or sender == self.worker:
            raise PeerError(f"worker {self.worker} of {self.workers} got progress with the sender {sender}")
        if sequence != self._received[sender]:
            raise PeerError(
                f"worker {self.worker} got progress {sequence} of worker {sender}, where "
                f"{self._received[sender]} was next: a payload was lost, doubled or overtaken"
            )
        size = len(payload) - _HEADER.size
        if (
            (size == 0 and not may_be_empty)
            or near * _CHANGE.size > size
            or (size - near * _CHANGE.size) % _WIDE.size != 0
        ):
            raise PeerError(
                f"progress {sequence} of worker {sender} has {size} bytes of changes, not {near} × 24 + "
                "n × 32, more than none"
            )
        if shift != self._shift or anchor < 0:
            raise PeerError(
                f"progress {sequence} of worker {sender} has words with the epoch at bit {shift} that count "
                f"from epoch {anchor}; here it is at bit {self._shift}"
            )
        _, _, changes = _unpack(payload)
        if anchor != self._anchor.epoch:
            ahead = (anchor - self._anchor.epoch) << shift
            changes = [(location, word + ahead, delta) for location, word, delta in changes]
        self._check_changes(changes, sender, sequence)
        assert self._received[self.worker] == 0, "no worker sends to itself"
        self._received[sender] = sequence + 1
        return changes

    def _check_changes(self, changes: list[Change], sender: int, sequence: int) -> None:
        """Raise `PeerError` for a location that does not exist, a word that is no time, a zero change."""
        assert sender != self.worker, "no worker sends to itself"
        stop = self._locations
        for change in changes:
            location, word, delta = change
            if location < 0 or (stop is not None and location >= stop) or word < 0 or delta == 0:
                raise PeerError(
                    f"progress {sequence} of worker {sender} has {change} as (location, word, delta); "
                    f"locations are 0 to {'?' if stop is None else stop - 1}, words ≥ 0, deltas not 0"
                )

    def check_invariants(self) -> None:
        """Assert that counts are possible."""
        assert self._sent >= 0, self._sent
        assert len(self._received) == self.workers, self._received
        assert all(received >= 0 for received in self._received), self._received
        assert self._received[self.worker] == 0, "no worker sends to itself"
