"""What a job leaves in the hand of its caller."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from timely.errors import MisuseError
from timely.spark.jobs.result import Result
from timely.spark.jobs.sinks import MemorySink


def kept(spark: SparkSession, *rows: int) -> MemorySink:
    log = pa.table({name: pa.array([], pa.int64()) for name in ("k", "epoch", "diff")})
    sink = MemorySink(spark, log)
    sink.commit(0, pa.table({"k": list(rows), "epoch": [0] * len(rows), "diff": [1] * len(rows)}))
    sink.finish(lambda: pa.table({"k": list(rows)}))
    return sink


def test_an_answer_is_a_frame_by_its_name_or_without_if_it_is_the_only_one(spark: SparkSession) -> None:
    one = Result({"result": [kept(spark, 1, 2)]}, 1, None)
    assert sorted(one.to_df().collect()) == [(1,), (2,)] == sorted(one.table("result").collect())
    assert sorted(one.to_df("result").collect()) == [(1,), (2,)]
    assert sorted(one.changes().collect()) == [(1, 0, 1), (2, 0, 1)]
    both = Result({"a": [kept(spark, 1)], "b": [kept(spark)]}, 2, ["mon", "tue"])
    assert (both.names, both.epochs, both.values) == (["a", "b"], 2, ["mon", "tue"])
    assert both.table("b").columns == ["k"] and both.table("b").count() == 0
    with pytest.raises(MisuseError, match=r"puts out a, b: table\(name\)"):
        both.to_df()
    with pytest.raises(MisuseError, match=r"puts out a, b, and nothing called 'c'"):
        both.table("c")


def test_what_a_frame_can_is_said_to_be_of_an_answers_frames() -> None:
    one, both = Result({"result": []}), Result({"a": [], "b": []})
    for answer, name, said in (
        (one, "show", r"^an answer has no 'show'\. Its DataFrames have: write to_df\(\)\.show"),
        (both, "toPandas", r"write table\('a'\)\.toPandas"),
        (one, "write", r"write to_df\(\)\.write"),
    ):
        with pytest.raises(AttributeError, match=said):
            getattr(answer, name)
    with pytest.raises(AttributeError, match="no attribute 'shown'"):
        getattr(one, "shown")  # noqa: B009  # what is not there, mypy knows
    assert repr(both) == "Result(outputs a, b; read table(name), changes(name))"
    assert repr(one) == "Result(outputs result; read to_df(), changes())"


def test_an_answer_that_went_to_callbacks_alone_is_not_there() -> None:
    with pytest.raises(MisuseError, match="output 'a' went to callbacks alone: name a folder as well"):
        Result({"a": []}, 1, None).table()
