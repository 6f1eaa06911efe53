"""Deliveries: the names of those that an input has taken, and the rows staged for those that wait for a
decision.

A delivery has a name, (writer, sequence), and counts once. There are three series of numbers, independent of
one another:

    open     rows for whichever epoch is open. The numbers of a writer follow one another, so that a few
             intervals hold all of them, and a delivery repeated an hour later counts once
    epochs   rows for epochs that the caller names, such as those of a task of Spark. Any numbers, in any
             order, from 0 in each epoch
    batches  rows of the tasks of a query, in batches 0, 1, 2, …; the query is the writer

Rows count at once, or they are *staged*, in parts: they belong to no epoch until a decision of worker 0
names them (`worker/orders.py`). A large insertion has parts on every worker. A batch has *attempts*: an
attempt is one run of one task. A task may run again, or twice at once, and only at the end does the driver
know which runs count. A staged insertion is one attempt, without a name.

Laws:
  1. Staged rows enter if and only if the decision about their delivery names their attempt, or, of an
     insertion, counts their part.
  2. A delivery is taken once. Rows staged for it afterwards, and a repeated decision, change nothing. Only
     the last batch of a query may come again, with the same number of rows. An earlier batch, or another
     stream under the same name, has numbers of another life, and is refused.
  3. A decision leaves nothing staged of its query for its batch or an earlier one.
  4. An attempt that a commit check has found stays staged until the decision comes, unless it is dropped by
     its own name, which means that the decision will not come. (A driver that gives up a batch does not
     know of another driver that is about to commit it, nor the result of a commit without an answer.)
  5. A decision comes so soon after all parts were there that no worker has dropped any, or it is refused.
     Otherwise a commit that waits while worker 0 computes would take only the rows that are left.

A name is forgotten when nobody can ask for it any more:

    open     writers beyond `WRITERS_MAX`, those not heard of for longest first
    epochs   when the next but one epoch is sealed: a task that runs again just after a seal hears
             "repetition" and not "sealed"
    batches  never, since a forgotten batch could count again: a query too many is refused. Only queries that
             write once (`WRITES_ONCE`), whose names nobody else has, are forgotten, the oldest first
    staged   an insertion when its client was not heard of for twice the time after which worker 0 refuses
             it; an attempt, whose driver may be gone for good, after `ATTEMPT_SECONDS_MAX`
"""

from __future__ import annotations

import heapq
import time
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from ...errors import MisuseError
from ...limits import (
    ATTEMPT_SECONDS_MAX,
    GAPS_MAX,
    QUERIES_MAX,
    STAGED_BYTES_MAX,
    STAGED_SECONDS_MAX,
    WRITERS_MAX,
)
from ...wire.requests import ONE_ATTEMPT, WRITES_ONCE
from .folded import Reread, Waiting
from .names import DeliveryName

__all__ = ["COMMIT_SECONDS_MAX", "Deliveries", "IntervalSet", "StagedPart", "TakenNumbers"]

COMMIT_SECONDS_MAX: Final = ATTEMPT_SECONDS_MAX * 3 / 4
"""How long after the check a commit is accepted: no worker may drop rows before it hears of the commit."""


class StagedPart(NamedTuple):
    """Rows that were staged together; `word` is their time for now."""

    word: int
    batches: list[Waiting]
    size_bytes: int
    rows: int
    """As the client counted them."""


@dataclass
class _Attempt:
    """The parts of one attempt that are here, and when its client was last heard of."""

    heard_at: float
    parts: dict[int, StagedPart] = field(default_factory=dict)
    is_checked: bool = False


