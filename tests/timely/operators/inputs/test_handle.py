"""Inputs: epochs that are open, sealed, closed; appends that count once.

epochs_*     what enters when
appends_*    repeated, late, expected
insertions_* into whichever epoch is open, by name; parts that wait, and for how long
plain_*      rows that are kept as Python's values
"""

from __future__ import annotations

import weakref
from typing import cast

import pytest

from progress.times.anchor import EPOCH_MAX, Anchor
from progress.times.time_words import TimeCode
from timely import Dataflow, InputClosedError, MisuseError, Records, TimeOverflowError, Vertex
from timely.client.tables import records_of
from timely.dictionaries import Mark
from timely.durable.journal import InputJournal
from timely.limits import FEW_ROWS_MAX, STAGED_BYTES_MAX, STAGED_SECONDS_MAX
from timely.operators.inputs.codecs import RecordsIn
from timely.operators.inputs.deliveries import ONE_ATTEMPT, Deliveries, StagedPart
from timely.operators.inputs.handle import InputHandle
from timely.operators.inputs.names import DeliveryName
from timely.operators.inputs.plain_rows import PlainRow
from timely.running.core import Worker
from timely.running.instance import Instance


def running(bits: tuple[int, ...] | None = None) -> tuple[Worker, Instance, InputHandle]:
    dataflow = Dataflow("flow", level_bits=bits)
    dataflow.output("out", dataflow.input("numbers"))
    worker = Worker()
    instance = worker.install(dataflow.freeze())
    return worker, instance, instance.input("numbers")


def entered(worker: Worker, instance: Instance) -> list[tuple[int, object]]:
    worker.run_until_idle()
    return records_of(instance.output("out").log.changes(0, 2**62))


def test_epochs_enter_when_they_are_sealed_each_at_its_time() -> None:
    worker, instance, handle = running()
    handle.send(["a"])
    handle.send(["c"], epoch=2)
    handle.send(["b"], epoch=1)
    assert entered(worker, instance) == [] and handle.rows_waiting == 3
    assert (handle.seal(), handle.epoch) == (0, 1)
    assert entered(worker, instance) == [(0, "a")]
    assert (handle.seal(5), handle.epoch, handle.rows_waiting) == (5, 6, 0)
    assert entered(worker, instance) == [(0, "a"), (1, "b"), (2, "c")]
    assert instance.output("out").complete_before == 6


class Batch(Records):
    """One of which it can be seen that it has gone."""

    __slots__ = ("__weakref__",)


class Entrance:
    """Takes what enters, and keeps nothing but how many batches were there at the time."""

    def __init__(self, code: TimeCode, batches: list[weakref.ref[Batch]]) -> None:
        self.code = code
        self.batches = batches
        self.seen: list[tuple[object, int]] = []

    def may_enter(self, epoch: int) -> bool:
        return epoch == 0

    def let_in(self, batch: Records, word: int) -> None:
        assert word == 0
        self.seen.append((batch.records[0], sum(each() is not None for each in self.batches)))

    def wake(self) -> None:
        pass

    def advance(self, old: int, new: int | None) -> None:
        assert (old, new) == (0, 1)


def test_epochs_enter_batch_by_batch_and_what_has_entered_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """A load of many batches of which little is kept needs no room for all of them at once."""
    _, instance, handle = running()
    batches: list[weakref.ref[Batch]] = []
    entrance = Entrance(instance.frozen.codes[0], batches)
    monkeypatch.setattr(handle, "_entrance", entrance)
    for number in range(3):
        batch = Batch([number])
        batches.append(weakref.ref(batch))
        handle.append(0, batch)
    del batch
    handle.seal()
    handle.let_rows_in()
    assert entrance.seen == [(0, 3), (1, 2), (2, 1)]


def test_epochs_sealed_twice_stay_sealed() -> None:
    _, _, handle = running()
    handle.seal(3)
    assert (handle.seal(1), handle.epoch) == (1, 4)


def test_epochs_end_when_the_input_is_closed_after_what_waits_has_entered() -> None:
    worker, instance, handle = running()
    handle.send(["later"], epoch=7)
    handle.close()
    handle.close()
    assert entered(worker, instance) == [(7, "later")]
    assert instance.is_complete() and instance.epochs_done() == 2**62
    for late in (lambda: handle.send(["x"]), handle.seal):
        with pytest.raises(InputClosedError, match="input 'numbers' is closed"):
            late()


