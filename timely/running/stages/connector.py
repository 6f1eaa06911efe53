"""A connector on one worker: transform, shift, route, deliver.

A sender pays for each batch and connector what `send` does, in this order: the fused linear operators
(`transform`), the path summary on times (`keep`, `add`), the route, and one count change per part.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from progress.errors import MisuseError, PeerError
from progress.times.anchor import Rebase

from ...building.exchange import Broadcast, Expects, RecordRoute
from ...building.freeze import LoopLimit, PhysicalConnector
from ...dictionaries import Mark
from ...wire.batch import Batch, Large, Transform
from ...wire.routing import Routing, routing_among
from .iteration_counts import IterationCounts

LAST_ITERATIONS: Final = 6
"""The number of iterations before the limit from which on batches that go round are kept."""

_LAST_KEPT: Final = 24
"""The number of these batches that are kept: an iteration may have several."""


class Target(Protocol):
    """The target of a connector: a stage on the same worker, with its inbox."""

    inbox: list[tuple[int, int, int, Batch]]
    is_queued: bool
    is_patient: bool

    @property
    def stage(self) -> int:
        """Its index among the stages that run."""
        ...

    def title(self) -> str:
        """Return its name, as errors say it."""
        ...

    def check_arrived(self, location: int, port: int, batch: Batch, peer: int) -> None:
        """Check a batch of worker `peer` that has come in for it; raise `PeerError` if no worker may
        send it.
        """
        ...


class Carrier(Protocol):
    """Brings messages to inboxes here and to other workers; `instance.py` implements it."""

    @property
    def worker(self) -> int:
        """Index of this worker."""
        ...

    @property
    def workers(self) -> int:
        """The number of all workers."""
        ...

    @property
    def routing(self) -> Routing:
        """The routing: which worker has which keys, unless a vertex sets another one for a connector of
        its own.
        """
        ...

    @property
    def count(self) -> Callable[[int, int, int], None]:
        """Takes (location, word, delta): one change of an occurrence count."""
        ...

    @property
    def far_word(self) -> int:
        """The first word whose rows cannot enter yet by an input, nor by a way back of the root."""
        ...

    def enqueue(self, target: Target, port: int, location: int, word: int, batch: Batch) -> None:
        """Put a message into the inbox of `target`."""
        ...

    def send_data(self, peer: int, connector: int, word: int, batch: Batch) -> None:
        """Send a message to another worker."""
        ...

    def put_off(self, connector: int, word: int, batch: Batch) -> None:
        """Keep a message of this worker to itself until times count from an epoch that has room for it."""
        ...


class Connector:
    """From one output of a stage to one input of another, seen from the sending worker."""

    __slots__ = (
        "_before", "_carrier", "_doubtful", "_expects", "_far", "_is_divided", "_is_identity", "_last",
        "_late", "_limits", "_only", "_only_moves", "_placed", "add", "index", "iteration_counts", "keep",
        "location", "messages_sent", "port", "route", "routing", "rows_sent", "target", "transform",
    )  # fmt: skip

    def __init__(self, carrier: Carrier, spec: PhysicalConnector, target: Target, location: int) -> None:
        self._carrier = carrier
        self.index = spec.index
        self.location = location
        self.target = target
        self.port = spec.port
        self.keep = spec.keep
        self.add = spec.add
        self._is_identity = spec.is_identity
        self._limits = spec.limits
        self._late = spec.late
        self._only = spec.only
        self._far = carrier.far_word if spec.advances else None
        """By a way back of the root rows may run ahead of what words hold: from this word on they wait."""
        self._last: list[tuple[int, int, Batch]] = []
        self.transform = spec.transform
        self.iteration_counts: IterationCounts | None = None
        self._before: Transform | None = None
        if spec.counting is not None:
            self._before, self.transform = spec.counting.before, spec.counting.after
            self.iteration_counts = IterationCounts(spec.counting.limit)
        # Nothing else to do than to move times, which is the same if it is done twice.
        self._only_moves = spec.transform is None and not (
            spec.counting or spec.limits or spec.late or spec.only or spec.add
        )
        self.route = spec.route
        self._placed = spec.placed
        self._is_divided = (spec.route is not None or spec.placed is not None) and carrier.workers > 1
        # Found once: finding it for each message takes as long as a look at few rows.
        self._expects = _expecting(spec.route)
        self._doubtful = _doubtful(spec.route)
        listed = spec.placed
        self.routing = carrier.routing if listed is None else routing_among(carrier.workers, listed)
        self.rows_sent = 0
        self.messages_sent = 0

    def check(self, batch: Batch, peer: int) -> None:
        """Raise `PeerError` for a batch that worker `peer` may not send here."""
        if self._placed is not None and self._carrier.worker not in self._placed:
            raise PeerError(
                f"worker {peer} sent by connector {self.index} to a stage that is on workers "
                f"{list(self._placed)} only"
            )
        if self.route is None and self._placed is None:
            raise PeerError(
                f"worker {peer} sent by connector {self.index}, whose rows stay with their worker"
            )
        if self._expects is not None:
            self._expects.check(batch, peer)
        self.target.check_arrived(self.location, self.port, batch, peer)

    def confirm(self, batch: Batch, peer: int) -> None:
        """Raise `MisuseError` for a record of worker `peer` that this worker would send elsewhere."""
        if self._doubtful is not None:
            carrier = self._carrier
            title, placed = self.target.title(), self._placed
            routing = None if placed is None else self.routing
            self._doubtful.confirm(batch, title, peer, carrier.worker, carrier.workers, routing)

    def send(self, batch: Batch, word: int) -> None:
        """Carry `batch`, sent at `word`, to the workers of its rows."""
        carried = self.carry(batch, word)
        if carried is None:
            return
        if not self._is_divided and self._far is None:  # as in `_deliver`, without a call
            carrier = self._carrier
            carrier.count(self.location, carried[1], 1)
            carrier.enqueue(self.target, self.port, self.location, carried[1], carried[0])
            return
        self._deliver(*carried)

    def send_made(self, batch: Batch, word: int) -> None:
        """Carry a batch in the same way, without the transform, which was applied already."""
        carried = self._shifted(batch, word, batch)
        if carried is not None:
            self._deliver(*carried)

    def send_moved(self, batch: Batch, word: int) -> None:
        """Carry a batch in the same way, whose times, and word, are already those at which it arrives."""
        if not self._only_moves:
            self.send(batch, word)
            return
        self.rows_sent += batch.rows
        self.messages_sent += 1
        self._deliver(batch, word)

    def _deliver(self, batch: Batch, word: int) -> None:
        carrier = self._carrier
        if not self._is_divided:
            carrier.count(self.location, word, 1)
            if self._far is None or word < self._far:
                carrier.enqueue(self.target, self.port, self.location, word, batch)
            else:
                carrier.put_off(self.index, word, batch)
            return
        for peer, part in enumerate(self.divided(batch, word)):
            if part is None:
                continue
            if peer == carrier.worker:
                carrier.count(self.location, word, 1)
                if self._far is None or word < self._far:
                    carrier.enqueue(self.target, self.port, self.location, word, part)
                else:
                    carrier.put_off(self.index, word, part)
                continue
            for message in part.messages() if isinstance(part, Large) else (part,):
                carrier.count(self.location, word, 1)
                carrier.send_data(peer, self.index, word, message)

    def carry(self, batch: Batch, word: int) -> tuple[Batch, int] | None:
        """Return `batch`, sent at `word`, and its word as they arrive, or None if no rows do."""
        sent = batch
        if self.iteration_counts is not None:
            if self._before is not None:
                prepared = self._before(batch)
                if prepared is None or prepared.rows == 0:
                    return None
                batch = prepared
            self.iteration_counts.add((word & self.keep) + self.add, batch.rows)
        if self.transform is not None:
            transformed = self.transform(batch)
            if transformed is None or transformed.rows == 0:
                return None
            batch = transformed
        if self._is_identity:
            self.rows_sent += batch.rows
            self.messages_sent += 1
            return batch, word
        return self._shifted(batch, word, sent)

    def _shifted(self, batch: Batch, word: int, sent: Batch) -> tuple[Batch, int] | None:
        """Return a batch and its word at the times at which they arrive, or None if the loop stops before.
        `sent`: the batch before the transform.
        """
        if not self._is_identity:
            for shift, mask, last_of_all in self._late:
                if (word >> shift) & mask > last_of_all:
                    return None
            for shift, mask, value in self._only:
                if (word >> shift) & mask != value:
                    return None
            word = (word & self.keep) + self.add
            batch = batch.shifted(self.keep, self.add)
            for limit in self._limits:
                # Rows may be later than their envelope, in a loop whose rows come from another iteration.
                reached = max((word >> limit.shift) & limit.mask, batch.latest(limit.shift, limit.mask))
                if reached <= limit.iterations_max - LAST_ITERATIONS:
                    continue
                if not limit.stops:
                    self._note(limit, reached, batch.rows, sent)
                elif reached > limit.iterations_max:
                    rest = _until(batch, word, limit)
                    if rest is None:
                        return None
                    batch = rest
        self.rows_sent += batch.rows
        self.messages_sent += 1
        return batch, word

    def divided(self, batch: Batch, word: int) -> list[Batch | None]:
        """Return the rows of an arriving batch for each worker, by index; None where there are none."""
        if self.route is None:
            assert self._placed is not None
            return self._to_near(batch, self._placed)
        parts = self.route.split(batch, word, self.routing)
        if type(parts) is not list or len(parts) != self._carrier.workers:
            raise MisuseError(
                f"a route to {self.target.title()} divides a batch into a {type(parts).__name__}: `split` "
                f"returns a list with one batch, or None, for each of the {self._carrier.workers} workers"
            )
        return parts if self._placed is None else self._within(parts, self._placed)

    def _to_near(self, batch: Batch, placed: tuple[int, ...]) -> list[Batch | None]:
        """Return a batch for the same worker if that has the target, else for one of those that have."""
        worker = self._carrier.worker
        near = worker if worker in placed else placed[worker % len(placed)]
        return [batch if index == near else None for index in range(self._carrier.workers)]

    def _within(self, parts: list[Batch | None], placed: tuple[int, ...]) -> list[Batch | None]:
        """Return the parts for workers that have the target; raise `MisuseError` if a route of a user sends
        rows to another one.
        """
        beyond = [index for index, part in enumerate(parts) if part is not None and index not in placed]
        if beyond and not isinstance(self.route, Broadcast):
            raise MisuseError(
                f"a route to {self.target.title()} sends rows to worker {beyond[0]}, and the stage is on "
                f"workers {list(placed)} only: see `workers` of `stage`"
            )
        return [part if index in placed else None for index, part in enumerate(parts)]

    def count_iteration(self, word: int, rows: int) -> None:
        """Count rows that a compiled loop has sent round, for which nobody calls `carry`."""
        if self.iteration_counts is not None:
            self.iteration_counts.add(word, rows)

    @property
    def whole_transform(self) -> Transform | None:
        """All that it does to batches, except to their times."""
        return self.transform if self._before is None else self._transformed

    def _transformed(self, batch: Batch) -> Batch | None:
        prepared = batch if self._before is None else self._before(batch)
        if prepared is None or prepared.rows == 0 or self.transform is None:
            return prepared
        return self.transform(prepared)

    def rebase(self, by: Rebase) -> None:
        """Count words from a later anchor. Batches that went round last are kept by iteration."""
        if self.iteration_counts is not None:
            self.iteration_counts.rebase(by)

    def symbols(self, mark: Mark) -> None:
        """Show the words, perhaps symbols, of batches that went round last: an error may print them."""
        for _, _, batch in self._last:
            mark.holder(batch)

    def _note(self, limit: LoopLimit, reached: int, rows: int, sent: Batch) -> None:
        """Keep a batch that goes round shortly before the limit, for the text of the error, and raise that
        beyond the limit. It is kept as the stage has sent it: the transform may have changed the columns of
        the loop.
        """
        self._last = [*self._last, (reached, rows, sent)][-_LAST_KEPT:]
        if reached > limit.iterations_max:
            raise self._endless(limit)

    def _endless(self, limit: LoopLimit) -> MisuseError:
        sizes: dict[int, int] = {}
        for iteration, number, _ in self._last:
            sizes[iteration] = sizes.get(iteration, 0) + number
        rounds = ", ".join(f"{rows:,} to iteration {iteration:,}" for iteration, rows in sizes.items())
        last = [(iteration, batch) for iteration, _, batch in self._last]
        shown = f" {limit.describe(last)}" if limit.describe is not None else ""
        site = f" ({limit.site})" if limit.site else ""
        return MisuseError(
            f"the loop {limit.loop!r}{site} went past its limit of {limit.iterations_max:,} iterations: "
            f"{self.target.title()} would be sent to once more. Rows that went on, on this worker: {rounds}."
            f"{shown} Either it does not converge (some row comes and goes for ever, or values grow "
            "round a circle of the data), or its limit is too low: iterate(…, iterations_max=…), and "
            "level_bits of the dataflow if a counter has too few bits"
        )


def _until(batch: Batch, word: int, limit: LoopLimit) -> Batch | None:
    """Return the rows of `batch` that a loop that stops lets go on; None if none do."""
    if (word >> limit.shift) & limit.mask > limit.iterations_max:
        return None
    return batch.until(limit.shift, limit.mask, limit.iterations_max)


def _expecting(route: object) -> Expects | None:
    return route if isinstance(route, Expects) else None


def _doubtful(route: object) -> RecordRoute | None:
    return route if isinstance(route, RecordRoute) and route.is_doubtful else None
