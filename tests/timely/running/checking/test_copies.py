"""copies.py: a copy is what `copy.deepcopy` makes, object by object.

same_*   random objects that refer to one another, also in circles
asked_*  objects that say themselves how they are copied
"""

from __future__ import annotations

import copy
import enum
from collections import Counter, OrderedDict, deque
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from timely.running.checking.copies import copied


class Plain:
    def __init__(self, *held: object) -> None:
        self.held = held


class Slotted:
    __slots__ = ("first", "never", "second")

    def __init__(self, first: object, second: object) -> None:
        self.first, self.second = first, second


class SlottedWithMore(Slotted):
    """Has a dictionary, too."""

    def __init__(self, first: object, second: object) -> None:
        super().__init__(first, second)
        self.more = [first, second]


@dataclass(frozen=True)
class Frozen:
    held: object

    def method(self) -> object:
        return self.held


class Pair(NamedTuple):
    one: object
    other: object


class Colour(enum.Enum):
    RED = 1


def outline(value: object) -> object:
    """All that can be told of an object and of what it refers to: kinds, values, and which are one object."""
    seen: dict[int, int] = {}
    kept: list[object] = []

    def look(each: object) -> object:
        if isinstance(each, int | str | float | bytes | type | None):
            return each
        if id(each) in seen:
            return "again", seen[id(each)]
        seen[id(each)] = len(seen)
        kept.append(each)
        parts: list[object] = [type(each)]
        if isinstance(each, dict):
            parts += [(look(key), look(held)) for key, held in each.items()]
        elif isinstance(each, list | tuple | deque):
            parts += [look(held) for held in each]
        elif isinstance(each, set):
            parts.append(sorted(map(repr, each)))
        if isinstance(each, deque):
            parts.append(each.maxlen)
        parts += [(name, look(getattr(each, name))) for name in (*vars_of(each), *slots_of(each))]
        return parts

    return look(value)


def vars_of(each: object) -> list[str]:
    return [*vars(each)] if hasattr(each, "__dict__") else []


def slots_of(each: object) -> list[str]:
    return [
        name for name in ("first", "never", "second") if isinstance(each, Slotted) and hasattr(each, name)
    ]


def some_object(choose: st.DataObject) -> object:
    """A few objects. Each may hold those before it; an object that can change may hold itself."""
    made: list[object] = [1, "a", None, 2.5, b"", Plain]
    for _ in range(choose.draw(st.integers(1, 12))):
        one, other = (made[choose.draw(st.integers(0, len(made) - 1))] for _ in range(2))
        kinds: list[object] = [
            [one, other], (one, other), {1: one, "x": other}, {1, "x", 2.5}, deque([one, other], 5),
            Plain(one, other), Slotted(one, other), SlottedWithMore(one, other), Frozen(one),
            Pair(one, other), OrderedDict(a=one), Counter(a=3), Plain(Frozen(one).method),
        ]  # fmt: skip
        new = kinds[choose.draw(st.integers(0, len(kinds) - 1))]
        if isinstance(new, list) and choose.draw(st.booleans()):
            new.append(new)
        if isinstance(new, Plain) and choose.draw(st.booleans()):
            new.held = (new, *new.held)
        made.append(new)
    return made[6:]


@given(st.data())
def test_same_as_deepcopy_makes_them(data: st.DataObject) -> None:
    value = some_object(data)
    before = outline(value)
    made = copied(value, {})
    assert outline(made) == outline(copy.deepcopy(value)) == before
    assert made is not value and outline(value) == before


def test_same_a_tuple_of_what_never_changes_is_itself() -> None:
    shared, other = (1, ("a", None)), (1, [2])
    assert copied(shared, {}) is shared
    made = copied(other, {})
    assert made == other and made is not other and made[1] is not other[1]


def test_same_a_method_is_one_of_the_copy() -> None:
    value = Plain(Frozen([1]))
    value.held = (*value.held, value.held[0].method)  # type: ignore[attr-defined]
    frozen, method = copied(value, {}).held
    assert method.__self__ is frozen and frozen is not value.held[0]  # type: ignore[attr-defined]


def test_same_what_the_memo_has_is_taken_from_it() -> None:
    inner, other = [1], [2]
    assert copied({"x": inner, "y": [inner]}, {id(inner): other})["y"][0] is other
    assert copied(Slotted(inner, inner), {id(inner): None}).first is None


class Asked:
    def __init__(self) -> None:
        self.memos: list[dict[int, object]] = []

    def __deepcopy__(self, memo: dict[int, object]) -> str:
        self.memos.append(memo)
        return "copied by itself"


class WithState:
    def __init__(self) -> None:
        self.kept, self.dropped = [1], 2

    def __getstate__(self) -> dict[str, object]:
        return {"kept": self.kept}


def test_asked_objects_say_how_they_are_copied() -> None:
    value, memo = Asked(), dict[int, object]()
    assert copied([value, value], memo) == ["copied by itself"] * 2
    assert len(value.memos) == 1 and value.memos[0] is memo
    state = copied(WithState(), {})
    assert vars(state) == {"kept": [1]}
    assert copied(Colour.RED, {}) is Colour.RED
    array = np.arange(3)
    made = copied([array], {})[0]
    assert made is not array and made.tolist() == [0, 1, 2]


def test_asked_what_cannot_be_copied_raises() -> None:
    with pytest.raises(TypeError, match="generator"):
        copied([(n for n in range(3))], {})
