"""Which rows of a batch does a chain of steps fail on, and how are they described?

A function that fails on a batch is tried on its halves, down to single rows on which it fails. So the other
rows cost one more call for each halving around a bad row, and a batch without bad rows costs nothing extra.
The description of a bad row depends on the row and on the text of the function alone, not on addresses,
files, or the place of the function in a file. So when a row is removed its error is removed, in every
process, after a restart, and when lines have moved.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import numpy as np

from differential.columns.column_types import Int64s
from differential.columns.rows import decode_rows, encode_rows
from differential.columns.schema import Schema
from differential.columns.symbols.table import SymbolTable
from differential.errors import RowError, UserFunctionError
from differential.expressions.projection import TRAILING_WORDS
from timely.failure import text_of

__all__ = ["Guard", "error_texts", "guarded", "record_text"]

_ADDRESS: Final = re.compile(r"\b0x[0-9a-fA-F]+")
_PLACE: Final = re.compile(r" ?\((?:[^()\s]*[/\\])?[^()\s/\\]+:\d+\)| at [\w.-]+:\d+")
_TEXT_MAX: Final = 2_000
_OWN: Final = ("differential", "timely", "progress")

_RowFunction = Callable[[Int64s], Int64s | None]


@dataclass(frozen=True)
class Guard:
    """A step of a chain: results of `inner`, over `schema_in`, for good rows, or descriptions of bad ones."""

    part: Literal["good", "errors"]
    stage: str
    schema_in: Schema
    schema_out: Schema
    inner: Callable[[SymbolTable], _RowFunction]
    text: str

    def describe(self) -> str:
        """Return a text for fingerprints."""
        return f"{self.part} of ({self.text})"


def guarded(guard: Guard, symbols: SymbolTable) -> _RowFunction:
    """Return the function of `guard`."""
    function = guard.inner(symbols)

    def good(words: Int64s) -> Int64s | None:
        results = [rows for rows, error in _tried(function, words) if error is None and rows is not None]
        if len(results) < 2:
            return results[0] if results else None
        return np.ascontiguousarray(np.concatenate(results, axis=1))

    def errors(words: Int64s) -> Int64s | None:
        bad = [(rows, error) for rows, error in _tried(function, words) if error is not None]
        if not bad:
            return None
        descriptions = []
        for rows, error in bad:
            assert rows is not None
            (record,) = decode_rows(guard.schema_in, rows, symbols)
            descriptions.append((_record(guard.schema_in, record), guard.stage, *error_texts(error)))
        out = np.empty((guard.schema_out.width + TRAILING_WORDS, len(bad)), np.int64)
        out[:-TRAILING_WORDS] = encode_rows(guard.schema_out, descriptions, symbols, "errors")
        for row, (rows, _) in enumerate(bad):
            assert rows is not None
            out[-TRAILING_WORDS:, row] = rows[-TRAILING_WORDS:, 0]
        return out

    return good if guard.part == "good" else errors


def _tried(function: _RowFunction, words: Int64s) -> Iterator[tuple[Int64s | None, Exception | None]]:
    """Yield the results for good rows, and bad rows, one by one, with their errors."""
    waiting = [words]
    while waiting:
        part = waiting.pop()
        if part.shape[1] == 0:
            continue
        try:
            result = function(part)
        except (RowError, UserFunctionError) as error:
            if part.shape[1] == 1:
                yield part, error
                continue
            middle = part.shape[1] // 2
            waiting += [np.ascontiguousarray(part[:, middle:]), np.ascontiguousarray(part[:, :middle])]
        else:
            yield result, None


def _record(schema: Schema, record: tuple[object, ...]) -> str:
    text = ", ".join(f"{name}={value!r}" for name, value in zip(schema.names, record, strict=True))
    return record_text(text)


def error_texts(error: BaseException) -> tuple[str, str, str]:
    """Return (line, error, traceback) of a user function's or an expression's error, without file names."""
    cause = error.__cause__
    if cause is None or isinstance(cause, RowError):
        first, *more = text_of(error).splitlines() or [""]
        # If the function did not raise, the first line says where it was called; the second has the reason.
        reason = more[0].strip() if more and isinstance(error, UserFunctionError) else first
        return "", record_text(f"{type(error).__name__}: {reason}"), ""
    lines: list[str] = []
    traceback = cause.__traceback__
    while traceback is not None:
        code = traceback.tb_frame.f_code
        module = str(traceback.tb_frame.f_globals.get("__name__", ""))
        if module.split(".", maxsplit=1)[0] not in _OWN:
            line = traceback.tb_lineno - code.co_firstlineno + 1
            lines.append(f"line {line} of {code.co_name}")
        traceback = traceback.tb_next
    reason = record_text(f"{type(cause).__name__}: {text_of(cause)}")
    return (lines[-1] if lines else ""), reason, "\n".join(lines)


def record_text(text: str) -> str:
    """Return the text without addresses and places in files, which differ from run to run."""
    if "0x" in text:
        text = _ADDRESS.sub("0x…", text)
    if ":" in text:
        text = _PLACE.sub("", text)
    if "/" in text:
        text = text.replace(f"{Path.cwd()}/", "")
    return text if len(text) <= _TEXT_MAX else text[: _TEXT_MAX - 1] + "…"
