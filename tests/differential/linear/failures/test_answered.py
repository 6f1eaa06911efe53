"""answered.py: answers of a function of groups have no columns of errors; groups with one are failures."""

from __future__ import annotations

import random

import numpy as np

from differential.columns.rows import Row, decode_rows, encode_rows
from differential.columns.schema import Schema
from differential.columns.symbols.table import SymbolTable
from differential.linear.chain import LinearChain
from differential.linear.failures.failing import apart
from progress.compiled.arrays import Int64s
from timely.user_code.call_site import call_site

OUT = Schema.of("k: int, s: string?")
ERRORS = "record: string, stage: string, line: string, error: string, traceback: string"
IN = Schema.of(f"k: int, s: string?, {ERRORS}")
NONE = ("", "", "", "", "")


def _words(rows: list[tuple[Row, int, int]], symbols: SymbolTable) -> Int64s:
    words = np.empty((IN.width + 2, len(rows)), np.int64)
    words[:-2] = encode_rows(IN, [row for row, _, _ in rows], symbols, "answers")
    words[-2] = [time for _, time, _ in rows]
    words[-1] = [diff for _, _, diff in rows]
    return words


def test_answers_and_failures_are_apart_whatever_comes_together() -> None:
    symbols, site = SymbolTable(), call_site()
    chain = LinearChain.over(IN).answered(OUT, "reduce(f)", site)
    assert chain.schema_out == OUT and chain.risky is chain or chain.risky == chain
    rng = random.Random(5)
    for _ in range(50):
        rows: list[tuple[Row, int, int]] = []
        for _ in range(rng.randrange(1, 9)):
            key, time, diff = rng.randrange(4), rng.randrange(3), rng.choice([-1, 1])
            if rng.random() < 0.5:
                rows.append(((key, rng.choice(["x", "", None]), *NONE), time, diff))
            else:
                error = (f"({key},): []", "reduce by k: f", "line 2 of f", f"ValueError: {key}", "…")
                rows.append(((key, None, *error), time, diff))
        made, failed = apart(chain.passes(symbols), _words(rows, symbols), symbols)
        answers = [] if made is None else list(decode_rows(OUT, made, symbols))
        times = [] if made is None else made[-2:].T.tolist()
        assert [(row, *when) for row, when in zip(answers, times, strict=True)] == [
            (row[:2], time, diff) for row, time, diff in rows if not row[3]
        ]
        assert [(one.kind, *one[3:]) for one in failed] == [
            ("UserFunctionError", "reduce(f)", row[2], row[5], row[4], time, diff)
            for row, time, diff in rows
            if row[3]
        ]


def test_where_no_group_fails_only_columns_are_dropped() -> None:
    symbols = SymbolTable()
    chain = LinearChain.over(IN).answered(OUT, "reduce(f)", call_site())
    words = _words([((1, "x", *NONE), 7, 2), ((2, None, *NONE), 8, -1)], symbols)
    made = chain.compile(symbols)(words)
    assert made is not None and made.flags.c_contiguous
    assert list(decode_rows(OUT, made, symbols)) == [(1, "x"), (2, None)]
    assert made[-2:].tolist() == [[7, 8], [2, -1]]
    assert chain.sites() == {"reduce(f)": str(chain.steps[0].site)}  # type: ignore[union-attr]