def test_epochs_beyond_the_layout_of_times_wait_for_words_and_enter_at_their_own() -> None:
    worker, instance, handle = running(bits=(4,))
    for epoch in (3, 15, 16, 2**40, EPOCH_MAX - 1):
        handle.send([epoch], epoch)
    assert {handle.epoch_word(epoch) for epoch in (16, 2**40)} == {0}
    handle.seal(16)
    handle.seal(EPOCH_MAX - 1)
    assert entered(worker, instance) == [(epoch, epoch) for epoch in (3, 15, 16, 2**40, EPOCH_MAX - 1)]
    assert instance.epochs_done() == EPOCH_MAX == handle.held_epoch


def test_epochs_after_the_last_are_refused() -> None:
    _, _, handle = running(bits=(4,))
    for epoch in (EPOCH_MAX + 1, -1):
        with pytest.raises(TimeOverflowError, match="the epoch of .* does not fit: it may be 0 to 4"):
            handle.append(epoch, Records(["x"])) if epoch > 0 else handle.epoch_word(epoch)
    with pytest.raises(TimeOverflowError):
        handle.seal(EPOCH_MAX)


def test_appends_with_one_identity_count_once_even_right_after_the_seal() -> None:
    worker, instance, handle = running()
    identity = DeliveryName("writer", 3)
    assert [handle.append(0, Records(["x"]), identity) for _ in range(3)] == [True, False, False]
    assert handle.append(0, Records(["y"]), DeliveryName("writer", 4))
    assert handle.append(0, Records(["z"]), DeliveryName("other", 3))
    assert handle.append(1, Records(["x"]), identity), "identities belong to an epoch"
    handle.seal()
    assert not handle.append(0, Records(["x"]), identity)
    handle.seal()
    assert sorted(entered(worker, instance), key=str) == [(0, "x"), (0, "y"), (0, "z"), (1, "x")]


def test_appends_of_several_batches_count_together() -> None:
    _, _, handle = running()
    identity = DeliveryName("writer", 0)
    assert handle.append_all(0, [Records(["a"]), Records([]), Records(["b"])], identity)
    assert not handle.append_all(0, [Records(["a"]), Records(["b"])], identity)
    assert handle.rows_waiting == 2


def test_appends_to_a_sealed_epoch_say_what_is_open() -> None:
    _, _, handle = running()
    handle.seal(4)
    with pytest.raises(
        InputClosedError,
        match="epoch 4 is sealed and takes no more rows; the open epoch is 5. What repeats .* is done",
    ):
        handle.append(4, Records(["x"]), DeliveryName("late", 0))
    with pytest.raises(MisuseError, match="whole numbers from 0 on, not -1"):
        handle.append(-1, Records(["x"]), DeliveryName("early", 0))


def test_appends_that_are_missing_are_named_even_of_the_epoch_just_sealed() -> None:
    _, _, handle = running()
    here, missing = DeliveryName("writer", 0), DeliveryName("writer", 1)
    handle.append(0, Records(["x"]), here)
    assert handle.deliveries.missing(0, [here, missing]) == [missing]
    handle.seal()
    assert handle.deliveries.missing(0, [here]) == []


def test_appends_are_forgotten_two_epochs_later() -> None:
    _, _, handle = running()
    for epoch in range(50):
        handle.append(epoch, Records(["x"]), DeliveryName("writer", epoch))
        handle.seal()
    assert len(handle.deliveries.named_epochs) == 1


def test_insertions_enter_the_open_epoch_and_count_once_for_ever() -> None:
    worker, instance, handle = running()
    identity = DeliveryName("writer", 0)
    assert handle.is_new(identity) and handle.insert(0, [Records(["a"])], identity) == 0
    assert not handle.is_new(identity)
    for _ in range(5):
        handle.seal()
    assert not handle.is_new(identity) and handle.is_new(DeliveryName("writer", 1))
    assert handle.insert(2, [Records(["b"])], DeliveryName("writer", 1)) == 5
    assert handle.insert(7, [Records(["c"])], DeliveryName("writer", 2)) == 7
    handle.close()
    assert not handle.is_new(identity), "a repetition is known even when nothing new is taken"
    with pytest.raises(InputClosedError, match="nothing can be added"):
        handle.is_new(DeliveryName("writer", 3))
    assert entered(worker, instance) == [(0, "a"), (5, "b"), (7, "c")]


