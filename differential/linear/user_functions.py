"""How do Python functions of the user get rows of words?

    map(fn)           fn(record) returns one record
    flat_map(fn)      fn(record) returns any number of records
    filter(fn)        fn(record) tells whether the record stays: True, or False or None
    threshold(fn)     fn(n) returns a multiplicity in place of n, the last column
    map_batches(fn)   fn(Arrow table) returns an Arrow table: `batch_functions.py`

The function gets a record as a named tuple. It may return a record as a tuple in the order of the declared
columns, a dict, or the bare value of a lone column.

Costs: about 1 µs per record to decode, call and encode again, and 100 ns more for each value; `map_batches`
costs what the function does, and some 50 µs per batch. Expressions cost a few ns per row.

The function must return the same answer for the same record every time, in every process: the removal of a
record passes through it as the insertion did before, and only equal answers cancel. It must have no effects,
for it sees records that are about to vanish, in any order.

If it raises, or returns what its declared columns cannot hold, the record fails. While the record is there,
the outputs behind have no answer, but a UserFunctionError that shows the record, the operator and the line
(`failing.py`).
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, TracebackType
from typing import Literal, Never, TypeAlias, cast

import numpy as np
import pyarrow as pa

from differential.columns.column_types import Int64s
from differential.columns.rows import Row, decode_rows, encode_rows
from differential.columns.schema import Schema
from differential.columns.symbols.table import SymbolTable
from differential.errors import SchemaError, UserFunctionError, shown
from differential.expressions.projection import TRAILING_WORDS
from timely.failure import text_of
from timely.user_code.call_site import CallSite
from timely.user_code.code_digest import digest_of

__all__ = [
    "BatchFunction",
    "FlatMapFunction",
    "MapFunction",
    "UserKind",
    "UserStep",
    "compile_user_step",
    "line_of",
    "name_of",
]

# Users may annotate the arguments of their functions freely: any function of one argument takes a `Never`.
MapFunction: TypeAlias = Callable[[Never], object]
FlatMapFunction: TypeAlias = Callable[[Never], object]
BatchFunction: TypeAlias = Callable[[pa.Table], object]

UserKind: TypeAlias = Literal["map", "flat_map", "filter", "threshold", "map_batches"]


@dataclass(frozen=True)
class UserStep:
    """A user's function in a chain: the columns it takes, those it returns, and where it was written."""

    kind: UserKind
    function: Callable[[Never], object]
    schema_in: Schema
    schema_out: Schema
    site: CallSite

    @property
    def name(self) -> str:
        """The operator and the function's name."""
        return f"{self.kind}({name_of(self.function)})"

    def describe(self) -> str:
        """Return a stable text: the operator, the function's name and digest, and the columns it returns."""
        return f"{self.kind}({_own_name_of(self.function)} {digest_of(self.function)}) → {self.schema_out}"

    def error(self, where: str, why: str, line: str = "") -> UserFunctionError:
        """Return the error about one record or batch."""
        at = f", in {line}" if line else ""
        return UserFunctionError(
            f"{self.kind}({name_of(self.function)}) ({self.site}) failed on {where}:\n  {why}{at}"
        )


def compile_user_step(step: UserStep, symbols: SymbolTable) -> Callable[[Int64s], Int64s | None]:
    """Return the function from rows of `step.schema_in` (with time and diff) to rows of `step.schema_out`."""
    assert step.kind != "map_batches", "see batch_functions.py"
    names = step.schema_in.names
    # With `rename`, a column whose name is not an identifier becomes a field called _0, _1, …
    record = namedtuple("Record", names, rename=True)  # type: ignore[misc]  # names known at run time only
    make = cast(Callable[[Row], tuple[object, ...]], record._make)
    if step.kind == "threshold":
        return lambda words: _threshold(step, words)
    apply = {"map": _map, "flat_map": _flat_map, "filter": _filter}[step.kind]
    return lambda words: apply(step, make, words, symbols)


_Make: TypeAlias = Callable[[Row], tuple[object, ...]]


def _map(step: UserStep, make: _Make, words: Int64s, symbols: SymbolTable) -> Int64s:
    function = cast(Callable[[object], object], step.function)
    results: list[object] = []
    record: object = None
    try:
        for row in decode_rows(step.schema_in, words, symbols):
            record = make(row)
            results.append(function(record))
    except Exception as error:
        raise _raised(step, shown(record), error, len(results)) from error
    out = np.empty((step.schema_out.width + TRAILING_WORDS, words.shape[1]), dtype=np.int64)
    out[:-TRAILING_WORDS] = _encode(
        step, results, symbols, lambda place: _record_shown(step, make, words, place, symbols)
    )
    out[-TRAILING_WORDS:] = words[-TRAILING_WORDS:]
    return out


def _flat_map(step: UserStep, make: _Make, words: Int64s, symbols: SymbolTable) -> Int64s | None:
    function = cast(Callable[[object], object], step.function)
    results: list[object] = []
    counts: list[int] = []
    record: object = None
    try:
        for row in decode_rows(step.schema_in, words, symbols):
            record = make(row)
            before = len(results)
            results.extend(cast(Iterable[object], function(record)))
            counts.append(len(results) - before)
    except Exception as error:
        raise _raised(step, shown(record), error, len(counts)) from error
    if not results:
        return None
    out = np.empty((step.schema_out.width + TRAILING_WORDS, len(results)), dtype=np.int64)
    out[:-TRAILING_WORDS] = _encode(
        step,
        results,
        symbols,
        lambda place: _record_shown(
            step, make, words, int(np.searchsorted(np.cumsum(counts), place, side="right")), symbols
        ),
    )
    out[-TRAILING_WORDS:] = np.repeat(words[-TRAILING_WORDS:], counts, axis=1)
    return out


