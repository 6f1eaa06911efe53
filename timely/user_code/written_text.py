"""Which text was a function compiled from?

It is the file or cell that its code names, if that still compiles to exactly this code: a file that was
edited since has another text. A text can be compiled in several ways, each of which results in other code:

    whole            as Python compiles a module
    by statements    as IPython compiles a cell. In the same unit as `import math` Python calls `math.sqrt` by
                     other instructions than elsewhere, and a constant is one object in a unit
    with flags       of `from __future__ import …` in an earlier cell, or of a cell that may await

IPython compiles the text of `%time` and `%%time` under a name that no file has. That text is an argument in
the cell, which IPython remembers.
"""

from __future__ import annotations
import __future__

import ast
import linecache
import sys
from collections.abc import Callable, Iterator
from functools import lru_cache
from types import CodeType
from typing import Final

__all__ = ["written_text"]

_OF_MAGICS: Final = ("<timed exec>", "<timed eval>")
"""The names under which IPython compiles the text of `%time` and `%%time`."""

_CELLS_MAX: Final = 200
"""How many cells are searched for the text of a magic, from the last one back."""

_FUTURE: Final = sum(getattr(__future__, name).compiler_flag for name in __future__.all_feature_names)


def written_text(code: CodeType, names: dict[str, object]) -> str | None:
    """Return the text that the `code` of a function was compiled from; None if it is not there any more.

    `names` are the globals of its module. Cost: a text is compiled once, while it stays in a cache of 64
    texts.
    """
    for text in _texts(code, names):
        if _compiles_to(text, code):
            return text
    return None


def _texts(code: CodeType, names: dict[str, object]) -> Iterator[str]:
    """Yield the texts that `code` may come from."""
    lines = linecache.getlines(code.co_filename, names)
    if lines:
        yield "".join(lines)
    elif code.co_filename in _OF_MAGICS:
        yield from _arguments_of_magics()


def _arguments_of_magics() -> Iterator[str]:
    """Yield the string constants of the cells that IPython has run, the last cell first: arguments of magics
    are among them.

    Each text is converted as a magic lets IPython convert its argument to Python, which drops empty lines.
    """
    ipython = sys.modules.get("IPython")
    try:
        shell = ipython.get_ipython()  # type: ignore[union-attr]
        cells: list[str] = list(shell.history_manager.input_hist_parsed)
        as_python: Callable[[str], str] = shell.transform_cell
    except Exception:  # another release of IPython, or no shell
        return
    for cell in reversed(cells[-_CELLS_MAX:]):
        try:
            nodes = list(ast.walk(ast.parse(cell)))
        except (SyntaxError, ValueError, RecursionError):
            continue
        for node in nodes:
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                try:
                    text = as_python(node.value)
                except Exception:  # IPython raises many kinds of errors for a text that is no cell
                    continue
                yield text


def _compiles_to(text: str, code: CodeType) -> bool:
    """Return True if `text` compiles to a function with this `code`."""
    flags = code.co_flags & _FUTURE
    return any(code in codes(text, each) for codes in (_codes_of_all, _codes_of_each) for each in {0, flags})


@lru_cache(maxsize=64)
def _codes_of_all(text: str, flags: int) -> frozenset[CodeType]:
    """Return the code of every function in `text`, compiled as a whole."""
    try:
        return frozenset(_within(compile(text, "<source>", "exec", flags, dont_inherit=True)))
    except (SyntaxError, ValueError, RecursionError):
        return frozenset()


@lru_cache(maxsize=64)
def _codes_of_each(text: str, flags: int) -> frozenset[CodeType]:
    """Return the code of every function in `text`, with each statement compiled by itself, as IPython
    does.
    """
    codes: set[CodeType] = set()
    flags |= ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    try:
        for statement in ast.parse(text).body:
            unit = ast.Module([statement], [])
            codes.update(_within(compile(unit, "<source>", "exec", flags, dont_inherit=True)))
    except (SyntaxError, ValueError, RecursionError):
        pass
    return frozenset(codes)


def _within(code: CodeType) -> Iterator[CodeType]:
    """Yield the code of a unit and of all functions in it."""
    waiting = [code]
    while waiting:
        one = waiting.pop()
        yield one
        waiting += [constant for constant in one.co_consts if isinstance(constant, CodeType)]
