"""How far sources have come: which positions count, of which worker and incarnation."""

from __future__ import annotations

import pytest

from timely.durable.bases.positions import (
    SourcePosition,
    SourcePositions,
    packed_position,
    source_key,
    source_of_key,
)


def given(incarnation: int, worker: int, of: int, held: int, position: object = None) -> SourcePosition:
    packed = b"" if position is None else packed_position(position)
    return SourcePosition(incarnation, worker, of, held, packed)


def test_positions_count_until_all_workers_of_a_later_incarnation_have_given_theirs() -> None:
    positions = SourcePositions()
    assert (positions.values(), positions.first_held(4)) == ([], 4)
    positions.note(given(1, 1, 2, 9, "b"))
    assert (positions.values(), positions.first_held(4)) == (["b"], 4), "worker 0 may hold the first epoch"
    positions.note(given(1, 0, 2, 7, "a"))
    assert (positions.values(), positions.first_held(4)) == (["a", "b"], 7)
    positions.note(given(2, 2, 3, 12, "c"))
    assert (positions.values(), positions.first_held(4)) == (["a", "b", "c"], 7)
    positions.note(given(2, 2, 3, 13, {"of": ["c"]}))
    positions.note(given(2, 0, 3, 8, "d"))
    assert (positions.values(), positions.first_held(4)) == (["a", "b", "d", {"of": ["c"]}], 7)
    positions.note(given(2, 1, 3, 9, "e"))
    assert (positions.values(), positions.first_held(4)) == (["d", "e", {"of": ["c"]}], 8)
    assert SourcePositions(positions.plain()).plain() == positions.plain()


def test_a_worker_that_gives_no_position_leaves_those_of_before() -> None:
    positions = SourcePositions([given(1, 0, 2, ~5, "a"), given(1, 1, 2, 3, "b")])
    positions.note(given(2, 0, 2, ~5))
    assert (positions.values(), positions.first_held(0)) == (["a", "b"], 3)
    positions.note(given(2, 1, 2, 7, "c"))
    assert (positions.values(), positions.first_held(0)) == (["a", "b", "c"], 7)
    again = SourcePositions(positions.plain())
    assert (again.values(), again.first_held(0)) == (["a", "b", "c"], 7)
    for incarnation in range(3, 6):
        again.note(given(incarnation, 0, 1, 8, "c"))
        assert (again.values(), again.first_held(0)) == (["c"], 8)
        again = SourcePositions([*again.plain(), given(incarnation, 1, 2, ~8)])


def test_a_source_is_over_when_it_is_on_all_workers() -> None:
    positions = SourcePositions([given(1, 0, 2, ~5, 1)])
    assert positions.first_held(0) == 0
    positions.note(given(1, 1, 2, 3, 2))
    assert positions.first_held(0) == 3
    positions.note(given(1, 1, 2, ~8, 2))
    assert positions.first_held(0) == ~8, "epoch 8 is the last that it has held"
    assert SourcePositions([given(1, 0, 2, ~5, 1), given(1, 1, 2, 0, 2)]).first_held(0) == 0


def test_rows_of_sources_have_names_of_their_own() -> None:
    assert source_of_key(source_key("orders")) == "orders"
    assert source_of_key("orders") is None


@pytest.mark.parametrize("position", [object(), {("topic", 0): 5}])
def test_a_position_is_plain_data_that_comes_out_of_a_log_again(position: object) -> None:
    with pytest.raises(TypeError):
        packed_position(position)
