"""The soak in its quick form, and its judge.

rounds_*   a few rounds of seeds that are known to bring every kind of mishap
judge_*    each kind of wrong answer is seen
"""

from __future__ import annotations

from collections import Counter

import pytest
from soak.model import STRANGERS_FROM, Model, WrongAnswer
from soak.queries import QUERIES, Rows, rows_of_stranger
from soak.rounds import Round

FILTERED = next(query for query in QUERIES if query.name == "filtered")
ROUNDS = {
    "embedded, a row that is an error": 62,
    "processes, a record that is an error": 3,
    "embedded, inputs are closed": 22,
    "threads, a row that is an error": 78,
    "threads, inputs are closed": 18,
    "processes, one is killed": 82,
    "processes, one is stopped": 93,
}


@pytest.mark.timeout(400)  # the first on a machine compiles
@pytest.mark.parametrize("number", ROUNDS.values(), ids=ROUNDS)
def test_rounds_end_in_right_answers_or_in_one_error(number: int) -> None:
    verdict = Round(number, seconds=2.0).run()
    assert verdict.epochs > 0 and verdict.calls > 20


def model_of_one_insertion(epoch: int | None, truth: dict[int, Rows], complete: int = 2) -> Model:
    """An insertion of two rows, acknowledged for `epoch`, and what the witness saw."""
    model = Model(FILTERED, 0)
    model.begin("rows", 7, [(1, 60, 7), (2, 3, 7)], 1).epoch = epoch
    model.saw_truth("rows", 0, complete, truth)
    return model


WHOLE: Rows = Counter({(1, 60, 7): 1, (2, 3, 7): 1})
HALF: Rows = Counter({(1, 60, 7): 1})
TWICE: Rows = Counter({(1, 60, 7): 2, (2, 3, 7): 2})


@pytest.mark.parametrize(
    ("epoch", "truth"),
    [(1, {1: WHOLE}), (None, {}), (None, {0: WHOLE}), (None, {1: WHOLE}), (2, {})],
)
def test_judge_an_insertion_is_in_its_epoch_and_a_lost_one_in_any_or_none(
    epoch: int | None, truth: dict[int, Rows]
) -> None:
    assert model_of_one_insertion(epoch, truth).check() == 2


@pytest.mark.parametrize(
    ("epoch", "truth"),
    [
        (1, {}),
        (1, {0: WHOLE}),
        (1, {1: HALF}),
        (1, {1: TWICE}),
        (1, {0: WHOLE, 1: WHOLE}),
        (None, {0: HALF}),
        (None, {0: HALF, 1: WHOLE}),
        (None, {0: WHOLE, 1: WHOLE}),
        (None, {0: Counter({(1, 1, 8): 1})}),
    ],
)
def test_judge_sees_insertions_that_are_lost_halved_doubled_or_misplaced(
    epoch: int | None, truth: dict[int, Rows]
) -> None:
    with pytest.raises(WrongAnswer):
        model_of_one_insertion(epoch, truth).check()


@pytest.mark.parametrize(
    ("removal", "span", "truth", "is_right"),
    [
        ("", None, {}, False),
        ("", None, {1: WHOLE}, True),
        ("", None, {2: WHOLE}, False),
        ("without an answer", None, {}, True),
        ("without an answer", None, {2: WHOLE}, False),
        ("posted", (1, 2), {}, True),
        ("posted", (2, 3), {}, False),
        ("posted", (0, 3), {2: WHOLE}, False),
        ("posted", (1, 3), {1: WHOLE, 2: Counter(dict.fromkeys(WHOLE, -1))}, True),
    ],
)
def test_judge_a_posted_insertion_is_there_unless_a_removal_may_be_in_its_epoch(
    removal: str, span: tuple[int, int] | None, truth: dict[int, Rows], is_right: bool
) -> None:
    model = Model(FILTERED, 0)
    model.begin("rows", 7, [(1, 60, 7), (2, 3, 7)], 1).span = 0, 1
    if removal:
        model.begin("rows", 7, [(1, 60, 7), (2, 3, 7)], -1).span = span
    model.saw_truth("rows", 0, 4, truth)
    if is_right:
        assert model.check() == 4
    else:
        with pytest.raises(WrongAnswer):
            model.check()


def test_judge_knows_the_rows_of_clients_that_were_killed() -> None:
    model = Model(FILTERED, 0)
    rows = Counter(rows_of_stranger(STRANGERS_FROM))
    model.saw_truth("rows", 0, 1, {0: rows})
    assert model.check() == 1
    model.saw_truth("rows", 1, 2, {1: rows})
    with pytest.raises(WrongAnswer, match="in epochs 0 and 1"):
        model.check()


def test_judge_sees_wrong_changes_and_wrong_snapshots() -> None:
    right: Rows = Counter({(1, 16): 1})
    for answer, is_right in ((right, True), (Counter(), False), (Counter({(1, 16): 2}), False)):
        changed = model_of_one_insertion(1, {1: WHOLE})
        changed.saw("answer", 1, 2, {1: answer}, "reader")
        whole = model_of_one_insertion(1, {1: WHOLE})
        whole.saw_snapshot("answer", 1, answer)
        for model in (changed, whole):
            if is_right:
                model.check()
            else:
                with pytest.raises(WrongAnswer, match="right is"):
                    model.check()


def test_judge_sees_clients_that_were_told_different_things() -> None:
    model = Model(FILTERED, 0)
    model.saw("answer", 0, 2, {1: HALF}, "one")
    model.saw("answer", 1, 3, {1: HALF}, "other")
    with pytest.raises(WrongAnswer, match="epoch 1: read"):
        model.saw("answer", 1, 2, {}, "third")
    with pytest.raises(WrongAnswer, match="in an answer for 4 to 5"):
        model.saw("answer", 4, 5, {5: HALF}, "fourth")
