"""A user's function of a group, as the reduce machine calls it: on words.

Costs about 20 µs per group that changed and 2 µs per row in it, most of it for turning words into Python
values.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from typing import Final

import numpy as np

from differential.columns.nested.values import some_value
from differential.columns.rows import Row, decode_rows, encode_rows
from differential.columns.schema import Schema
from differential.columns.worker_symbols import SYMBOLS
from differential.errors import SchemaError, UserFunctionError, shown
from differential.linear.failures.guarding import error_texts, record_text
from differential.operators.reduce import GroupFunction
from timely.counted import counted
from timely.failure import text_of

__all__ = ["UserGroupFunction", "on_words"]

UserGroupFunction = Callable[[Row, list[tuple[Row, int]]], Iterable[object]]
"""From a key and its group, as (row without the key columns, multiplicity), to the rows of the answer.

A row of the answer is a tuple, or a bare value if one column is declared.
"""

_Words = tuple[int, ...]
_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def on_words(
    function: UserGroupFunction,
    keys: Schema,
    rest: Schema,
    result: Schema,
    site: str,
    stage: str | None = None,
) -> GroupFunction:
    """Return `function` as a function of words. Groups have the columns `keys` and `rest`, its answers the
    columns `result`.

    With `stage`, errors are answers, too: five texts follow each answer. They are empty, or the record,
    stage, line, error and traceback of a group on which the function fails.
    """
    name = getattr(function, "__qualname__", type(function).__qualname__)

    def answer(key: Row, group: list[tuple[Row, int]]) -> Sequence[_Words]:
        try:
            answers = [_as_row(each, result) for each in function(key, group)]
            return _encoded(result, answers, name)
        except SchemaError as error:
            raise UserFunctionError(
                f"reduce({name}) ({site}) on the group {shown(key)}: its result does not fit {result}: "
                f"{error}"
            ) from error
        except Exception as error:
            raise UserFunctionError(
                f"reduce({name}) ({site}) failed on the group {shown(key)}:\n"
                f"  {type(error).__name__}: {text_of(error)}{_by_place(error)}"
            ) from error

    def call(key_words: _Words, members: list[tuple[_Words, int]]) -> Sequence[_Words]:
        (key,) = _decoded(keys, [key_words])
        rows = _decoded(rest, [words for words, _ in members])
        group = [(row, multiplicity) for row, (_, multiplicity) in zip(rows, members, strict=True)]
        if stage is None:
            return answer(key, group)
        try:
            return [(*words, *_no_error()) for words in answer(key, group)]
        except UserFunctionError as error:
            texts = [(record_text(f"{key}: {group}"), stage, *error_texts(error))]
            return [(*_encoded(result, [_zeros(result)], name)[0], *_encoded(_ERRORS, texts, name)[0])]

    return GroupFunction(call, result.width + (0 if stage is None else _ERRORS.width))


def _by_place(error: Exception) -> str:
    """Return a hint if the function took a key or a row for a record, which `map` gets; else an empty
    text.
    """
    if isinstance(error, AttributeError) and type(error.obj) is tuple:
        return (
            "\n  Keys and rows of a group are tuples, without names: "
            "for (x, y), multiplicity in rows: …, the values beside the key in the order of their columns."
        )
    return ""


_ERRORS: Final = Schema.of("record: string, stage: string, line: string, error: string, traceback: string")


def _no_error() -> _Words:
    return _encoded(_ERRORS, [("",) * len(_ERRORS)], "no error")[0]


def _zeros(result: Schema) -> Row:
    """Return some values of these columns."""
    zeros: dict[str, object] = {
        "float": 0.0,
        "bool": False,
        "string": "",
        "bytes": b"",
        "any": "",
        "timestamp": _EPOCH,
    }
    zeros |= {"date": _EPOCH.date(), "decimal": Decimal(0)}
    return tuple(
        None
        if column.type.nullable
        else some_value(column.type)
        if column.type.is_nested
        else zeros.get(column.type.kind, 0)
        for column in result
    )


def _encoded(schema: Schema, rows: Sequence[Row], name: str) -> list[_Words]:
    words = encode_rows(schema, rows, SYMBOLS, f"result of {name}")
    return list(zip(*words.tolist(), strict=True)) if schema.width else [()] * len(rows)


def _decoded(schema: Schema, rows: list[_Words]) -> list[Row]:
    if not schema.columns:
        return [()] * len(rows)
    words = np.array(rows, dtype=np.int64).reshape(len(rows), schema.width).T
    return decode_rows(schema, np.ascontiguousarray(words), SYMBOLS)


def _as_row(answer: object, result: Schema) -> Row:
    if isinstance(answer, tuple | list):
        return tuple(answer)
    if len(result) == 1:
        return (answer,)
    raise SchemaError(
        f"a row of ({result}) is a tuple of {counted(len(result), 'value')}, not {shown(answer)}"
    )
