"""Functions of arrays, structs, maps and JSON have the values that they have in Spark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from expression_values import values_of
from nested_functions import CLAIMS, COLUMNS, JSON_CLAIMS, JSON_TEXTS, ROWS, SPARK_COLUMNS, Claim, plainly

import differential as dd
from differential import Schema, col
from differential.columns.rows import Row

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def is_other_in_spark(claim: Claim, row: Row) -> bool:
    """True of a text that Spark reads in a way of its own: days as a text, times after the year 9999, what is
    no base64 (of which it takes the fields beside it away, too), and what is behind a value.
    """
    text = str(row[0])
    ours = claim.ours
    return (
        ("v: date" in ours and '"1"' in text)
        or ("v: timestamp" in ours and "9223372036854775807" in text)
        or ("v: bytes" in ours and '"' in text.removeprefix('{"v":') and "AQI=" not in text)
        or ("get_json_object" in ours and "rest" in text)
    )


def differing(frame: DataFrame, claims: Sequence[Claim], rows: list[Row], schema: Schema) -> list[str]:
    from pyspark.sql import functions as F

    columns = [F.expr(claim.spark).alias(f"c{at}") for at, claim in enumerate(claims)]
    theirs = frame.orderBy("at").select(*columns).collect()
    return [
        f"{claim.ours} of {row}: {mine!r} here, {plainly(its[at])!r} in Spark"
        for at, claim in enumerate(claims)
        for row, mine, its in zip(
            rows, values_of(eval(claim.ours, {"dd": dd, "col": col}), rows, schema), theirs, strict=True
        )
        if plainly(mine) != plainly(its[at]) and not is_other_in_spark(claim, row)
    ]


def test_functions_of_nested_values(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(*row, at) for at, row in enumerate(ROWS)], f"{SPARK_COLUMNS}, at int")
    differ = differing(frame, CLAIMS, ROWS, Schema.of(COLUMNS))
    assert not differ, "\n".join(differ[:40])


def test_texts_of_json(spark: SparkSession) -> None:
    rows: list[Row] = [(text,) for text in JSON_TEXTS]
    frame = spark.createDataFrame([(*row, at) for at, row in enumerate(rows)], "j string, at int")
    differ = differing(frame, JSON_CLAIMS, rows, Schema.of("j: string?"))
    assert not differ, "\n".join(differ[:40])
