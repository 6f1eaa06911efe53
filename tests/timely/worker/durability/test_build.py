"""What computes answers here, in a line."""

from __future__ import annotations

import platform

import numpy as np

from timely.worker.durability.build import own_build


def test_the_build_names_all_on_which_a_last_bit_may_depend() -> None:
    build = own_build()
    for part in (platform.python_version(), np.__version__, platform.machine(), "release ", "pyarrow "):
        assert part in build
    assert "\n" not in build and own_build() is build
