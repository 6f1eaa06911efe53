"""Which epochs have a digest: those that all workers of some incarnation have written."""

from __future__ import annotations

import msgpack

from timely.durable.digests import PastDigests


def test_the_shares_of_all_workers_are_added_up() -> None:
    past = PastDigests()
    past.note(1, 2, 0, 3, [(0, 5), (2, -7)])
    past.note(1, 2, 1, 2, [(0, 6)])
    past.note(1, 2, 1, 4, [(2, 7), (3, 1)])
    past.end_incarnation()
    assert past.before == 3 and past.sums == {0: 11}


def test_what_some_worker_has_not_written_counts_for_nothing() -> None:
    past = PastDigests()
    past.note(1, 3, 0, 9, [(0, 5)])
    past.note(1, 3, 1, 9, [(0, 6)])
    past.end_incarnation()
    assert past.before == 0 and not past.sums


def test_a_later_incarnation_adds_epochs_that_have_no_digest_yet() -> None:
    past = PastDigests()
    past.note(1, 1, 0, 2, [(1, 5)])
    past.note(1, 1, 0, 5, [(4, 3)])
    past.note(4, 2, 0, 7, [(5, 1)])
    past.note(4, 2, 1, 6, [(5, 1)])
    past.note(5, 1, 0, 6, [])
    past.end_incarnation()
    assert past.before == 6 and past.sums == {1: 5, 4: 3, 5: 2}
    assert [past.made_by(epoch) for epoch in range(6)] == [1, 1, 1, 1, 1, 4]


def test_a_base_carries_what_was_noted_and_later_records_go_on_from_there() -> None:
    """An incarnation that goes on while a fold reads its logs has written digests that not all its workers
    have told yet.
    """
    whole, first = PastDigests(), PastDigests()
    early = [(1, 2, 0, 3, [(0, 5), (2, -7)]), (1, 2, 1, 2, [(0, 6)])]
    for note in early:
        whole.note(*note)
        first.note(*note)
    carried = PastDigests.of(first.notes(0))
    for digests in (whole, carried):
        digests.note(1, 2, 1, 4, [(2, 9), (3, 1)])
        digests.end_incarnation()
    assert whole.before == carried.before == 3
    assert whole.sums == {0: 11, 2: 2}
    assert carried.sums == {0: 11, 2: 2}, "epoch 0 is the last that the base has summed up"


def base_of(past: PastDigests, after: int) -> PastDigests:
    """What a restart reads of a base that sums up the epochs up to `after`."""
    read = PastDigests.of(msgpack.unpackb(msgpack.packb(past.notes(after)), use_list=True))
    read.end_incarnation()
    return read


def test_a_base_has_the_sum_of_what_it_sums_up() -> None:
    past = PastDigests()
    past.note(1, 2, 0, 4, [(0, 5), (2, -7), (3, 4)])
    past.note(1, 2, 1, 3, [(0, 6)])
    past.note(2, 1, 0, 9, [(3, 1), (5, 2), (7, 3)])
    past.end_incarnation()
    assert past.before == 9 and past.sums == {0: 11, 2: 2**64 - 7, 3: 1, 5: 2, 7: 3}
    for after in range(-1, 9):
        base = base_of(past, after)
        assert base.is_whole and base.before == 9
        assert [base.total(stop) for stop in range(after + 1, 10)] == [
            past.total(stop) for stop in range(after + 1, 10)
        ]
        assert {epoch: each for epoch, each in base.sums.items() if epoch > after} == {
            epoch: each for epoch, each in past.sums.items() if epoch > after
        }
    assert base_of(base_of(past, 4), 6).total(7) == past.total(7)


def test_a_base_that_sums_up_what_has_no_digest_says_so_for_ever() -> None:
    past = PastDigests()
    past.note(1, 2, 0, 9, [(0, 5), (4, 7), (8, 1)])
    past.note(1, 2, 1, 3, [(0, 6)])
    assert base_of(past, 2).is_whole and not base_of(past, 3).is_whole
    base = PastDigests.of(past.notes(5))
    base.note(1, 2, 1, 9, [(3, 1), (8, 2)])  # the same incarnation goes on
    base.end_incarnation()
    assert (base.is_whole, base.before, base.sums[8]) == (False, 9, 3)
    assert not base_of(base, 7).is_whole


def test_a_base_has_one_note_of_all_incarnations_that_have_ended() -> None:
    """Programs that cron starts are an incarnation each; killed ones leave digests that do not count."""
    whole, past = PastDigests(), PastDigests()
    for incarnation in range(1, 50):
        for digests in (whole, past):
            digests.note(incarnation, 2, 0, incarnation + 9, [(incarnation - 1, 3), (incarnation + 8, 5)])
            digests.note(incarnation, 2, 1, incarnation, [(incarnation - 1, incarnation)])
            digests.end_incarnation()
        notes = past.notes(incarnation - 3)
        assert len(notes) <= 3 and sum(len(sums) for *_, sums in notes) <= 8
        past = base_of(past, incarnation - 3)
    assert past.before == whole.before == 49 and past.is_whole
    assert [past.total(stop) for stop in (47, 48, 49)] == [whole.total(stop) for stop in (47, 48, 49)]
    assert whole.total(49) == 49 * 3 + sum(range(50))
