"""Operators of collections that use times."""
