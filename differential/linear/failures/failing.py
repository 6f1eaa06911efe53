"""Which rows does a chain of linear operators have no answer for, and what is said of each?

A row for which an expression has no value, or for which a function of the user raises, is no answer. It is a
*failure*: a row of `FAILURES`, at its time and with its difference, in a collection beside the answers. So
failures cancel as rows do: the failure of a row goes when the row goes, and a row that came and went within
an epoch, or that meets its negative in another run of a trace, leaves none.

    place       which operator, as a number that all workers of the dataflow have for it
    iteration   the counters of the loops around the chain, as bits of the time word; 0 outside of loops.
                With them two failures in different iterations never cancel: what failed in one iteration and
                was therefore left out of the next is still a failure of the loop.
    row         a hash of all words of the row: rows that look alike may be different ones
    kind        the class of the error
    expression  what failed, as text
    record      the row, as text
    error       why
    line        the line of the user's function, counted from its first; empty for expressions

Nothing here depends on addresses, folders, or lines of files: the failure of a row that is removed on another
worker must be the same row. Where an expression was written is known from `place` (`sites_of`).

Passes (`passes.py`) are tried one after another. A pass that raises is tried again without the rows that the
error names; where it names none, on halves.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Final, NamedTuple, TypeAlias

import numpy as np

from differential.columns.column_types import Int64s
from differential.columns.rows import decode_rows, encode_rows
from differential.columns.schema import Schema
from differential.columns.symbols.table import SymbolTable
from differential.errors import FailingRows, NotEmptyError, RowError, UserFunctionError
from differential.expressions.expression import Expr, Operation
from differential.expressions.projection import TRAILING_WORDS
from differential.linear.failures.guarding import error_texts, record_text
from timely.user_code.call_site import CallSite

__all__ = ["FAILURES", "Apart", "Failed", "Pass", "apart", "failure_words", "row_hash", "sites_in"]

FAILURES: Final[Schema] = Schema.of(
    "place: int, iteration: int, row: int, "
    "kind: string, expression: string, record: string, error: string, line: string"
)

_RowFunction: TypeAlias = Callable[[Int64s], Int64s | None]


class Pass(NamedTuple):
    """A part of a chain: its function over rows of `schema`, and what it is called if it fails as a whole.

    Attributes:
        origin: the operator that it stands for, of several the last one that may fail.
        sign: by what the differences of its rows are still to be multiplied where that operator gets them.
    """

    function: _RowFunction
    schema: Schema
    name: str
    origin: bytes
    sign: int


class Failed(NamedTuple):
    """A row that failed: at which operator, what is said of it, and its time and difference."""

    origin: bytes
    row: int
    kind: str
    expression: str
    record: str
    error: str
    line: str
    time: int
    diff: int


class Apart(NamedTuple):
    """What a chain makes of the rows that do not fail, and the others."""

    rows: Int64s | None
    failed: list[Failed]


def apart(passes: Sequence[Pass], words: Int64s, symbols: SymbolTable) -> Apart:
    """The rows that `passes` make of `words`, and the rows that one of them fails on.

    Raises what is about no single row, such as a multiplicity that leaves 64 bits.
    """
    failed: list[Failed] = []
    rows: Int64s | None = words
    for one in passes:
        if rows is None:
            break
        found = list(_tried(one, rows, symbols, failed))
        rows = None
        if found:
            rows = found[0] if len(found) == 1 else np.ascontiguousarray(np.concatenate(found, axis=1))
    return Apart(rows, failed)


def _tried(one: Pass, words: Int64s, symbols: SymbolTable, failed: list[Failed]) -> Iterator[Int64s]:
    """What comes of the rows that do not fail, in pieces; the others are added to `failed`."""
    waiting = [words]
    while waiting:
        part = waiting.pop()
        if part.shape[1] == 0:
            continue
        try:
            made = one.function(part)
        except (RowError, UserFunctionError) as error:
            known = error.failing
            at = error.row if isinstance(error, UserFunctionError) else -1
            if known is not None and known.rows.shape == (part.shape[1],) and known.rows.any():
                failed += _known(one, error, known, part, np.flatnonzero(known.rows))
                waiting.append(np.ascontiguousarray(part[:, ~known.rows]))
            elif 0 <= at < part.shape[1]:
                failed.append(_failed(one, part[:, at : at + 1], error, symbols))
                # Those in front once more: what they gave is lost with the call.
                waiting += [_columns(part, at + 1, part.shape[1]), _columns(part, 0, at)]
            elif part.shape[1] == 1:
                failed.append(_failed(one, part, error, symbols))
            else:
                middle = part.shape[1] // 2
                waiting += [_columns(part, middle, part.shape[1]), _columns(part, 0, middle)]
        except NotEmptyError as error:  # what claims that there are no rows lets them pass
            for row in range(part.shape[1]):
                failed.append(_failed(one, part[:, row : row + 1], error, symbols))
            yield part
        else:
            if made is not None and made.shape[1]:
                yield made


def _known(
    one: Pass, error: RowError | UserFunctionError, known: FailingRows, words: Int64s, indices: Int64s
) -> Iterator[Failed]:
    """What an error says of some of the rows that it names; `words` are all that it was raised for."""
    kind = "RowError" if isinstance(error, RowError) else "UserFunctionError"
    expression = record_text(known.expression)
    lines = itertools.repeat("") if known.line is None else known.line(indices)
    rows = np.ascontiguousarray(known.words(indices).T)
    times, diffs = words[-2, indices].tolist(), (one.sign * words[-1, indices]).tolist()
    texts = zip(known.show(indices), known.why(indices), lines, strict=False)
    for row, (record, why, line), time, diff in zip(rows, texts, times, diffs, strict=True):
        said = record_text(record), record_text(why), record_text(line)
        yield Failed(one.origin, _hash_of(row), kind, expression, *said, time, diff)


def _columns(words: Int64s, start: int, stop: int) -> Int64s:
    return np.ascontiguousarray(words[:, start:stop])


def _failed(
    one: Pass, row: Int64s, error: RowError | UserFunctionError | NotEmptyError, symbols: SymbolTable
) -> Failed:
    """What is said of one row, int64[words, 1], for which a pass raised."""
    if not isinstance(error, NotEmptyError) and error.failing is not None:
        known = error.failing
        at = np.array([np.argmax(known.rows)], np.int64)
        (failed,) = _known(one, error, known, np.repeat(row, known.rows.size, 1), at)
        return failed
    (record,) = decode_rows(one.schema, np.ascontiguousarray(row), symbols)
    text = ", ".join(f"{name}={value!r}" for name, value in zip(one.schema.names, record, strict=True))
    kind, why, line = "NotEmptyError", "", ""
    if not isinstance(error, NotEmptyError):
        kind = "UserFunctionError"
        line, why, _ = error_texts(error)
    said = record_text(one.name), record_text(text), why, line
    return Failed(
        one.origin,
        row_hash(row[:-TRAILING_WORDS, 0].tolist()),
        kind,
        *said,
        int(row[-2, 0]),
        one.sign * int(row[-1, 0]),
    )


def row_hash(words: Sequence[int]) -> int:
    """A number for a row that nearly surely no other row has, the same in every process."""
    return _hash_of(np.array(words, np.int64))


def _hash_of(words: Int64s) -> int:
    return int.from_bytes(blake2b(words.tobytes(), digest_size=8).digest(), "little", signed=True)


def failure_words(
    places: Mapping[bytes, int], failed: Sequence[Failed], counters: tuple[int, int], symbols: SymbolTable
) -> Int64s:
    """Rows of `FAILURES` with time and difference.

    Args:
        places: by operator its place.
        counters: what is to be added to a time word, and its bits that count iterations then.
    """
    rounds, mask = counters
    rows = [(places[one.origin], (one.time + rounds) & mask, *one[1:-2]) for one in failed]
    out = np.empty((FAILURES.width + TRAILING_WORDS, len(failed)), np.int64)
    out[:-TRAILING_WORDS] = encode_rows(FAILURES, rows, symbols, "failures")
    out[-2] = [one.time for one in failed]
    out[-1] = [one.diff for one in failed]
    return out


def sites_in(exprs: Sequence[Expr]) -> Mapping[str, CallSite]:
    """By the text of every operator in these expressions the line that wrote it."""
    found: dict[str, CallSite] = {}
    waiting: list[Expr] = list(exprs)
    seen: set[int] = set()
    while waiting:
        top = waiting.pop()
        if id(top) in seen or not isinstance(top, Operation):
            continue
        seen.add(id(top))
        found.setdefault(top.describe(), top.site)
        waiting += top.operands
    return found
