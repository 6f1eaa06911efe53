"""Answer to the names that other libraries use: by our attribute if it means the same, else by an error that
says what to write.

Each kind of object has one table. A name that means exactly the same works (`rows.groupBy("k")`), although
the object has only one such method: `Same("group_by")` in the table. Any other name is an AttributeError that
says what to write.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, ClassVar, NamedTuple, ParamSpec, TypeVar

from .offered import Offered, OfferedType
from .short_traces import short, short_lookup

__all__ = ["Same", "Spelled", "SpelledType", "Spellings", "called_as", "like"]

P = ParamSpec("P")
R = TypeVar("R")


class Same(NamedTuple):
    """A second spelling of an attribute: `group_by`, or `str.contains` for one of an attribute."""

    attribute: str


class Spellings:
    """The foreign names of the attributes of one kind of object.

    names      foreign names, each with what to write, or with the attribute that is the same
    families   patterns of further names, each with what to write
    """

    def __init__(self, names: Mapping[str, str | Same], families: Sequence[tuple[str, str]] = ()) -> None:
        self.names = names
        self.families = families

    def same(self, thing: object, name: str) -> object | None:
        """Return the attribute of `thing` that `name` is a second spelling of; None if there is none."""
        entry = self.names.get(name)
        return attrgetter(entry.attribute)(thing) if isinstance(entry, Same) else None

    def write(self, name: str) -> str | None:
        """Return what to write for `name`; None if no other library has that name."""
        entry = self.names.get(name)
        if isinstance(entry, Same):
            return f"{entry.attribute}(…)"
        return entry or next((write for family, write in self.families if re.fullmatch(family, name)), None)

    def message(self, missing: str, name: str, has: Iterable[str] = (), otherwise: str = "") -> str:
        """Return the message of an AttributeError: `missing`, a sentence that there is no `name`, followed by
        what to write; without an entry in the table by `otherwise`; without that by the name in `has` that
        may be meant.
        """
        write = self.write(name)
        if write is not None:
            return f"{missing}. Write instead: {write}"
        if name.startswith("_"):  # IPython and copy look up many of these
            return missing
        offered = [each for each in has if not each.startswith("_")]
        plain = _in_small_letters(name)  # names of methods in C#, of traits in Rust: BranchWhen
        if plain != name and (plain in offered or self.write(plain) is not None):
            return f"{missing}. Write instead: {self.write(plain) or f'{plain}(…)'}"
        return missing + (otherwise or like(name, offered))


def _in_small_letters(name: str) -> str:
    """Return a name as Python writes it: `branch_when` for `BranchWhen`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


class SpelledType(OfferedType):
    """The type of classes that answer to second spellings: `reduce(Collection.unionAll, collections)`."""

    _spellings: Spellings

    if not TYPE_CHECKING:

        @short_lookup
        def __getattr__(cls, name: str) -> object:
            missing = f"type object {cls.__name__!r} has no attribute {name!r}"
            if name.startswith("_"):  # also `_spellings` itself, of a class without a table
                raise AttributeError(missing)
            entry = cls._spellings.names.get(name)
            if not isinstance(entry, Same):
                raise AttributeError(cls._spellings.message(missing, name, dir(cls)))
            return _of_class(cls, entry.attribute)


def _of_class(kind: type, attribute: str) -> object:
    """Return the method `attribute` of a class. One behind an accessor, as `str.contains`, is found when it
    is called with an object.
    """
    if "." not in attribute:
        return getattr(kind, attribute)

    def method(thing: object, *args: object, **named: object) -> object:
        return attrgetter(attribute)(thing)(*args, **named)

    return method


class Spelled(Offered, metaclass=SpelledType):
    """An object that answers to the names in its table, `_spellings`."""

    __slots__ = ()
    _spellings: ClassVar[Spellings]

    def _missing(self, name: str) -> str:
        """Return the message for a name that is no second spelling of one of its attributes."""
        raise NotImplementedError

    if not TYPE_CHECKING:

        @short_lookup
        def __getattr__(self, name: str) -> object:
            same = self._spellings.same(self, name)
            if same is None:
                raise AttributeError(self._missing(name))
            return same


def called_as(name: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a decorator of a hidden method that takes the arguments of another library: users call it
    `name`.

    Python's own errors and `help()` use that name, and the method shortens tracebacks as the public methods
    do.
    """

    def marked(method: Callable[P, R]) -> Callable[P, R]:
        method.__qualname__ = method.__qualname__.removesuffix(method.__name__) + name
        method.__name__ = name
        return short(method)

    return marked


def like(name: object, names: Sequence[str]) -> str:
    """Return the one of `names` that a missing name may mean, as the end of a message; "" for none."""
    if not isinstance(name, str):  # users may pass anything
        return ""
    import difflib

    # Prefer a name that differs in case only, as in Spark: 'K' and 'k' are not close by their letters.
    near = [each for each in names if each.casefold() == name.casefold()]
    near = near or difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    return f". Did you mean {near[0]!r}?" if near else ""
