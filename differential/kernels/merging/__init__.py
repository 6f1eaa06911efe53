"""Kernels that make one sorted table of several: rows, runs of a trace, runs of one time as words."""
