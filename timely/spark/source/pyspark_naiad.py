"""How PySpark finds `format("naiad")`: it looks for modules called `pyspark_…` that have a `DefaultSource`.

An installation puts this file beside the packages, as the module `pyspark_naiad` (pyproject.toml). It is
imported by every driver that names any Python data source, so it imports nothing that is not needed for that.
"""

from timely.spark.source.data_source import NaiadSource as DefaultSource

__all__ = ["DefaultSource"]
