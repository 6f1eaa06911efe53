"""A worker's door for clients of its host, and the address beside which it is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from timely.wire.transport.direct import DirectDoor, direct_path


@pytest.fixture
def address(tmp_path: Path) -> str:
    return f"ipc://{tmp_path}/c0"


@pytest.fixture
def door(address: str) -> Iterator[DirectDoor]:
    path = direct_path(address)
    assert path is not None
    made = DirectDoor(path)
    yield made
    made.close()
