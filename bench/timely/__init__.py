"""Benchmarks of dataflows of hand-written stages, without collections."""