def test_insertions_in_parts_wait_as_long_as_there_is_room() -> None:
    """What has waited for too long makes room."""
    _, _, handle = running()
    now = [0.0]
    staged = handle.deliveries = Deliveries("numbers", lambda: now[0])
    old, young = DeliveryName("old", 0), DeliveryName("young", 0)
    staged.stage(old, ONE_ATTEMPT, 0, StagedPart(0, [Records(["x"])], STAGED_BYTES_MAX, 1))
    staged.check_room(0)
    for seconds in (0, 2 * STAGED_SECONDS_MAX):
        now[0] = seconds
        with pytest.raises(MisuseError, match="parts of insertions wait here with .* are the limit"):
            staged.check_room(1)
    now[0] += 1
    staged.check_room(STAGED_BYTES_MAX)
    for number, row in enumerate("yz"):
        staged.stage(young, ONE_ATTEMPT, number, StagedPart(0, [Records([row])], 1, 1))
    assert handle.rows_waiting == 0 and handle.has_rows
    handle.enter(young, None, 0)
    assert handle.has_rows and handle.rows_waiting == 2 and staged.staged_bytes == 0 and not staged.batches()


def test_inputs_that_do_not_exist_are_named_with_those_that_do() -> None:
    _, instance, _ = running()
    with pytest.raises(MisuseError, match=r"no input 'letters': there are \['numbers'\]"):
        instance.input("letters")
    assert issubclass(InputClosedError, MisuseError) and Vertex is not None


class PlainIn(RecordsIn):
    """Takes plain rows as records of row and diff, and says in which batches they were made."""

    def __init__(self) -> None:
        self.made: list[int] = []

    def checked_rows(self, rows: object, diff: int) -> list[PlainRow]:
        if not isinstance(rows, list):
            raise MisuseError("no plain rows")
        return rows

    def encode_rows(self, rows: list[PlainRow], diffs: list[int], epoch_word: int) -> Records:
        self.made.append(len(rows))
        return Records(list(zip(rows, diffs, strict=True)))


def plain(bits: tuple[int, ...] | None = None) -> tuple[Worker, Instance, InputHandle, PlainIn]:
    codec = PlainIn()
    dataflow = Dataflow("flow", level_bits=bits)
    dataflow.output("out", dataflow.input("numbers", codec))
    worker = Worker()
    instance = worker.install(dataflow.freeze())
    return worker, instance, instance.input("numbers"), codec


@pytest.mark.parametrize("diff", [0, 2, -2, 1 << 63, (1 << 64) - 1])
def test_plain_rows_as_often_as_no_client_says_are_refused_before_anybody_seals(diff: int) -> None:
    worker, instance, handle, _ = plain()
    handle.take_rows(0, [(1,)], 1, "w", 0)
    with pytest.raises(MisuseError, match="plain rows are added or removed once"):
        handle.take_rows(0, [(2,)], diff, "w", 1)
    assert handle.rows_waiting == 1 and handle.is_new(DeliveryName("w", 1))
    handle.seal()
    assert entered(worker, instance) == [(0, ((1,), 1))]


def test_plain_rows_with_a_name_that_is_known_are_not_taken_again() -> None:
    _, _, handle, _ = plain()
    assert handle.take_rows(0, [(1,)], 1, "w", 0) == (True, 0)
    assert handle.take_rows(0, [(2,)], 1, "w", 2) == (True, 0), "a gap is none of its business"
    handle.seal()
    for sequence in (0, 2):
        assert handle.take_rows(0, [(1,)], 1, "w", sequence) == (False, 1)
    assert handle.take_rows(0, [(1,)], 1, "w", 1) == (True, 1)
    assert handle.rows_waiting == 1
    handle.close()
    assert handle.take_rows(0, [(1,)], 1, "w", 0) == (False, 2), "that is known still"
    for writer, sequence in [("w", 3), ("other", 0)]:
        with pytest.raises(InputClosedError, match="is closed: nothing can be added"):
            handle.take_rows(0, [(1,)], 1, writer, sequence)


def test_plain_rows_of_an_epoch_are_one_batch_made_when_it_is_sealed() -> None:
    worker, instance, handle, codec = plain()
    assert handle.take_rows(0, [(1,), (2,)], 1, "w", 0) == (True, 0)
    assert handle.take_rows(0, [(1,)], -1, "w", 1) == (True, 0)
    assert (handle.rows_waiting, codec.made, handle.is_new(DeliveryName("w", 1))) == (3, [], False)
    handle.seal()
    assert (handle.rows_waiting, codec.made) == (0, [3])
    assert entered(worker, instance) == [(0, ((1,), 1)), (0, ((2,), 1)), (0, ((1,), -1))]


