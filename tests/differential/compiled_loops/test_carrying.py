"""Which connectors a kernel knows."""

from __future__ import annotations

from typing import cast

import numpy as np
import pytest

from differential import col
from differential.compiled_loops.carrying import carrying_of, failing_of
from differential.kernels.compiled_loops.edges import passes
from differential.kernels.compiled_loops.layout import (
    FAR,
)
from differential.linear.chain import LinearChain
from differential.linear.transform import LinearTransform
from timely.operators.compiled_loop import Link, LinkUse


def _link(
    transform: object = None, limits: tuple[tuple[int, int, int], ...] = (), is_round: bool = False
) -> Link:
    return Link(0, 0, 1, 0, -1, 4, transform, limits, is_round, cast("LinkUse", None), None)


def test_without_a_transform_rows_are_only_moved_in_time() -> None:
    carrying = carrying_of(_link(limits=((2, 7, 5),), is_round=True))
    assert carrying is not None
    assert (carrying.keep, carrying.add, carrying.words, carrying.sign) == (-1, 4, None, 1)
    assert (carrying.limit, carrying.is_round, carrying.tests.shape) == ((2, 7, 5), True, (0, 4))


def test_a_short_chain_is_carried_with_its_tests_and_sign() -> None:
    chain = LinearChain.over("a: int, b: int").filter(col.a > 1).select({"c": col.b + 2}).negate()
    carrying = carrying_of(_link(LinearTransform(chain)))
    assert carrying is not None and carrying.words is not None
    assert (carrying.words.tolist(), carrying.sign, len(carrying.tests)) == ([[-3], [2]], -1, 1)
    assert carrying.limit[2] == FAR


@pytest.mark.parametrize(
    "link",
    [
        _link(limits=((0, 1, 1), (2, 1, 1))),
        _link(transform=len),
        _link(LinearTransform(LinearChain.over("a: int").select({"a": col.a * 3}))),
        _link(LinearTransform(LinearChain.over("a: int").negate()), is_round=True),
    ],
)
def test_the_others_are_for_python(link: Link) -> None:
    """Of what goes round the rows are told as they are ahead of the transform, or in its middle."""
    assert carrying_of(link) is None


def test_a_row_that_fails_in_several_columns_is_one_row_that_fails() -> None:
    by = 1 << 62
    chain = LinearChain.over("a: int, b: int").select({"x": col.a + by, "y": col.b - by, "z": col.a + by})
    link = _link(LinearTransform(chain))
    numbers = [-(1 << 63), -by - 1, -by, 0, by - 1, by, (1 << 63) - 1]
    for a in numbers:
        for b in numbers:
            row = np.array([[a], [b], [0], [1]], np.int64)
            fails = a + by >= 1 << 63 or b - by < -(1 << 63)
            assert sum(passes(row, 0, edge.tests) for edge in failing_of(link)) == fails, (a, b)
