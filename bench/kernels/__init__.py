"""Benchmarks of the kernels and machines by themselves: one question per file."""
