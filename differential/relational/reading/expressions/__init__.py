"""Expressions of SQL: what they mean, and what they may have in them where they stand."""
