"""Joins that are spread over units."""
