"""A user's function of a group, as the reduce machine calls it: on words.

Costs about 20 µs per group that changed and 2 µs per row in it, most of it for turning words into Python
values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from differential.columns.rows import Row, decode_rows, encode_rows
from differential.columns.schema import Schema
from differential.columns.worker_symbols import SYMBOLS
from differential.errors import SchemaError, UserFunctionError, shown
from differential.operators.reduce import GroupFunction
from timely.counted import counted
from timely.failure import text_of

__all__ = ["UserGroupFunction", "on_words"]

UserGroupFunction = Callable[[Row, list[tuple[Row, int]]], Iterable[object]]
"""From a key and its group, as (row without the key columns, multiplicity), to the rows that it gives.

A row that is given is a tuple, or a bare value if one column is declared.
"""

_Words = tuple[int, ...]


def on_words(
    function: UserGroupFunction, keys: Schema, rest: Schema, given: Schema, site: str
) -> GroupFunction:
    """`function` of groups with the columns `keys` and `rest`, giving the columns `given`, as a function of
    words.
    """
    name = getattr(function, "__qualname__", type(function).__qualname__)

    def call(key_words: _Words, members: list[tuple[_Words, int]]) -> Sequence[_Words]:
        (key,) = _decoded(keys, [key_words])
        rows = _decoded(rest, [words for words, _ in members])
        group = [(row, multiplicity) for row, (_, multiplicity) in zip(rows, members, strict=True)]
        try:
            answers = [_as_row(answer, given) for answer in function(key, group)]
            words = encode_rows(given, answers, SYMBOLS, f"result of {name}")
        except SchemaError as error:
            raise UserFunctionError(
                f"reduce({name}) ({site}) on the group {shown(key)}: its result does not fit {given}: {error}"
            ) from error
        except Exception as error:
            raise UserFunctionError(
                f"reduce({name}) ({site}) failed on the group {shown(key)}:\n"
                f"  {type(error).__name__}: {text_of(error)}"
            ) from error
        return list(zip(*words.tolist(), strict=True)) if given.width else [()] * len(answers)

    return GroupFunction(call, given.width)


def _decoded(schema: Schema, rows: list[_Words]) -> list[Row]:
    if not schema.columns:
        return [()] * len(rows)
    words = np.array(rows, dtype=np.int64).reshape(len(rows), schema.width).T
    return decode_rows(schema, np.ascontiguousarray(words), SYMBOLS)


def _as_row(answer: object, given: Schema) -> Row:
    if isinstance(answer, tuple | list):
        return tuple(answer)
    if len(given) == 1:
        return (answer,)
    raise SchemaError(f"a row of ({given}) is a tuple of {counted(len(given), 'value')}, not {shown(answer)}")
