"""Streams of tables, and where the rows of tables go."""
