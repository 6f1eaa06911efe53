"""The module by which PySpark finds the data source has the name that it looks for, and nothing else."""

from __future__ import annotations

from timely.spark.source import NaiadSource, pyspark_naiad


def test_its_default_source_is_ours() -> None:
    assert pyspark_naiad.DefaultSource is NaiadSource
    assert pyspark_naiad.__all__ == ["DefaultSource"]
    assert pyspark_naiad.__name__.rpartition(".")[2].startswith("pyspark_")