def _filter(step: UserStep, make: _Make, words: Int64s, symbols: SymbolTable) -> Int64s | None:
    function = cast(Callable[[object], object], step.function)
    stays = np.zeros(words.shape[1], dtype=np.bool_)
    record: object = None
    place = -1
    try:
        for place, row in enumerate(decode_rows(step.schema_in, words, symbols)):
            record = make(row)
            reply = function(record)
            if not isinstance(reply, bool | np.bool_ | None):
                raise step.error(
                    shown(record), f"it gave {shown(reply)}; a condition is True, or False or None"
                )
            stays[place] = bool(reply)
    except Exception as error:
        raise _raised(step, shown(record), error, place) from error
    if stays.all():
        return words
    return np.ascontiguousarray(words[:, stays]) if stays.any() else None


def _threshold(step: UserStep, words: Int64s) -> Int64s:
    """Replace the last column; the function is called once for each different number."""
    function = cast(Callable[[int], object], step.function)
    place = step.schema_in.width - 1
    numbers, which = np.unique(words[place], return_inverse=True)
    multiplicities = np.empty_like(numbers)
    number = 0
    try:
        for index, number in enumerate(numbers.tolist()):
            multiplicities[index] = _multiplicity(step, number, function(number))
    except Exception as error:
        raise _raised(step, f"the multiplicity {number}", error) from error
    out = words.copy()
    out[place] = multiplicities[which]
    return out


def _multiplicity(step: UserStep, number: int, reply: object) -> int:
    if (
        isinstance(reply, bool)
        or not isinstance(reply, int | np.integer)
        or not -(2**63) <= int(reply) < 2**63
    ):
        raise step.error(
            f"the multiplicity {number}", f"it gave {shown(reply)}; a multiplicity is an int of 64 bits"
        )
    return int(reply)


def _encode(
    step: UserStep, results: list[object], symbols: SymbolTable, where: Callable[[int], str]
) -> Int64s:
    """Return the words of the function's results; `where(i)` shows the record of result number i."""
    try:
        return encode_rows(step.schema_out, [_as_row(step, result) for result in results], symbols)
    except SchemaError:
        place, error = next(_misfits(step, results, symbols))
        raise step.error(where(place), str(error)) from error


def _misfits(
    step: UserStep, results: list[object], symbols: SymbolTable
) -> Iterator[tuple[int, SchemaError]]:
    """Yield, one by one, the index of each result that is no row of the declared columns, and the error."""
    for place, result in enumerate(results):
        try:
            row = _as_row(step, result)
        except SchemaError as error:
            yield place, error
            continue
        try:
            encode_rows(step.schema_out, [row], symbols, "")
        except SchemaError as error:
            yield place, SchemaError(f"its result does not fit {step.schema_out}: {error}")


def _as_row(step: UserStep, result: object) -> Row:
    """Return one result as a tuple in the order of the declared columns."""
    columns = step.schema_out.columns
    if isinstance(result, tuple | list) and len(result) == len(columns):
        return tuple(result)
    if isinstance(result, Mapping) and result.keys() == set(step.schema_out.names):
        return tuple(result[column.name] for column in columns)
    if len(columns) == 1 and not isinstance(result, tuple | list | Mapping):
        return (result,)
    raise SchemaError(
        f"it gave {shown(result)}; a record of {step.schema_out} is a tuple in that order, or a dict"
    )


def _record_shown(step: UserStep, make: _Make, words: Int64s, place: int, symbols: SymbolTable) -> str:
    """Return a text of one of the records that the function was called with."""
    (row,) = decode_rows(step.schema_in, np.ascontiguousarray(words[:, place : place + 1]), symbols)
    return shown(make(row))


def _raised(step: UserStep, where: str, error: Exception, row: int = -1) -> UserFunctionError:
    """Return `error` as one that names the record, which is number `row` of the batch."""
    if isinstance(error, UserFunctionError):
        failure = error
    else:
        why = f"{type(error).__name__}: {text_of(error)}"
        failure = step.error(where, why, line_of(error, step.function))
    failure.row = row
    return failure


def _code_of(function: object) -> CodeType | None:
    code = getattr(function, "__code__", None)
    return code if isinstance(code, CodeType) else None


def name_of(function: object) -> str:
    """Return the function's name; for a lambda, which shares its name with many, also file and line."""
    name = getattr(function, "__qualname__", type(function).__qualname__)
    code = _code_of(function)
    if code is None or "<lambda>" not in name:
        return f"{getattr(function, '__module__', '?')}.{name}"
    return f"{name} at {Path(code.co_filename).name}:{code.co_firstlineno}"


def _own_name_of(function: object) -> str:
    """Return the function's name without what is around it, and where: both are others once it has travelled
    as source.
    """
    name = str(getattr(function, "__qualname__", type(function).__qualname__))
    return name.rpartition("<locals>.")[2]


def line_of(error: BaseException, function: object) -> str:
    """Return where in the user's function the exception arose: the innermost line in the function's file."""
    code = _code_of(function)
    line = ""
    traceback: TracebackType | None = error.__traceback__
    while traceback is not None:
        file = traceback.tb_frame.f_code.co_filename
        if code is not None and file == code.co_filename:
            line = f"{file}:{traceback.tb_lineno}"
        traceback = traceback.tb_next
    return line
