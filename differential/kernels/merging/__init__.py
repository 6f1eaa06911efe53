"""Kernels that merge several sorted tables into one: rows, runs of a trace, runs of one time as words."""
