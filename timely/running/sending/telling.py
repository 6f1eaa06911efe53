"""How workers tell one another of their changes of counts when they do not do so after each step.

    eager    after each step, to all others: `Worker._tell_all`; nothing of this file is used
    demand   a worker holds its changes back until somebody's frontier can depend on them, and then tells all
    host     the workers of a host tell its first worker, the *hub*. It adds up what they tell, tells the hubs
             of other hosts, and its own workers what it has heard from all

Each holds back by the rule of `progress/tracking/accumulator.py`: a worker what it has done, a hub what its
group has done. With `demand` each worker is a group of one, and its own hub. Towards its own workers, its
*members*, a hub holds back what cannot move a frontier as the hub sees it: it alone tells them, so nobody
else can make up the difference.

A member applies its own changes at once. What it hears from its hub has them in it; the hub says how many of
its messages these are, and the member takes them off.

Messages: `progress_messages.py`. To members a third frame says for each worker of the group, in order, how
many of its messages are in this one that were in none before (u32 each).
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Iterable, Sequence
from itertools import chain

from progress.errors import InternalError, PeerError
from progress.tracking.accumulator import HELD_COUNT_MAX, Accumulator, increments_first, minus
from progress.tracking.broadcast import Broadcaster
from progress.tracking.count_changes import Change

from ...wire.batch import Frame
from ..checking.snapshot import first_epochs
from ..instance import Instance
from ..progress_messages import ProgressHeader, write_progress_header
from .modes import PROGRESS_MODES

__all__ = ["Letter", "Telling", "telling_of"]

Letter = tuple[Iterable[int], Sequence[Frame]]
"""Other workers, and the message that each of them is to get."""


def telling_of(mode: str, index: int, workers: int, per_host: int = 0) -> Telling | None:
    """Return how a worker tells others of its progress in a mode of `PROGRESS_MODES`; `per_host`: how many
    workers a host has; 0: all are on one host.
    """
    if mode not in PROGRESS_MODES:
        raise InternalError(f"progress mode {mode!r}: there are {', '.join(PROGRESS_MODES)}")
    if mode == "eager" or workers == 1:
        return None
    return Telling(index, workers, 1 if mode == "demand" else per_host or workers)


class Telling:
    """What one worker holds back, of all its dataflows.

    per_host: how many workers a host has; the last host may have fewer. 1: every worker tells all others.
    """

    def __init__(self, index: int, workers: int, per_host: int) -> None:
        if not 0 <= index < workers or per_host < 1:
            raise InternalError(f"worker {index} of {workers}, {per_host} on each host")
        self.index = index
        self.workers = workers
        self.per_host = min(per_host, workers)
        hub = index - index % per_host
        group = range(hub, min(hub + per_host, workers))
        self.hub = hub
        self.group = group
        self.is_hub = index == hub
        self.members = tuple(group[1:]) if self.is_hub else ()
        """The workers to which it passes on what it hears."""
        self.above = tuple(range(0, workers, per_host)) if self.is_hub else (hub,)
        self.above = tuple(peer for peer in self.above if peer != index)
        """The workers to which it tells what its group, or it itself, has done."""
        self._flows: dict[int, _HeldBack] = {}

    @property
    def title(self) -> str:
        """The mode, as other workers must have it, too."""
        return "demand" if self.per_host == 1 else f"host, {self.per_host} workers each"

    def begin(self, instance: Instance, broadcaster: Broadcaster) -> None:
        """Let a dataflow take part; it has counted nothing yet."""
        frozen, epoch = instance.frozen, instance.first_epoch
        group = self.group if self.is_hub else (self.index,)
        is_held_back = any(source.is_held_back for source in instance.sources)
        points = [first_epochs(frozen, each, epoch, holds_back_sources=is_held_back) for each in group]
        rights = [(*point, 1) for point in chain.from_iterable(points)]
        shift = frozen.layout.shifts[0]
        down = Broadcaster(self.index, self.workers, None, instance.anchor, shift)
        held = Accumulator(len(frozen.stages), rights)
        self._flows[instance.index] = _HeldBack(self, held, broadcaster, down)

    def end(self, number: int) -> None:
        """Forget a dataflow."""
        self._flows.pop(number, None)

    def note(self, instance: Instance, changes: Sequence[Change]) -> None:
        """Take in changes that this worker has made and applied."""
        self._flows[instance.index].note(_from_zero(instance, changes))

    def hear(self, instance: Instance, peer: int, frames: Sequence[memoryview]) -> list[Change]:
        """Return the changes that a message of another worker brings; they are to be applied now."""
        flow, is_passed_on = self._flows[instance.index], not self.is_hub
        if is_passed_on and peer != self.hub:
            raise PeerError(f"worker {peer} told progress to worker {self.index}, whose hub is {self.hub}")
        if len(frames) != 2 + is_passed_on:
            raise PeerError(
                f"progress of worker {peer} came as {len(frames)} frames instead of {2 + is_passed_on}: all "
                "workers need the same --progress"
            )
        changes = flow.up.on_message(frames[1], may_be_empty=is_passed_on)
        if not is_passed_on:
            if self.members:
                flow.pass_on(peer, _from_zero(instance, changes))
            return changes
        base = _base(instance)
        others = flow.without_own(_from_zero(instance, changes), frames[2], peer)
        return [(location, word - base, delta) for location, word, delta in others]

    def must_tell(self, instance: Instance) -> bool:
        """Return True if somebody may wait for something that is held back."""
        flow = self._flows[instance.index]
        return self._must_tell_above(flow, instance) or self._must_pass_on(flow, instance)

    def letters(self, instance: Instance) -> list[Letter]:
        """Return the messages that are to be sent now, each with those who get it."""
        flow, result = self._flows[instance.index], list[Letter]()
        header = write_progress_header(ProgressHeader(instance.index))
        if self._must_tell_above(flow, instance):
            result.append((self.above, [header, flow.tell_above(not self.is_hub)]))
        if self._must_pass_on(flow, instance):
            result.append((self.members, [header, *flow.tell_members()]))
        return result

    def _must_tell_above(self, flow: _HeldBack, instance: Instance) -> bool:
        held = flow.held
        if not held.held:
            return False
        candidates = held.candidates()
        return held.is_full or (bool(candidates) and not instance.are_led_to(candidates))

    def _must_pass_on(self, flow: _HeldBack, instance: Instance) -> bool:
        lowered = flow.lowered
        if not lowered:
            return False
        return len(flow.passed) > HELD_COUNT_MAX or not instance.are_led_to(list(lowered), weakly=True)

    def held_at(self, number: int) -> dict[tuple[int, int], int]:
        """Return the changes that no other worker has been told, by pointstamp; words count from epoch 0."""
        return dict(self._flows[number].held.held)

    def compared(self) -> object:
        """Return all that decides what it will do."""
        return [
            (
                number,
                sorted(flow.held.held.items()),
                sorted(flow.passed.items()),
                sorted(flow.lowered),
                sorted(flow.heard.items()),
                [sorted(sent) for sent in flow.sent],
            )
            for number, flow in sorted(self._flows.items())
        ]


class _HeldBack:
    """What is held back of one dataflow.

    held      for those above: what the group has done, or of a member, what it has done
    passed    of a hub: for its members, everything that it has heard or done
    lowered   pointstamps that something in `passed` has lowered, even if something else has raised them
    heard     of a hub: how many messages of each member are in `passed`
    sent      of a member: the messages that have not come back to it in one of its hub
    """

    def __init__(self, telling: Telling, held: Accumulator, up: Broadcaster, down: Broadcaster) -> None:
        self.held, self.up, self.down = held, up, down
        self._has_above, self._group = bool(telling.above), telling.group
        self._own, self._has_members = telling.index - telling.hub, bool(telling.members)
        self.passed: dict[tuple[int, int], int] = {}
        self.lowered: set[tuple[int, int]] = set()
        self.heard: dict[int, int] = {}
        self.sent: deque[list[Change]] = deque()

    def note(self, changes: Sequence[Change]) -> None:
        if self._has_above:
            self.held.add(changes)
        if self._has_members:
            self._pass_on(changes)

    def pass_on(self, peer: int, changes: Sequence[Change]) -> None:
        """Take in what a member, or another hub, has told."""
        if peer in self._group:
            self.heard[peer] = self.heard.get(peer, 0) + 1
            if self._has_above:
                self.held.add(changes)
        self._pass_on(changes)

    def _pass_on(self, changes: Sequence[Change]) -> None:
        passed = self.passed
        for location, word, delta in changes:
            key = location, word
            passed[key] = passed.get(key, 0) + delta
            if delta < 0:
                self.lowered.add(key)

    def tell_above(self, keeps: bool) -> Frame:
        changes = self.held.take()
        if keeps:
            self.sent.append(changes)
        return self.up.on_held(changes)

    def tell_members(self) -> tuple[Frame, Frame]:
        changes, counts = increments_first(self.passed), [self.heard.get(peer, 0) for peer in self._group]
        self.passed, self.lowered, self.heard = {}, set(), {}
        return self.down.on_held(changes), struct.pack(f"<{len(counts)}I", *counts)

    def without_own(self, changes: list[Change], counts: memoryview, peer: int) -> list[Change]:
        """Return changes without those that this worker has made itself, by the counts of the third frame."""
        size = len(self._group)
        count = struct.unpack_from("<I", counts, 4 * self._own)[0] if len(counts) == 4 * size else -1
        if not 0 <= count <= len(self.sent):
            raise PeerError(
                f"worker {peer} passed on progress with {count} messages of a worker that has "
                f"{len(self.sent)} under way, in {len(counts)} bytes for {size} workers"
            )
        return minus(changes, [self.sent.popleft() for _ in range(count)])


def _base(instance: Instance) -> int:
    return instance.anchor.epoch << instance.frozen.layout.shifts[0]


def _from_zero(instance: Instance, changes: Iterable[Change]) -> list[Change]:
    base = _base(instance)
    return [(location, word + base, delta) for location, word, delta in changes]
