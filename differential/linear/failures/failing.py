"""Which rows does a chain of linear operators have no answer for, and how is each described?

If an expression has no value for a row, or a function of the user raises on it, the chain has no answer for
the row. The row becomes a *failure*: a row of `FAILURES`, at its time and with its difference, in a
collection beside the answers. So failures cancel as rows do. The failure of a row goes when the row goes. A
row that came and went within an epoch, or that meets its negative in another run of a trace, leaves none.

    place       the operator, as a number that is the same on all workers of the dataflow
    iteration   the counters of the loops around the chain, as bits of the time word; 0 outside of loops.
                With them two failures in different iterations never cancel: a row that failed in one
                iteration, and is therefore missing in the next, is still a failure of the loop.
    row         a hash of all words of the row: rows that look alike may be different ones
    kind        the class of the error
    expression  the part that failed, as text
    record      the row, as text
    error       the reason
    line        the line of the user's function, counted from its first; empty for expressions

Nothing here depends on addresses, folders, or lines of files: the failure of a row that is removed on another
worker must be the same row. The place tells where an expression was written (`LinearChain.sites`).

Passes (`passes.py`) are tried one after another. A pass that raises is tried again without the rows that the
error names; if the error names none, on halves.
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
    """A part of a chain: its function over rows of `schema`, and its name in case it fails as a whole.

    Attributes:
        origin: the operator that it stands for; of several, the last one that may fail.
        sign: factor by which the rows' differences still have to be multiplied when that operator gets them.
    """

    function: _RowFunction
    schema: Schema
    name: str
    origin: bytes
    sign: int


class Failed(NamedTuple):
    """A row that failed: its operator, the description of the failure, its time and difference."""

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
    """The results of a chain for rows that do not fail, and the rows that do."""

    rows: Int64s | None
    failed: list[Failed]


def apart(passes: Sequence[Pass], words: Int64s, symbols: SymbolTable) -> Apart:
    """Return the rows that `passes` make of `words`, and the rows that one of them fails on.

    Raises errors that are about no single row, such as a multiplicity that leaves 64 bits.
    """
    failed: list[Failed] = []
    rows: Int64s | None = words
    for one in passes:
        if rows is None:
            break
        pieces = list(_tried(one, rows, symbols, failed))
        rows = None
        if pieces:
            rows = pieces[0] if len(pieces) == 1 else np.ascontiguousarray(np.concatenate(pieces, axis=1))
    return Apart(rows, failed)


def _tried(one: Pass, words: Int64s, symbols: SymbolTable, failed: list[Failed]) -> Iterator[Int64s]:
    """Yield the results for rows that do not fail, in pieces; the others are added to `failed`."""
    waiting = [words]
    while waiting:
        part = waiting.pop()
        if part.shape[1] == 0:
            continue
        try:
            result = one.function(part)
        except (RowError, UserFunctionError) as error:
            failing = error.failing
            at = error.row if isinstance(error, UserFunctionError) else -1
            if failing is not None and failing.rows.shape == (part.shape[1],) and failing.rows.any():
                failed += _failures_of_rows(one, error, failing, part, np.flatnonzero(failing.rows))
                waiting.append(np.ascontiguousarray(part[:, ~failing.rows]))
            elif 0 <= at < part.shape[1]:
                failed.append(_failure_of_row(one, part[:, at : at + 1], error, symbols))
                # The rows in front run once more: their results are lost with the call.
                waiting += [_columns(part, at + 1, part.shape[1]), _columns(part, 0, at)]
            elif part.shape[1] == 1:
                failed.append(_failure_of_row(one, part, error, symbols))
            else:
                middle = part.shape[1] // 2
                waiting += [_columns(part, middle, part.shape[1]), _columns(part, 0, middle)]
        except NotEmptyError as error:  # a claim that there are no rows lets them pass
            for row in range(part.shape[1]):
                failed.append(_failure_of_row(one, part[:, row : row + 1], error, symbols))
            yield part
        else:
            if result is not None and result.shape[1]:
                yield result


def _failures_of_rows(
    one: Pass, error: RowError | UserFunctionError, failing: FailingRows, words: Int64s, indices: Int64s
) -> Iterator[Failed]:
    """Yield a failure for each of the rows `indices` that an error names; the pass raised it for `words`."""
    kind = "RowError" if isinstance(error, RowError) else "UserFunctionError"
    expression = record_text(failing.expression)
    lines = itertools.repeat("") if failing.line is None else failing.line(indices)
    rows = np.ascontiguousarray(failing.words(indices).T)
    times, diffs = words[-2, indices].tolist(), (one.sign * words[-1, indices]).tolist()
    texts = zip(failing.show(indices), failing.why(indices), lines, strict=False)
    for row, (record, why, line), time, diff in zip(rows, texts, times, diffs, strict=True):
        texts_of_row = record_text(record), record_text(why), record_text(line)
        yield Failed(one.origin, _hash_of(row), kind, expression, *texts_of_row, time, diff)


def _columns(words: Int64s, start: int, stop: int) -> Int64s:
    return np.ascontiguousarray(words[:, start:stop])


def _failure_of_row(
    one: Pass, row: Int64s, error: RowError | UserFunctionError | NotEmptyError, symbols: SymbolTable
) -> Failed:
    """Return the failure of one row, int64[words, 1], for which a pass raised."""
    if not isinstance(error, NotEmptyError) and error.failing is not None:
        failing = error.failing
        at = np.array([np.argmax(failing.rows)], np.int64)
        (failed,) = _failures_of_rows(one, error, failing, np.repeat(row, failing.rows.size, 1), at)
        return failed
    (record,) = decode_rows(one.schema, np.ascontiguousarray(row), symbols)
    text = ", ".join(f"{name}={value!r}" for name, value in zip(one.schema.names, record, strict=True))
    kind, why, line = "NotEmptyError", "", ""
    if not isinstance(error, NotEmptyError):
        kind = "UserFunctionError"
        line, why, _ = error_texts(error)
    texts = record_text(one.name), record_text(text), why, line
    return Failed(
        one.origin,
        row_hash(row[:-TRAILING_WORDS, 0].tolist()),
        kind,
        *texts,
        int(row[-2, 0]),
        one.sign * int(row[-1, 0]),
    )


def row_hash(words: Sequence[int]) -> int:
    """Return a number for a row: almost surely different for different rows, the same in every process."""
    return _hash_of(np.array(words, np.int64))


def _hash_of(words: Int64s) -> int:
    return int.from_bytes(blake2b(words.tobytes(), digest_size=8).digest(), "little", signed=True)


def failure_words(
    places: Mapping[bytes, int], failed: Sequence[Failed], counters: tuple[int, int], symbols: SymbolTable
) -> Int64s:
    """Return rows of `FAILURES` with time and difference.

    Args:
        places: the place of each operator.
        counters: what to add to a time word, and the bits that then count iterations.
    """
    rounds, mask = counters
    rows = [(places[one.origin], (one.time + rounds) & mask, *one[1:-2]) for one in failed]
    out = np.empty((FAILURES.width + TRAILING_WORDS, len(failed)), np.int64)
    out[:-TRAILING_WORDS] = encode_rows(FAILURES, rows, symbols, "failures")
    out[-2] = [one.time for one in failed]
    out[-1] = [one.diff for one in failed]
    return out


def sites_in(exprs: Sequence[Expr]) -> Mapping[str, CallSite]:
    """Return the line that wrote each operator in these expressions, by the operator's text."""
    sites: dict[str, CallSite] = {}
    waiting: list[Expr] = list(exprs)
    seen: set[int] = set()
    while waiting:
        top = waiting.pop()
        if id(top) in seen or not isinstance(top, Operation):
            continue
        seen.add(id(top))
        sites.setdefault(top.describe(), top.site)
        waiting += top.operands
    return sites
