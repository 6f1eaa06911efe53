"""What does a path do to a time?

A path through a dataflow leaves loops, goes round them, and enters others. Its effect on a time always has
one form:

    keep the first `kept_coordinates` coordinates, add `add` to the last of them, append constants

    identity   keep all                            feedback   keep all, add 1
    leave      keep those of the outer scope       enter      keep all, append zeros

Such functions are closed under composition, so a path of any length is one `PathSummary`. In words
(`time_words.py`) the same is `t' = (t & keep) + add`.
"""

from __future__ import annotations

from dataclasses import dataclass

from progress.errors import GraphError
from progress.times.time_words import TimeCode
from progress.times.timestamp import TimeShape, Timestamp


@dataclass(frozen=True)
class PathSummary:
    """The effect of a path on a timestamp: leave loops, advance, enter loops.

    Laws: apply is monotone · f.then(g).apply(t) == g.apply(f.apply(t)) · identity changes nothing ·
    f.less_equal(g) iff f.apply(t) ≤ g.apply(t) for every t
    """

    kept_coordinates: int
    add: int
    appended: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        assert self.kept_coordinates >= 1, "the epoch survives every path"
        assert self.add >= 0, "no path leads back in time"
        assert all(constant >= 0 for constant in self.appended), self.appended

    @staticmethod
    def identity(shape: TimeShape) -> PathSummary:
        """Return the summary that changes nothing."""
        return PathSummary(shape.coordinates, 0)

    @staticmethod
    def enter(outer: TimeShape, inner: TimeShape) -> PathSummary:
        """Return the summary of entering a loop: its counters start at 0."""
        assert inner.coordinates > outer.coordinates, (outer, inner)
        assert inner.levels > outer.levels, (outer, inner)
        return PathSummary(outer.coordinates, 0, (0,) * (inner.coordinates - outer.coordinates))

    @staticmethod
    def leave(outer: TimeShape) -> PathSummary:
        """Return the summary of leaving a loop to the scope around it: the loop's counters are forgotten."""
        return PathSummary(outer.coordinates, 0)

    @staticmethod
    def feedback(shape: TimeShape, by: int = 1) -> PathSummary:
        """Return the summary of going once round the innermost loop: its last counter advances."""
        assert by >= 1, "feedback must advance, or the loop would wait for itself"
        assert shape.coordinates >= 1, shape
        return PathSummary(shape.coordinates, by)

    @property
    def coordinates(self) -> int:
        """Number of coordinates of a time after the path."""
        return self.kept_coordinates + len(self.appended)

    def apply(self, time: Timestamp) -> Timestamp:
        """Return the earliest time at the end of the path for an event that starts at `time`."""
        assert len(time) >= self.kept_coordinates, (time, self)
        result = (
            *time[: self.kept_coordinates - 1],
            time[self.kept_coordinates - 1] + self.add,
            *self.appended,
        )
        assert len(result) == self.coordinates, (time, self)
        return result

    def then(self, later: PathSummary) -> PathSummary:
        """Return the summary of this path followed by `later`."""
        assert later.kept_coordinates <= self.coordinates, (self, later)
        if later.kept_coordinates < self.kept_coordinates:
            return later
        if later.kept_coordinates == self.kept_coordinates:
            return PathSummary(self.kept_coordinates, self.add + later.add, later.appended)
        passed = self.appended[: later.kept_coordinates - self.kept_coordinates]
        assert len(passed) == later.kept_coordinates - self.kept_coordinates, (
            "what this path appends, the later one may keep"
        )
        return PathSummary(
            self.kept_coordinates, self.add, (*passed[:-1], passed[-1] + later.add, *later.appended)
        )

    def less_equal(self, other: PathSummary, shape: TimeShape) -> bool:
        """Return True if this path leads to a time ≤ that of `other`, whatever the start. `shape`: of the
        end.
        """
        assert self.coordinates == shape.coordinates, (self, shape)
        assert other.coordinates == shape.coordinates, (other, shape)
        return all(self._chain_less_equal(other, start, stop) for start, stop in shape.bounds)

    def _chain_less_equal(self, other: PathSummary, start: int, stop: int) -> bool:
        """Return `less_equal` on the coordinates [start, stop), lexicographically, for every start of the
        path.

        Coordinates vary independently of one another, so a later one counts iff the earlier ones can be
        equal. A kept coordinate can be as large as we like; its smallest value is the constant that is added
        to it.
        """
        assert 0 <= start < stop, "a chain is not empty"
        assert stop <= self.coordinates, (self, stop)
        for coordinate in range(start, stop):
            if coordinate < self.kept_coordinates and coordinate >= other.kept_coordinates:
                return False
            mine, theirs = self._least(coordinate), other._least(coordinate)
            if mine != theirs:
                return mine < theirs
        return True

    def _least(self, coordinate: int) -> int:
        """Return the smallest value that a coordinate can have after the path."""
        assert 0 <= coordinate < self.coordinates, (self, coordinate)
        if coordinate < self.kept_coordinates - 1:
            return 0
        least = (
            self.add
            if coordinate == self.kept_coordinates - 1
            else self.appended[coordinate - self.kept_coordinates]
        )
        assert least >= 0, self
        return least

    def is_between(self, source: TimeShape, target: TimeShape) -> bool:
        """Return True if the path leads from times of `source` to times of `target` and keeps their order."""
        if not self.kept_coordinates <= source.coordinates or self.coordinates != target.coordinates:
            return False
        levels = len(_cut(source.level_coordinates, self.kept_coordinates))
        assert 1 <= levels <= source.levels, (levels, source)
        same_levels = source.level_coordinates[:levels] == target.level_coordinates[:levels]
        return same_levels and _cut(source.chains, self.kept_coordinates) == _cut(
            target.chains, self.kept_coordinates
        )

    def to_words(self, source: TimeCode, target: TimeCode) -> tuple[int, int]:
        """Return `(keep, add)` with pack(apply(t)) == (pack(t) & keep) + add, as long as nothing overflows.

        Raises `GraphError` if a constant takes up half of its field or more.
        """
        assert self.is_between(source.shape, target.shape), (self, source.shape, target.shape)
        assert source.layout == target.layout, "one dataflow has one layout"
        word = 0
        for constant, (shift, bits) in zip(
            (self.add, *self.appended), target.fields[self.kept_coordinates - 1 :], strict=True
        ):
            if constant > 0 and constant >= 1 << (bits - 1):
                raise GraphError(f"a path that adds {constant} at once does not fit a counter of {bits} bits")
            word += constant << shift
        keep = source.keep_mask_coordinates(self.kept_coordinates)
        assert keep & ~target.valid == 0, "kept fields lie alike in both scopes"
        assert word & ~target.valid == 0, "constants fit their fields"
        return keep, word

    def __str__(self) -> str:
        added = f"+{self.add}" if self.add else ""
        return f"keep {self.kept_coordinates}{added}" + (
            f" append {','.join(map(str, self.appended))}" if self.appended else ""
        )


def _cut(parts: tuple[int, ...], total: int) -> tuple[int, ...]:
    """Return the beginning of a list of lengths that covers exactly `total` coordinates, the last one cut."""
    result: list[int] = []
    for part in parts:
        if total <= 0:
            break
        result.append(min(part, total))
        total -= part
    assert total <= 0, "the list covers `total`"
    assert all(part > 0 for part in result), result
    return tuple(result)
