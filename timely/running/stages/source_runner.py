"""The runner of a vertex of a source, which has no inputs: it brings in records by itself.

    opened        each of its workers counts as holding the first epoch, in the view of all workers
    first turn    `on_open` gets that right as a capability; from then on it is as any that a vertex holds
    over          once no worker holds anything there, no record comes from the source any more

In a durable cluster it begins later, and all workers hold its first epoch until then:

    past          the rows that logs have of it enter at their epochs, as far as the logs are whole
    begun         `on_open` gets a right at the first epoch at which rows may be missing, and the positions
    position      is written into the log together with all that was sent before it, in one record. So after a
                  restart those rows are there, and the source goes on behind them

An epoch is not over before a record says so.

A vertex may hold an epoch that has no word yet, because something else is far behind. What it sends there
waits here until times count from a later epoch, as rows of an input do, and holds its time meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from operator import itemgetter
from threading import get_ident

from progress.errors import MisuseError
from progress.times.anchor import EPOCH_MAX, Rebase
from progress.times.time_words import TimeCode
from progress.tracking.count_changes import Change

from ...building.placing.placement import ChosenWorkers
from ...dictionaries import Mark
from ...durable.bases.positions import packed_position
from ...durable.journal import Noted, SourceJournal
from ...operators.capability import Capability
from ...operators.capture import FOREVER
from ...operators.lasting_words import has_times
from ...operators.vertex import Vertex
from ...user_code.call_site import UNKNOWN_SITE, CallSite
from ...wire.batch import Batch
from .rights import Acting
from .surroundings import WithAlarms
from .vertex_runner import VertexRunner

__all__ = ["SourceRunner", "check_source"]


class SourceRunner(VertexRunner):
    """One source on one worker. `latest` is the last epoch that it has held here."""

    __slots__ = (
        "_begins_at", "_granted", "_holders", "_is_new", "_journal", "_note_kept", "_past", "_position",
        "_positions", "_put_off", "_through", "_unwritten", "is_held_back", "kept_before", "latest",
    )  # fmt: skip

    sends_far = True

    def __init__(
        self,
        holders: ChosenWorkers,
        surroundings: WithAlarms[VertexRunner],
        stage: int,
        name: str,
        site: str,
        code: TimeCode,
        outputs: int,
        acting: Acting | None = None,
    ) -> None:
        super().__init__(surroundings, stage, name, site, code, outputs, acting)
        self._holders = holders
        self._granted: Capability | None = None
        self._put_off: list[tuple[int, int, Batch]] = []
        """What it has sent at epochs without a word, oldest first: (word, output, batch); each holds its
        word."""
        self.latest = 0
        self.kept_before = 0
        """The first epoch of which the log may lack something that the source sends on this worker;
        `FOREVER`: it lacks nothing. In a durable cluster."""
        self.is_held_back = False
        """True until the source begins, where the rows of the past come first."""
        self._past: list[tuple[int, Batch]] = []
        self._through = 0
        """All rows of the past of epochs before this one are here."""
        self._begins_at: int | None = None
        """The epoch that it holds until it begins."""
        self._journal: SourceJournal | None = None
        self._note_kept: Callable[[], None] | None = None
        self._positions: Sequence[object] = ()
        self._position = b""
        """The position that was given last."""
        self._is_new = False
        """True if it was given since the last record of the log."""
        self._unwritten: list[tuple[int, Noted]] = []
        """What was sent since the last record of the log, with epochs."""

    def open(self, epoch: int, is_held_back: bool = False) -> Change:
        """Let the source begin at `epoch`; return what all of its workers hold from now on. `is_held_back`:
        it begins with `start`, and until then all workers hold the epoch.
        """
        assert self.vertex is not None
        word = self.code.pack((epoch,))
        self.latest = epoch
        if is_held_back:
            self._held[word] = 1
            self.is_held_back, self._begins_at, self._through, self.kept_before = True, epoch, epoch, epoch
            return self.stage, word, self.workers
        if self._holders.has(self.worker):
            self._held[word] = 1
            self._granted = Capability.granted(self.vertex, (epoch,), _site_of(self.site), self)
            self._surroundings.wake(self)
        return self.stage, word, self._holders.count(self.workers)

    # In a durable cluster, before it begins.

    @property
    def of(self) -> int:
        """On how many workers it sends."""
        return self._holders.count(self.workers)

    def put_back(self, epoch: int, batches: Sequence[Batch]) -> None:
        """Let batches enter that a log has of it."""
        self._past += [(epoch, batch) for batch in batches]
        self._surroundings.wake(self)

    def have_past_before(self, epoch: int) -> bool:
        """Note that all rows of the past of epochs before this one are here; return False if that was so."""
        if not self._through < epoch <= EPOCH_MAX:
            return False
        self._through = epoch
        self._surroundings.wake(self)
        return True

    def have_past(self, first_held: int) -> None:
        """Note that all rows of the past are here. It goes on at the epoch `first_held`; or it is over, and
        `~first_held` is the last epoch that it has held.
        """
        if first_held < 0:
            self.kept_before, self.latest = FOREVER, max(self.latest, ~first_held)
            return
        self.kept_before = first_held
        self.have_past_before(first_held)

    def start(
        self, journal: SourceJournal, note_kept: Callable[[], None], positions: Sequence[object]
    ) -> None:
        """Let the source begin, once the rows of the past have entered, with the positions of before.
        `note_kept` is called when it has written something.
        """
        self._journal, self._note_kept, self._positions = journal, note_kept, positions
        if not self._holders.has(self.worker):
            self.kept_before = FOREVER
        self._surroundings.wake(self)

    def _go_on_with_past(self) -> None:
        """Let rows of the past enter, as far as their epochs have words; then give up earlier epochs, and
        begin if that is time.
        """
        assert self._begins_at is not None and self.vertex is not None
        room, pack = self.room, self.code.pack_wide
        past, self._past = self._past, [each for each in self._past if each[0] >= room]
        for epoch, batch in past:
            if epoch < room:
                self.latest = max(self.latest, epoch)
                for connector in self.outputs[0]:
                    connector.send(batch, pack((epoch,)))
        before, now = self._begins_at, min([self._through, *(epoch for epoch, _ in self._past)])
        if now > before:
            self._begins_at = now
            self.hold(pack((now,)))
            super().release(pack((before,)))
        if self._past:
            self._surroundings.await_epoch(self.stage)
        elif self._journal is not None:
            now, self._begins_at, self.is_held_back = self._begins_at, None, False
            if self.kept_before == FOREVER:
                super().release(pack((now,)))
            else:
                site = _site_of(self.site)
                self._granted = Capability.granted(self.vertex, (now,), site, self, self._positions)

    @property
    def is_open(self) -> bool:
        """True if records may still come from it on this worker."""
        return bool(self._held or self._held_far or self.requested)

    def activate(self) -> None:
        """Let the source begin, if it has not; then as any vertex. While the gate is closed it waits."""
        gate = self._acting.gate
        if not gate.is_open:
            gate.wait(self)
            return
        if self.is_held_back:
            self._go_on_with_past()
        if self._put_off:
            self._send_put_off()
        granted, self._granted = self._granted, None
        if granted is not None:
            assert self.vertex is not None
            self.vertex.on_open(granted)
            del granted  # the vertex alone keeps it, or has lost it
        super().activate()

    def hold(self, word: int) -> None:
        """Add a capability at `word`."""
        super().hold(word)
        self.latest = max(self.latest, self.code.unpack_wide(word)[0])

    def send(self, output: int, batch: Batch, word: int) -> None:
        """Send `batch` at `word`, once that is possible."""
        if self._journal is not None:
            self._check_logged(batch, word)
            noted = self.code.unpack_wide(word)[0], self._journal.noted(batch)
            self._send(output, batch, word)
            self._unwritten.append(noted)
        else:
            self._send(output, batch, word)

    def _send(self, output: int, batch: Batch, word: int) -> None:
        if word < self._limit:
            super().send(output, batch, word)
            return
        output = self._port(output, "sends by output", "outputs", len(self.outputs))
        if not (self._has_right(self.code.within(word)) or self._has_far_right(word)):
            self._refuse(word, "sent")
        self.hold(word)
        self._put_off.append((word, output, batch))
        self._surroundings.await_epoch(self.stage)

    # What a log has of it.

    def give_position(self, position: object) -> None:
        """Take a position, for the release that follows."""
        if get_ident() != self._acting.thread:
            self._acting.refuse(self.title(), "gave a position")
        try:
            packed = packed_position(position)
        except (TypeError, ValueError, OverflowError) as error:
            raise MisuseError(
                f"{self.title()} gives the position {position!r:.80}: a position is plain data, made of "
                f"numbers, texts, bytes, lists and dicts, whose keys are no tuples ({error})"
            ) from None
        if self._journal is not None:
            self._position, self._is_new = packed, True

    def release(self, word: int) -> None:
        """Drop a capability at `word`; in a durable cluster, once the log has what was sent before that."""
        if self._journal is not None and not self._has_ended:
            try:
                self._write_before(self._first_held(without=word))
            except BaseException:
                self._is_new = False  # a vertex may catch this, and go on with another position
                raise
        super().release(word)

    def _notify(self) -> None:
        super()._notify()
        if self._journal is not None:
            self._write_before(self._first_held())

    def _write_before(self, first: int) -> None:
        """Write what was sent, and the position, if `first` is a later epoch than before, or a position was
        given.
        """
        assert self._journal is not None and self._note_kept is not None
        kept_before = FOREVER if first < 0 else first
        if not self._is_new and kept_before <= self.kept_before:
            return
        if not self._is_new and (self._unwritten or (first >= 0 and not self._position)):
            what = "gives up its last right" if first < 0 else f"goes on to epoch {first}"
            raise MisuseError(
                f"{self.title()} {what} without a position, and this cluster is durable: after a restart the "
                "source would not know where to go on. Write capability.downgrade(time, position=…), or "
                "drop(position=…): plain data, such as an offset in a file, that says what follows all that "
                "it has sent. It gets the last ones as capability.positions in on_open. A source that cannot "
                "read anything again gives any number"
            )
        by_epoch = [
            (epoch, [batch for _, batch in group])
            for epoch, group in groupby(self._unwritten, key=itemgetter(0))
        ]
        self._journal.write(~self.latest if first < 0 else first, self._position, by_epoch)
        self._unwritten, self._is_new = [], False
        self.kept_before = max(self.kept_before, kept_before)
        self._note_kept()

    def _first_held(self, without: int | None = None) -> int:
        """Return the first epoch at which it may act, once it has released a word; -1 if there is none."""
        words = dict(self.held_words())
        released = () if without is None else (without,)
        for word in (*released, *(word for word, _, _ in self._put_off)):
            words[word] = words.get(word, 0) - 1
        words.update(dict.fromkeys(self.asked_words(), 1))
        epochs = [self.code.unpack_wide(word)[0] for word, count in words.items() if count > 0]
        return min(epochs, default=-1)

    def _check_logged(self, batch: Batch, word: int) -> None:
        """Raise `MisuseError` if what is sent could not be sent again after a restart."""
        (epoch,) = self.code.unpack_wide(word)
        if epoch < self.kept_before:
            raise MisuseError(
                f"{self.title()} sends at epoch {epoch} in a callback that has given it up: in a durable "
                "cluster send first, and then downgrade or drop the capability"
            )
        if has_times(batch):
            raise MisuseError(
                f"{self.title()} sends a {type(batch).__name__}, whose rows have times of their own, and "
                "this cluster is durable: let a source send records or tables"
            )

    def _send_put_off(self) -> None:
        """Send what has a word by now, in order."""
        ready = [each for each in self._put_off if each[0] < self._limit]
        self._put_off = [each for each in self._put_off if each[0] >= self._limit]
        for word, output, batch in ready:
            for connector in self.outputs[output]:
                connector.send(batch, word)
            super().release(word)
        if self._put_off:
            self._surroundings.await_epoch(self.stage)

    def symbols(self, mark: Mark) -> None:
        """Show the words that may be symbols."""
        for _, _, batch in self._put_off:
            mark.holder(batch, f"a batch of {type(batch).__name__} that {self.title()} sends later")
        for _, noted in (*self._past, *self._unwritten):
            if not isinstance(noted, tuple):
                mark.holder(
                    noted, f"a batch of {type(noted).__name__} that {self.title()} has for a log, or of one"
                )
        super().symbols(mark)

    def compared(self) -> object:
        """Return all that decides what it will do."""
        past = self.is_held_back, self._begins_at, self._past, self._through
        logged = self._unwritten, self._position, self._is_new, self._positions, self.kept_before
        return super().compared(), self._granted, self._put_off, self.latest, past, logged

    def rebase(self, by: Rebase) -> None:
        """Count words from a later anchor."""
        self._put_off = [
            (by.word(word), output, batch.rebased(-by.step)) for word, output, batch in self._put_off
        ]
        super().rebase(by)

    def end(self) -> bool:
        """Take all rights."""
        self._granted = None
        self._put_off, self._past, self._unwritten = [], [], []
        return super().end()


def check_source(vertex: Vertex, runner: VertexRunner, holders: ChosenWorkers) -> None:
    """Raise `MisuseError` if a vertex cannot be that of a source, or if a worker of it does not exist."""
    kind = type(vertex)
    if kind.on_open is Vertex.on_open:
        raise MisuseError(
            f"source {runner.name!r} ({runner.site}): {kind.__name__} has no on_open. Write "
            "def on_open(self, capability): …, which is called once, with the right to send from the first "
            "epoch on"
        )
    holders.check(f"source {runner.name!r} ({runner.site})", runner.workers)


def _site_of(text: str) -> CallSite:
    """Return the call site whose text is this."""
    file, _, line = text.rpartition(":")
    return CallSite(file, int(line)) if line.isdigit() else UNKNOWN_SITE
