"""Kernels for sorted rows: sort, pack, search, hash."""