class IntervalSet:
    """A set of whole numbers, as intervals: small while they follow one another, in any order."""

    __slots__ = ("_firsts", "lasts", "next")

    def __init__(self) -> None:
        self._firsts: list[int] = []
        self.lasts: list[int] = []
        """The last number of each interval."""
        self.next: int | None = None
        """The number right behind the last one; None if there is none."""

    def __contains__(self, number: int) -> bool:
        at = bisect_right(self._firsts, number) - 1
        return at >= 0 and number <= self.lasts[at]

    @property
    def gaps(self) -> int:
        """The number of gaps between the numbers."""
        return max(0, len(self._firsts) - 1)

    def add(self, number: int) -> None:
        """Put a number in; a second time does nothing."""
        if number == self.next:  # Fast path: numbers follow one another.
            self.lasts[-1] = number
            self.next = number + 1
            return
        at = bisect_right(self._firsts, number) - 1
        if at >= 0 and number <= self.lasts[at]:
            return
        joins_left = at >= 0 and self.lasts[at] == number - 1
        joins_right = at + 1 < len(self._firsts) and self._firsts[at + 1] == number + 1
        if joins_left and joins_right:
            self.lasts[at] = self.lasts.pop(at + 1)
            del self._firsts[at + 1]
        elif joins_left:
            self.lasts[at] = number
        elif joins_right:
            self._firsts[at + 1] = number
        else:
            self._firsts.insert(at + 1, number)
            self.lasts.insert(at + 1, number)
        self.next = self.lasts[-1] + 1

    def cover(self, first: int, last: int) -> None:
        """Put all numbers from `first` to `last` in."""
        at = bisect_left(self._firsts, first)
        if at and self.lasts[at - 1] >= first - 1:
            at -= 1
            first = self._firsts[at]
        stop = bisect_right(self._firsts, last + 1)
        last = max([last, *self.lasts[at:stop]])
        self._firsts[at:stop], self.lasts[at:stop] = [first], [last]
        self.next = self.lasts[-1] + 1

    def intervals(self) -> list[tuple[int, int]]:
        """Return the first and the last number of each interval, ascending."""
        return [*zip(self._firsts, self.lasts, strict=True)]

    def compared(self) -> object:
        """Return the intervals; `next` follows from them."""
        return self._firsts, self.lasts


class TakenNumbers(IntervalSet):
    """The sequences of one writer that were taken for whichever epoch was open."""

    __slots__ = ("epoch",)

    def __init__(self) -> None:
        super().__init__()
        self.epoch = -1
        """The last epoch that one of these deliveries has entered; -1: none."""


@dataclass
class _Query:
    """The last committed batch of a query, the number of its rows here, and the stream that it came from."""

    last: int
    rows: int = 0
    stream: str | None = None


