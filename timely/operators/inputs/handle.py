"""Inputs: epochs of rows from outside.

Batches of an epoch are kept until the epoch is sealed and then enter together: the dataflow works in few,
full activations, and an epoch that nobody sealed has left no trace in it. A repeated delivery counts once
(`deliveries.py`). An open epoch is a pointstamp at the input's stage.

Taking rows and sealing epochs changes only what is kept here, and raises before it has changed anything. The
rows of sealed epochs enter when the input's stage is activated, as part of the dataflow's own work: what
fails then, because the user's code runs there, ends the dataflow. They wait there, with the right to enter at
their epoch, while that is further ahead than time words go.

A large insertion comes in parts, one or more on each worker. They are *staged*: they belong to no epoch until
worker 0 decides which epoch they enter. So are the rows of a query's tasks, of which only those count that
the decision names.
"""

from __future__ import annotations

import heapq
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from hashlib import blake2b
from typing import Final, Protocol

import pyarrow as pa

from progress.errors import InputClosedError, InternalError, MisuseError
from progress.records import record
from progress.times.anchor import EPOCH_MAX
from progress.times.time_words import TimeCode

from ...dictionaries import Mark
from ...limits import ENTERING_EPOCHS_MAX, FEW_ROWS_MAX, WORKERS_MAX
from ...wire.batch import Batch, Records
from ...wire.requests import ONE_ATTEMPT
from .codecs import InputCodec, OrderedCodec, PlainCodec, as_batch, batches_of
from .deliveries import Deliveries
from .folded import Folded, Waiting
from .names import DeliveryName, closed_error
from .plain_rows import PlainRow
from .together import Together

APPENDS_MAX: Final = 1 << 31
"""Appends of a writer to an epoch, where their order counts."""

_CALL_ROWS_MAX: Final = 1 << 32
"""More rows than a batch can have: a request has fewer bytes."""


class Entrance(Protocol):
    """The stage that stands for an input: where rows of sealed epochs come into the dataflow."""

    @property
    def code(self) -> TimeCode:
        """How epochs are packed into words."""
        ...

    def wake(self) -> None:
        """Ask for an activation, which calls `InputHandle.release`."""
        ...

    def resume(self) -> None:
        """Ask for one once all that is ready has had its turn."""
        ...

    def may_enter(self, epoch: int) -> bool:
        """Whether rows of an epoch may enter now; if not, `wake` follows when they may be able to."""
        ...

    def let_in(self, batch: Batch, word: int) -> None:
        """Rows of an epoch that is being sealed enter."""
        ...

    def advance(self, old: int, new: int | None) -> None:
        """The open epoch moves on; `None`: the input is closed."""
        ...


_Kept = tuple[int | None, Waiting]
"""A batch, and the time word that its rows have for now; None, and it alone, if it is folded."""


@record(frozen=True)
class _Sealed:
    """Batches of epochs that were sealed together, latest first, and which epoch is open now."""

    entering: list[tuple[int, list[_Kept]]]
    new: int | None


