"""Tab completion offers documented names alone."""

from __future__ import annotations

from timely.user_code.offered import Offered


class _Shelf(Offered):
    """A thing with names of all kinds."""

    _internal = frozenset({"count_of_books", "of"})

    def __init__(self) -> None:
        self.book = "one"
        self._dust = 1

    def of(self) -> str:
        """For other files of ours."""
        return self.book

    def take(self) -> str:
        """For users."""
        return self._kept()

    def _kept(self) -> str:
        return self.book


def test_an_object_offers_its_public_names_but_internal_ones() -> None:
    assert dir(_Shelf()) == ["book", "take"]
    assert _Shelf().of() == _Shelf().take() == "one", "they are there all the same"


def test_a_class_offers_them_and_the_special_ones_that_help_shows() -> None:
    assert [name for name in dir(_Shelf) if not name.startswith("__")] == ["take"]
    assert "__init__" in dir(_Shelf)


def test_what_a_subclass_adds_is_offered() -> None:
    class Mine(_Shelf):
        """Of a user."""

        def lend(self) -> None:
            """More."""

    assert dir(Mine()) == ["book", "lend", "take"]
