"""Kernels for histories of keys: interesting times, reduce, match, and which rows are complete."""
