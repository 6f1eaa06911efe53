"""What tests of threads share."""

from __future__ import annotations

import pytest

from timely.client.embedded import waiting_threads
from timely.client.embedded.threads import worker_threads


@pytest.fixture
def looks_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever sleeps looks around after a moment, and not only after a second."""
    for module in (worker_threads, waiting_threads):
        monkeypatch.setattr(module, "_LOOK_SECONDS", 0.02)
