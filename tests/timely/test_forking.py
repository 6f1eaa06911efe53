"""A process that was forked lets go of descriptors, and their numbers stay taken."""

from __future__ import annotations

import os
from pathlib import Path

from timely.forking import leave_to_parent


def test_descriptors_that_are_left_take_everything_and_have_nothing() -> None:
    one, other = os.pipe()
    try:
        leave_to_parent([-1, other, one])
        assert os.write(other, b"to nobody") == 9 and os.read(one, 9) == b""
        assert not os.get_inheritable(other)
        assert os.fstat(one).st_rdev == Path(os.devnull).stat().st_rdev
    finally:
        os.close(one)
        os.close(other)
