"""Rows in an order: the first ones, their numbers, and what is around each."""
