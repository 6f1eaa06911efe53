"""overflowing.py: groups whose sums do not fit are apart, whichever others they come with.

law_*      answers and failures against whole numbers of Python, at every time of a random history
divided_*  of very many groups only those that do not fit are looked at one by one
beyond_*   what is no matter of single groups is an error, as ever
"""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest
from machines import advanced
from reference.words import Row, accumulated, as_words, beyond, closure_of, rows_of
from strategies_words import CODES, RandomHistory

from differential.columns.overflow import show_words
from differential.columns.wide.wide_words import split_value
from differential.errors import MultiplicityOverflowError, SumOverflowError
from differential.kernels.sums.accumulated import (
    COUNT,
    DECIMAL_MEAN,
    TOTAL,
    WIDE_MEAN_HIGH,
    WIDE_MEAN_LOW,
    WIDE_TOTAL_HIGH,
    WIDE_TOTAL_LOW,
)
from differential.kernels.sums.wide_totals import WIDE_DIGITS
from differential.operators.reduce import Accumulation, ReduceMachine
from differential.operators.reducing.overflowing import FailedGroup

LARGEST = 10**18 - 1

Word = Callable[[tuple[int, ...]], int | None]
"""From the components of a group to a word of its answer; None: it does not fit."""


def total(components: tuple[int, ...]) -> int | None:
    """Components 1 and 2 are digits of a number to the base 2³²."""
    number = _number(components)
    return number if -(2**63) <= number < 2**63 else None


def decimal_total(components: tuple[int, ...]) -> int | None:
    number = _number(components)
    return number if abs(number) <= LARGEST else None


def decimal_mean(components: tuple[int, ...], largest: int = LARGEST) -> int | None:
    """The total by the count, with four digits more; halves away from zero."""
    above, below = _number(components) * 10**4, components[0]
    whole, rest = divmod(abs(above), abs(below))
    mean = whole + (2 * rest >= abs(below))
    if mean > largest:
        return None
    return mean if (above < 0) == (below < 0) else -mean


def wide_total(word: int) -> Word:
    """A word of a total of 20 digits."""

    def of(components: tuple[int, ...]) -> int | None:
        number = _number(components)
        return split_value(number)[word] if abs(number) < 10**20 else None

    return of


def wide_mean(word: int) -> Word:
    """A word of a mean of 20 digits."""

    def of(components: tuple[int, ...]) -> int | None:
        mean = decimal_mean(components, 10**20 - 1)
        return None if mean is None else split_value(mean)[word]

    return of


def count(components: tuple[int, ...]) -> int | None:
    return components[0]


def _number(components: tuple[int, ...]) -> int:
    return components[1] + (components[2] << 32)


SUMS: dict[str, list[tuple[tuple[int, int, int, int, int], Word]]] = {
    "count and total": [((COUNT, 0, -1, 0, 0), count), ((TOTAL, 1, -1, 0, 0), total)],
    "decimals": [
        ((TOTAL, 1, -1, LARGEST, 0), decimal_total),
        ((DECIMAL_MEAN, 1, 0, LARGEST, 4), decimal_mean),
    ],
    "wide totals": [
        ((WIDE_TOTAL_HIGH, 1, -1, 2, 20), wide_total(0)),
        ((WIDE_TOTAL_LOW, 1, -1, 2, 20), wide_total(1)),
    ],
    "wide means": [
        ((WIDE_MEAN_HIGH, 1, 0, 2, 4 + 20 * WIDE_DIGITS), wide_mean(0)),
        ((WIDE_MEAN_LOW, 1, 0, 2, 4 + 20 * WIDE_DIGITS), wide_mean(1)),
    ],
    "two totals": [((TOTAL, 1, -1, 0, 0), total), ((TOTAL, 1, -1, LARGEST, 0), decimal_total)],
}


def _machine(kw: int, depth: int, sums: str) -> ReduceMachine:
    asked = tuple(each for each, _ in SUMS[sums])
    machine = ReduceMachine(kw, 1, CODES[depth].guards, Accumulation(asked, 3, 1))
    machine.fails = True
    return machine


def plainly(rows: dict[Row, int], kw: int, sums: str) -> tuple[dict[Row, int], dict[Row, int]]:
    """The answers of the groups, and by key and first word that does not fit the others."""
    answers: dict[Row, int] = {}
    failed: dict[Row, int] = {}
    for key in {row[:kw] for row in rows}:
        components = tuple(rows.get((*key, component), 0) for component in range(3))
        if components[0] == 0:
            continue
        words = [word(components) for _, word in SUMS[sums]]
        misfit = next((at for at, word in enumerate(words) if word is None), None)
        if misfit is None:
            answers[*key, *[word for word in words if word is not None]] = 1
        else:
            failed[*key, misfit] = 1
    return answers, failed


