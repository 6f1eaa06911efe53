"""What an explorer need not visit: other orders of independent actions, and states that are alike but for the
names of workers.

The second is *symmetry*. Workers at which clients do the same are `alike`: nothing that happens depends on
which of them is which. The same events with the workers renamed lead from the start to an *image* of a state,
one for each way of renaming them. Of a state and its images one is visited.

The explorer does not believe that workers are alike: it finds out. `Symmetry` follows all images of visited
states, move by move, and raises an error unless

    the moves of an image are those of the state, renamed
    every path to a state, renamed, leads to the same image of it
    predicates see the same of an image, renamed: counts, frontiers, messages under way

for all moves of all visited states. Then renaming maps all states that can be reached, and the moves between
them, onto one another: by induction over paths, each state is an image of a visited one. No predicate names a
worker, so what holds in a state holds in its images.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import permutations
from typing import Protocol, TypeAlias

from progress.errors import MisuseError

from .actions import Action, Receive
from .reached import Doing, Move, Reached, WorkOff

__all__ = ["Goes", "Symmetry", "longest_path", "moves_of_one"]

_Renaming: TypeAlias = tuple[int, ...]
"""The new name of each worker."""


def moves_of_one(state: Reached, moves: list[Move], size: int) -> list[Move]:
    """Return the moves of one worker to which nothing can be added from outside, as few as possible; all
    moves if there is no such worker.
    """
    acting = {who for who, _ in moves}
    chosen = moves
    for who in acting:
        others = [peer for peer in range(size) if peer != who]
        if acting == {who} or all(state.wires[peer * size + who] for peer in others):
            own = [move for move in moves if move[0] == who]
            chosen = min(chosen, own, key=len)
    return chosen


def longest_path(starts: Iterable[Reached], leads_to: Mapping[Reached, Sequence[Reached]], count: int) -> int:
    """Return the length of the longest path through `count` states; raise `MisuseError` if one goes round:
    what a worker might do could be put off for ever on it.
    """
    entering = Counter(after for every in leads_to.values() for after in every)
    free = [start for start in set(starts) if not entering[start]]
    left, far = count, dict.fromkeys(free, 0)
    while free:
        state = free.pop()
        left -= 1
        for after in leads_to.get(state, ()):
            far[after] = max(far.get(after, 0), far[state] + 1)
            entering[after] -= 1
            if not entering[after]:
                free.append(after)
    if left:
        raise MisuseError(f"{left} states are on paths that go round: explore without `reduced`")
    return max(far.values())


class Goes(Protocol):
    """An explorer, as far as states and moves go."""

    def act_of(self, state: Reached, who: int) -> Doing | None:
        """Return the next act of the client at a worker."""
        ...

    def after(self, state: Reached, move: Move) -> Reached:
        """Return the state after a move."""
        ...


class Symmetry:
    """The images of all visited states; `alike` are the workers that may be renamed."""

    def __init__(self, goes: Goes, size: int, alike: Sequence[int]) -> None:
        self._goes = goes
        self._renamings: list[_Renaming] = []
        """The identity is the first."""
        for names in permutations(sorted(alike)):
            new = dict(zip(sorted(alike), names, strict=True))
            self._renamings.append(tuple(new.get(who, who) for who in range(size)))
        self._number = {renaming: number for number, renaming in enumerate(self._renamings)}
        self._images: dict[Reached, tuple[Reached, ...]] = {}
        """For each visited state, by number of the renaming."""
        self._image_of: dict[Reached, tuple[Reached, int]] = {}
        """For each image the visited state, and by which renaming."""

    @property
    def count(self) -> int:
        """The number of states for which the visited ones stand."""
        return len(self._image_of)

    def begin(self, start: Reached) -> None:
        """Begin with a state in which nothing has happened, so that it is its own image."""
        self._note(start, (start,) * len(self._renamings))

    def check_moves(
        self, state: Reached, moves: Sequence[Move], moves_from: Callable[[Reached], Sequence[Move]]
    ) -> None:
        """Raise `MisuseError` unless the moves of all images of a visited state are its own, renamed."""
        for renaming, image in zip(self._renamings, self._images[state], strict=True):
            own = {_shown((renaming[who], _renamed(doing, renaming))) for who, doing in moves}
            if own != set(map(_shown, moves_from(image))):
                raise _unlike(renaming, "may do other things")

    def visited(self, before: Reached, move: Move, after: Reached) -> tuple[Reached, bool]:
        """Return the state that is visited in the place of `after`, to which `move` leads from a visited
        state, and whether it is new.
        """
        images = tuple(
            after if number == 0 else self._goes.after(image, self._image_of_move(move, number, image))
            for number, image in enumerate(self._images[before])
        )
        if after not in self._image_of:
            self._note(after, images)
            return after, True
        state, by = self._image_of[after]
        for number, image in enumerate(images):
            if image != self._images[state][self._then(by, number)]:
                raise _unlike(self._renamings[number], "has come to another state by the same events")
        return state, False

    def visited_for(self, image: Reached) -> tuple[Reached, Sequence[int]]:
        """Return the visited state that has this image, and the new name of each worker in it."""
        state, number = self._image_of[image]
        return state, self._renamings[number]

    def _image_of_move(self, move: Move, number: int, image: Reached) -> Move:
        renaming = self._renamings[number]
        who, doing = renaming[move[0]], _renamed(move[1], renaming)
        act = self._goes.act_of(image, who) if doing is None else doing
        assert act is not None, "its moves were compared"
        return who, act

    def _note(self, state: Reached, images: tuple[Reached, ...]) -> None:
        self._images[state] = images
        for number, image in enumerate(images):
            if not _look_alike(state, image, self._renamings[number]):
                raise _unlike(self._renamings[number], "has other counts, frontiers or messages")
            _, by = self._image_of.setdefault(image, (state, number))
            for then in range(len(images) if by != number else 0):
                if images[self._then(by, then)] != images[self._then(number, then)]:
                    raise _unlike(self._renamings[then], "has come to another state by the same events")

    def _then(self, first: int, second: int) -> int:
        """Return the number of the renaming that is one after the other."""
        before, behind = self._renamings[first], self._renamings[second]
        return self._number[tuple(behind[name] for name in before)]


def _renamed(doing: Doing, renaming: _Renaming) -> Doing | None:
    """Return what a worker does where all are renamed; None for an act of its client, whichever that is."""
    if isinstance(doing, Receive):
        return Receive(renaming[doing.peer])
    return doing if isinstance(doing, Action | WorkOff) else None


def _look_alike(state: Reached, image: Reached, renaming: _Renaming) -> bool:
    """Return True if predicates see the same of both."""
    size = len(renaming)
    for who, local in enumerate(state.workers):
        other = image.workers[renaming[who]]
        if any(local.sights[number] != other.sights.get(number) for number in local.seen):
            return False
        early = {
            number: [(renaming[peer], one.sight) for peer, one in waiting]
            for number, waiting in local.early.items()
        }
        if early != {n: [(peer, one.sight) for peer, one in each] for n, each in other.early.items()}:
            return False
        for peer in range(size):
            wire, its = state.wires[who * size + peer], image.wires[renaming[who] * size + renaming[peer]]
            if [(one.dataflow, one.sight) for one in wire] != [(one.dataflow, one.sight) for one in its]:
                return False
    return True


def _shown(move: tuple[int, Doing | None]) -> tuple[int, Doing | None]:
    who, doing = move
    return who, doing if isinstance(doing, Action | WorkOff) else None


def _unlike(renaming: _Renaming, how: str) -> MisuseError:
    return MisuseError(
        f"workers are not alike: with workers renamed to {list(renaming)}, one {how}. Name fewer workers as "
        "`alike`, or none"
    )
