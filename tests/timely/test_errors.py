"""The tree of errors, and how an error travels from a worker to a client."""

from __future__ import annotations

import inspect

import pytest

import timely.errors
from timely.errors import MisuseError, TimelyError, VertexError, class_names, revive

CLASSES = [
    found for _, found in inspect.getmembers(timely.errors, inspect.isclass) if issubclass(found, TimelyError)
]


@pytest.mark.parametrize("made", CLASSES)
def test_an_error_arrives_as_the_class_that_was_raised(made: type[TimelyError]) -> None:
    error = made("what happened")
    again = revive(class_names(error), str(error))
    assert type(again) is made and str(again) == "what happened"


def test_a_class_that_the_client_does_not_know_arrives_as_the_nearest_above_it() -> None:
    assert (
        type(revive(["SchemaOfTomorrowError", "VertexError", "MisuseError", "TimelyError"], "x"))
        is VertexError
    )
    assert type(revive([], "x")) is TimelyError


def test_classes_outside_of_the_tree_do_not_travel() -> None:
    assert class_names(timely.errors.WaitTimeoutError("x")) == ["WaitTimeoutError", "TimelyError"]
    assert type(revive(["KeyboardInterrupt", "MisuseError"], "x")) is MisuseError


def test_the_tree_is_drawn_in_full() -> None:
    drawing = timely.errors.__doc__ or ""
    assert all(made.__name__ in drawing for made in CLASSES)
