"""Which names tab completion offers: the documented ones, and nothing internal."""

from __future__ import annotations

from typing import ClassVar

__all__ = ["Offered", "OfferedType", "offered"]


class OfferedType(type):
    """The type of classes that offer only documented names."""

    _internal: frozenset[str]

    def __dir__(cls) -> list[str]:
        """Return the public names of the class, and the special ones, which `help` shows."""
        names = type.__dir__(cls)
        return sorted(name for name in names if name.startswith("__") or not _is_hidden(name, cls._internal))


class Offered(metaclass=OfferedType):
    """A base of classes whose objects offer their public names.

    A class lists in `_internal` those public names that only other files of these packages use.
    """

    __slots__ = ()
    _internal: ClassVar[frozenset[str]] = frozenset()

    def __dir__(self) -> list[str]:
        """Return the public names of the object."""
        return offered(self, type(self)._internal)


def offered(thing: object, internal: frozenset[str]) -> list[str]:
    """Return the public names of an object but the `internal` ones."""
    return sorted(name for name in object.__dir__(thing) if not _is_hidden(name, internal))


def _is_hidden(name: str, internal: frozenset[str]) -> bool:
    return name.startswith("_") or name in internal
