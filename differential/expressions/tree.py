"""Expressions as plain data: columns, constants, operators.

Printing (`text.py`) and typing (`types.py`) walk these trees. Users write `Expr` of `expression.py`, whose
classes add operators and methods to these; nothing here depends on it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from timely.user_code.call_site import UNKNOWN_SITE, CallSite

from ..columns.column_types import ColumnType
from .literals import Constant

__all__ = ["BinaryOp", "ColumnTree", "LiteralTree", "Op", "OperationTree", "PendingTree", "SpecialOp", "Tree"]

BinaryOp: TypeAlias = Literal["+", "-", "*", "/", "//", "%", "==", "!=", "<", "<=", ">", ">=", "&", "|"]
SpecialOp: TypeAlias = Literal[
    "negative", "~", "abs", "is_null", "is_in", "fill_null", "cast", "try_cast", "when",
    "min_of", "max_of", "least", "greatest",
]  # fmt: skip
Op: TypeAlias = str
"""A `BinaryOp`, a `SpecialOp`, or the name of a function in `functions/catalogue.py`."""


@dataclass(frozen=True, eq=False, repr=False)
class Tree:
    """Something that has a value in every row, and the line that wrote it."""

    site: CallSite = field(default=UNKNOWN_SITE, init=False)
    size: int = field(default=1, init=False)
    """Operators, columns and constants in it; a shared part counts as often as it would be written."""
    depth: int = field(default=1, init=False)
    """How deep operators are nested in it."""
    is_pending: bool = field(default=False, init=False)
    """True if a part of it has a meaning only over the columns of a collection; see `PendingTree`."""


@dataclass(frozen=True, eq=False, repr=False)
class ColumnTree(Tree):
    """The value of a column."""

    name: str


@dataclass(frozen=True, eq=False, repr=False)
class LiteralTree(Tree):
    """The same value in every row; None is null."""

    value: Constant
    type: ColumnType


@dataclass(frozen=True, eq=False, repr=False)
class PendingTree(Tree):
    """What only the columns of a collection give a meaning: SQL as text. Operators of collections replace it;
    plans never hold one.
    """

    written: str
    """How it prints."""


@dataclass(frozen=True, eq=False, repr=False)
class OperationTree(Tree):
    """An operator and its operands; `to` is the type that a cast makes.

    The operands of `when` are condition, value, condition, value, …, and the default if there is one.
    """

    op: Op
    operands: tuple[Tree, ...]
    to: ColumnType | None = None
