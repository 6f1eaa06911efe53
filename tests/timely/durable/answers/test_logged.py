"""An answer in the logs counts if all workers have written all of it, and have digests of its epoch."""

from __future__ import annotations

import pytest

from timely.durable.answers.logged import AnswerName, LoggedAnswers
from timely.durable.bases.facts import FoldFacts, OutputFacts
from timely.durable.digests import PastDigests
from timely.durable.past import Past, PastFlow


def head(
    worker: int, epoch: int, cut: str, is_last: bool = True, why: str = "", output: str = "out"
) -> list[object]:
    return ["answer", worker, 0, output, cut, epoch, why, is_last, []]


def past(form: str = "module:function", digests_before: int | None = None) -> Past:
    facts = FoldFacts(outputs=(OutputFacts("out", form),)).plain()
    flow = PastFlow.of(0, ["", b"", "key", [], 0, "", [], facts])
    if digests_before is not None:
        flow.digests["out"] = PastDigests(before=digests_before)
    return Past({0: flow})


def newest(answers: LoggedAnswers, of: Past | None = None) -> AnswerName | None:
    return answers.newest(past() if of is None else of, {1: 2, 2: 3}).get((0, "out"))


def test_an_answer_counts_once_all_workers_have_written_it() -> None:
    answers = LoggedAnswers()
    answers.note(1, head(0, 5, "1-1"))
    answers.note(1, head(1, 5, "1-1", is_last=False))
    assert newest(answers) is None
    answers.note(1, head(1, 5, "1-1"))
    assert newest(answers) == AnswerName(1, 5, "1-1")


def test_the_newest_answer_counts_and_one_for_another_cut_is_another() -> None:
    answers = LoggedAnswers()
    for worker in range(2):
        answers.note(1, head(worker, 5, "1-1"))
        answers.note(1, head(worker, 7, f"1-{2 + worker}"))  # of two cuts
    assert newest(answers) == AnswerName(1, 5, "1-1")
    for worker in range(3):
        answers.note(2, head(worker, 6, "2-1"))
    assert newest(answers) == AnswerName(2, 6, "2-1")


@pytest.mark.parametrize(("before", "counts"), [(None, True), (5, False), (6, True)])
def test_all_workers_must_have_digests(before: int | None, counts: bool) -> None:
    answers = LoggedAnswers()
    for worker in range(2):
        answers.note(1, head(worker, 5, "1-1"))
    assert (newest(answers, past(digests_before=before)) is not None) == counts


def test_no_answers_of_ended_dataflows_and_of_records() -> None:
    answers = LoggedAnswers()
    for worker in range(2):
        answers.note(1, head(worker, 5, "1-1"))
    assert newest(answers, Past()) is None and newest(answers, past(form="")) is None


def test_a_reason_on_one_worker_is_one_for_all() -> None:
    answers = LoggedAnswers()
    answers.note(1, head(0, 5, "1-1"))
    answers.note(1, head(1, 5, "1-1", why="it fails"))
    name = newest(answers)
    assert name is not None and answers.why(0, "out", name) == "it fails"
    assert answers.why(0, "out", AnswerName(1, 6, "1-2")) == ""
