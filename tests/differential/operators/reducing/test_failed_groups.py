"""failed_groups.py: what readers learn of a group whose sum does not fit. In dataflows: `test_failing.py`."""

from __future__ import annotations

from differential.columns.rows import decode_rows
from differential.columns.schema import Schema
from differential.columns.worker_symbols import SYMBOLS
from differential.kernels.sums.accumulated import DECIMAL_MEAN, TOTAL
from differential.linear.failures.failing import FAILURES
from differential.operators.reducing.failed_groups import GroupFailures
from differential.operators.reducing.overflowing import FailedGroup

GROUPS = [FailedGroup((7,), 0, 5 << 8 | 3, 1), FailedGroup((8,), 1, 6 << 8, -1)]
ASKED = ((TOTAL, 0, 0, 0, 0), (DECIMAL_MEAN, 0, 0, 10**17 - 1, 2))


def test_a_failure_names_the_group_the_aggregate_and_what_is_wrong() -> None:
    failures = GroupFailures(ASKED, Schema.of("k: int"), ("total", "mean"))
    words = failures.rows(GROUPS, 255)
    assert words[-2:].T.tolist() == [[5 << 8 | 3, 1], [6 << 8, -1]]
    first, second = (
        dict(zip(FAILURES.names, row, strict=True)) for row in decode_rows(FAILURES, words, SYMBOLS)
    )
    assert (first["place"], first["iteration"], second["iteration"]) == (0, 3, 0)
    assert {first["kind"], second["kind"]} == {"SumOverflowError"}
    assert "7" in str(first["record"])
    assert (first["expression"], first["error"]) == ("total", "leaves 64 bits")
    assert (second["expression"], second["error"]) == ("mean", "has more than 17 digits")
    assert first["row"] != second["row"], "each group is a row of its own"


def test_a_failure_of_an_aggregate_without_a_name_says_which_word_of_the_answer() -> None:
    (row,) = decode_rows(FAILURES, GroupFailures(ASKED).rows(GROUPS[:1], 255), SYMBOLS)
    assert row[FAILURES.names.index("expression")] == "word 0 of the answer"