def failed_rows(failed: list[FailedGroup]) -> list[Row]:
    return [(*each.key, each.column, each.time, each.diff) for each in failed]


class WideHistory(RandomHistory):
    """Components 0 to 2, some of them so often that sums leave 64 bits, and so that they fit once more."""

    def next_rows(self, count_max: int = 6) -> np.ndarray:
        """Some more rows, most of a group that is there."""
        made = rows_of(super().next_rows(count_max))
        del self.rows[len(self.rows) - len(made) :]
        large = [1, -1, 2**31, -(2**31), 2**57, -(2**57), 2**58 - 1]
        some = []
        for row in made:
            *key, component, time, diff = row
            if abs(diff) <= 2:
                component = self.rng.choice([0, 0, 1, 2, 2])
                diff = self.rng.choice(large if component else [1, 1, 2, -1])
            some.append((*key, component, time, diff))
        self.rows += some
        return as_words(some, self.words + 2)


# law_


@pytest.mark.parametrize("sums", SUMS)
@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("kw", [0, 1, 2])
def test_law_answers_and_failures_are_what_whole_numbers_say_at_every_time(
    kw: int, depth: int, sums: str, seed: int, effort: int
) -> None:
    guards, seen = CODES[depth].guards, 0
    for trial in range(6 * effort):
        rng = random.Random(f"{seed} {trial}")
        machine = _machine(kw, depth, sums)
        history, sent, failed = WideHistory(rng, depth, kw + 1, 0.4), list[Row](), list[Row]()
        history.least = 0
        for step in range(7):
            machine.recv(0, [history.next_rows(8)])
            history.rise() if step < 6 else history.finish()
            some = rows_of(advanced(machine, history.frontier))
            found = failed_rows(machine.take_failed())
            assert not any(beyond(row[-2], history.frontier, guards) for row in [*some, *found])
            sent += some
            failed += found
            for trace in (machine.input, machine.output):
                if rng.random() < 0.3:
                    trace.compact()
                elif rng.random() < 0.5:
                    trace.freeze_head()
            machine.check_invariants()
            for time in closure_of({row[-2] for row in history.rows}, guards):
                if beyond(time, history.frontier, guards):
                    continue
                answers, misfits = plainly(accumulated(history.rows, time, guards), kw, sums)
                assert accumulated(sent, time, guards) == answers, CODES[depth].unpack(time)
                assert accumulated(failed, time, guards) == misfits, CODES[depth].unpack(time)
                seen += len(misfits)
        assert machine.needs().shape == (0,)
        assert machine.take_failed() == [], "they are told once"
    assert seen


# among_


def test_among_very_many_groups_those_that_do_not_fit_are_found() -> None:
    machine = _machine(1, 1, "count and total")
    rows = [row for key in range(5_000) for row in ((key, 0, 0, 1), (key, 1, 0, key))]
    machine.recv(0, [as_words([*rows, (17, 2, 0, 2**31), (4_000, 2, 0, -(2**31) - 1)], 4)])
    answers = advanced(machine, np.array([1]))
    assert {tuple(row) for row in answers[:3].T.tolist()} == {
        (key, 1, key) for key in range(5_000) if key not in (17, 4_000)
    }
    assert {(each.key, each.column, each.diff) for each in machine.take_failed()} == {
        ((17,), 1, 1),
        ((4_000,), 1, 1),
    }
    machine.recv(0, [as_words([(17, 1, 1, -100)], 4)])
    corrections = advanced(machine, np.array([2]))
    assert corrections.T.tolist() == [[17, 1, 2**63 - 83, 1, 1]]
    assert machine.take_failed() == [FailedGroup((17,), 1, 1, -1)]


# beyond_


def test_beyond_64_bits_a_multiplicity_is_an_error_of_all() -> None:
    machine = _machine(1, 1, "count and total")
    machine.recv(0, [as_words([(3, 0, 0, 2**63 - 1)], 4)])
    advanced(machine, np.array([1]))
    machine.recv(0, [as_words([(3, 0, 1, 1)], 4)])
    with pytest.raises(MultiplicityOverflowError, match=r"the row with the words \(3, 0\)"):
        advanced(machine, np.array([2]))


def test_beyond_what_fails_apart_groups_end_a_machine_that_takes_none_apart() -> None:
    machine = _machine(1, 1, "count and total")
    machine.fails = False
    machine.recv(0, [as_words([(3, 0, 0, 1), (3, 2, 0, 2**31)], 4)])
    with pytest.raises(SumOverflowError, match=show_words((3,)).replace("(", r"\(").replace(")", r"\)")):
        advanced(machine, np.array([1]))