def test_plain_rows_enter_the_epoch_that_they_are_for(monkeypatch: pytest.MonkeyPatch) -> None:
    worker, instance, handle, codec = plain()
    handle.seal(2)
    calls = [(0, 3), (5, 5), (4, 4), (5, 5), (0, 3)]
    for number, (asked, got) in enumerate(calls):
        assert handle.take_rows(asked, [(got, number)], 1, "w", number) == (True, got)
    assert handle.rows_waiting == 5
    handle.seal(4)
    assert handle.rows_waiting == 2
    handle.close()
    assert sorted(entered(worker, instance)) == sorted(
        (got, ((got, number), 1)) for number, (_, got) in enumerate(calls)
    )
    assert sum(codec.made) == 5


def test_plain_rows_of_a_later_epoch_wait_for_it_or_for_the_end() -> None:
    worker, instance, handle, _ = plain()
    handle.take_rows(5, [(1,)], 1, "w", 0)
    handle.seal(4)
    assert entered(worker, instance) == [] and handle.rows_waiting == 1
    handle.take_rows(7, [(2,)], 1, "w", 1)
    handle.close()
    assert handle.rows_waiting == 0
    assert entered(worker, instance) == [(5, ((1,), 1)), (7, ((2,), 1))]


def test_plain_rows_alone_of_a_later_epoch_enter_when_their_input_is_closed() -> None:
    worker, instance, handle, _ = plain()
    handle.take_rows(7, [(1,)], 1, "w", 0)
    handle.close()
    assert handle.rows_waiting == 0 and entered(worker, instance) == [(7, ((1,), 1))]


def test_plain_rows_enter_behind_those_of_earlier_epochs_that_are_sealed_with_them() -> None:
    """Further ahead than words go, so that they have to wait, and the right to enter before them goes."""
    worker, instance, handle, _ = plain((5,))
    far = instance.frozen.codes[0].layout.window + 3
    handle.send(["first"])
    handle.take_rows(far, [(1,)], 1, "w", 0)
    handle.seal(far)
    assert entered(worker, instance) == [(0, "first"), (far, ((1,), 1))]


class Timed(Records):
    """Records with the time word that their rows have."""

    __slots__ = ("word",)

    def __init__(self, records: list[object], word: int) -> None:
        super().__init__(records)
        self.word = word

    def shifted(self, keep: int, add: int) -> Timed:
        return Timed(list(self.records), (self.word & keep) + add)


class TimedIn(PlainIn):
    def encode_rows(self, rows: list[PlainRow], diffs: list[int], epoch_word: int) -> Records:
        return Timed(list(zip(rows, diffs, strict=True)), epoch_word)


