"""When does a worker process look for garbage that refers to itself?

Python looks whenever so many objects were made, in the midst of whatever runs then, and now and then it looks
through all objects: with the operators and texts of a large dataflow that takes a tenth of a second, and some
step takes that much longer. So a worker process looks between steps:

    young        after `COLLECT_YOUNG_COUNT_MAX` more objects; each tenth time also survivors of one look
    all          when it rests, if there may be something, and after `COLLECT_ALL_COUNT_MAX` more objects
    not at all   at what is there for as long as a dataflow runs: it is *frozen* when the dataflow has begun

Python itself looks in the midst of a step only after `COLLECT_IN_STEP_COUNT_MAX` more objects: a callback may
run for minutes, and what it leaves behind must not fill the memory. So it does for threads of the user.

Workers that are embedded in a program leave the collector as the program has set it.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable
from time import perf_counter_ns
from typing import TypeVar

from ..limits import COLLECT_ALL_COUNT_MAX, COLLECT_IN_STEP_COUNT_MAX, COLLECT_YOUNG_COUNT_MAX
from ..spilling.file_memory import has_blocks

__all__ = ["Collecting", "collect_dropped", "free_files", "thaw"]

V = TypeVar("V")

_OLDER_EACH = 10
"""Python's own ratio of looks at the young to looks at those that have survived one."""

_THAWED = (-1,)
"""In place of the numbers of the dataflows that run: no others are the same."""

_at_work: list[Collecting] = []
"""Those that have changed the collector of this process: one, if it has one worker."""


def thaw() -> None:
    """Let the collector of a worker process see all objects, until it next rests and freezes them again."""
    for collecting in _at_work:
        collecting.thaw()


def collect_dropped(is_now: bool = True) -> None:
    """Free what a dataflow that has ended has left: its vertices and runners refer to each other. If it has
    failed, frames of the error refer to them now: then the next rest frees them.

    A worker process leaves it to its next rest as well, or to the next look if it does not rest: looking
    through all objects takes some 40 ms, in which other dataflows would stand still. Not if memory lies in
    files, for others may need that disk.
    """
    thaw()
    if is_now and (not _at_work or has_blocks()):
        gc.collect()


def free_files(closed: Iterable[dict[int, V]]) -> None:
    """Drop the dataflows of closed workers at once if memory lies in files: others may need that disk, and a
    program that rests never makes Python look for garbage.
    """
    if has_blocks():
        for dataflows in closed:
            dataflows.clear()
        collect_dropped()


class Collecting:
    """The collector of a worker process, for as long as this context lasts.

    `tell` gets the nanoseconds of each look. The loop of a worker compares the number of young objects with
    `young_max` by itself: mostly there is nothing to call `look` for.
    """

    def __init__(
        self, tell: Callable[[int], None] = lambda taken: None, clock: Callable[[], int] = perf_counter_ns
    ) -> None:
        self._clock = clock
        self._tell = tell
        self.young_max = COLLECT_YOUNG_COUNT_MAX
        self._before = gc.get_threshold()
        self._looks = 0
        self._made = 0
        self._dataflows: tuple[int, ...] = ()

    def __enter__(self) -> Collecting:
        """Let Python itself look seldom."""
        self._before = _at_work[0]._before if _at_work else gc.get_threshold()
        gc.set_threshold(COLLECT_IN_STEP_COUNT_MAX, _OLDER_EACH, _OLDER_EACH)
        _at_work.append(self)
        return self

    def __exit__(self, *error: object) -> None:
        """Leave the collector as it was, unless another one is at work."""
        _at_work.remove(self)
        if not _at_work:
            gc.unfreeze()
            gc.set_threshold(*self._before)

    def look(self) -> None:
        """Look through young objects, if there are many. Call it between steps."""
        young = gc.get_count()[0]
        if young < self.young_max:
            return
        self._made += young
        if self._made >= COLLECT_ALL_COUNT_MAX:
            self._collect(2)
            return
        self._looks += 1
        self._collect(1 if self._looks % _OLDER_EACH == 0 else 0)

    def rest(self, dataflows: tuple[int, ...] = ()) -> None:
        """Look through all objects, if young ones were made. Call it when nothing has happened for a while,
        with the numbers of the dataflows that run: if others have begun, all that is there now is frozen.
        """
        young, *looks = gc.get_count()
        is_little = self._made + young < COLLECT_YOUNG_COUNT_MAX and not any(looks)
        if is_little and dataflows == self._dataflows:
            return
        has_begun = not set(dataflows) <= set(self._dataflows)
        self._dataflows = dataflows
        self._collect(2)
        if has_begun:
            gc.freeze()

    def thaw(self) -> None:
        """Let the next rest, or the next look at young objects, look through what was frozen, too; a rest
        freezes what is left.
        """
        gc.unfreeze()
        self._dataflows = _THAWED
        self._made = COLLECT_ALL_COUNT_MAX

    def _collect(self, generation: int) -> None:
        began = self._clock()
        gc.collect(generation)
        if generation == 2:
            self._made = self._looks = 0
        self._tell(self._clock() - began)
