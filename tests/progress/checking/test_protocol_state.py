"""Every predicate of the protocol's state fails where it should, and by its own name.

Two workers on a line of two stages, input → work: locations 0 and 1, the connector between them 2.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from progress.checking.protocol_state import ProtocolState, failures, failures_between
from progress.graph.graph import ConnectorSpec, Graph, StageSpec
from progress.graph.pointstamp_order import PointstampOrder
from progress.times.path_summary import PathSummary
from progress.times.timestamp import ROOT

LINE = Graph(
    [StageSpec("input", ROOT, 0, 1), StageSpec("work", ROOT, 1, 0)],
    [ConnectorSpec(0, 0, 1, 0, PathSummary.identity(ROOT))],
)
ORDER = PointstampOrder(LINE)
UNIT = LINE.codes[0].unit
EPOCH, NEXT, MESSAGE = (0, 0), (0, UNIT), (2, 0)

FIRST = ProtocolState(
    nrec={EPOCH: 2},
    records={EPOCH: 2},
    caps=[{EPOCH: 1}, {EPOCH: 1}],
    temp=[{}, {}],
    glob=[{EPOCH: 2}, {EPOCH: 2}],
    msg={},
)
"""Both have their first epoch open."""

SENT = {MESSAGE: 1, NEXT: 1, EPOCH: -1}
"""Worker 0 has sent a message to worker 1 and goes on to the next epoch."""

TOLD = replace(
    FIRST,
    nrec={EPOCH: 1, NEXT: 1, MESSAGE: 1},
    records={EPOCH: 1, NEXT: 1, MESSAGE: 1},
    caps=[{NEXT: 1}, {EPOCH: 1}],
    glob=[{EPOCH: 1, NEXT: 1, MESSAGE: 1}, {EPOCH: 2}],
    msg={(0, 1): [SENT]},
)
"""What it has told is under way."""


def labels(state: ProtocolState) -> set[str]:
    return {label for label, _, _ in failures(state, ORDER)}


def test_all_hold_at_first_and_while_news_is_under_way() -> None:
    assert labels(FIRST) == labels(TOLD) == set()
    assert list(failures_between(FIRST, TOLD, ORDER)) == []
    assert TOLD.infos(0, 1) == [SENT, {}]
    assert TOLD.infos(1, 0) == [{}]


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (replace(FIRST, nrec={EPOCH: -2}), {"A1", "A5"}),
        (replace(FIRST, caps=[{EPOCH: -1}, {EPOCH: 1}]), {"B1"}),
        (replace(FIRST, nrec={EPOCH: 1}), {"A5"}),
        (replace(FIRST, records={EPOCH: 3}), {"B2"}),
        (replace(TOLD, msg={}), {"A5", "B2"}),
        (replace(TOLD, msg={(0, 1): [{EPOCH: -1}, {MESSAGE: 1, NEXT: 1}]}), {"A3"}),
        (replace(TOLD, msg={(0, 1): [{MESSAGE: 1, NEXT: 1}, {EPOCH: -1}]}), set()),
    ],
)
def test_each_failure_has_its_name(state: ProtocolState, expected: set[str]) -> None:
    found = labels(state)
    assert expected <= found if expected else not found, found


def test_a_part_that_is_kept_back_is_not_upright_and_not_justified() -> None:
    kept_back = replace(
        TOLD,
        temp=[{MESSAGE: 1}, {}],
        msg={(0, 1): [{NEXT: 1, EPOCH: -1}]},
        glob=[{EPOCH: 1, NEXT: 1}, {EPOCH: 2}],
    )
    assert {"A2", "A3", "B4"} <= labels(kept_back)
    assert not {"A4", "B5"} & labels(kept_back), "worker 1 still has its first epoch, from which all can come"


def test_all_is_unjustified_when_nothing_true_is_before_it() -> None:
    nowhere = replace(
        FIRST, caps=[{}, {}], records={MESSAGE: 1}, nrec={MESSAGE: 1}, glob=[{}, {}], temp=[{MESSAGE: 1}, {}]
    )
    assert {"A2", "A4", "B4", "B5", "A6", "B6"} <= labels(nowhere)


def test_a_view_may_be_below_zero_only_after_something_positive() -> None:
    dipped = {EPOCH: 2, MESSAGE: -1}
    assert "B6" not in labels(replace(FIRST, glob=[dipped, {EPOCH: 2}]))
    assert "B6" in labels(replace(FIRST, glob=[{MESSAGE: -1}, {EPOCH: 2}]))


def test_what_will_be_heard_of_is_after_something_believed() -> None:
    assert "B9" not in labels(TOLD)
    assert "B9" in labels(replace(TOLD, glob=[TOLD.glob[0], {NEXT: 2}]))


def test_what_has_held_before_is_not_looked_at_again() -> None:
    wrong = replace(TOLD, msg={(0, 1): [{EPOCH: -1}, {MESSAGE: 1, NEXT: 1}]})
    assert "A3" in {label for label, _, _ in failures(wrong, ORDER)}
    assert "A3" not in {label for label, _, _ in failures(wrong, ORDER, wrong)}
    assert "A3" in {label for label, _, _ in failures(wrong, ORDER, TOLD)}


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (replace(FIRST, nrec={NEXT: 1}), FIRST, {"S1"}),
        (replace(FIRST, glob=[{EPOCH: 2}, {NEXT: 2}]), FIRST, {"S2", "S3"}),
        (replace(FIRST, glob=[{EPOCH: 2}, {}]), FIRST, {"S2", "S3"}),
        (TOLD, replace(TOLD, nrec={NEXT: 1}, glob=[{NEXT: 1}, {NEXT: 1}]), set()),
    ],
)
def test_what_is_over_stays_over(before: ProtocolState, after: ProtocolState, expected: set[str]) -> None:
    assert {label for label, _, _ in failures_between(before, after, ORDER)} == expected
