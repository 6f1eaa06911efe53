"""Rows in as few bytes as their values need."""
