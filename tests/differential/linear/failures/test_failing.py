"""failing.py: which rows have no answer, and what is said of each.

law_*     chains of operators against the same operators one by one, row by row
told_*    what a failure says, and that it is the same in every process
places_*  operators and iterations tell failures apart
"""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies_collections import examples

from differential.columns.rows import decode_rows, encode_rows
from differential.columns.schema import Schema
from differential.columns.symbols.table import SymbolTable
from differential.errors import NotEmptyError, RowError, UserFunctionError
from differential.expressions.expression import col
from differential.linear.chain import LinearChain
from differential.linear.failures.failing import FAILURES, Failed, apart, failure_words, row_hash, sites_in
from progress.compiled.arrays import Int64s

SCHEMA = Schema.of("a: int, b: int?")
Said = tuple[object, ...]


def _shares(record: tuple[int, int | None]) -> tuple[int, int | None]:
    a, b = record
    return 7 // a, b


def _pair(record: tuple[int, int | None]) -> list[tuple[int, int | None]]:
    a, b = record
    return [(a, b), (a - 1, a // (a - 2))]


def _without_twos(table: pa.Table) -> pa.Table:
    if 2 in table.column("a").to_pylist():
        raise ValueError("two")
    return table


STEPS: list[Callable[[LinearChain], LinearChain]] = [
    lambda c: c.select({"a": 10 // (col.a - 1), "b": col.b}),
    lambda c: c.select({"a": col.a, "b": col.a // col.b}),
    lambda c: c.select({"b": col.a, "a": col.b.fill_null(0)}).select({"a": col.a, "b": col.b}).select(
        {"a": col.a - col.b, "b": col.b.cast("int?")}
    ),
    lambda c: c.filter(6 // col.a > 0),
    lambda c: c.filter(col.b > 0),
    lambda c: c.filter(col.b // (col.a - 2) > -9),
    lambda c: c.map(_shares),
    lambda c: c.flat_map(_pair),
    lambda c: c.map_batches(_without_twos),
    lambda c: c.negate(),
    lambda c: c.claim("nothing is there"),
]  # fmt: skip

ROWS = st.lists(
    st.tuples(
        st.tuples(st.integers(-1, 4), st.one_of(st.none(), st.integers(-1, 3))),
        st.integers(0, 2),
        st.sampled_from([-2, -1, 1, 3]),
    ),
    min_size=1,
    max_size=9,
)


def _words(rows: Sequence[tuple[tuple[int, int | None], int, int]], symbols: SymbolTable) -> Int64s:
    words = np.empty((SCHEMA.width + 2, len(rows)), np.int64)
    words[:-2] = encode_rows(SCHEMA, [row for row, _, _ in rows], symbols, "rows")
    words[-2] = [time for _, time, _ in rows]
    words[-1] = [diff for _, _, diff in rows]
    return words


def _said(failed: Failed) -> Said:
    return failed.kind, failed.expression, failed.record, failed.error, failed.line, failed.time


def _summed(words: Int64s | None) -> Counter[tuple[int, ...]]:
    found: Counter[tuple[int, ...]] = Counter()
    for *row, diff in [] if words is None else words.T.tolist():
        found[tuple(row)] += diff
    return Counter({row: n for row, n in found.items() if n})


def _one_by_one(
    steps: Sequence[Callable[[LinearChain], LinearChain]], words: Int64s, symbols: SymbolTable
) -> tuple[Int64s, Counter[Said]]:
    """The twin: every step by itself, of every row by itself."""
    failed: Counter[Said] = Counter()
    for step in steps:
        chain = step(LinearChain.over(SCHEMA))
        function = chain.compile(symbols)
        made: list[Int64s] = []
        for at in range(words.shape[1]):
            row = np.ascontiguousarray(words[:, at : at + 1])
            try:
                found = function(row)
            except (RowError, UserFunctionError):
                (one,) = apart(chain.passes(symbols), row, symbols).failed
                failed[_said(one)] += one.diff
                continue
            except NotEmptyError:
                (one,) = apart(chain.passes(symbols), row, symbols).failed
                failed[_said(one)] += one.diff
                found = row
            if found is not None:
                made.append(found)
        words = np.concatenate([*made, np.empty((SCHEMA.width + 2, 0), np.int64)], axis=1)
    return words, Counter({said: n for said, n in failed.items() if n})


# law_


@examples(4)
@given(st.lists(st.sampled_from(STEPS), min_size=1, max_size=4), ROWS)
def test_law_a_chain_fails_on_what_its_steps_fail_on_one_by_one(
    steps: list[Callable[[LinearChain], LinearChain]],
    rows: list[tuple[tuple[int, int | None], int, int]],
) -> None:
    symbols = SymbolTable()
    words = _words(rows, symbols)
    before = words.copy()
    chain = LinearChain.over(SCHEMA)
    for step in steps:
        chain = step(chain)
    made, failed = apart(chain.passes(symbols), words, symbols)
    assert (words == before).all(), "what it is given belongs to others"
    wanted, misfits = _one_by_one(steps, before, symbols)
    assert _summed(made) == _summed(wanted)
    found: Counter[Said] = Counter()
    for one in failed:
        found[_said(one)] += one.diff
    assert Counter({said: n for said, n in found.items() if n}) == misfits
    if chain.risky is None:
        assert not misfits, "what is known never to fail does not"


@given(ROWS)
def test_law_rows_that_look_alike_and_are_others_are_other_failures(
    rows: list[tuple[tuple[int, int | None], int, int]],
) -> None:
    """The columns that the expression reads are shown first; the hash is that of the whole row."""
    symbols = SymbolTable()
    chain = LinearChain.over(SCHEMA).select({"x": 1 // (0 * col.a)})
    failed = apart(chain.passes(symbols), _words(rows, symbols), symbols).failed
    assert len({one.row for one in failed}) == len({row for row, _, _ in rows})
    assert {one.record for one in failed} == {f"a={row[0]}, b={row[1]}" for row, _, _ in rows}


# told_


def test_told_is_the_operator_the_row_why_and_where() -> None:
    symbols = SymbolTable()
    words = _words([((0, 3), 5, -2)], symbols)
    chains = {
        "RowError": LinearChain.over(SCHEMA).select({"x": col.b // col.a}),
        "UserFunctionError": LinearChain.over(SCHEMA).negate().map(_shares),
        "NotEmptyError": LinearChain.over(SCHEMA).claim("nothing is there"),
    }
    told = {}
    for kind, chain in chains.items():
        (one,) = apart(chain.passes(symbols), words, symbols).failed
        assert one.kind == kind and one.time == 5
        told[kind] = one[3:7], one.diff
    assert told == {
        "RowError": (("col.b // col.a", "a=0, b=3", "divides by zero", ""), -2),
        "UserFunctionError": (
            (
                f"map({__name__}._shares)",
                "a=0, b=3",
                "ZeroDivisionError: integer division or modulo by zero",
                "line 3 of _shares",
            ),
            2,
        ),
        "NotEmptyError": (("nothing is there", "a=0, b=3", "", ""), -2),
    }


def test_told_by_the_same_number_in_every_process() -> None:
    code = "from differential.linear.failures.failing import row_hash; print(row_hash([1, -(2**63), 7]))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(run.stdout) == row_hash([1, -(2**63), 7])
    assert len({row_hash(row) for row in ([], [0], [0, 0], [1], [1, 0], [0, 1])}) == 6


def test_told_are_the_lines_of_all_operators_of_an_expression() -> None:
    inner = col.a // col.b
    expr = inner + 1
    sites = sites_in([expr, inner])
    assert set(sites) == {"col.a // col.b", "col.a // col.b + 1"}
    assert all(str(site).startswith(f"{__file__}:") for site in sites.values())


# places_


@pytest.mark.parametrize(("rounds", "iteration"), [(0, 2), (1, 3)])
def test_places_are_those_of_operators_and_iterations_the_counters_of_their_times(
    rounds: int, iteration: int
) -> None:
    symbols = SymbolTable()
    failed = [
        Failed(origin, 7, "RowError", "e", "r", "why", "", (9 << 8) | 2, diff)
        for origin, diff in ((b"one", 3), (b"other", -1))
    ]
    words = failure_words({b"one": 4, b"other": 1}, failed, (rounds, (1 << 8) - 1), symbols)
    rows = list(decode_rows(FAILURES, words, symbols))
    assert [row[:3] for row in rows] == [(4, iteration, 7), (1, iteration, 7)]
    assert all(row[3:] == ("RowError", "e", "r", "why", "") for row in rows)
    assert words[-2:].tolist() == [[(9 << 8) | 2] * 2, [3, -1]], "times are those of the rows"
