"""Durable clusters whose processes are killed and whose disks fail: all kinds of faults, and their judge.

faults_*   rounds with every kind of cluster and of mishap
judge_*    what a restart may not change is seen
"""

from __future__ import annotations

from collections import Counter

import pytest
from soak.durable.judge import DurableModel, Judge
from soak.durable.mishaps import MISHAPS
from soak.durable.rounds import DurableRound
from soak.model import WrongAnswer
from soak.queries import QUERIES, Rows
from two_hosts import can_have_namespaces

FILTERED = next(query for query in QUERIES if query.name == "filtered")
ROUNDS = {
    "embedded": ["program", "full", "folded", "second", "torn"],
    "threads": ["fails", "program twice"],
    "processes": [
        "worker",
        "rescale",
        "slow",
        "rescale and killed",
        "full and killed",
        "rescale",
        "program",
        "stop",
    ],
    "server": [
        "worker twice",
        "program",
        "supervisor",
        "workers",
        "zombie",
        "torn",
        "supervisor twice",
        "program twice",
        "fold",
    ],
}
if can_have_namespaces():
    ROUNDS["hosts"] = ["link"]


def test_faults_are_of_every_kind() -> None:
    assert sum(len(names) for names in ROUNDS.values()) >= 24
    assert {"link", *(name for names in ROUNDS.values() for name in names)} == {
        name for names in MISHAPS.values() for name in names
    }


@pytest.mark.timeout(600)  # the first on a machine compiles
@pytest.mark.parametrize("kind", ROUNDS)
def test_faults_lose_nothing_and_change_nothing(kind: str) -> None:
    standby = kind == "server"
    verdict = DurableRound(7, kind=kind, mishaps=ROUNDS[kind], standby=standby).run()
    assert verdict.epochs > 0 and verdict.operations > 4 * verdict.faults


ROW: Rows = Counter({(1, 60, 7): 1})


def test_judge_sees_that_a_restart_shows_another_thing() -> None:
    model = DurableModel(FILTERED, 0)
    model.saw_truth("rows", 0, 3, {1: ROW})
    model.saw_truth("rows", 0, 2, {1: ROW})
    model.saw_truth("rows", 1, 4, {1: ROW, 3: ROW})
    assert model.complete["rows"] == 4 and model.truth["rows"] == {1: ROW, 3: ROW}
    for changes in ({}, {1: ROW, 2: ROW}, {0: ROW, 1: ROW}):
        with pytest.raises(WrongAnswer, match="before a restart"):
            model.saw_truth("rows", 0, 3, changes)
    with pytest.raises(WrongAnswer, match="epochs from 6"):
        model.saw_truth("rows", 6, 7, {})


def test_judge_sees_that_a_restart_opens_a_sealed_epoch() -> None:
    judge = Judge([FILTERED])
    judge.take(("ready", [3], [0], [-1]))
    judge.take(("sealed", 0, 4))
    assert judge.models[0].sealed == 4
    judge.take(("ready", [3], [5], [4]))
    judge.take(("ready", [3], [4], [3]))  # it has looked before another program sealed epoch 4
    with pytest.raises(WrongAnswer, match="after epoch 4 was sealed"):
        judge.take(("ready", [3], [4], [4]))
    with pytest.raises(WrongAnswer, match="had number 3, and has 2"):
        judge.take(("ready", [2], [5], [4]))


def test_judge_asks_again_what_had_no_answer() -> None:
    judge = Judge([FILTERED])
    for tag in (7, 8):
        judge.take(("begin", 0, "rows", tag, [(1, 60, tag)], 1))
        judge.take(("name", 0, tag, "w", tag - 7))
    judge.take(("took", 0, 7, 1, 2, 2))
    assert [(one.tag, one.writer, one.number) for one in judge.unanswered] == [(8, "w", 1)]
    assert judge.numbers == {"w": 2} and judge.models[0].operations[0].epoch == 2


def test_judge_sees_a_frontier_that_goes_back() -> None:
    model = DurableModel(FILTERED, 0)
    model.saw_frontier("answer", 0, 5, "one")
    with pytest.raises(WrongAnswer, match="complete before 4, and was before 5"):
        model.saw_frontier("answer", model.shown["answer"], 4, "other")