class InputHandle:
    """One input on one worker: batches by epoch, until sealed."""

    def __init__(
        self,
        name: str,
        entrance: Entrance,
        codec: InputCodec,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._entrance = entrance
        self._clock = clock
        self.name = name
        self.codec = codec
        self.epoch = 0
        self.is_closed = False
        self.rows_waiting = 0
        self._held = 0
        """The epoch at which the input's own right to enter rows is, as progress tracking has it."""
        self._waiting: dict[int, list[_Kept]] = {}
        self._waiting_epochs: list[int] = []  # a heap of the keys of `_waiting`
        self.deliveries = Deliveries(name, clock)
        self._sealed: deque[_Sealed] = deque()
        self._ordered = codec if isinstance(codec, OrderedCodec) else None
        self._plain = codec if isinstance(codec, PlainCodec) else None
        self._few: list[PlainRow] = []
        self._few_diffs: list[int] = []
        self._few_epoch = self._few_word = 0
        self._word_epoch: int | None = None
        self._word = 0  # what `epoch_word` said last, which is asked for each insertion
        self._calls = 0
        """Calls that were put in order here, which is done where order counts, and on worker 0."""

    def begin(self, epoch: int) -> None:
        """Let `epoch` be the first. Called before anything else, if at all."""
        self.epoch_word(epoch)
        self.epoch = self._held = epoch

    def take_over(self, other: InputHandle, epoch: int) -> None:
        """Go on at `epoch`, which is open at `other`, with all that waits there, and is known of it.

        Sealed epochs, whose rows may not have entered yet, stay with `other`; nothing more comes there.
        """
        assert other.epoch == epoch and not self._waiting and not self._sealed
        other._keep_few()
        self.epoch = self._held = epoch
        for waiting, batches in other._waiting.items():
            for word, batch in batches:
                self._keep(waiting, [batch], word)
        other._waiting, other._waiting_epochs, other.rows_waiting = {}, [], 0
        self.deliveries, other.deliveries = other.deliveries, Deliveries(other.name, other._clock)
        self._calls = other._calls

    # Rows come in.

    def append(self, epoch: int, batch: Batch, identity: DeliveryName | None = None) -> bool:
        """Add a batch to an epoch that is not sealed; returns whether it was new (`False`: a repetition,
        ignored).
        """
        return self.append_all(epoch, [batch], identity)

    def append_all(
        self, epoch: int, batches: Sequence[Waiting], identity: DeliveryName | None = None
    ) -> bool:
        """Add the batches of one append: all of them, or, for a repetition, none."""
        if not self.is_wanted(epoch, identity):
            return False
        self.append_epochs([epoch], [self.epoch_word(epoch)], [batches], identity)
        return True

    def append_epochs(
        self,
        epochs: Sequence[int],
        words: Sequence[int],
        batches: Sequence[Sequence[Waiting]],
        identity: DeliveryName | None,
    ) -> None:
        """Add the batches of one append, by epoch. `words`: those of their rows, not asked for anew, for by
        then the same epochs may have others. Requires: `is_wanted` for each.
        """
        if self._ordered is not None and identity is not None and not 0 <= identity.sequence < APPENDS_MAX:
            raise MisuseError(
                f"input {self.name!r} keeps the last value by key: appends have numbers from 0 to "
                f"{APPENDS_MAX - 1:,}, not {identity.sequence}"
            )
        if self._ordered is not None:
            order, place = self._order_of(identity)
            batches = [_in_order(self._ordered, waiting, order, place) for waiting in batches]
        if identity is not None:
            self.deliveries.take_in(epochs, identity)
        for epoch, waiting, word in zip(epochs, batches, words, strict=True):
            self._keep(epoch, waiting, word)

    def is_wanted(self, epoch: int, identity: DeliveryName | None = None) -> bool:
        """Whether an append is new; raises `InputClosedError` if it comes too late."""
        if identity is not None and self.deliveries.is_taken_in(epoch, identity):
            return False
        self.check_open()
        if epoch < 0:
            raise MisuseError(f"input {self.name!r}: epochs are whole numbers from 0 on, not {epoch}")
        if epoch < self.epoch:
            # Who repeats a call whose identity is forgotten is told not to, for that would count twice.
            raise InputClosedError(
                f"input {self.name!r}: epoch {epoch} is sealed and takes no more rows; "
                f"the open epoch is {self.epoch}. What repeats an append that has entered is done already; "
                "new rows go to the open epoch, where what should have been different is removed and inserted"
            )
        return True

    def insert(self, epoch: int, batches: Iterable[Waiting], identity: DeliveryName) -> int:
        """Add the batches to `epoch`, or to the open one if later; returns which. Requires: `is_new`."""
        entered = max(epoch, self.epoch)
        word = self.epoch_word(entered)
        if self._ordered is not None:
            batches = _in_order(self._ordered, batches, self.next_call(), 0)
        # Behind what may fail: a client that repeats it then is not told that it has come.
        self.deliveries.take(identity, entered)
        self._keep(entered, batches, word)
        return entered

    def take_rows(self, epoch: int, rows: object, diff: int, writer: str, sequence: int) -> tuple[bool, int]:
        """`insert` of few plain rows if they are new: whether they are, and the epoch that they enter, or
        that is open. Raises as `is_new` does, and `MisuseError` if this input takes none, or they are not
        plain.

        They are kept as they are until there are many or their epoch is sealed: one batch of all costs little
        more than one of each. Where the order of calls counts each is a batch of its own.
        """
        if self._plain is None:
            raise MisuseError(f"input {self.name!r} takes {self.codec.describe()}, and no plain rows")
        if diff not in (1, -1):  # checked here: whoever seals makes words of it, perhaps another client
            raise MisuseError(f"input {self.name!r}: plain rows are added or removed once, not {diff} times")
        plain = self._plain.checked_rows(rows, diff)
        entered = epoch if epoch > self.epoch else self.epoch
        word = self._word if entered == self._word_epoch else self.epoch_word(entered)
        if self._ordered is not None:
            name = DeliveryName(writer, sequence)
            if not self.is_new(name):
                return False, self.epoch
            batches = (
                [
                    as_batch(
                        self.codec, "encode_rows", self._plain.encode_rows(plain, [diff] * len(plain), word)
                    )
                ]
                if plain
                else []
            )
            return True, self.insert(epoch, batches, name)
        few, count = self._few, len(plain)
        if entered != self._few_epoch or len(few) >= FEW_ROWS_MAX:
            if few:
                self._keep_few()
                few = self._few
            self._few_epoch, self._few_word = entered, word
        # Fast path: it is the next one of its writer, and so is new.
        if self.is_closed or not self.deliveries.take_next(writer, sequence, entered):
            name = DeliveryName(writer, sequence)
            if not self.is_new(name):
                return False, self.epoch
            self.deliveries.take(name, entered)
        few += plain
        self._few_diffs += [diff] * count
        self.rows_waiting += count
        return True, entered

    def _keep_few(self) -> None:
        """Make a batch of the plain rows that are kept as they are."""
        if self._few:
            self._keep(self._few_epoch, [self._take_few()], self._few_word)

    def _take_few(self) -> Batch:
        """These rows, at the word of their epoch; they wait no more."""
        assert self._plain is not None
        made = self._plain.encode_rows(self._few, self._few_diffs, self._few_word)
        batch = as_batch(self.codec, "encode_rows", made)
        self.rows_waiting -= len(self._few)
        self._few, self._few_diffs = [], []
        return batch

    def is_new(self, identity: DeliveryName) -> bool:
        """Whether an insertion has not been taken yet; raises `InputClosedError` if none can be taken any
        more.
        """
        if not self.is_closed:
            return self.deliveries.is_new(identity)
        if self.deliveries.is_taken(identity):
            return False
        raise closed_error(self.name)

    def tidy(self) -> None:
        """Drop what was staged and has waited for too long."""
        self.deliveries.drop_old()

    def enter(
        self,
        name: DeliveryName,
        attempts: Sequence[str] | None,
        epoch: int,
        order: int = 0,
        worker: int = 0,
    ) -> None:
        """What these attempts at a delivery have staged here, on `worker`, belongs to `epoch`; None: it is an
        insertion, of which all parts do. `order` is that of the first attempt among the calls.
        """
        if epoch < self.epoch:
            raise InternalError(
                f"delivery {name.sequence} of {name.writer} entered epoch {epoch}, but {self.epoch} is open"
            )
        deliveries = self.deliveries
        released = (
            deliveries.release(name, [ONE_ATTEMPT]) if attempts is None else deliveries.commit(name, attempts)
        )
        for at, parts in enumerate(released):
            for number, part in parts:  # none, if none came here
                batches = part.batches
                if self._ordered is not None:
                    place = (number * WORKERS_MAX + worker) * _CALL_ROWS_MAX
                    batches = _in_order(self._ordered, batches, order + at, place)
                self._keep(epoch, batches, part.word)

    @property
    def is_ordered(self) -> bool:
        """Whether the order of calls within an epoch counts."""
        return self._ordered is not None

    def next_call(self, calls: int = 1) -> int:
        """The number of a call that is taken now, of the first of several, if the order of calls counts; else
        0.
        """
        if self._ordered is None:
            return 0
        self._calls += calls
        return self._calls - calls + 1

    def encode(self, table: pa.Table, diff: int, word: int) -> list[Waiting]:
        """`batches_of` for this input."""
        return batches_of(self.codec, self.name, table, diff, word)

    def epoch_word(self, epoch: int) -> int:
        """The time word that rows of an epoch have until they enter; `TimeOverflowError` if it is none.

        Rows that enter at another word are moved there, so one that the anchor has left behind will do, too.
        """
        if epoch == self._word_epoch:
            return self._word
        code = self._entrance.code
        word = code.pack_wide((epoch,)) if not 0 <= epoch <= EPOCH_MAX or code.holds(epoch) else 0
        self._word_epoch, self._word = epoch, word
        return word

    def send(self, records: Sequence[object], epoch: int | None = None) -> None:
        """Records for an epoch (the open one by default), for use inside the worker's own process."""
        self.append(self.epoch if epoch is None else epoch, Records(list(records)))

    # Epochs come to an end.

    def seal(self, epoch: int | None = None) -> int:
        """Declare all epochs up to `epoch` (default: the open one) complete; returns it. Twice is once."""
        sealed = self.epoch if epoch is None else epoch
        if self.is_closed:
            raise InputClosedError(f"input {self.name!r} is closed: there is no epoch {sealed} to seal")
        if sealed < self.epoch:
            return sealed
        if sealed >= EPOCH_MAX:
            self.epoch_word(sealed + 1)
        self._let_enter(sealed, is_last=False)
        return sealed

    def close(self) -> None:
        """No epoch will follow the open one; rows that wait for later ones enter at their times. Twice is
        once.
        """
        if self.is_closed:
            return
        self._keep_few()  # whose epoch may be the last
        self._let_enter(max([self.epoch, *self._waiting]), is_last=True)
        self.is_closed = True
        self.deliveries.clear()

    @property
    def has_rows(self) -> bool:
        """Whether rows wait to be let in, or parts of an insertion for the others."""
        return bool(self.rows_waiting or self.deliveries.insertions)

    @property
    def held_epoch(self) -> int | None:
        """The first epoch at which rows may still enter: the open one, or a sealed one whose rows have
        not entered yet; `None` when none will.
        """
        return None if self.is_closed and not self._sealed else self._held

    def release(self) -> None:
        """Let the rows of sealed epochs enter: the activation of the input's stage. Behind folded ones, and
        behind those of `ENTERING_EPOCHS_MAX` epochs, others wait for the next activation, before which those
        are worked on: what is not complete is told apart by time, and rows of one key meet in all of them.
        """
        entrance = self._entrance
        new: int | None = self._held
        is_one = len(self._sealed) == 1 and len(self._sealed[0].entering) <= 1  # as most often
        together = None if is_one else Together(entrance.let_in)
        let_in = entrance.let_in if together is None else together.add
        epochs = 0
        while self._sealed:
            sealed = self._sealed[0]
            while sealed.entering:
                epoch, batches = sealed.entering[-1]
                if not entrance.may_enter(epoch):
                    self._go_on(epoch, together)
                    return
                if epochs == ENTERING_EPOCHS_MAX:
                    self._go_on(epoch, together)
                    entrance.resume()
                    return
                epochs += 1
                entered = entrance.code.pack((epoch,))
                # Each is let go of as it enters: what is made of it at once may be much less.
                batches.reverse()
                while batches:
                    word, batch = batches.pop()
                    if word == entered:  # most often
                        let_in(batch, entered)  # type: ignore[arg-type]  # it is not folded
                    elif not isinstance(batch, Folded):
                        let_in(batch.shifted(0, entered), entered)
                    else:
                        let_in(batch.unfolded(entered), entered)
                        if batches:
                            batches.reverse()
                            self._go_on(epoch, together)
                            entrance.resume()
                            return
                sealed.entering.pop()
            self._sealed.popleft()
            new = sealed.new
        self._go_on(new, together)

    def _go_on(self, epoch: int | None, together: Together | None) -> None:
        """Rows enter at `epoch` next, or none ever, once those have that were brought together."""
        if together is not None:
            together.flush()
        if epoch != self._held:
            self._entrance.advance(self._held, epoch)
            self._held = self._held if epoch is None else epoch

    def symbols(self, mark: Mark) -> None:
        """Rows that wait for their epoch or for a commit, parts of insertions, rows of sealed epochs that are
        to enter.
        """
        # Plain rows that are kept as they are have no words yet.
        waiting = [batch for batches in self._waiting.values() for _, batch in batches]
        waiting += self.deliveries.batches()
        for sealed in self._sealed:
            waiting += [batch for _, batches in sealed.entering for _, batch in batches]
        for batch in waiting:
            mark.holder(batch, f"input {self.name!r} with a batch of {type(batch).__name__}")

    def compared(self) -> object:
        """All that decides what it will do; who it is does not change."""
        fixed = ("_clock", "_entrance", "_ordered", "_plain", "_word", "_word_epoch", "codec", "name")
        return {name: part for name, part in vars(self).items() if name not in fixed}

    def _order_of(self, identity: DeliveryName | None) -> tuple[int, int]:
        """The order of an append: by its writer and number, so that it does not matter where and when it
        comes.
        """
        if identity is None:
            return self.next_call(), 0
        digest = blake2b(identity.writer.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        return -1 - (int.from_bytes(digest, "little") >> 2), identity.sequence * _CALL_ROWS_MAX

    def check_open(self) -> None:
        """Raise `InputClosedError` if nothing can be added any more."""
        if self.is_closed:
            raise closed_error(self.name)

    def _keep(self, epoch: int, batches: Iterable[Waiting], word: int | None) -> None:
        """`word`: that of the rows, for batches that are not folded."""
        for batch in batches:
            if batch.rows:
                if epoch not in self._waiting:
                    self._waiting[epoch] = []
                    heapq.heappush(self._waiting_epochs, epoch)
                self.rows_waiting += batch.rows
                waiting = self._waiting[epoch]
                if not isinstance(batch, Folded):
                    waiting.append((word, batch))
                    continue
                if waiting and isinstance(last := waiting[-1][1], Folded):
                    both = last.with_next(batch)
                    if both is not None:
                        waiting[-1] = None, both
                        continue
                waiting.append((None, batch))

    def _let_enter(self, sealed: int, is_last: bool) -> None:
        entering: list[tuple[int, list[_Kept]]] = []
        if self._few:
            if not self._waiting_epochs and self._few_epoch <= sealed:  # most often nothing else waits
                entering.append((self._few_epoch, [(self._few_word, self._take_few())]))
            else:
                self._keep_few()
        while self._waiting_epochs and self._waiting_epochs[0] <= sealed:
            epoch = heapq.heappop(self._waiting_epochs)
            batches = self._waiting.pop(epoch)
            self.rows_waiting -= sum([batch.rows for _, batch in batches])
            entering.append((epoch, batches))
        if len(entering) > 1:
            entering.reverse()
        self._sealed.append(_Sealed(entering, None if is_last else sealed + 1))
        self.epoch = sealed + 1
        self._entrance.wake()
        deliveries = self.deliveries
        if deliveries.named_epochs:
            deliveries.forget_before(sealed)
        else:
            deliveries.first_epoch = sealed


def _in_order(codec: OrderedCodec, batches: Iterable[Waiting], order: int, place: int) -> list[Waiting]:
    """The batches of a call, of which there is one at most, with its order and place."""
    made: list[Waiting] = []
    for batch in batches:
        assert not made and not isinstance(batch, Folded), "where order counts a call is one batch"
        made.append(as_batch(codec, "ordered", codec.ordered(batch, order, place)))
    return made
