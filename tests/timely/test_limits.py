"""Limits: positive, and asserted against each other at import."""

from __future__ import annotations

import timely.limits


def test_every_limit_is_a_positive_number() -> None:
    values = [value for name, value in vars(timely.limits).items() if name.isupper()]
    assert len(values) > 10 and all(isinstance(value, int | float) and value > 0 for value in values)
