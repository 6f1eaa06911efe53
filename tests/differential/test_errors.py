"""The differential part of the error tree, and values as messages show them."""

from __future__ import annotations

import pytest

from differential import errors
from progress.errors import InternalError, MisuseError


@pytest.mark.parametrize("name", ["SchemaError", "ExpressionError", "RowError", "UserFunctionError"])
def test_what_a_user_can_mend_is_misuse(name: str) -> None:
    assert issubclass(getattr(errors, name), MisuseError)


@pytest.mark.parametrize("name", ["SymbolCollisionError", "UnknownSymbolError"])
def test_what_he_cannot_is_internal(name: str) -> None:
    assert issubclass(getattr(errors, name), InternalError)


def test_long_values_are_cut() -> None:
    assert errors.shown("x" * 10) == repr("x" * 10)
    assert len(errors.shown("x" * 10_000)) == 80


def test_a_collection_without_columns_is_told_what_to_write() -> None:
    told = errors.no_columns("input 'x'", errors.ONE_COLUMN)
    assert isinstance(told, errors.SchemaError)
    assert str(told).startswith("input 'x': ") and "write 'one: int'" in str(told)
