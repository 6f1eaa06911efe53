"""Inputs: rows from outside become epochs of a dataflow.

An input keeps the batches of an epoch until the epoch is sealed; then they enter the dataflow together. So
the dataflow works in few, full activations, and an epoch that nobody has sealed has left no trace in it. An
open epoch is a pointstamp at the input's stage. `deliveries.py` knows which deliveries the input has taken,
so that a repeated one counts once, and holds the rows that are staged: those belong to no epoch until a
decision of worker 0 names them.

Taking rows and sealing epochs changes only the state of the input, and raises before it has changed anything.
The rows of sealed epochs enter when the input's stage is activated, as part of the dataflow's own work. The
user's code runs there, and a failure of it ends the dataflow. Rows of an epoch that lies further ahead than
time words go wait at the input, which keeps the right to enter at that epoch.
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
from progress.times.anchor import EPOCH_MAX
from progress.times.time_words import TimeCode

from ...dictionaries import Mark
from ...durable.journal import BY_EPOCH, IN_OPEN_EPOCH, PLACES_OF_CALL, InputJournal, place_of_part
from ...limits import ENTERING_EPOCHS_MAX, FEW_ROWS_MAX
from ...wire.arrow import int64s_of
from ...wire.batch import Batch, Records
from ...wire.requests import ALL_PARTS, ONE_ATTEMPT
from .codecs import InputCodec, OrderedCodec, PlainCodec, ReorderingCodec, as_batch, batches_of, in_order
from .deliveries import Deliveries, StagedPart
from .folded import Folded, Waiting, rereading, without_folds
from .names import UNNAMED, DeliveryName, closed_error
from .plain_rows import PlainRow
from .together import Together

APPENDS_MAX: Final = 1 << 31
"""Largest number of appends of one writer to an epoch, at an input where their order counts."""


class Entrance(Protocol):
    """The stage of an input, at which the rows of sealed epochs come into the dataflow."""

    @property
    def code(self) -> TimeCode:
        """How words pack epochs."""
        ...

    def wake(self) -> None:
        """Ask for an activation, which calls `InputHandle.let_rows_in`."""
        ...

    def resume(self) -> None:
        """Ask for an activation once all that is ready has had its turn."""
        ...

    def may_enter(self, epoch: int) -> bool:
        """Return True if rows of an epoch may enter now. If not, `wake` is called once they may."""
        ...

    def let_in(self, batch: Batch, word: int) -> None:
        """Let rows of an epoch that is being sealed enter."""
        ...

    def advance(self, old: int, new: int | None) -> None:
        """Move the open epoch from `old` to `new`; None: the input is closed."""
        ...


_WaitingBatch = tuple[int | None, Waiting]
"""A batch and the time word that its rows have for now; the word is None if and only if the batch is folded.
"""


_Sealed = tuple[list[tuple[int, list[_WaitingBatch]]], int | None]
"""Batches of epochs that were sealed together, latest first, and the epoch that is open now."""


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
        """The epoch at which progress tracking has the input's right to enter rows."""
        self._waiting: dict[int, list[_WaitingBatch]] = {}
        self._waiting_epochs: list[int] = []  # a heap of the keys of `_waiting`
        self.deliveries = Deliveries(name, clock)
        self.deliveries.on_drop = self._note_dropped
        self._sealed: deque[_Sealed] = deque()
        self._ordered = codec if isinstance(codec, OrderedCodec) else None
        self._plain = codec if isinstance(codec, PlainCodec) else None
        self._few: list[PlainRow] = []
        self._few_diffs: list[int] = []
        self._few_epoch = self._few_word = 0
        self._word_epoch: int | None = None
        self._word = 0  # the last result of `epoch_word`, which each insertion needs
        self._calls = 0
        """The number of calls that got their order here: on worker 0, and only if their order counts."""
        self.journal: InputJournal | None = None
        """What the input writes its rows to before it keeps them; None: to nothing."""

    def begin(self, epoch: int) -> None:
        """Make `epoch` the first one. Call it before anything else, if at all."""
        self.epoch_word(epoch)
        self.epoch = self._held = epoch

    def take_over(self, other: InputHandle, epoch: int) -> None:
        """Go on at `epoch`, which is open at `other`, with all rows that wait there and all deliveries that
        it knows. Sealed epochs, whose rows may not have entered yet, stay with `other`, which takes no more.
        """
        assert other.epoch == epoch and not self._waiting and not self._sealed
        other._keep_few()
        self.epoch = self._held = epoch
        reread = rereading(self.codec, other.codec)
        for waiting, batches in other._waiting.items():
            for word, batch in batches:
                own_word, own = reread(word, batch)
                self._keep(waiting, [own], own_word)
        other._waiting, other._waiting_epochs, other.rows_waiting = {}, [], 0
        self.deliveries, other.deliveries = other.deliveries, Deliveries(other.name, other._clock)
        self.deliveries.on_drop = self._note_dropped
        self.deliveries.reread(reread)
        self._calls = other._calls

    def write_taken(self, codec: InputCodec, journal: InputJournal) -> None:
        """Write what `take_over` of a handle with `codec` takes from this one to the journal of that one."""
        self._keep_few()
        reread = rereading(codec, self.codec)
        for epoch, batches in sorted(self._waiting.items()):
            rows = without_folds([reread(word, batch)[1] for word, batch in batches])
            journal.rows(BY_EPOCH, "", UNNAMED, [(epoch, rows)], self._calls)
        journal.taken([*self.deliveries.facts(), self._calls])
        for name, attempt, parts in self.deliveries.staged():
            for at, (number, part) in enumerate(parts):
                rows = without_folds([reread(part.word, batch)[1] for batch in part.batches])
                journal.part(*name, attempt, number, at == 0, rows, part.rows)

    # Rows come in.

    def append(self, epoch: int, batch: Batch, name: DeliveryName | None = None) -> bool:
        """Add a batch to an epoch that is not sealed. Return whether it was new; a repetition is ignored."""
        return self.append_all(epoch, [batch], name)

    def append_all(self, epoch: int, batches: Sequence[Waiting], name: DeliveryName | None = None) -> bool:
        """Add the batches of one append: all of them, or none if it is a repetition."""
        if not self.is_new_append(epoch, name):
            return False
        self.append_epochs([epoch], [self.epoch_word(epoch)], [batches], name)
        return True

    def append_epochs(
        self,
        epochs: Sequence[int],
        words: Sequence[int],
        batches: Sequence[Sequence[Waiting]],
        name: DeliveryName | None,
    ) -> None:
        """Add the batches of one append, by epoch. `words` are the time words that their rows have; the same
        epochs may have other words by now. Requires: `is_new_append` for each epoch.
        """
        if self._ordered is not None and name is not None and not 0 <= name.sequence < APPENDS_MAX:
            raise MisuseError(
                f"input {self.name!r} keeps the last value by key: appends have numbers from 0 to "
                f"{APPENDS_MAX - 1:,}, not {name.sequence}"
            )
        if self._ordered is not None:
            order, place = self._order_of(name)
            batches = [in_order(self._ordered, waiting, order, place) for waiting in batches]
        if self.journal is not None:
            writer, sequence = ("", UNNAMED) if name is None else name
            self._write(self.journal, BY_EPOCH, writer, sequence, zip(epochs, batches, strict=True))
        if name is not None:
            self.deliveries.take_in(epochs, name)
        for epoch, waiting, word in zip(epochs, batches, words, strict=True):
            self._keep(epoch, waiting, word)

    def is_new_append(self, epoch: int, name: DeliveryName | None = None) -> bool:
        """Return True if an append is new. Raise `InputClosedError` if it comes too late."""
        if name is not None and self.deliveries.is_taken_in(epoch, name):
            return False
        self.check_open()
        if epoch < 0:
            raise MisuseError(f"input {self.name!r}: epochs are whole numbers from 0 on, not {epoch}")
        if epoch < self.epoch:
            # A repetition of a forgotten append is refused like any other: it would count twice.
            raise InputClosedError(
                f"input {self.name!r}: epoch {epoch} is sealed and takes no more rows; "
                f"the open epoch is {self.epoch}. What repeats an append that has entered is done already; "
                "new rows go to the open epoch, where what should have been different is removed and inserted"
            )
        return True

    def insert(self, epoch: int, batches: Iterable[Waiting], name: DeliveryName) -> int:
        """Add the batches to `epoch` or, if later, the open one. Return that epoch. Requires: `is_new`."""
        entered = max(epoch, self.epoch)
        word = self.epoch_word(entered)
        if self._ordered is not None:
            batches = in_order(self._ordered, batches, self.next_call(), 0)
        if self.journal is not None:
            batches = list(batches)
            self._write(self.journal, IN_OPEN_EPOCH, name.writer, name.sequence, [(entered, batches)])
        # Last, after all that may fail: else a client that repeats a failed delivery would hear that it came.
        self.deliveries.take(name, entered)
        self._keep(entered, batches, word)
        return entered

    def take_rows(self, epoch: int, rows: object, diff: int, writer: str, sequence: int) -> tuple[bool, int]:
        """`insert` for few plain rows, if they are new. Return (True, the epoch that they enter), or
        (False, the open epoch). Raises as `is_new` does, and `MisuseError` if this input takes no plain
        rows, or these are not plain.

        The input keeps plain rows as they are until there are many or their epoch is sealed: one batch of all
        costs little more than one batch of each. If the order of calls counts, each call is a batch.
        """
        if self._plain is None:
            raise MisuseError(f"input {self.name!r} takes {self.codec.describe()}, and no plain rows")
        if diff not in (1, -1):  # Checked here: a seal, perhaps by another client, makes words of it.
            raise MisuseError(f"input {self.name!r}: plain rows are added or removed once, not {diff} times")
        plain = self._plain.checked_rows(rows, diff)
        entered = epoch if epoch > self.epoch else self.epoch
        word = self._word if entered == self._word_epoch else self.epoch_word(entered)
        if self._ordered is not None:
            name = DeliveryName(writer, sequence)
            if not self.is_new(name):
                return False, self.epoch
            batches: list[Waiting] = []
            if plain:
                encoded = self._plain.encode_rows(plain, [diff] * len(plain), word)
                batches.append(as_batch(self.codec, "encode_rows", encoded))
            return True, self.insert(epoch, batches, name)
        few, count = self._few, len(plain)
        if entered != self._few_epoch or len(few) >= FEW_ROWS_MAX:
            if few:
                self._keep_few()
                few = self._few
            self._few_epoch, self._few_word = entered, word
        if self.journal is not None:
            if not self.is_new(DeliveryName(writer, sequence)):
                return False, self.epoch
            self.journal.few(writer, sequence, entered, diff, plain)
        # Fast path: the delivery is the next one of its writer, and so is new.
        if self.is_closed or not self.deliveries.take_next(writer, sequence, entered):
            name = DeliveryName(writer, sequence)
            if not self.is_new(name):
                return False, self.epoch
            self.deliveries.take(name, entered)
        few += plain
        self._few_diffs += [diff] * count
        self.rows_waiting += count
        return True, entered

    def stage(self, name: DeliveryName, attempt: str, number: int, part: StagedPart) -> None:
        """Keep a part of an attempt at a delivery until a decision names it: see `Deliveries`."""
        if self.journal is not None:
            is_first, batches = not self.deliveries.parts(name, attempt), without_folds(part.batches)
            self.journal.part(*name, attempt, number, is_first, batches, part.rows)
        self.deliveries.stage(name, attempt, number, part)

    def _note_dropped(self, name: DeliveryName, attempt: str) -> None:
        if self.journal is not None:
            self.journal.dropped(*name, attempt)

    def _write(
        self,
        journal: InputJournal,
        series: str,
        writer: str,
        sequence: int,
        by_epoch: Iterable[tuple[int, Iterable[Waiting]]],
    ) -> None:
        rows = [(epoch, without_folds(batches)) for epoch, batches in by_epoch]
        journal.rows(series, writer, sequence, rows, self._calls)

    def _keep_few(self) -> None:
        """Make a waiting batch of the plain rows that are kept as they are."""
        if self._few:
            self._keep(self._few_epoch, [self._take_few()], self._few_word)

    def _take_few(self) -> Batch:
        """Remove these rows, and return them as a batch at the word of their epoch."""
        assert self._plain is not None
        encoded = self._plain.encode_rows(self._few, self._few_diffs, self._few_word)
        batch = as_batch(self.codec, "encode_rows", encoded)
        self.rows_waiting -= len(self._few)
        self._few, self._few_diffs = [], []
        return batch

    def is_new(self, name: DeliveryName) -> bool:
        """Return True if a delivery to the open epoch was not taken yet. Raise `InputClosedError` if it was
        not and the input is closed, and `MisuseError` if its number leaves a gap too many.
        """
        if not self.is_closed:
            return self.deliveries.is_new(name)
        if self.deliveries.is_taken(name):
            return False
        raise closed_error(self.name)

    def tidy(self) -> None:
        """Drop staged rows that have waited for too long."""
        self.deliveries.drop_old()

    def enter(
        self,
        name: DeliveryName,
        attempts: Sequence[str] | None,
        epoch: int,
        order: int = 0,
        worker: int = 0,
        parts_named: int = ALL_PARTS,
    ) -> None:
        """Let the rows that these attempts at a delivery have staged here, on `worker`, belong to `epoch`. If
        `attempts` is None, the delivery is an insertion, and its parts before `parts_named` count, or all of
        them. `order` is that of the first attempt among the calls.
        """
        if epoch < self.epoch:
            raise InternalError(
                f"delivery {name.sequence} of {name.writer} entered epoch {epoch}, but {self.epoch} is open"
            )
        deliveries = self.deliveries
        if attempts is None:
            staged = deliveries.take_staged(name, [ONE_ATTEMPT])
            if self.journal is not None:  # parts that come again are not to replace these in a log
                deliveries.take_if_room(name, epoch)
        else:
            staged = deliveries.commit(name, attempts)
        for at, parts in enumerate(staged):
            for number, part in parts:  # there are none if none came here
                if parts_named != ALL_PARTS and number >= parts_named:
                    continue
                batches = part.batches
                if self._ordered is not None:
                    batches = in_order(self._ordered, batches, order + at, place_of_part(number, worker))
                self._keep(epoch, batches, part.word)

    @property
    def is_ordered(self) -> bool:
        """True if the order of calls within an epoch counts."""
        return self._ordered is not None

    def next_call(self, calls: int = 1) -> int:
        """Return the number of a call that is taken now, or of the first of several; 0 if the order of
        calls does not count.
        """
        if self._ordered is None:
            return 0
        self._calls += calls
        return self._calls - calls + 1

    def encode(self, table: pa.Table, diff: int, word: int) -> list[Waiting]:
        """Make batches of a table: `batches_of` for this input."""
        return batches_of(self.codec, self.name, table, diff, word)

    def epoch_word(self, epoch: int) -> int:
        """Return the time word that rows of an epoch have until they enter; raise `TimeOverflowError` for a
        number that is no epoch.

        Rows move to the right word as they enter, so a word from before the anchor will do.
        """
        if epoch == self._word_epoch:
            return self._word
        code = self._entrance.code
        if not 0 <= epoch <= EPOCH_MAX:
            code.pack_wide((epoch,))  # raises
        word = code.word_of_epoch(epoch) if code.holds(epoch) else 0
        self._word_epoch, self._word = epoch, word
        return word

    def send(self, records: Sequence[object], epoch: int | None = None) -> None:
        """Add records to an epoch (by default the open one), inside the worker's own process."""
        self.append(self.epoch if epoch is None else epoch, Records(list(records)))

    # Rows come back from a log, or a base: see `worker/durability/restoring.py`.

    def put_back(
        self, epoch: int, batches: Iterable[Batch], order: int = 0, place: int | None = None
    ) -> None:
        """Keep batches of an epoch whatever their times are. With a `place`, they are a part that gets its
        order now, as `enter` gives it.
        """
        word = self.epoch_word(epoch)
        moved: Iterable[Waiting] = [batch.shifted(0, word) for batch in batches]
        if place is not None and self._ordered is not None:
            moved = in_order(self._ordered, moved, order, place)
        self._keep(epoch, moved, word)

    def put_back_table(self, epoch: int, table: pa.Table) -> None:
        """Keep rows of a base: columns, `diff`, and, where the order counts, each row's order (2 columns)."""
        word = self.epoch_word(epoch)
        codec = self.codec
        if self._ordered is None:
            self._keep(epoch, batches_of(codec, self.name, table, 0, word), word)
            return
        assert isinstance(codec, ReorderingCodec), "a base has tables of such inputs only"
        count = table.num_columns - 2
        (entries,) = batches_of(codec, self.name, table.select(range(count)), 0, word)
        assert not isinstance(entries, Folded), "where order counts a call is one batch"
        orders, places = (int64s_of(table.column(at)) for at in (count, count + 1))
        self._keep(epoch, [as_batch(codec, "reordered", codec.reordered(entries, orders, places))], word)

    def put_back_rows(self, epoch: int, rows: list[PlainRow], diffs: list[int]) -> None:
        """Keep plain rows of an epoch. Raise `MisuseError` if this input takes none."""
        if self._plain is None:
            raise MisuseError(f"input {self.name!r} takes {self.codec.describe()}, and no plain rows")
        word = self.epoch_word(epoch)
        batch = as_batch(self.codec, "encode_rows", self._plain.encode_rows(rows, diffs, word))
        self._keep(epoch, [batch], word)

    def put_back_calls(self, calls: int) -> None:
        """Go on behind this many calls."""
        self._calls = max(self._calls, calls)

    # Epochs come to an end.

    def seal(self, epoch: int | None = None) -> int:
        """Complete all epochs up to `epoch` (by default the open one). Return it. A second call does
        nothing.
        """
        sealed = self.epoch if epoch is None else epoch
        if self.is_closed:
            raise InputClosedError(f"input {self.name!r} is closed: there is no epoch {sealed} to seal")
        if sealed < self.epoch:
            return sealed
        if sealed >= EPOCH_MAX:
            self.epoch_word(sealed + 1)
        self._queue_sealed(sealed, is_last=False)
        return sealed

    def close(self) -> None:
        """Let no epoch follow the open one. Rows that wait for later ones enter at their times. A second
        call does nothing.
        """
        if self.is_closed:
            return
        self._keep_few()  # their epoch may be the last one
        self._queue_sealed(max([self.epoch, *self._waiting]), is_last=True)
        self.is_closed = True
        self.deliveries.clear()

    @property
    def has_rows(self) -> bool:
        """True if rows wait to enter, or parts of an insertion wait for its other parts."""
        return bool(self.rows_waiting or self.deliveries.insertions)

    @property
    def held_epoch(self) -> int | None:
        """The first epoch at which rows may still enter: the open one, or a sealed one whose rows have not
        entered yet. None if no rows will enter any more.
        """
        return None if self.is_closed and not self._sealed else self._held

    def let_rows_in(self) -> None:
        """Let the rows of sealed epochs enter: the activation of the input's stage.

        After a folded batch, and after `ENTERING_EPOCHS_MAX` epochs, the rest waits for the next activation,
        before which the dataflow works on what has entered. Many incomplete epochs cost much at once: the
        dataflow keeps them apart by time, and the rows of one key meet in all of them.
        """
        entrance = self._entrance
        new: int | None = self._held
        first = self._sealed[0][0] if len(self._sealed) == 1 else None
        is_one = first is not None and (not first or (len(first) == 1 and len(first[0][1]) <= 1))
        together = None if is_one else Together(entrance.let_in)  # Fast path.
        let_in = entrance.let_in if together is None else together.add
        epochs = 0
        while self._sealed:
            entering, following = self._sealed[0]
            while entering:
                epoch, batches = entering[-1]
                if not entrance.may_enter(epoch):
                    self._go_on(epoch, together)
                    return
                if epochs == ENTERING_EPOCHS_MAX:
                    self._go_on(epoch, together)
                    entrance.resume()
                    return
                epochs += 1
                entered = entrance.code.word_of_epoch(epoch)
                # Drop each batch as it enters: its results may take much less memory.
                batches.reverse()
                while batches:
                    word, batch = batches.pop()
                    if word == entered:  # Fast path.
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
                entering.pop()
            self._sealed.popleft()
            new = following
        self._go_on(new, together)

    def _go_on(self, epoch: int | None, together: Together | None) -> None:
        """Let the rows enter that wait in `together`. The next ones enter at `epoch`; None: none will."""
        if together is not None:
            together.flush()
        if epoch != self._held:
            self._entrance.advance(self._held, epoch)
            self._held = self._held if epoch is None else epoch

    def waiting(self) -> tuple[list[Waiting], list[PlainRow]]:
        """Return what waits for its epoch: batches, and plain rows that are kept as they are."""
        return [batch for batches in self._waiting.values() for _, batch in batches], self._few

    def symbols(self, mark: Mark) -> None:
        """Show the words, perhaps symbols, of all rows here: those that wait for their epoch, staged ones,
        and those of sealed epochs that have not entered.
        """
        # Plain rows that are kept as they are have no words yet.
        waiting = [batch for batches in self._waiting.values() for _, batch in batches]
        sealed = (batches for entering, _ in self._sealed for _, batches in entering)
        waiting += [*self.deliveries.batches(), *(batch for batches in sealed for _, batch in batches)]
        for batch in waiting:
            mark.holder(batch, f"input {self.name!r} with a batch of {type(batch).__name__}")

    def compared(self) -> object:
        """Return all that decides what the input will do, without attributes that never change."""
        fixed = ("_clock", "_entrance", "_ordered", "_plain", "_word", "_word_epoch", "codec", "name")
        return {name: part for name, part in vars(self).items() if name not in fixed}

    def _order_of(self, name: DeliveryName | None) -> tuple[int, int]:
        """Return the order of an append among the calls, and its position. If it has a name, both follow
        from the name, so that it does not matter where and when the append comes.
        """
        if name is None:
            return self.next_call(), 0
        digest = blake2b(name.writer.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        return -1 - (int.from_bytes(digest, "little") >> 2), name.sequence * PLACES_OF_CALL

    def check_open(self) -> None:
        """Raise `InputClosedError` if the input is closed."""
        if self.is_closed:
            raise closed_error(self.name)

    def _keep(self, epoch: int, batches: Iterable[Waiting], word: int | None) -> None:
        """Let batches wait for `epoch`. `word` is the time word of rows in batches that are not folded."""
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

    def _queue_sealed(self, sealed: int, is_last: bool) -> None:
        """Let the rows of epochs up to `sealed` wait for the activation of the stage, and ask for it."""
        entering: list[tuple[int, list[_WaitingBatch]]] = []
        if self._few:
            if not self._waiting_epochs and self._few_epoch <= sealed:  # Fast path: nothing else waits.
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
        self._sealed.append((entering, None if is_last else sealed + 1))
        self.epoch = sealed + 1
        self._entrance.wake()
        deliveries = self.deliveries
        if deliveries.named_epochs:
            deliveries.forget_before(sealed)
        else:
            deliveries.first_epoch = sealed
