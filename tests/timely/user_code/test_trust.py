"""trust.py: whose code a process runs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from timely.user_code.trust import is_trusted, trust


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    yield
    trust("")


def test_nobody_is_trusted_who_does_not_know_the_secret() -> None:
    assert not is_trusted("") and not is_trusted("secret")
    trust("secret")
    assert is_trusted("secret")
    for other in ("", "Secret", "secret ", b"secret", None, 7, "ü"):
        assert not is_trusted(other), other
    trust("")
    assert not is_trusted("") and not is_trusted("secret")
