"""Kernels for sorted rows: sort, merge, pack, search, hash."""
