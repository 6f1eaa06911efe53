"""Workers that hold back what they tell of progress: never optimistic, and nobody waits for ever.

random_*     random dataflows in each mode, all predicates after every activation
mutants_*    rules of holding back that are wrong, each by name, and who notices

In every order: `tests/simulation/test_explored.py`.
"""

from __future__ import annotations

import re
import struct
from collections import Counter
from functools import cache

import pytest
from random_dataflows import run

from progress.errors import InternalError
from progress.tracking.broadcast import Broadcaster
from progress.tracking.count_changes import Change
from timely.running.sending import telling as modes

SIZES = [(3, 1), (3, 3), (4, 2)]
LARGE = [(2, 1), (2, 2), (5, 2)]
"""(workers, how many of them on each host); the large ones are left to the thorough profile."""


@cache
def alone(case: int) -> object:
    outputs, _ = run(case, 1, None, monitored=False)
    return outputs


def labels_of(cases: int, workers: int, per_host: int) -> Counter[str]:
    """By which predicates some random runs fail; "" for those that pass."""
    found: Counter[str] = Counter()
    for case in range(cases):
        try:
            run(case, workers, case, per_host=per_host)
            found[""] += 1
        except InternalError as error:
            label = re.match("progress predicate (.+?) does not hold", str(error))
            assert label is not None, error
            found[label[1]] += 1
    return found


# random_


@pytest.mark.parametrize(("workers", "per_host"), SIZES + LARGE)
def test_random_dataflows_are_never_early_and_nothing_is_lost(
    workers: int, per_host: int, seed: int, effort: int
) -> None:
    # In the quick profile the large ones run without the monitor, which takes most of the time.
    is_watched = (workers, per_host) in SIZES or effort > 1
    for number in range(effort):
        case = seed + number
        outputs, watch = run(case, workers, case, is_watched, per_host=per_host)
        where = f"seed {case}, {workers} workers, {per_host} on each host"
        assert not watch.early, f"{where}: {watch.early[0]}"
        assert not +watch.asked and not -watch.asked, f"{where}: {watch.asked}"
        assert outputs == alone(case), where


# mutants_


def test_mutants_a_member_takes_its_own_changes_for_news(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(modes, "minus", lambda changes, own: [list(own), changes][1])
    labels = labels_of(3, 3, 3)
    assert labels.keys() <= {"A5", "S3", ""} and labels["A5"] + labels["S3"] > 0, labels


def test_mutants_what_is_held_back_loses_its_increments(monkeypatch: pytest.MonkeyPatch) -> None:
    write = Broadcaster.on_held

    def lowered(self: Broadcaster, changes: list[Change]) -> bytes:
        return write(self, [change for change in changes if change[2] < 0] or changes)

    monkeypatch.setattr(Broadcaster, "on_held", lowered)
    labels = labels_of(3, 3, 1)
    assert labels.keys() <= {"A5", "S3", ""} and labels["A5"] + labels["S3"] > 0, labels


def test_mutants_a_hub_says_of_too_few_messages_that_they_are_in_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tell = modes._HeldBack.tell_members

    def none(self: modes._HeldBack) -> tuple[bytes, bytes]:
        payload, counts = tell(self)
        return bytes(payload), struct.pack(f"<{len(counts) // 4}I", *([0] * (len(counts) // 4)))

    monkeypatch.setattr(modes._HeldBack, "tell_members", none)
    labels = labels_of(3, 3, 3)
    assert labels.keys() <= {"A5", "S3", ""} and labels["A5"] + labels["S3"] > 0, labels
