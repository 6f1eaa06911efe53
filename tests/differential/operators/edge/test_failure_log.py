"""failure_log.py: which epochs of an output have no answer, and what the others say.

model_*    the failures and the rows of an output against dictionaries by epoch: changes, snapshots, pieces,
           what is forgotten, anchors that move, versions that take over
told_*     which row is named, and how many more there are
strict_*   the first epoch without an answer ends a dataflow
kept_*     what is held of it
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
from reference.collection import Row
from words_seen import Seen

from differential.columns.rows import encode_rows
from differential.columns.schema import Schema
from differential.columns.update_batch import UpdateBatch
from differential.columns.worker_symbols import SYMBOLS
from differential.errors import NotEmptyError, RowError, SumOverflowError, UserFunctionError
from differential.linear.failures.failing import FAILURES
from differential.operators import table_io
from differential.operators.edge import failure_log
from differential.operators.edge.failure_log import FailuresOut, TableFailures
from differential.operators.table_io import TableLog
from progress.times.anchor import Anchor, Rebase
from progress.times.time_words import TimeCode, TimeLayout
from progress.times.timestamp import ROOT
from timely.dictionaries import Mark
from timely.errors import ForgottenError, InternalError, MisuseError, TimelyError
from timely.operators.capture import CaptureVertex
from timely.operators.outputs.pieces import PieceRequest

SCHEMA = Schema.of("k: int, s: string")
SITES = ({"col.a // col.b": "here.py:7"}, {"col.a // col.b": "there.py:9"})

Failure = tuple[int, int, int]
"""Place, iteration, and which row."""

Answer = Counter[Row] | None


def failure_rows(failures: Sequence[tuple[Failure, int]], word: int) -> UpdateBatch:
    """Failures at a time, each with its difference."""
    rows = [
        (place, iteration, row, "RowError", "col.a // col.b", f"a={row}", "divides by zero", "")
        for (place, iteration, row), _ in failures
    ]
    words = np.empty((FAILURES.width + 2, len(rows)), np.int64)
    words[:-2] = encode_rows(FAILURES, rows, SYMBOLS, "failures")
    words[-2] = word
    words[-1] = [diff for _, diff in failures]
    return UpdateBatch(words, FAILURES.symbol_words)


class Version:
    """An output of one version of a dataflow, and what has come to it by epoch."""

    def __init__(self, fails: bool, is_strict: bool = False) -> None:
        self.anchor = Anchor()
        self.code = TimeCode(TimeLayout((5,)), ROOT).anchored(self.anchor)
        failures = FailuresOut("output 'o'", SITES, is_strict).new_log() if fails else None
        self.failures = failures
        self.vertex = CaptureVertex(TableLog(SCHEMA), failures)
        if failures is not None:
            failures.start(self.code)
        self.vertex.log.start(self.code, failures)
        self.rows: dict[int, Counter[Row]] = {}
        self.failed: dict[int, Counter[Failure]] = {}
        self.complete = 0

    def put(self, epoch: int, changes: Sequence[tuple[Row, int]]) -> None:
        """Rows come in."""
        if not changes:
            return
        words = np.empty((SCHEMA.width + 2, len(changes)), np.int64)
        words[:-2] = encode_rows(SCHEMA, [row for row, _ in changes], SYMBOLS, "rows")
        words[-2], words[-1] = self.code.pack((epoch,)), [diff for _, diff in changes]
        self.vertex.log.add(epoch, UpdateBatch(words, SCHEMA.symbol_words))
        for row, diff in changes:
            self.rows.setdefault(epoch, Counter())[row] += diff

    def fail(self, epoch: int, failures: Sequence[tuple[Failure, int]]) -> None:
        """Failures come in."""
        if not failures or self.failures is None:
            return
        self.failures.add(failure_rows(failures, self.code.pack((epoch,))))
        for failure, diff in failures:
            self.failed.setdefault(epoch, Counter())[failure] += diff

    def finish(self, epoch: int) -> None:
        """All epochs before `epoch` are complete."""
        self.complete = epoch
        if self.vertex.failures is not None:
            self.vertex.failures.complete(epoch)
        log = self.vertex.log
        (log.note_complete if log.is_settled else log.complete)(epoch)

    def rebase(self, epochs: int) -> None:
        """Time words count from so many epochs later on: what is complete is taken in before."""
        if self.failures is not None:
            self.failures.settle()
        self.vertex.log.settle()
        self.vertex.rebase(Rebase(epochs, self.code.layout.shifts[0]))
        self.anchor.epoch += epochs

    def standing(self, epoch: int) -> Counter[Failure]:
        """What fails at an epoch."""
        found: Counter[Failure] = Counter()
        for at, failures in self.failed.items():
            if at <= epoch:
                found.update(failures)
        return Counter({failure: n for failure, n in found.items() if n})

    def answers(self) -> list[Answer]:
        """Of each complete epoch the collection, or None where something fails."""
        found: list[Answer] = []
        for epoch in range(self.complete):
            rows: Counter[Row] = Counter()
            for at, changes in self.rows.items():
                if at <= epoch:
                    rows.update(changes)
            held = Counter({row: n for row, n in rows.items() if n})
            found.append(None if self.standing(epoch) else held)
        return found


def some_rows(rng: random.Random) -> list[tuple[Row, int]]:
    few = [(rng.randrange(2), rng.choice("ab")) for _ in range(rng.randrange(3))]
    return [(row, rng.choice([-2, -1, 1, 1, 2])) for row in few]


def some_failures(rng: random.Random, version: Version, epoch: int) -> list[tuple[Failure, int]]:
    """Half of the time all that fails goes."""
    standing = version.standing(epoch)
    if rng.random() < 0.5:
        return [(failure, -n) for failure, n in standing.items()]
    made = [(rng.randrange(2), rng.randrange(2), rng.randrange(2)) for _ in range(rng.randrange(3))]
    return [(failure, rng.choice([-1, 1])) for failure in made]


def check(vertex: CaptureVertex, answers: Sequence[Answer], forgotten: int, rng: random.Random) -> None:
    """Everything that can be asked says what follows from the answers by epoch."""
    complete = len(answers)
    for _ in range(3):
        start, stop = sorted(rng.randrange(forgotten, complete + 1) for _ in range(2))
        if start < stop and answers[stop - 1] is None:
            with pytest.raises(RowError, match=rf"output 'o' has no answer at epoch {stop - 1}\b"):
                vertex.changes(start, stop)
        else:
            table = vertex.changes(start, stop)
            found: dict[int, Counter[Row]] = {}
            for row in table.to_pylist():
                changes = found.setdefault(row["epoch"], Counter())
                assert (row["k"], row["s"]) not in changes, "summed"
                changes[row["k"], row["s"]] = row["diff"]
            assert found == changes_of(answers, start, stop)
            wanted = PieceRequest(start, stop, 0, 0, 1, tuple(table.column_names))
            assert vertex.log.piece(wanted).rows == table.num_rows
        if start < stop and vertex.failures is not None:
            without = vertex.failures.without(start, stop)
            epochs = [epoch for each in without for epoch in range(each.start, each.stop)]
            assert epochs == [epoch for epoch in range(start, stop) if answers[epoch] is None]
            assert all(each.since <= each.start for each in without)
            good = vertex.failures.good_from(start, stop)
            assert good == next((e for e in range(start, stop) if answers[e] is not None), None)
    for epoch in range(max(forgotten - 1, 0), complete):
        answer = answers[epoch]
        if answer is None:
            with pytest.raises(RowError, match=rf"no answer at epoch {epoch}\b"):
                vertex.snapshot(epoch)
            continue
        rows = {(row["k"], row["s"]): row["diff"] for row in vertex.snapshot(epoch).to_pylist()}
        assert rows == answer
    if forgotten:
        with pytest.raises((ForgottenError, TimelyError)):
            vertex.changes(forgotten - 1, forgotten - 1)


def changes_of(answers: Sequence[Answer], start: int, stop: int) -> dict[int, Counter[Row]]:
    """By epoch, how each answer differs from the one before it."""
    found: dict[int, Counter[Row]] = {}
    before: Counter[Row] = Counter()
    for epoch, answer in enumerate(answers[:stop]):
        if answer is None:
            continue
        changed = {row: answer[row] - before[row] for row in {*answer, *before} if answer[row] != before[row]}
        if changed and epoch >= start:
            found[epoch] = Counter(changed)
        before = answer
    return found


# model_


@pytest.mark.parametrize("few", [0, 2_048])
def test_model_of_one_version_whose_anchor_moves(
    few: int, seed: int, effort: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`few`: how many rows may wait for a reader."""
    monkeypatch.setattr(table_io, "UNREAD_ROWS_MAX", few)
    monkeypatch.setattr(failure_log, "_COMING_MAX", 2)
    seen: Counter[bool] = Counter()
    for case in range(40 * effort):
        rng = random.Random(f"{seed} {case}")
        version, forgotten = Version(fails=True), 0
        for epoch in range(12):
            for ahead in (0, 0, rng.randrange(3)):
                version.put(epoch + ahead, some_rows(rng))
                version.fail(epoch + ahead, some_failures(rng, version, epoch + ahead))
            if rng.random() < 0.7:
                version.finish(epoch + 1)
            if rng.random() < 0.4 and version.complete - 1 > version.anchor.epoch:
                version.rebase(rng.randrange(1, version.complete - version.anchor.epoch))
            if rng.random() < 0.5:
                answers = version.answers()
                check(version.vertex, answers, forgotten, rng)
                seen.update(answer is None for answer in answers)
            if rng.random() < 0.2:
                forgotten = rng.randrange(forgotten, version.complete + 1)
                version.vertex.forget(forgotten)
        check(version.vertex, version.answers(), forgotten, rng)
    assert seen[True] > 20 and seen[False] > 20


