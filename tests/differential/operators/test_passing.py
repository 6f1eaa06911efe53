"""operators/passing.py: looking at updates as they pass, and the epochs that they are put off to.

Dataflows with delays and claims are in `collections/test_checking.py`.
"""

from __future__ import annotations

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference.collection import Row
from reference.dataflow import Cluster

import differential as dd
from differential.errors import NotEmptyError, UserFunctionError
from differential.operators.passing import Epochs


def test_it_sees_values_times_and_multiplicities_and_lets_all_pass() -> None:
    seen: list[tuple[Row, tuple[int, ...], int]] = []
    cluster = Cluster(
        lambda flow: (
            dd.input(flow, "in", "name: string?, at: timestamp, x: float")
            .inspect(lambda *update: seen.append(update))
            .output("out")
        )
    )
    moment = dt.datetime(2024, 2, 29, tzinfo=dt.UTC)
    cluster.change("in", [(("a", moment, 0.5), 2), ((None, moment, -1.0), -1)], epoch=3)
    cluster.seal(3)
    cluster.run()
    assert sorted(seen, key=repr) == [(("a", moment, 0.5), (3,), 2), ((None, moment, -1.0), (3,), -1)]
    assert cluster.snapshot("out") == {("a", moment, 0.5): 2, (None, moment, -1.0): -1}


def test_what_the_function_raises_names_the_line_that_put_it_there() -> None:
    def fail(row: Row, time: tuple[int, ...], diff: int) -> None:
        raise KeyError("no such thing")

    cluster = Cluster(lambda flow: dd.input(flow, "in", "k: int").inspect(fail).output("out"))
    cluster.change("in", [((1,), 1)])
    cluster.seal()
    with pytest.raises(KeyError) as caught:
        cluster.run()
    (note,) = caught.value.__notes__
    assert "'inspect' (stage" in note and "test_passing.py" in note


def test_of_several_times_at_once_the_first_is_told_at_which_something_fails() -> None:
    cluster = Cluster(lambda flow: dd.input(flow, "in", "k: int").assert_empty("nothing is there"))
    cluster.change("in", [((8,), 2)], epoch=3)
    cluster.change("in", [((7,), 1)], epoch=1)
    cluster.seal(3)
    with pytest.raises(
        NotEmptyError, match="no answer at epoch 1: nothing is there does not hold, for there is the row k=7"
    ):
        cluster.run()


@given(st.lists(st.integers(0, 20)), st.lists(st.integers(0, 30), min_size=21, max_size=21))
def test_an_epoch_is_refused_if_it_goes_back_or_overtakes_one_that_was_seen(
    asked: list[int], goes: list[int]
) -> None:
    epochs = Epochs(lambda epoch: goes[epoch], "tested")
    seen: set[int] = set()
    for epoch in asked:
        in_order = all((goes[epoch] - goes[other]) * (epoch - other) >= 0 for other in seen)
        if goes[epoch] >= epoch and in_order:
            assert epochs.later(epoch) == goes[epoch]
            seen.add(epoch)
        else:
            with pytest.raises(UserFunctionError, match="tested: epoch"):
                epochs.later(epoch)


def test_a_function_that_gives_no_epoch_is_refused() -> None:
    with pytest.raises(UserFunctionError, match="goes to True; it must be a whole number"):
        Epochs(lambda epoch: True, "tested").later(0)


def test_what_is_remembered_has_a_bound() -> None:
    epochs = Epochs(lambda epoch: epoch, "tested")
    for epoch in range(3_000):
        epochs.later(epoch)
    assert len(epochs._delays) == len(epochs._order) <= 1_024
