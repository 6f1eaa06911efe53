"""The error tree: who was wrong can be told from the class alone."""

from __future__ import annotations

import pytest

from progress import errors


@pytest.mark.parametrize(
    "name", ["GraphError", "TimeRegressionError", "TimeOverflowError", "InputClosedError"]
)
def test_what_a_caller_does_wrong_is_misuse(name: str) -> None:
    assert issubclass(getattr(errors, name), errors.MisuseError)


def test_misuse_peers_and_our_own_bugs_are_different_branches() -> None:
    branches = (errors.MisuseError, errors.PeerError, errors.InternalError)
    for branch in branches:
        assert issubclass(branch, errors.TimelyError)
        assert not any(issubclass(branch, other) for other in branches if other is not branch)


def test_every_error_is_drawn_in_the_tree() -> None:
    drawn = errors.__doc__ or ""
    assert all(name in drawn for name in vars(errors) if name.endswith("Error"))