def test_plain_rows_are_moved_to_the_word_at_which_they_enter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Words may count from a later epoch by then."""
    _, instance, handle, _ = plain()
    monkeypatch.setattr(handle, "_plain", TimedIn())
    handle.take_rows(1, [(1,)], 1, "w", 0)
    handle.seal(1)
    (_, ((_, batch),)) = handle._sealed[0][0][0]
    assert isinstance(batch, Timed) and batch.word == instance.frozen.codes[0].pack((1,)) != 0
    words: list[tuple[int, int]] = []

    class Later(Entrance):
        def may_enter(self, epoch: int) -> bool:
            return epoch == 1

        def let_in(self, batch: Records, word: int) -> None:
            assert isinstance(batch, Timed)
            words.append((batch.word, word))

        def advance(self, old: int, new: int | None) -> None:
            pass

    monkeypatch.setattr(handle, "_entrance", Later(instance.frozen.codes[0].anchored(Anchor(1)), []))
    handle.let_rows_in()
    assert words == [(0, 0)]


def test_plain_rows_are_made_a_batch_when_there_are_many() -> None:
    worker, instance, handle, codec = plain()
    rows = [(n,) for n in range(100)]
    for number in range(25):
        handle.take_rows(0, rows, 1, "w", number)
    assert max(codec.made) < FEW_ROWS_MAX + 100 and len(codec.made) == 2
    assert handle.rows_waiting == 2_500
    handle.seal()
    assert len(entered(worker, instance)) == 2_500


def test_plain_rows_wait_on_in_a_handle_that_takes_over() -> None:
    _, _, old, _ = plain()
    worker, instance, new, _ = plain()
    old.take_rows(0, [(1,)], 1, "w", 0)
    new.take_over(old, 0)
    assert (old.rows_waiting, new.rows_waiting, new.is_new(DeliveryName("w", 0))) == (0, 1, False)
    old.seal()
    new.seal()
    assert entered(worker, instance) == [(0, ((1,), 1))]


def test_plain_rows_that_are_refused_change_nothing() -> None:
    _, _, handle = running()
    with pytest.raises(MisuseError, match="input 'numbers' takes records, and no plain rows"):
        handle.take_rows(0, [(1,)], 1, "w", 0)
    _, _, handle, _ = plain()
    with pytest.raises(MisuseError, match="no plain rows"):
        handle.take_rows(0, None, 1, "w", 0)
    with pytest.raises(TimeOverflowError):
        handle.take_rows(EPOCH_MAX + 1, [(1,)], 1, "w", 0)
    assert handle.is_new(DeliveryName("w", 0)) and handle.rows_waiting == 0


class FailsOnce(RecordsIn):
    """An input where order counts, and memory is short as the batch with this number is put in order."""

    def __init__(self, number: int) -> None:
        self.left = number

    def ordered(self, batch: Records, order: int, place: int) -> Records:
        del order, place
        self.left -= 1
        if self.left == 0:
            raise MemoryError
        return batch


def test_appends_to_several_epochs_that_fail_in_the_midst_have_changed_nothing() -> None:
    _, instance, _ = running()
    handle = InputHandle("numbers", Entrance(instance.frozen.codes[0], []), FailsOnce(2))
    with pytest.raises(MemoryError):
        handle.append_epochs([0, 1], [0, 1], [[Records([1])], [Records([2])]], DeliveryName("w", 0))
    assert not handle.rows_waiting and len(handle.deliveries.named_epochs) == 0
    handle.append_epochs([0, 1], [0, 1], [[Records([1])], [Records([2])]], DeliveryName("w", 0))
    assert handle.rows_waiting == 2 and len(handle.deliveries.named_epochs) == 2


def test_insertions_that_fail_in_the_midst_are_new_when_they_are_repeated() -> None:
    _, instance, _ = running()
    handle = InputHandle("numbers", Entrance(instance.frozen.codes[0], []), FailsOnce(1))
    for _ in range(2):
        with pytest.raises((MemoryError, TimeOverflowError)):
            handle.insert(0 if handle.codec.left else EPOCH_MAX + 1, [Records([1])], DeliveryName("w", 0))  # type: ignore[attr-defined]
        assert not handle.rows_waiting and handle.is_new(DeliveryName("w", 0))
    handle.insert(0, [Records([1])], DeliveryName("w", 0))
    assert handle.rows_waiting == 1 and not handle.is_new(DeliveryName("w", 0))


def test_insertions_in_parts_wait_on_in_a_handle_that_takes_over_until_it_is_closed() -> None:
    _, _, old = running()
    worker, instance, new = running()
    for number, name in enumerate("ab"):
        old.deliveries.stage(
            DeliveryName(name, 0), ONE_ATTEMPT, number, StagedPart(0, [Records([name])], 1, 1)
        )
    new.take_over(old, 0)
    assert not old.has_rows and new.deliveries.staged_bytes == 2
    new.enter(DeliveryName("a", 0), None, 0)
    assert new.has_rows
    new.close()
    assert not new.has_rows and entered(worker, instance) == [(0, "a")]


class Noting(RecordsIn):
    """An input where order counts: it notes each record, and its order and place."""

    def __init__(self) -> None:
        self.noted: list[tuple[object, int, int]] = []

    def ordered(self, batch: Records, order: int, place: int) -> Records:
        self.noted.append((batch.records[0], order, place))
        return batch


@pytest.mark.parametrize("attempts", [None, ["b", "a"]])
def test_parts_are_in_the_order_of_attempts_then_of_parts_then_of_workers(attempts: list[str] | None) -> None:
    codec, name = Noting(), DeliveryName("w", 0)
    _, instance, _ = running()
    for worker in range(2):
        handle = InputHandle("numbers", Entrance(instance.frozen.codes[0], []), codec)
        for attempt in attempts or [ONE_ATTEMPT]:
            for number in (1, 0):
                staged = StagedPart(0, [Records([(attempt, number, worker)])], 1, 1)
                handle.deliveries.stage(name, attempt, number, staged)
        handle.enter(name, attempts, 0, 7, worker)
    noted = sorted(codec.noted, key=lambda one: one[1:])
    assert len({one[1:] for one in noted}) == len(noted)
    assert [one for one, _, _ in noted] == [
        (attempt, number, worker)
        for attempt in attempts or [ONE_ATTEMPT]
        for number in range(2)
        for worker in range(2)
    ]
    assert noted[0][1] == 7, "the order of the first attempt is the one that worker 0 has said"


def test_insertions_in_parts_that_have_entered_are_known_on_every_worker() -> None:
    """Their client may not have heard of the decision, send all parts again, and die meanwhile: if another
    worker staged these, its log would have them in place of those that have entered.
    """
    _, _, handle = running()
    name = DeliveryName("w", 0)
    handle.deliveries.stage(name, ONE_ATTEMPT, 0, StagedPart(0, [Records(["a"])], 1, 1))
    handle.journal = cast("InputJournal", object())
    handle.enter(name, None, 3)
    assert not handle.is_new(name) and handle.deliveries.entered_by(name) == 3


class _Dropped:
    """A journal that notes what is dropped."""

    def __init__(self) -> None:
        self.noted: list[tuple[str, int, str]] = []

    def dropped(self, writer: str, sequence: int, attempt: str) -> None:
        self.noted.append((writer, sequence, attempt))


def test_insertions_in_parts_that_are_given_up_are_written_by_the_handle_that_has_them() -> None:
    _, instance, _ = running()
    old, new = (InputHandle("numbers", Entrance(instance.frozen.codes[0], []), Noting()) for _ in range(2))
    journals = [_Dropped(), _Dropped()]
    for handle, journal in zip((old, new), journals, strict=True):
        handle.journal = cast("InputJournal", journal)
    for sequence in range(2):
        part = StagedPart(0, [Records(["a"])], 1, 1)
        old.deliveries.stage(DeliveryName("w", sequence), ONE_ATTEMPT, 0, part)
    old.deliveries.drop(DeliveryName("w", 0), [ONE_ATTEMPT])
    new.take_over(old, 0)
    new.deliveries.drop(DeliveryName("w", 1), [ONE_ATTEMPT])
    assert [each.noted for each in journals] == [[("w", 0, ONE_ATTEMPT)], [("w", 1, ONE_ATTEMPT)]]


def test_calls_go_on_to_be_in_order_in_a_handle_that_takes_over() -> None:
    """Of a key the last call counts, also where the first was taken by the version before."""
    codec = Noting()
    _, instance, _ = running()
    old, new = (InputHandle("numbers", Entrance(instance.frozen.codes[0], []), codec) for _ in range(2))
    for sequence, handle in enumerate([old, old, new]):
        if handle is new:
            new.take_over(old, 0)
        handle.insert(0, [Records([sequence])], DeliveryName("w", sequence))
    assert [order for _, order, _ in codec.noted] == [1, 2, 3] and new.rows_waiting == 3


def test_appends_to_epochs_that_nobody_remembers_are_judged_by_those_that_are_remembered() -> None:
    _, _, handle = running()
    handle.seal(4)
    assert handle.deliveries.first_epoch == 4, "also where no name was to be forgotten"
    name = DeliveryName("w", 0)
    handle.append_epochs([5, 6], [0, 0], [[Records([1])], [Records([2])]], name)
    assert handle.deliveries.is_taken_in_all([2, 5], name)
    with pytest.raises(MisuseError, match="of epoch 5 and none of epoch 4"):
        handle.deliveries.is_taken_in_all([4, 5], name)


def test_insertions_in_parts_refer_to_words_as_rows_of_open_and_sealed_epochs_do() -> None:
    class Shown(Records):
        def symbols(self, mark: Mark) -> None:
            del mark
            shown.append(self.records[0])

    shown: list[object] = []
    _, _, handle = running()
    handle.append(0, Shown(["sealed"]))
    handle.seal()
    handle.append(4, Shown(["open"]))
    handle.deliveries.stage(DeliveryName("w", 0), ONE_ATTEMPT, 0, StagedPart(0, [Shown(["part 0"])], 1, 1))
    handle.deliveries.stage(DeliveryName("w", 0), ONE_ATTEMPT, 1, StagedPart(0, [Shown(["part 1"])], 1, 1))
    handle.symbols(Mark([]))
    assert sorted(map(str, shown)) == ["open", "part 0", "part 1", "sealed"]
