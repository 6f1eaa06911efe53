"""corners.py: which corners a row counts in, and what has to be said there."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from reference.words import rows_of
from strategies_words import CODES

from differential.kernels.history.times import steps_of
from differential.kernels.sums.accumulated import COUNT
from differential.kernels.sums.corners import class_of, classes_of, put_corrections, sum_corners


@given(st.sampled_from([1, 2, 3]), st.data())
def test_classes_are_the_chains_in_which_a_row_is_earlier(depth: int, data: st.DataObject) -> None:
    code = CODES[depth]
    counters = st.tuples(*[st.integers(0, 3)] * depth)
    row, time = data.draw(counters), data.draw(counters)
    row = tuple(map(min, row, time))
    found = class_of(code.pack(row), code.pack(time), code.guards, steps_of(code.guards))
    inside_out = zip(reversed(row), reversed(time), strict=True)  # the innermost chain has the lowest bit
    assert found == sum((mine < its) << chain for chain, (mine, its) in enumerate(inside_out))
    for size in range(depth + 1):
        for chains in combinations(range(depth), size):  # the corner that is earlier in these
            corner = [its - (depth - 1 - place in chains) for place, its in enumerate(time)]
            counts = all(mine <= its for mine, its in zip(row, corner, strict=True))
            assert counts == all(found >> chain & 1 for chain in chains)


@given(st.sampled_from([1, 2, 3]), st.data())
def test_corrections_are_the_answers_at_corners_with_the_signs_of_inclusion_and_exclusion(
    depth: int, data: st.DataObject
) -> None:
    classes = classes_of(CODES[depth].guards)
    assert classes == 2**depth
    numbers = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=classes, max_size=classes)
    by_class = data.draw(numbers)
    said: dict[tuple[int, int], int] = {}
    for corner in range(classes):
        found = [sums for number, sums in enumerate(by_class) if number & corner == corner]
        there, second = (sum(sums[component] for sums in found) for component in range(2))
        if there:
            said[there, second] = said.get((there, second), 0) + (-1) ** corner.bit_count()
    asked = np.array([[COUNT, component, -1, 0, 0, 2, 1] for component in range(2)]).T.copy()
    out, sums = np.full((5, classes + 4), -7), np.array(by_class)
    sum_corners(sums)
    end = put_corrections(sums, asked, 5, out, 1, 2)
    made = rows_of(out[1:, 2:end])
    assert made == sorted((*answer, 5, sign) for answer, sign in said.items() if sign)