@pytest.mark.parametrize("fails", [(True, True, True), (True, False, True), (False, True, False)])
def test_model_of_versions_that_take_over(fails: tuple[bool, ...], seed: int, effort: int) -> None:
    """Each has failures of its own, or none, and perhaps more complete epochs than the one before."""
    errors = 0
    for case in range(60 * effort):
        rng = random.Random(f"{seed} {case}")
        switches = [0, rng.randrange(1, 6), rng.randrange(6, 11), 14]
        answers: list[Answer] = []
        forgotten = 0
        before: Version | None = None
        for number, switch in enumerate(switches[:-1]):
            version = Version(fails[number])
            # A new version begins anywhere before; the old one is sent nothing from the switch on.
            end = switches[number + 1]
            for epoch in range(rng.randrange(switch + 1), end):
                version.put(epoch, some_rows(rng))
                version.fail(epoch, some_failures(rng, version, epoch))
            if before is not None:
                version.finish(rng.randrange(switch, end))
                if rng.random() < 0.5:
                    version.vertex.log.settle()
                assert version.vertex.take_over(before.vertex, switch)
            while True:
                whole = [*answers[:switch], *version.answers()[switch:]]
                check(version.vertex, whole, forgotten, rng)
                errors += whole.count(None)
                if rng.random() < 0.1:
                    forgotten = rng.randrange(forgotten, version.complete + 1)
                    version.vertex.forget(forgotten)
                if version.complete >= end:
                    break
                version.finish(version.complete + 1)
            answers, before = whole, version
    assert errors > 20


