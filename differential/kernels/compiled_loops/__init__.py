"""Loops that run compiled: iteration after iteration in one call, over the traces of their operators."""
