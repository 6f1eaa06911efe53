"""Which changes of an output can be asked for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from timely.errors import ForgottenError, MisuseError
from timely.operators.outputs.output_log import check_kept


@given(st.integers(-2, 9), st.integers(0, 9))
def test_changes_are_kept_from_the_first_epoch_on_that_is_not_forgotten(start: int, forgotten: int) -> None:
    if start >= forgotten:
        check_kept(start, forgotten)
        return
    with pytest.raises(MisuseError if start < 0 else ForgottenError):
        check_kept(start, forgotten)