# told_


def _log(*epochs: Sequence[tuple[Failure, int]]) -> TableFailures:
    version = Version(fails=True)
    for epoch, failures in enumerate(epochs):
        version.fail(epoch, failures)
    version.finish(len(epochs))
    assert isinstance(version.failures, TableFailures)
    return version.failures


def test_told_is_one_row_and_how_many_more_there_are() -> None:
    log = _log([((0, 0, 5), 1)], [((1, 0, 5), 2), ((0, 3, 5), 1), ((0, 0, 6), 1)], [((0, 0, 5), -1)], [])
    first, second, third = (str(log.error_at(epoch)) for epoch in range(3))
    assert first.startswith(
        "output 'o' has no answer at epoch 0: "
        "col.a // col.b (here.py:7) divides by zero in the row with a=5.\n"
    )
    # A row that fails at several places, and in several iterations, is one row.
    assert (
        "at epoch 1: col.a // col.b (here.py:7) divides by zero in the row with a=5. (1 more row failed"
        in second
    )
    assert "has no answer at epoch 2: " in third and "(1 more row failed, too)" in third
    assert "has no answer at epoch 3 since epoch 2: " in str(log.error_at(3))
    assert [(each.start, each.stop, each.since) for each in log.without(0, 4)] == [
        (0, 1, 0),
        (1, 2, 1),
        (2, 4, 2),
    ]
    assert [(each.start, each.stop, each.since) for each in log.without(3, 9)] == [(3, 4, 2)]