class Deliveries:
    """The deliveries to the input `name` on one worker."""

    def __init__(
        self,
        name: str,
        clock: Callable[[], float] = time.monotonic,
        *,
        writers_max: int = WRITERS_MAX,
        gaps_max: int = GAPS_MAX,
        queries_max: int = QUERIES_MAX,
    ) -> None:
        self._name = name
        self._clock = clock
        self._writers_max = writers_max
        self._gaps_max = gaps_max
        self._queries_max = queries_max
        self.writers: OrderedDict[str, TakenNumbers] = OrderedDict()
        """What was taken of each writer; the one that was heard last is the last."""
        self._in_epoch: dict[int, dict[str, IntervalSet]] = {}
        self.named_epochs: list[int] = []
        """The epochs with remembered deliveries, as a heap."""
        self.first_epoch = 0
        """The first epoch whose names are all remembered."""
        self._last_epoch_of: dict[DeliveryName, int] = {}
        """The last epoch of each delivery that has rows of several epochs."""
        self._ending_in: dict[int, list[DeliveryName]] = {}
        """These deliveries by that epoch: a seal must not look through all of them."""
        self._queries: dict[str, _Query] = {}
        self._once: OrderedDict[str, int] = OrderedDict()
        """The batch of each query that writes once."""
        self._staged: dict[tuple[str, int, str], _Attempt] = {}
        self.staged_bytes = 0
        self.on_drop: Callable[[DeliveryName, str], None] | None = None
        """Is called with each attempt that is dropped without a decision."""

    # Deliveries for whichever epoch is open.

    def take_next(self, writer: str, sequence: int, epoch: int) -> bool:
        """If a delivery is right behind those of its writer, so that it is new and leaves no gap, note that
        it has entered `epoch`, and return True. Else return False.
        """
        numbers = self.writers.get(writer)
        if numbers is None or numbers.next != sequence:
            return False
        self.writers.move_to_end(writer)
        numbers.lasts[-1] = sequence
        numbers.next = sequence + 1
        if epoch > numbers.epoch:
            numbers.epoch = epoch
        return True

    def is_taken(self, name: DeliveryName) -> bool:
        """Return True if a delivery was taken, and is not forgotten."""
        numbers = self.writers.get(name.writer)
        return numbers is not None and name.sequence in numbers

    def entered_by(self, name: DeliveryName) -> int | None:
        """Return the last epoch that deliveries of its writer have entered, if this delivery was taken and
        is not forgotten; else None.
        """
        numbers = self.writers.get(name.writer)
        return numbers.epoch if numbers is not None and name.sequence in numbers else None

    def is_new(self, name: DeliveryName) -> bool:
        """Return True if a delivery was not taken yet. Raise `MisuseError` if its number leaves a gap
        too many.
        """
        writer, sequence = name
        numbers = self.writers.get(writer)
        if numbers is None:
            return True
        if sequence in numbers:
            return False
        if numbers.gaps >= self._gaps_max and not (sequence - 1 in numbers or sequence + 1 in numbers):
            raise MisuseError(
                f"writer {writer!r} has left {numbers.gaps:,} gaps in the numbers of its insertions: number "
                "them 0, 1, 2, …, or take another name for the writer"
            )
        return True

    def take(self, name: DeliveryName, epoch: int) -> None:
        """Remember that a delivery has entered `epoch`."""
        writer, sequence = name
        numbers = self.writers.get(writer)
        if numbers is not None:
            self.writers.move_to_end(writer)
        else:
            numbers = self.writers[writer] = TakenNumbers()
            if len(self.writers) > self._writers_max:
                self.writers.popitem(last=False)
        numbers.add(sequence)
        numbers.epoch = max(numbers.epoch, epoch)

    def take_if_room(self, name: DeliveryName, epoch: int) -> None:
        """Do `take`, unless its number leaves so many gaps that the next one could be refused. Worker 0 knows
        all numbers; others know those of insertions in parts only, which have gaps by nature.
        """
        numbers = self.writers.get(name.writer)
        if numbers is None or numbers.gaps < self._gaps_max - 1 or name.sequence - 1 in numbers:
            self.take(name, epoch)

    # Deliveries for epochs that the caller names.

    def is_taken_in(self, epoch: int, name: DeliveryName) -> bool:
        """Return True if a delivery has come to this epoch, and the epoch is not forgotten."""
        numbers = self._in_epoch.get(epoch, {}).get(name.writer)
        return numbers is not None and name.sequence in numbers

    def is_taken_in_all(self, epochs: Sequence[int], name: DeliveryName) -> bool:
        """Return True if a delivery has come to all of these epochs that are not forgotten. Raise
        `MisuseError` if it has come to some of them only.
        """
        remembered = [epoch for epoch in epochs if epoch >= self.first_epoch]
        came = [epoch for epoch in remembered if self.is_taken_in(epoch, name)]
        if 0 < len(came) < len(remembered):
            lacks = next(epoch for epoch in remembered if not self.is_taken_in(epoch, name))
            raise MisuseError(
                f"append {name.sequence} of writer {name.writer!r} has come with rows of epoch {came[0]} and "
                f"none of epoch {lacks}, and now it has some of both: it is another one. Give it a number of "
                "its own"
            )
        return bool(came)

    def take_in(self, epochs: Sequence[int], name: DeliveryName) -> None:
        """Remember that a delivery has come with rows of these epochs, in ascending order."""
        for epoch in epochs:
            writers = self._in_epoch.get(epoch)
            if writers is None:
                writers = self._in_epoch[epoch] = {}
                heapq.heappush(self.named_epochs, epoch)
            numbers = writers.get(name.writer)
            if numbers is None:
                numbers = writers[name.writer] = IntervalSet()
            numbers.add(name.sequence)
        if len(epochs) > 1:
            last = max(epochs[-1], self._last_epoch_of.get(name, 0))
            self._last_epoch_of[name] = last
            self._ending_in.setdefault(last, []).append(name)

    def missing(self, epoch: int, names: Iterable[DeliveryName]) -> list[DeliveryName]:
        """Return the deliveries that have come neither to this epoch nor, with rows of several epochs, to
        others that are not forgotten. (A delivery of one epoch counts in that epoch only: another delivery
        with its name may be missing.)
        """
        return [
            name for name in names if not self.is_taken_in(epoch, name) and name not in self._last_epoch_of
        ]

    def forget_before(self, epoch: int) -> None:
        """Forget the deliveries to earlier epochs: they cannot be repeated any more."""
        self.first_epoch = max(self.first_epoch, epoch)
        while self.named_epochs and self.named_epochs[0] < epoch:
            first = heapq.heappop(self.named_epochs)
            del self._in_epoch[first]
            for name in self._ending_in.pop(first, ()):
                if self._last_epoch_of.get(name) == first:
                    del self._last_epoch_of[name]

    # Staged rows.

    @property
    def insertions(self) -> int:
        """The number of insertions with parts here."""
        return sum(attempt == ONE_ATTEMPT for _, _, attempt in self._staged)

    @property
    def attempts(self) -> int:
        """The number of attempts at batches with parts here."""
        return len(self._staged) - self.insertions

    def check_room(self, size_bytes: int) -> None:
        """Raise `MisuseError` if there is no room for a part of `size_bytes` to wait here."""
        self.drop_old()
        if self.staged_bytes + size_bytes > STAGED_BYTES_MAX:
            raise MisuseError(
                f"input {self._name!r}: parts of insertions wait here with {self.staged_bytes:,} bytes in "
                f"all, and {STAGED_BYTES_MAX:,} are the limit: insert fewer rows at once, or fewer at the "
                "same time"
            )

    def stage(self, name: DeliveryName, attempt: str, number: int, part: StagedPart) -> None:
        """Keep a part of an attempt; a part of the same number replaces the first."""
        now = self._clock()
        staged = self._staged.setdefault((*name, attempt), _Attempt(now))
        staged.heard_at = now
        before = staged.parts.get(number)
        staged.parts[number] = part
        self.staged_bytes += part.size_bytes - (0 if before is None else before.size_bytes)

    def parts(self, name: DeliveryName, attempt: str = ONE_ATTEMPT) -> int:
        """Return the number of parts of an attempt that are here."""
        staged = self._staged.get((*name, attempt))
        return 0 if staged is None else len(staged.parts)

    def keep(self, name: DeliveryName, attempt: str) -> int:
        """Return the same number, for a driver that is about to commit. Until it does, only a drop by name
        removes these parts.
        """
        staged = self._staged.get((*name, attempt))
        if staged is None:
            return 0
        staged.heard_at = self._clock()
        staged.is_checked = True
        return len(staged.parts)

    def check_staged(self, name: DeliveryName) -> None:
        """Raise `MisuseError` if the parts of an insertion are not here any more. Worker 0 checks this,
        since each insertion in parts has one there: if it does not refuse an insertion, no other worker has
        dropped a part.
        """
        staged = self._staged.get((*name, ONE_ATTEMPT))
        if staged is None or self._clock() - staged.heard_at > STAGED_SECONDS_MAX:
            raise MisuseError(
                f"input {self._name!r}: the parts of insertion {name.sequence} of writer {name.writer!r} "
                f"have waited for more than {STAGED_SECONDS_MAX:.0f} s, and were dropped: insert the rows "
                "again"
            )

    def drop(self, name: DeliveryName, attempts: Sequence[str] = ()) -> None:
        """Drop these attempts. If none are named, drop all attempts at a batch except those that a commit
        check has found.
        """
        for key, staged in list(self._staged.items()):
            is_of_batch = key[2] != ONE_ATTEMPT and not staged.is_checked
            if key[:2] == name and (key[2] in attempts if attempts else is_of_batch):
                self._give_up(key)

    def drop_old(self) -> None:
        """Drop attempts that have waited for too long."""
        now = self._clock()
        for key, staged in list(self._staged.items()):
            seconds_max = 2 * STAGED_SECONDS_MAX if key[2] == ONE_ATTEMPT else ATTEMPT_SECONDS_MAX
            if now - staged.heard_at > seconds_max:
                self._give_up(key)

    def clear(self) -> None:
        """Drop all staged rows."""
        for key in list(self._staged):
            self._give_up(key)

    def batches(self) -> list[Waiting]:
        """Return all staged batches."""
        parts = [part for attempt in self._staged.values() for part in attempt.parts.values()]
        return [batch for part in parts for batch in part.batches]

    def reread(self, reread: Reread) -> None:
        """Let all staged batches be as a newer version of the input has them."""
        for attempt in self._staged.values():
            for number, part in attempt.parts.items():
                batches = [reread(part.word, batch)[1] for batch in part.batches]
                attempt.parts[number] = part._replace(batches=batches)

    def take_staged(self, name: DeliveryName, attempts: Sequence[str]) -> list[list[tuple[int, StagedPart]]]:
        """Remove and return the parts of these attempts, by number, in the order of `attempts`, as a
        decision has named them.
        """
        parts: list[list[tuple[int, StagedPart]]] = []
        for attempt in attempts:
            staged = self._staged.get((*name, attempt))
            parts.append([] if staged is None else sorted(staged.parts.items()))
            if staged is not None:
                self._drop((*name, attempt))
        return parts

    def _give_up(self, key: tuple[str, int, str]) -> None:
        self._drop(key)
        if self.on_drop is not None:
            self.on_drop(DeliveryName(*key[:2]), key[2])

    def _drop(self, key: tuple[str, int, str]) -> None:
        self.staged_bytes -= sum(part.size_bytes for part in self._staged.pop(key).parts.values())

    # Batches of queries.

    def seconds(self) -> int:
        """Return the seconds of the clock; only differences mean anything."""
        return int(self._clock())

    def last_batch(self, query: str) -> int:
        """Return the last committed batch of a query; -1: none."""
        remembered = self._queries.get(query)
        return self._once.get(query, -1) if remembered is None else remembered.last

    def last_rows(self, query: str) -> int:
        """Return the number of rows of that batch that have entered here."""
        remembered = self._queries.get(query)
        return 0 if remembered is None else remembered.rows

    def is_new_batch(self, name: DeliveryName, stream: str | None) -> bool:
        """Return True if a batch is not committed yet. Raise `MisuseError` if a later one is, or if the
        batches before it were of another stream (None: of any). Only worker 0 knows the streams.
        """
        query, batch = name
        last = self.last_batch(query)
        if batch < last:
            raise MisuseError(
                f"batch {batch} of query {query} has come already, and so have those up to {last}: a query "
                "that goes on gives none of them again, so this one has an older copy of its checkpoint, or "
                "a new one under the name of another. Its rows may be others than those that came, and are "
                "not written. Start it with the checkpoint that it had last; or, if its rows are in no "
                "batch that came, with a new checkpoint and a 'query' of its own"
            )
        remembered = self._queries.get(query)
        if stream is not None and remembered is not None and remembered.stream not in (None, stream):
            raise MisuseError(
                f"batch {batch} of query {query} is not written: another stream writes under that name, or "
                "this one did with another checkpoint, and of two with the same number one would be lost. "
                "Give each a 'query' of its own, and a stream the checkpoint that it had. To let this one go "
                "on under that name, behind what has come, say .option('gap', 'allow')"
            )
        return batch > last

    def check_remembered(self, query: str) -> None:
        """Raise `MisuseError` if there is no room to remember the batches of a query."""
        is_known = query in self._queries or query.startswith(WRITES_ONCE)
        if not is_known and len(self._queries) >= self._queries_max:
            raise MisuseError(
                f"{len(self._queries):,} queries have written into this input, each of which is remembered, "
                f"so that no batch counts twice, and {query} would be one too many: start a stream again "
                "with the checkpoint that it had, and write DataFrames without the option 'query'"
            )

    def check_follows(self, name: DeliveryName) -> None:
        """Raise `MisuseError` if batches before this one are missing."""
        query, batch = name
        last = self.last_batch(query)
        if batch <= last + 1:
            return
        missing = f"batch {last + 1}" if batch == last + 2 else f"batches {last + 1} to {batch - 1}"
        raise MisuseError(
            f"batch {batch} of query {query} comes before {missing}, which this dataflow was never given: "
            "is it another one than before? Start the query with a new checkpoint, or, if it has their rows "
            "from elsewhere, with the option 'gap' set to 'allow'"
        )

    def check_looked(self, name: DeliveryName, looked: int) -> None:
        """Raise `MisuseError` if some worker may have dropped rows since the check at `looked`, in
        `seconds`.
        """
        if self.seconds() - looked > COMMIT_SECONDS_MAX:
            raise MisuseError(
                f"batch {name.sequence} of query {name.writer} is not committed: its commit has come more "
                f"than {COMMIT_SECONDS_MAX / 3600:g} hours after its tasks were done, and by then what they "
                "have staged is let go of. Write it again"
            )

    def commit(self, name: DeliveryName, attempts: Sequence[str]) -> list[list[tuple[int, StagedPart]]]:
        """Do `take_staged` for a batch, and note that it is committed: nothing else of it, or of an earlier
        batch, stays here or ever enters.
        """
        query, batch = name
        staged = self.take_staged(name, attempts)
        for key in list(self._staged):
            if key[0] == query and key[1] <= batch and key[2] != ONE_ATTEMPT:
                self._drop(key)
        if query.startswith(WRITES_ONCE):
            self._once[query] = batch
            if len(self._once) > self._writers_max:
                self._once.popitem(last=False)
            return staged
        remembered = self._queries.setdefault(query, _Query(batch))
        remembered.last, remembered.rows = batch, sum(part.rows for parts in staged for _, part in parts)
        return staged

    def note_stream(self, query: str, stream: str) -> None:
        """Remember that the last batch of a query was of this stream; an empty name: of none."""
        remembered = self._queries.get(query)
        if remembered is not None:  # else it writes once, or its dataflow has ended
            remembered.stream = stream

    def facts(self) -> list[list[object]]:
        """Return the names of deliveries of each series, and the batches of queries, as
        `durable.versions.TakenFacts` lists them.
        """
        names: list[object] = [
            [writer, numbers.epoch, numbers.intervals()] for writer, numbers in self.writers.items()
        ]
        epochs: dict[DeliveryName, list[int]] = {}
        for epoch, writers in sorted(self._in_epoch.items()):
            for writer, numbers_in in writers.items():
                for first, last in numbers_in.intervals():
                    for sequence in range(first, last + 1):
                        epochs.setdefault(DeliveryName(writer, sequence), []).append(epoch)
        appends: list[object] = []
        for name, came in epochs.items():
            # One with rows of several epochs is one delivery; else each epoch has one of that name.
            is_one = name in self._last_epoch_of
            of_several = came if len(came) > 1 else [*came, *came]  # `take_in` sees that there were others
            appends += [[*name, of_several]] if is_one else [[*name, [epoch]] for epoch in came]
        queries: list[object] = [[name, q.last, q.rows, q.stream] for name, q in self._queries.items()]
        queries += [[name, batch, 0, None] for name, batch in self._once.items()]
        return [names, appends, queries]

    def staged(self) -> Iterator[tuple[DeliveryName, str, list[tuple[int, StagedPart]]]]:
        """Yield the staged attempts: the delivery, the attempt, and its parts by number."""
        for (writer, sequence, attempt), staged in self._staged.items():
            yield DeliveryName(writer, sequence), attempt, sorted(staged.parts.items())

    def put_back_names(self, writer: str, intervals: Iterable[tuple[int, int]], epoch: int) -> None:
        """Note that a writer's deliveries with these numbers, in ascending intervals, have entered epochs up
        to this one, as a base has it, or an older version of the dataflow.
        """
        for first, last in intervals:
            self.take(DeliveryName(writer, first), epoch)
            self.writers[writer].cover(first, last)

    def put_back_batch(self, name: DeliveryName, rows: int) -> None:
        """Note that a batch is committed, and that this worker has `rows` of it, as logs say."""
        self.commit(name, ())
        remembered = self._queries.get(name.writer)
        if remembered is not None:
            remembered.rows = rows

    def compared(self) -> object:
        """Return all that decides what it will do, except the time."""
        return (
            self.writers,
            self._in_epoch,
            self.first_epoch,
            self._last_epoch_of,
            self._queries,
            self._once,
            self._staged,
        )
