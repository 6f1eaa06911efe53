"""Operators of collections that look at times."""
