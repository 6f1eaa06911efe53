"""The module by which PySpark finds `format("naiad")`: PySpark looks for modules `pyspark_…` with a
`DefaultSource`.

An installation puts this file beside the packages, as the module `pyspark_naiad` (pyproject.toml). Every
driver that names any Python data source imports it, so it imports only the class itself.
"""

from timely.spark.source.data_source import NaiadSource as DefaultSource

__all__ = ["DefaultSource"]
