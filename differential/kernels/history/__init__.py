"""Kernels for histories of keys: which times matter, reduce, match, what is complete."""
