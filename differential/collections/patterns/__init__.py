"""Joins of many collections at once."""
