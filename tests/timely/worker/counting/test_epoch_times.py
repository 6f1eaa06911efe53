"""When epochs were sealed and complete: the last input decides, and the last output."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from timely.client.reports.epoch_lists import with_epoch_lists
from timely.limits import DATED_EPOCHS_MAX
from timely.operators.outputs.moves import EpochMoves
from timely.worker.counting import epoch_times as counted

Pairs = list[tuple[int, float]]


def epoch_times(inputs: list[Pairs], outputs: list[Pairs], now: float) -> list[object]:
    """What a user sees of it."""
    told = counted.epoch_times([_moves(each) for each in inputs], [_moves(each) for each in outputs], now)
    read = with_epoch_lists({"dataflows": {0: {"epochs": told}}})
    return read["dataflows"][0]["epochs"]  # type: ignore[index,call-overload,return-value]


def _moves(pairs: Pairs) -> EpochMoves:
    moves = EpochMoves()
    for epoch, moment in pairs:
        moves.numbers.extend((epoch, moment))
    return moves


def test_the_last_input_and_the_last_output_decide() -> None:
    inputs = [[(0, 1.0), (1, 2.0), (2, 3.0)], [(0, 1.0), (2, 5.0)]]
    outputs = [[(1, 6.0)], [(2, 7.0)]]
    assert epoch_times(inputs, outputs, 10.0) == [[1, 5.0, 3.0], [2, 5.0, None]]


def test_an_input_that_is_behind_has_sealed_nothing_later() -> None:
    assert epoch_times([[(0, 1.0), (5, 2.0)], [(0, 1.0), (3, 4.0)]], [[(3, 6.0)]], 10.0) == [[3, 6.0, 4.0]]


def test_without_outputs_nothing_is_known_to_be_complete() -> None:
    assert epoch_times([[(0, 1.0), (1, 2.0)]], [], 3.0) == [[1, 1.0, None]]


def test_a_closed_input_has_sealed_all_that_others_open() -> None:
    assert epoch_times([[(0, 1.0), (2**62, 2.0)], [(0, 1.0), (4, 3.0)]], [[(4, 3.5)]], 4.0) == [[4, 1.0, 0.5]]


def test_of_what_an_output_has_forgotten_nothing_is_said() -> None:
    long = [(epoch, float(epoch)) for epoch in range(2, DATED_EPOCHS_MAX + 2)]
    assert epoch_times([[(0, 0.0), (1, 1.0), (3, 3.0)]], [long], 5.0) == [[1, 4.0, None], [3, 2.0, 2.0]]


@st.composite
def moves(draw: st.DrawFn) -> Pairs:
    steps = draw(st.lists(st.tuples(st.integers(1, 3), st.integers(1, 3)), max_size=6))
    epoch, moment, all_moves = 0, 0.0, [(0, 0.0)]
    for by, later in steps:
        epoch, moment = epoch + by, moment + later
        all_moves.append((epoch, moment))
    return all_moves


@given(st.lists(moves(), min_size=1, max_size=3), st.lists(moves(), min_size=1, max_size=3))
def test_they_are_those_of_the_plain_definition(inputs: list[Pairs], outputs: list[Pairs]) -> None:
    def reached(each: list[Pairs], epoch: int) -> float | None:
        first = [next((at for come, at in moves if come >= epoch), None) for moves in each]
        return None if None in first else max(at for at in first if at is not None)

    expected = []
    for epoch in sorted({epoch for moves in inputs for epoch, _ in moves[1:]}):
        sealed, done = reached(inputs, epoch), reached(outputs, epoch)
        if sealed is not None:
            expected.append([epoch, 99.0 - sealed, None if done is None else 99.0 - done])
    assert epoch_times(inputs, outputs, 99.0) == expected
