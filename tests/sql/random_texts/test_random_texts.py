"""Random SQL texts, subqueries within subqueries: at every epoch the answer is DuckDB's, rows having gone."""

from __future__ import annotations

import random

from sql.judge import Judge
from sql.random_texts.comparing import compared
from sql.random_texts.plain_texts import TABLES, random_text
from sql.random_texts.wider_texts import WIDER_TABLES, wider_text


def test_random_texts_come_to_what_duckdb_says_at_every_epoch(effort: int) -> None:
    judge = Judge()
    for number in range(effort):
        seeds = range(100 + 12 * number, 112 + 12 * number)
        texts = {seed: random_text(random.Random(seed), 1 + seed % 3) for seed in seeds}
        outcome = compared(judge, texts, TABLES, 1 + number % 2)
        assert outcome.count > 6
        assert not outcome.wrong and not outcome.refused, "\n".join([*outcome.wrong, *outcome.refused])
    judge.close()


def test_texts_of_all_shapes_come_to_what_duckdb_says_at_every_epoch(effort: int) -> None:
    judge = Judge()
    for number in range(effort):
        seeds = range(100 + 12 * number, 112 + 12 * number)
        texts = {seed: wider_text(random.Random(seed), 1 + seed % 3) for seed in seeds}
        outcome = compared(judge, texts, WIDER_TABLES, 1 + number % 2)
        assert outcome.count > 6
        assert not outcome.wrong, "\n".join(outcome.wrong)
    judge.close()


def test_a_scalar_with_two_rows_that_no_row_needs_is_told_apart_from_a_wrong_answer() -> None:
    judge = Judge()
    two = "(SELECT q.p AS c0 FROM (VALUES (1), (2)) AS q(p))"
    texts = {1: f"SELECT {two} AS c0 FROM t WHERE false", 2: "SELECT a AS c0 FROM t"}
    outcome = compared(judge, texts, TABLES, 1)
    assert (outcome.count, outcome.unneeded, outcome.wrong) == (2, 4, [])
    judge.close()


def test_who_is_wrong_is_asked_of_a_judge_that_optimises_nothing() -> None:
    """Seed 402400 of the long form, in short: DuckDB 2.0.1 loses the rows of a right join."""
    text = (
        "SELECT 1 AS n FROM (VALUES ('ab')) AS one(p) WHERE EXISTS (SELECT a.c0 FROM (SELECT v.k AS c0, "
        "max(v.k) OVER (PARTITION BY v.k ORDER BY v.x) AS c1, v.k AS c2 FROM v WHERE v.k > v.k) AS a "
        "RIGHT JOIN u ON a.c2 = u.c)"
    )
    judge = Judge()
    assert judge.answer("SELECT 1", optimised=False) == judge.answer("SELECT 1")
    outcome = compared(judge, {402400: text}, WIDER_TABLES, 1)
    assert outcome.count == 1 and not outcome.wrong and not outcome.refused
