"""Names and forms of PySpark, Polars, pandas and SQL: those with the same meaning work, others get a hint."""

from .answers import condition_of, meant, of_another_library, written_as

__all__ = ["condition_of", "meant", "of_another_library", "written_as"]
