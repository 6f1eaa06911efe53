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
