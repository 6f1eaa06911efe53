"""Queries in SQL that are kept current while rows come and go, beside Flink SQL and beside recomputation."""
