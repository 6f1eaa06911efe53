"""Packages of other authors with our names; see `tests/timely/user_code/test_other_packages.py`, too."""

from __future__ import annotations

import differential.other_packages as checked
import timely


def test_a_timely_of_ours_passes() -> None:
    assert "connect" in timely.__all__
    checked._check()
