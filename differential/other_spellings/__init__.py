"""Names and forms of PySpark, Polars, pandas and SQL: done where they mean the same, answered where not."""

from .answers import condition_of, meant, of_another_library, written_as

__all__ = ["condition_of", "meant", "of_another_library", "written_as"]
