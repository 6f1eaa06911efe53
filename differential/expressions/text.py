"""How is an expression printed?

As it would be written, with the parentheses that Python needs and no others: a text from an error or a plan
can be pasted back into a program. The text depends on nothing but the expression: fingerprints are taken of
it.
"""

from __future__ import annotations

from typing import Final

from differential.columns.symbols.packing import unpack
from differential.expressions.functions.catalogue import FUNCTIONS
from differential.expressions.tree import ColumnTree, LiteralTree, OperationTree, PendingTree, Tree

__all__ = ["receiver_text", "text_of"]

_BINARY: Final[dict[str, int]] = {
    **dict.fromkeys(("==", "!=", "<", "<=", ">", ">="), 1),
    "|": 2,
    "&": 3,
    **dict.fromkeys(("+", "-"), 4),
    **dict.fromkeys(("*", "/", "//", "%"), 5),
}
_COMPARISON: Final = 1
_UNARY: Final = 6
_ATOM: Final = 7


def text_of(expr: Tree) -> str:
    """Return the expression as it would be written."""
    return _text(expr, 0)


def receiver_text(expr: Tree) -> str:
    """Return the expression as it stands before the dot of a method: `(col.x + 1)`, `col.x`, `lit(1)`."""
    return _text(expr, _ATOM)


def _text(expr: Tree, surrounding: int) -> str:
    """Return the text of `expr`, in parentheses if it binds less strongly than its `surrounding`."""
    precedence, text = _bare(expr)
    if isinstance(expr, LiteralTree) and surrounding == _ATOM and not text.startswith("lit("):
        return f"lit({text})"  # a method of a plain constant would be Python's, not ours
    return f"({text})" if precedence < surrounding else text


def _condition(expr: Tree, surrounding: int) -> str:
    """Return the text of `expr` for a place where a bare True or False is refused."""
    text = _text(expr, surrounding)
    return f"lit({text})" if text in ("True", "False") else text


def _bare(expr: Tree) -> tuple[int, str]:
    """Return how strongly the expression binds, and its text."""
    if isinstance(expr, ColumnTree):
        is_plain = expr.name.isidentifier() and not expr.name.startswith("__")
        return _ATOM, f"col.{expr.name}" if is_plain else f"col({expr.name!r})"
    if isinstance(expr, LiteralTree):
        return _literal(expr)
    if isinstance(expr, PendingTree):
        return _ATOM, expr.written
    assert isinstance(expr, OperationTree)
    operands = expr.operands
    if expr.op in _BINARY:
        precedence = _BINARY[expr.op]
        # Comparisons do not associate: a comparison inside a comparison takes parentheses on either side.
        part = _condition if expr.op in ("&", "|") else _text
        left = part(operands[0], precedence + (precedence == _COMPARISON))
        return precedence, f"{left} {expr.op} {part(operands[1], precedence + 1)}"
    if expr.op == "~" and isinstance(operands[0], OperationTree) and operands[0].op == "is_null":
        return _ATOM, f"{_text(operands[0].operands[0], _ATOM)}.is_not_null()"
    if expr.op in ("~", "negative"):
        return _UNARY, f"{'~' if expr.op == '~' else '-'}{_text(operands[0], _UNARY)}"
    accessor = FUNCTIONS[expr.op].accessor if expr.op in FUNCTIONS else ""
    if expr.op in ("min_of", "max_of", "least", "greatest") or accessor is None:
        return _ATOM, f"{expr.op}({', '.join(map(text_of, operands))})"
    if expr.op == "when":
        return _ATOM, _when(operands)
    rest = ", ".join(map(text_of, operands[1:]))
    if expr.op == "is_in":
        rest = f"[{rest}]"
    elif expr.op in ("cast", "try_cast"):
        rest = repr(str(expr.to))
    within = f"{accessor}." if accessor else ""
    return _ATOM, f"{_text(operands[0], _ATOM)}.{within}{expr.op}({rest})"


def _literal(literal: LiteralTree) -> tuple[int, str]:
    if literal.value is None:
        return _ATOM, f"lit(None, {str(literal.type)!r})"
    if literal.type.metadata is not None:
        assert isinstance(literal.value, bytes)
        return _ATOM, f"lit({unpack(literal.value)!r}, {str(literal.type.not_null())!r})"
    text = repr(literal.value)
    return _UNARY if text.startswith("-") else _ATOM, text


def _when(operands: tuple[Tree, ...]) -> str:
    pairs = zip(operands[:-1:2], operands[1::2], strict=False)
    text = ".".join(f"when({_condition(test, 0)}).then({text_of(value)})" for test, value in pairs)
    return text if len(operands) % 2 == 0 else f"{text}.otherwise({text_of(operands[-1])})"
