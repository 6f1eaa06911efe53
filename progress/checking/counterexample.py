"""What an explorer, or a run from a seed, reports if something is not as it must be."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["Counterexample"]


class Counterexample(AssertionError):
    """Something is not as it must be. `what` says what, and `steps` how to get there, one step a line.

    It is an `AssertionError`: a test that explores fails with it.
    """

    def __init__(self, what: str, steps: Sequence[str], end: str = "") -> None:
        """`end`: a last line, such as how to see it again."""
        assert what, "a counterexample says what is wrong"
        width = max(3, len(str(len(steps))))
        lines = [what, *(f"{number + 1:{width}} {step}" for number, step in enumerate(steps))]
        super().__init__("\n  ".join([*lines, end] if end else lines))
        self.what = what
        self.steps = list(steps)