def test_told_is_the_same_row_while_it_is_there_and_the_same_on_all_workers() -> None:
    rng = random.Random(7)
    for _ in range(20):
        epochs = [[((0, 0, row), 1) for row in rng.sample(range(9), rng.randrange(1, 5))] for _ in range(5)]
        shuffled = [rng.sample(failures, len(failures)) for failures in epochs]
        one, other = _log(*epochs), _log(*shuffled)
        assert [str(one.error_at(e)) for e in range(5)] == [str(other.error_at(e)) for e in range(5)]
        named = {str(one.error_at(epoch)).split("a=")[1].split(".")[0] for epoch in range(5)}
        assert len(named) == 1


def test_told_again_is_nothing_where_what_came_and_went_leaves_all_as_it_was() -> None:
    log = _log([((0, 0, 5), 1)], [((0, 0, 6), 1), ((0, 0, 6), -1)], [((0, 0, 5), 0)], [((0, 0, 5), 3)])
    assert [(each.start, each.stop, each.since) for each in log.without(0, 4)] == [(0, 4, 0)]


@pytest.mark.parametrize(
    ("kind", "said", "what"),
    [
        ("RowError", RowError, "e (f.py:3) why in the row with r."),
        ("UserFunctionError", UserFunctionError, "e (f.py:3) failed on r:\n  why, in line 2 of f."),
        ("SumOverflowError", SumOverflowError, "e (f.py:3) of the group r why."),
        ("NotEmptyError", NotEmptyError, "f.py:3 does not hold, for there is the row r."),
        ("AnotherError", MisuseError, "e (f.py:3) why in the row with r."),
    ],
)
def test_told_is_of_each_kind_what_failed_where_and_on_what(
    kind: str, said: type[Exception], what: str
) -> None:
    log = FailuresOut("output 'o'", ({"e": "f.py:3"},)).new_log()
    log.start(TimeCode(TimeLayout((62,)), ROOT))
    row = (0, 0, 1, kind, "e", "r", "why", "line 2 of f")
    words = np.zeros((FAILURES.width + 2, 1), np.int64)
    words[:-2] = encode_rows(FAILURES, [row], SYMBOLS, "failures")
    words[-1] = 1
    log.add(UpdateBatch(words, FAILURES.symbol_words))
    log.complete(1)
    error = log.error_at(0)
    assert type(error) is said
    assert str(error).startswith(f"output 'o' has no answer at epoch 0: {what}\n  It answers again")


def test_told_of_a_place_that_there_is_not_is_an_error_of_ours() -> None:
    with pytest.raises(InternalError, match="has no place 2 where something can fail"):
        _log([((2, 0, 5), 1)]).error_at(0)


# strict_


def test_strict_ends_at_the_first_complete_epoch_without_an_answer() -> None:
    version = Version(fails=True, is_strict=True)
    assert version.failures is not None
    version.fail(1, [((0, 0, 5), 1)])
    version.fail(0, [((0, 0, 4), 1)])
    assert not version.failures.is_settled, "completing an epoch may end the dataflow"
    version.fail(0, [((0, 0, 4), -1)])
    version.finish(1)
    with pytest.raises(RowError) as caught:
        version.finish(2)
    assert str(caught.value).startswith("output 'o' has no answer at epoch 1: ")
    assert "answers again" not in str(caught.value)


# kept_


def test_kept_are_the_words_of_all_that_may_be_told() -> None:
    version = Version(fails=True)
    version.fail(0, [((0, 0, 5), 1)])
    version.fail(1, [((0, 0, 5), -1), ((1, 0, 6), 1)])
    version.fail(3, [((1, 0, 7), 1)])
    version.finish(2)
    assert isinstance(version.failures, TableFailures)
    version.failures.settle()
    seen = Seen()
    version.failures.symbols(Mark([seen]))
    texts = {SYMBOLS.lookup_one(word) for word in seen.words if word in SYMBOLS._values}
    assert {"a=5", "a=6", "a=7", "RowError", "divides by zero"} <= texts


def test_kept_is_a_line_for_what_is_told_after_the_epochs_that_are_forgotten() -> None:
    version = Version(fails=True)
    for epoch in range(20):
        version.fail(epoch, [((0, 0, epoch), 1)])
    version.finish(20)
    assert isinstance(version.failures, TableFailures)
    version.failures.forget(20)
    assert len(version.failures._standing) == 1
    assert "a=0. (19 more rows failed, too)" in str(version.failures.error_at(19))
