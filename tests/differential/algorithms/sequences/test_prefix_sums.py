"""algorithms/sequences/prefix_sums.py: running totals that follow changes.

meaning_*   at every epoch, against adding up
change_*    a value at the front, asked about at the end: few rows move
refused_*   positions out of range, columns of other types
"""

from __future__ import annotations

import pytest
from graphs_plainly import numbers, running_totals, total_up_to
from hypothesis import given
from hypothesis import strategies as st
from reference.collection import Collection as Rows
from reference.collection import collection
from reference.dataflow import Cluster
from strategies_collections import examples
from strategies_graphs import OUT, Course, courses, follow, played

import differential as dd
from differential.algorithms import prefix_sums
from differential.errors import RowError, SchemaError
from progress.errors import MisuseError
from timely.building.dataflow import Dataflow

SCHEMAS = {"values": "position: int, value: int"}
VALUES = st.tuples(st.one_of(st.integers(0, 6), st.integers(0, 255)), st.integers(-3, 9))


@examples(0.5)
@given(courses({"values": VALUES}), st.integers(1, 3), st.integers(0, 2**20))
def test_meaning_at_every_epoch(course: Course, workers: int, seed: int) -> None:
    follow(lambda values: prefix_sums(values, bits=8), running_totals, SCHEMAS, course, workers, seed)


@examples(0.3)
@given(
    courses({"values": VALUES, "asked": st.tuples(st.integers(0, 255))}),
    st.integers(1, 2),
    st.integers(0, 2**20),
)
def test_meaning_at_positions_that_are_asked_about(course: Course, workers: int, seed: int) -> None:
    """Whether they have a value or not, and once however often they are asked about."""
    follow(
        lambda values, asked: prefix_sums(values, at=asked, bits=8),
        lambda values, asked: collection({(p, total_up_to(values, p)): 1 for (p,) in numbers(asked)}),
        {**SCHEMAS, "asked": "position: int"},
        course,
        workers,
        seed,
    )


@examples(0.3)
@given(
    courses({"values": st.tuples(st.sampled_from("ab"), st.integers(0, 7), st.integers(0, 1))}),
    st.integers(1, 2),
    st.integers(0, 2**20),
)
def test_meaning_by_keys_is_a_sequence_for_each(course: Course, workers: int, seed: int) -> None:
    def plain(values: Rows) -> Rows:
        return collection(
            {
                (letter, *row): 1
                for letter in "ab"
                for row in running_totals(
                    Rows({(p, v): n for (own, p, v), n in values.items() if own == letter})
                )
            }
        )

    follow(
        lambda values: prefix_sums(values, key="letter", position="at", value="size", bits=3),
        plain,
        {"values": "letter: string, at: int, size: int"},
        course,
        workers,
        seed,
    )


def test_change_at_the_front_moves_only_the_answer_that_is_asked_for() -> None:
    values = [((position, 1), 1) for position in range(64)]
    course: Course = [{"values": values, "asked": [((63,), 1)]}, {"values": [((0, 1), -1), ((0, 9), 1)]}]
    schemas = {**SCHEMAS, "asked": "position: int"}
    cluster = played(lambda values, asked: prefix_sums(values, at=asked), schemas, course)
    assert cluster.changes(OUT)[1,] == Rows({(63, 64): -1, (63, 72): 1})


@pytest.mark.parametrize("position", [-1, 16, 2**62, -(2**63)])
def test_refused_positions_out_of_range_have_no_sums_until_they_go(position: int) -> None:
    cluster = Cluster(
        lambda flow: prefix_sums(dd.input(flow, "values", SCHEMAS["values"]), bits=4).output("out")
    )
    for changes in ([((3, 5), 1)], [((position, 1), 1)], [((position, 1), -1)]):
        cluster.change("values", changes)
        cluster.seal()
        cluster.run()
    error = cluster.error("out", 1)
    assert type(error) is RowError and str(position) in str(error)
    assert cluster.has_answer("out", 0) and cluster.has_answer("out", 2)
    assert cluster.snapshot("out") == {(3, 5): 1}


def test_refused_what_is_no_whole_number() -> None:
    flow = Dataflow("refused")
    values = dd.input(flow, "values", "position: int?, value: float, letter: string")
    asked = dd.input(flow, "asked", "position: int, letter: int")
    with pytest.raises(SchemaError, match=r"'value' of values is int and never null, not float"):
        prefix_sums(values, position="value")
    with pytest.raises(SchemaError, match=r"'position' of values is int and never null, not int\?"):
        prefix_sums(values.with_columns(value=1))
    whole = values.with_columns(value=1, position=1)
    with pytest.raises(SchemaError, match="'letter' is string in values and int in at"):
        prefix_sums(whole, key="letter", at=asked)
    with pytest.raises(MisuseError, match="bits is at most 61"):
        prefix_sums(whole, bits=62)
