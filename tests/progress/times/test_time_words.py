"""Words: one integer per time; packing, fields, limits and what is refused. How they are compared:
`test_word_order.py`.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies_progress import codes, times, wide_times

from progress.errors import GraphError, MisuseError, TimeOverflowError
from progress.times.time_words import LEVELS_MAX, TimeCode, TimeLayout
from progress.times.timestamp import ROOT


@given(st.data(), codes())
def test_code_unpacking_gives_back_what_was_packed(data: st.DataObject, code: TimeCode) -> None:
    time = data.draw(wide_times(code))
    word = code.pack(time)
    assert code.unpack(word) == time
    assert 0 <= word < 2**63 and word & ~code.valid == 0


@given(st.data(), codes())
def test_code_feedback_is_an_addition_of_the_unit(data: st.DataObject, code: TimeCode) -> None:
    time = data.draw(times(code.shape))
    assert code.unpack(code.pack(time) + code.unit) == (*time[:-1], time[-1] + 1)


@pytest.mark.parametrize("levels", range(1, LEVELS_MAX + 1))
def test_code_default_layouts_use_63_bits_and_leave_the_top_bit_alone(levels: int) -> None:
    layout = TimeLayout.default(levels)
    assert sum(layout.level_bits) + layout.levels == 63
    assert layout.guard(0) == 1 << 62
    assert layout.shifts[-1] == 0


def test_code_entering_changes_no_bit_and_leaving_is_a_mask() -> None:
    layout = TimeLayout.default(3)
    outer, inner = TimeCode(layout, ROOT.loop()), TimeCode(layout, ROOT.loop().prioritized_loop())
    word = outer.pack((7, 5))
    assert inner.unpack(word) == (7, 5, 0, 0)
    assert inner.pack((7, 5, 3, 4)) & inner.keep_mask(2) == word
    assert outer.valid == inner.keep_mask(2)


def test_code_a_prioritised_level_has_its_priority_above_its_counter() -> None:
    code = TimeCode(TimeLayout((32, 29)), ROOT.prioritized_loop())
    assert code.fields == ((30, 32), (15, 14), (0, 15))
    assert code.guards == (1 << 62) | (1 << 29)


def test_code_a_lexicographic_chain_has_one_guard() -> None:
    layout = TimeLayout((28, 16, 16))
    lexicographic = TimeCode(layout, ROOT.loop().lexicographic_loop())
    assert lexicographic.guards == layout.guard(0) | layout.guard(1)
    assert TimeCode(layout, ROOT.loop().loop()).guards == lexicographic.guards | layout.guard(2)


def test_code_one_iteration_too_many_names_the_loop_and_the_limit() -> None:
    code = TimeCode(TimeLayout((28, 16, 16)), ROOT.loop().prioritized_loop())
    with pytest.raises(TimeOverflowError, match=r"counter of loop level 1 .*0 to 65535"):
        code.pack((0, 65536, 0, 0))
    with pytest.raises(TimeOverflowError, match=r"priority of prioritised loop level 2 .*0 to 255"):
        code.pack((0, 0, 256, 0))
    with pytest.raises(TimeOverflowError, match=r"the counter of prioritised loop level 2"):
        code.pack((0, 0, 0, 256))
    with pytest.raises(TimeOverflowError, match="the epoch"):
        code.pack((-1, 0, 0, 0))


def test_code_a_word_with_a_bit_outside_its_fields_is_no_time() -> None:
    code = TimeCode(TimeLayout((32, 29)), ROOT)
    with pytest.raises(TimeOverflowError):
        code.unpack(1)
    with pytest.raises(TimeOverflowError):
        code.unpack(1 << 62)
    with pytest.raises(TimeOverflowError):
        code.unpack(-1)


def test_code_a_time_of_another_scope_is_misuse() -> None:
    with pytest.raises(MisuseError, match="no time of this scope"):
        TimeCode(TimeLayout((62,)), ROOT).pack((1, 2))


def test_code_layouts_that_cannot_hold_the_times_are_refused() -> None:
    for bits in ((), (63,), (32, 30), (40, 0), (1,) * 9):
        with pytest.raises(GraphError):
            TimeLayout(bits)
    with pytest.raises(GraphError, match="nest"):
        TimeLayout.default(LEVELS_MAX + 1)
    with pytest.raises(GraphError, match="levels"):
        TimeCode(TimeLayout((62,)), ROOT.loop())
    with pytest.raises(GraphError, match="cannot hold"):
        TimeCode(TimeLayout((60, 1)), ROOT.prioritized_loop())
