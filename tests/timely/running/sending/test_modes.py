"""modes.py: each name is a way that workers have."""

from __future__ import annotations

import pytest

from timely.errors import InternalError
from timely.running.sending.modes import PROGRESS_MODES
from timely.running.sending.telling import telling_of


def test_each_name_is_a_way_to_tell_and_no_other_is() -> None:
    assert [telling_of(mode, 0, 2) is None for mode in PROGRESS_MODES] == [True, False, False]
    with pytest.raises(InternalError, match="'sometimes': there are eager, demand, host"):
        telling_of("sometimes", 0, 2)
