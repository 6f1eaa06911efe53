"""Numba's kernels, called without numba: a tenant of `progress`. Read `README.md` beside it."""
