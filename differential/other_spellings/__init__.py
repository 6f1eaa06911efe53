"""Names and forms of PySpark, Polars, pandas and SQL: those with the same meaning work, others get a hint."""

from .answers import meant, of_another_library, written_as
from .conditions import condition_of, written_condition

__all__ = ["condition_of", "meant", "of_another_library", "written_as", "written_condition"]
